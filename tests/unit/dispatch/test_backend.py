"""The guard: which queries become NaN, and how often it evaluates the mask."""

from typing import Any

import numpy as np
import pytest
import torch
from narrowing import Three, three
from tolerances import assert_close

from regard import Mask, See, attend
from regard.arrays import Array, to_numpy
from regard.attention_call import AttentionCall
from regard.dispatch import overflow

IDS = np.array([3, 3, 1, 1, 3, 1, 1, 3])
MASKS = {
    "segments": Mask.segments(IDS),
    "packed": Mask.segments(IDS) & Mask.causal() & Mask.padding(np.array([1, 1, 1, 1, 1, 1, 1, 0])),
    "array": Mask.of(np.equal.outer(IDS, IDS)),  # has no fast `any_visible`
}


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shape of the flags at each evaluation of a mask."""
    shapes: list[tuple[int, ...]] = []
    answer = AttentionCall.any_visible

    def any_visible(call: AttentionCall, flagged: Array) -> Array:
        shapes.append(tuple(flagged.shape))
        return answer(call, flagged)

    monkeypatch.setattr(AttentionCall, "any_visible", any_visible)
    return shapes


def with_bad_values(places: dict[str, float]) -> Three[np.ndarray]:
    """q, k and v of 4 query heads and 2 key/value heads, with the given value at one place of the named arrays."""
    rng = np.random.default_rng(0)
    arrays = three(rng.standard_normal((2, heads, 8, 4)).astype("f4") for heads in (4, 2, 2))
    for name, value in places.items():
        arrays["qkv".index(name)][1, 1, 3, 2] = value
    return arrays


@pytest.mark.parametrize("kind", ["numpy", "torch", "as on a GPU"])
@pytest.mark.parametrize("see", [None, See(map=4, entropy=True)], ids=["unseen", "seen"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    "places",
    [{}, {"q": np.nan}, {"k": np.inf, "v": np.nan}, {"v": 1e30}, {"q": 1e30, "k": np.nan}, {"k": np.nan, "v": 1e30}],
    ids=str,
)
def test_mask_is_evaluated_at_most_once(
    evaluations: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    places: dict[str, float],
    mask: str,
    see: See | None,
    kind: str,
) -> None:
    if kind == "as on a GPU":  # where values may not be read
        monkeypatch.setattr(overflow, "may_branch", lambda _: False)
    arrays = three(x if kind == "numpy" else torch.from_numpy(x) for x in with_bad_values(places))
    attend(*arrays, mask=MASKS[mask], see=see)
    bad = [
        value for value in places.values() if kind == "torch" or not np.isfinite(value)
    ]  # only torch checks for huge
    assert len(evaluations) == (1 if bad or kind == "as on a GPU" else 0)
    assert all(shape[1:] == (2, 4, 8) for shape in evaluations)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("mask", MASKS)
def test_only_queries_that_see_a_bad_key_become_nan(mask: str, kind: str) -> None:
    """Something bad and something huge in one call."""
    convert = np.asarray if kind == "numpy" else torch.from_numpy
    allowed = np.broadcast_to(MASKS[mask].dense(8, 8), (1, 1, 8, 8))[0, 0]
    clean = attend(*three(map(convert, with_bad_values({}))), mask=MASKS[mask])
    q, k, v = with_bad_values({"k": np.nan})
    v[1, 1, 4] = 1e30
    out, record = attend(convert(q), convert(k), convert(v), mask=MASKS[mask], see=See(map=None, lse=True))
    bad, huge = (np.zeros((2, 4, 8), bool) for _ in "bh")
    bad[1, 2:] = allowed[:, 3]  # the second key head belongs to the last two query heads
    huge[1, 2:] = allowed[:, 4] & ~allowed[:, 3]
    out, clean = to_numpy(out), to_numpy(clean)
    assert (np.isnan(out).all(-1) == bad).all()
    assert (np.isnan(to_numpy(record.lse)) == bad).all()
    assert (np.abs(out[huge]) > 1e20).all()
    assert huge.any()
    assert_close(out[~bad & ~huge], clean[~bad & ~huge])


def test_compiled_call_with_segments_ignores_masked_nan() -> None:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return attend(q, k, v, mask=Mask.segments(ids) & Mask.causal())

    ids = torch.from_numpy(IDS)
    torch.compiler.reset()
    try:
        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        clean = compiled(*three(map(torch.from_numpy, with_bad_values({}))), ids)
        out = compiled(*three(map(torch.from_numpy, with_bad_values({"v": np.nan}))), ids)
    finally:
        torch.compiler.reset()
    affected = torch.zeros(2, 4, 8, dtype=torch.bool)
    affected[1, 2:] = (ids == ids[3]) & (torch.arange(8) >= 3)
    assert out[affected].isnan().all()
    assert torch.equal(out[~affected], clean[~affected])
