"""Conversions between NumPy arrays and tensors keep the numbers and do not import torch."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from strategies import LAYOUTS, lay_out

from regard.arrays import convert_like, is_tensor, to_numpy


def test_is_tensor() -> None:
    assert is_tensor(torch.zeros(1))
    assert is_tensor(torch.nn.Parameter(torch.zeros(1)))
    for other in (np.zeros(1), [1.0], None, torch, torch.float32):
        assert not is_tensor(other)


def test_type_check_does_not_import_torch() -> None:
    code = (
        "import sys, numpy as np; from regard.arrays import is_tensor, convert_like; "
        "assert not is_tensor(np.zeros(1)); convert_like(np.zeros(1), None); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8", "bool", "bfloat16"])
def test_tensor_to_numpy_keeps_the_numbers(dtype: str) -> None:
    x = torch.tensor([[0.0, 1.0], [3.0, 200.0]]).to(getattr(torch, dtype))
    array = to_numpy(x)
    assert isinstance(array, np.ndarray)
    assert array.dtype.name == ("float32" if dtype == "bfloat16" else dtype)
    assert array.tolist() == x.tolist()


def test_tensor_with_a_gradient_to_numpy() -> None:
    x = torch.ones(2, requires_grad=True)
    np.testing.assert_array_equal(to_numpy(x * 2), [2, 2])


def test_memory_is_shared_where_possible() -> None:
    x = torch.zeros(3)
    assert np.shares_memory(to_numpy(x), x.numpy())
    a = np.zeros(3)
    assert to_numpy(a) is a


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_arrays_of_every_layout_to_tensor(layout: str, dtype: str) -> None:
    """torch refuses negative strides and warns about read-only memory."""
    x = lay_out(np.arange(24.0).reshape(1, 2, 3, 4), layout).astype(dtype, order="K", copy=False)
    tensor = convert_like(x, torch.zeros(1))
    assert is_tensor(tensor)
    np.testing.assert_array_equal(tensor.numpy(), x)


def test_read_only_memory_is_copied() -> None:
    x = np.zeros(2)
    x.flags.writeable = False
    convert_like(x, torch.zeros(1))[0] = 1
    assert not x.any()


def test_like_decides_the_array_type() -> None:
    tensor, array = torch.ones(2), np.ones(2)
    assert convert_like(tensor, tensor) is tensor
    assert isinstance(convert_like(tensor, None), np.ndarray)
    assert isinstance(convert_like(tensor, array), np.ndarray)
    assert isinstance(convert_like(array, array), np.ndarray)
    assert convert_like(array, torch.empty(0, device="meta")).device.type == "meta"


def test_numbers_and_lists_to_numpy() -> None:
    assert to_numpy(3).shape == ()
    assert to_numpy([[1, 2]]).shape == (1, 2)


def test_other_byte_order_is_converted() -> None:
    """Files from another machine may contain such arrays; torch supports only the native byte order."""
    x = np.array([1.0, 2.0], dtype=">f4")
    np.testing.assert_array_equal(convert_like(x, torch.zeros(1)).numpy(), [1, 2])
