"""Weights of a file as tensors: the stored bits, any dtype, and views of the file that do not change it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from public_folders import gpt2, llama

from regard.checkpoints import read_model
from regard.checkpoints.tensor_file import Weights, write_tensors
from regard.models import Transformer
from regard.models.stored_weights import stored_tensors

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def weights(path: Path, dtype: torch.dtype) -> tuple[torch.Tensor, Weights]:
    """A tensor with infinities, NaN and a subnormal number, and the file that holds it."""
    tensor = torch.randn(5, 7, generator=torch.Generator().manual_seed(3)).to(dtype)
    tensor[0, :4] = torch.tensor([float("inf"), -float("inf"), float("nan"), 1e-40])
    with path.open("wb") as file:
        write_tensors(file, {"w": tensor, "empty": torch.zeros(0, 3, dtype=dtype)})
    return tensor, Weights(path)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("wanted", [None, *DTYPES])
@pytest.mark.parametrize("stored", DTYPES)
def test_every_dtype(stored: torch.dtype, wanted: torch.dtype | None, mapped: bool, tmp_path: Path) -> None:
    tensor, file = weights(tmp_path / "w", stored)
    found = stored_tensors(file, None if wanted is None else str(wanted).removeprefix("torch."), mapped=mapped)
    expected = tensor.to(stored if wanted is None else wanted)
    assert found["w"].dtype == expected.dtype
    assert torch.equal(found["w"].view(torch.uint8), expected.view(torch.uint8))  # NaN included
    assert found["empty"].shape == (0, 3)


@pytest.mark.parametrize("mapped", [False, True])
def test_writing_to_a_weight_does_not_change_the_file(mapped: bool, tmp_path: Path) -> None:
    tensor, file = weights(tmp_path / "w", torch.float32)
    before = (tmp_path / "w").read_bytes()
    stored_tensors(file, mapped=mapped)["w"].fill_(1)
    assert (tmp_path / "w").read_bytes() == before
    assert torch.equal(stored_tensors(Weights(tmp_path / "w"))["w"].nan_to_num(), tensor.nan_to_num())


def test_only_weights_that_need_a_conversion_are_copied(tmp_path: Path) -> None:
    """Llama's matrices have our layout; GPT-2's are transposed, and one holds q, k and v."""
    for make, most in ((llama, 0), (gpt2, 4 * 2)):
        stored = read_model(make(tmp_path / make.__name__))
        found = stored_tensors(stored.tensors, "float32", mapped=True)
        copied = [name for name, tensor in found.items() if not _is_view(stored.tensors.raw(name), tensor)]
        assert len({name.replace("k_proj", "q_proj").replace("v_proj", "q_proj") for name in copied}) == most, copied
        assert all(tensor.is_contiguous() for tensor in found.values())
        assert not any(_is_view(stored.tensors.raw(n), x) for n, x in stored_tensors(stored.tensors).items())


def _is_view(array: np.ndarray, tensor: torch.Tensor) -> bool:
    return array.ctypes.data == tensor.data_ptr()


def test_a_mapped_model_computes_the_same_and_outlives_its_folder(tmp_path: Path) -> None:
    folder, ids = llama(tmp_path / "llama"), torch.arange(9)[None]
    copied = Transformer.read(folder)
    mapped = Transformer.of_stored(read_model(folder), "float32", mapped=True)
    (folder / "model.safetensors").unlink()
    assert torch.equal(copied(ids), mapped(ids))
