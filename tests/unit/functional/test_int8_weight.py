"""Products with 8-bit weights equal those of the dequantised matrix, compiled or not."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.checkpoints.tensor_file import quantise
from regard.errors import DtypeError
from regard.functional import int8_weight
from regard.functional.int8_weight import MAX_ROWS, Int8Weight, compiled_library, compiled_rows
from regard.functional.position_wise import linear_rows

WIDTHS = [1, 7, 64, 1024, 1025, 2500]
"""Around the block of columns that is converted at a time."""


def require_compiler() -> None:
    if compiled_rows() is None:
        pytest.skip("there is no C++ compiler")


@pytest.fixture(params=["compiled", "plain"])
def product_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "plain":
        monkeypatch.setattr(int8_weight, "compiled_rows", lambda: None)
    else:
        require_compiler()
    kind: str = request.param
    return kind


def weight(m: int, n: int) -> Tensor:
    return torch.randn(m, n, generator=torch.Generator().manual_seed(m * n)) * torch.linspace(0.1, 3, m)[:, None]


@pytest.mark.parametrize("rows", [1, 2, 5, MAX_ROWS, MAX_ROWS + 1])
@pytest.mark.parametrize("n", WIDTHS)
def test_products(product_kind: str, rows: int, n: int) -> None:
    rounded, x = Int8Weight.of(weight(37, n)), torch.randn(rows, n, generator=torch.Generator().manual_seed(1))
    expected = x.double() @ rounded.dequantised().double().T
    scale = x.abs().double() @ rounded.dequantised().abs().double().T
    with torch.no_grad():
        found = rounded.product(x)
        assert ((found - expected).abs() <= 1e-6 * scale + 1e-7).all()
        shifted = linear_rows(x[None], rounded, torch.ones(37))
        assert torch.equal(shifted[0], found + 1)


def test_every_layout_of_x(product_kind: str) -> None:
    rounded, x = Int8Weight.of(weight(20, 6)), torch.randn(6, 4)
    with torch.no_grad():
        assert torch.allclose(rounded.product(x.T), rounded.product(x.T.contiguous()))
        assert rounded.product(torch.zeros(2, 3, 6)).shape == (2, 3, 20)
        assert rounded.product(torch.zeros(0, 6)).shape == (0, 20)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(threads: int) -> None:
    rounded, x = Int8Weight.of(weight(33, 50)), torch.randn(3, 50)
    before = torch.get_num_threads()
    with torch.no_grad():
        expected = rounded.product(x)
        torch.set_num_threads(threads)
        found = rounded.product(x)
        torch.set_num_threads(before)
    assert torch.equal(found, expected)


def test_the_numbers_are_those_of_the_file() -> None:
    """A file with 8-bit weights, and a model rounded while it is loaded, hold the same numbers."""
    given = weight(64, 80)
    given[3] = 0
    stored, rounded = quantise({"w": given.numpy()}), Int8Weight.of(given)
    assert np.array_equal(rounded.scale.numpy(), stored["w.scale"])
    apart = np.abs(rounded.numbers.numpy().astype(int) - stored["w"].astype(int))
    assert apart.max() <= 1  # a tie may round up or down
    assert apart.mean() < 1e-3
    assert (rounded.dequantised() - given).abs().max(1).values.le(rounded.scale * 0.5001).all()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite(value: float) -> None:
    given = torch.ones(3, 4)
    given[1, 2] = value
    with pytest.raises(DtypeError, match="layer"):
        Int8Weight.of(given, "layer.weight")


def test_gradients_flow_to_x() -> None:
    rounded, x = Int8Weight.of(weight(5, 6)), torch.randn(1, 6, requires_grad=True)
    rounded.product(x).sum().backward()
    assert torch.allclose(x.grad, rounded.dequantised().sum(0)[None])  # type: ignore[arg-type]


def test_without_a_cache_the_library_is_compiled_elsewhere_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_compiler()
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    cache.write_text("a file where a folder is needed")
    temporary.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    library = compiled_library.__wrapped__()
    assert library is not None
    assert library.int8_rows
    assert list(temporary.iterdir()) == []


def test_a_user_without_a_home_compiles_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_compiler()

    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", none)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert compiled_library.__wrapped__() is not None
    assert list(tmp_path.iterdir()) == []
