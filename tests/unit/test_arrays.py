"""Arrays change their kind without changing their numbers, and without torch being imported."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from strategies import LAYOUTS, lay_out

from regard.arrays import is_tensor, to_kind_of, to_numpy


def test_what_is_a_tensor() -> None:
    assert is_tensor(torch.zeros(1))
    assert is_tensor(torch.nn.Parameter(torch.zeros(1)))
    for other in (np.zeros(1), [1.0], None, torch, torch.float32):
        assert not is_tensor(other)


def test_asking_does_not_import_torch() -> None:
    code = (
        "import sys, numpy as np; from regard.arrays import is_tensor, to_kind_of; "
        "assert not is_tensor(np.zeros(1)); to_kind_of(np.zeros(1), None); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8", "bool", "bfloat16"])
def test_tensors_become_arrays_with_the_same_numbers(dtype: str) -> None:
    x = torch.tensor([[0.0, 1.0], [3.0, 200.0]]).to(getattr(torch, dtype))
    array = to_numpy(x)
    assert isinstance(array, np.ndarray)
    assert array.dtype.name == ("float32" if dtype == "bfloat16" else dtype)
    assert array.tolist() == x.tolist()


def test_a_tensor_with_a_gradient_becomes_an_array() -> None:
    x = torch.ones(2, requires_grad=True)
    np.testing.assert_array_equal(to_numpy(x * 2), [2, 2])


def test_memory_is_shared_where_it_can_be() -> None:
    x = torch.zeros(3)
    assert np.shares_memory(to_numpy(x), x.numpy())
    a = np.zeros(3)
    assert to_numpy(a) is a


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_arrays_of_every_layout_become_tensors(layout: str, dtype: str) -> None:
    """Negative strides and read-only memory are what torch refuses or warns about."""
    x = lay_out(np.arange(24.0).reshape(1, 2, 3, 4), layout).astype(dtype, order="K", copy=False)
    tensor = to_kind_of(x, torch.zeros(1))
    assert is_tensor(tensor)
    np.testing.assert_array_equal(tensor.numpy(), x)


def test_a_tensor_never_writes_into_read_only_memory() -> None:
    x = np.zeros(2)
    x.flags.writeable = False
    to_kind_of(x, torch.zeros(1))[0] = 1
    assert not x.any()


def test_like_decides_the_kind() -> None:
    tensor, array = torch.ones(2), np.ones(2)
    assert to_kind_of(tensor, tensor) is tensor
    assert isinstance(to_kind_of(tensor, None), np.ndarray)
    assert isinstance(to_kind_of(tensor, array), np.ndarray)
    assert isinstance(to_kind_of(array, array), np.ndarray)
    assert to_kind_of(array, torch.empty(0, device="meta")).device.type == "meta"


def test_numbers_and_lists_become_arrays() -> None:
    assert to_numpy(3).shape == ()
    assert to_numpy([[1, 2]]).shape == (1, 2)


def test_the_other_byte_order_is_brought_over() -> None:
    """Files of another machine hold such arrays; torch knows only its own order."""
    x = np.array([1.0, 2.0], dtype=">f4")
    np.testing.assert_array_equal(to_kind_of(x, torch.zeros(1)).numpy(), [1, 2])
