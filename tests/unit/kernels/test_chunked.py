"""The two paths of the torch kernel: PyTorch's own kernel for wide bins, a pass of ours for everything else."""

from typing import Any

import numpy as np
import pytest
import torch
from narrowing import Three, present, three, two
from tolerances import assert_close

from regard import Mask, See, attend, reference
from regard.kernels.chunked import forward

SIZES = [(256, 256), (300, 300), (257, 257)]


def call(T: int, S: int, dtype: str, heads: tuple[int, int] = (4, 2)) -> Three[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = ((1, heads[0], T, 8), (1, heads[1], S, 8), (1, heads[1], S, 8))
    return three(rng.standard_normal(shape).astype(dtype) for shape in shapes)


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The path used for each head, in order."""
    used: list[str] = []
    for name in ("attend_by_bins", "attend_in_blocks"):
        real = getattr(forward, name)

        def spy(*arguments: Any, name: str = name, real: Any = real) -> None:
            used.append(name)
            real(*arguments)

        monkeypatch.setattr(forward, name, spy)
    return used


@pytest.mark.parametrize(("T", "S"), [*SIZES, (100, 400)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mask", [None, Mask.causal()], ids=["full", "causal"])
@pytest.mark.parametrize("bins", [1, 3, 4])
def test_a_map_of_wide_bins_is_exact(
    T: int, S: int, dtype: str, mask: Mask | None, bins: int, paths: list[str]
) -> None:
    arrays = call(T, S, dtype)
    out, record = attend(*three(map(torch.from_numpy, arrays)), mask=mask, see=See(map=bins))
    right, weights = reference.scaled_dot_product_attention(*three(x.astype(np.float64) for x in arrays), mask=mask)
    assert set(paths) == ({"attend_by_bins"} if mask is None or T == S else {"attend_in_blocks"})
    assert_close(out, right)
    assert_close(record.map, reference.pooled_map(weights, bins), "statistic", dtype)
    scores = reference.attention_scores(*two(x.astype(np.float64) for x in arrays[:2]), mask=mask)
    assert_close(record.lse, reference.log_sum_exp(scores), "statistic", dtype)


@pytest.mark.parametrize(
    "options",
    [
        {"see": See(map=4, entropy=True)},
        {"see": See(map=4, received=True)},
        {"see": See(map=4, top=2)},
        {"see": See(map=5)},
        {"see": See(map=4), "softcap": 3.0},
        {"see": See(map=4), "mask": Mask.window(9, 0)},
        {"see": See(map=4), "bias": np.zeros((256, 256), np.float32)},
    ],
    ids=["entropy", "received", "top", "narrow", "softcap", "window", "bias"],
)
def test_other_statistics_use_our_own_pass(options: dict[str, Any], paths: list[str]) -> None:
    attend(*three(map(torch.from_numpy, call(256, 256, "float32"))), **options)
    assert set(paths) == {"attend_in_blocks"}


@pytest.mark.parametrize("mask", [None, Mask.causal()], ids=["full", "causal"])
def test_gradients_do_not_depend_on_the_path(mask: Mask | None, paths: list[str]) -> None:
    arrays = call(256, 256, "float64")
    found = []
    for see in (See(map=4), See(map=4, received=True)):
        leaves = three(torch.from_numpy(x).requires_grad_() for x in arrays)
        attend(*leaves, mask=mask, see=see)[0].square().sum().backward()
        found.append([x.grad for x in leaves])
    assert set(paths) == {"attend_by_bins", "attend_in_blocks"}
    for one, other in zip(*found, strict=True):
        assert_close(one, other, "gradient")


def test_large_scores_do_not_overflow_the_merge() -> None:
    q, k, v = call(256, 256, "float32", (1, 1))
    q *= 60
    _, record = attend(*three(map(torch.from_numpy, (q, k, v))), see=See(map=4))
    _, weights = reference.scaled_dot_product_attention(*three(x.astype(np.float64) for x in (q, k, v)))
    np.testing.assert_allclose(present(record.map).numpy(), reference.pooled_map(weights, 4), atol=2e-4)
