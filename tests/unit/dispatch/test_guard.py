"""What the guard asks of a mask, and how often."""

from typing import Any

import numpy as np
import pytest
import torch
from tolerances import assert_close

from regard import Mask, See, attend
from regard.arrays import Array, to_numpy
from regard.dispatch import overflow
from regard.dispatch.call import Call

IDS = np.array([3, 3, 1, 1, 3, 1, 1, 3])
MASKS = {
    "segments": Mask.segments(IDS),
    "packed": Mask.segments(IDS) & Mask.causal() & Mask.padding(np.array([1, 1, 1, 1, 1, 1, 1, 0])),
    "array": Mask.of(np.equal.outer(IDS, IDS)),  # no quick way to tell
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of what a mask was asked about, question after question."""
    shapes: list[tuple[int, ...]] = []
    answer = Call.may_see

    def may_see(call: Call, flagged: Array) -> Array:
        shapes.append(tuple(flagged.shape))
        return answer(call, flagged)

    monkeypatch.setattr(Call, "may_see", may_see)
    return shapes


def spoilt(places: dict[str, float]) -> list[np.ndarray]:
    """q, k and v of 4 heads on 2; what is named holds such a number in one place."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, heads, 8, 4)).astype("f4") for heads in (4, 2, 2)]
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
def test_a_mask_is_asked_once_at_most(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, places: dict[str, float], mask: str, see: See | None, kind: str
) -> None:
    if kind == "as on a GPU":  # which may not be waited for
        monkeypatch.setattr(overflow, "may_branch", lambda _: False)
    arrays = [x if kind == "numpy" else torch.from_numpy(x) for x in spoilt(places)]
    attend(*arrays, mask=MASKS[mask], see=see)
    wild = [value for value in places.values() if kind == "torch" or not np.isfinite(value)]  # NumPy knows no huge
    assert len(asked) == (1 if wild or kind == "as on a GPU" else 0)
    assert all(shape[1:] == (2, 4, 8) for shape in asked)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("mask", MASKS)
def test_who_sees_what_is_bad_is_nan_and_nobody_else(mask: str, kind: str) -> None:
    """Something bad and something huge in one call."""
    convert = np.asarray if kind == "numpy" else torch.from_numpy
    allowed = np.broadcast_to(MASKS[mask].dense(8, 8), (1, 1, 8, 8))[0, 0]
    clean = attend(*map(convert, spoilt({})), mask=MASKS[mask])
    q, k, v = spoilt({"k": np.nan})
    v[1, 1, 4] = 1e30
    out, record = attend(convert(q), convert(k), convert(v), mask=MASKS[mask], see=See(map=None, lse=True))
    bad, huge = (np.zeros((2, 4, 8), bool) for _ in "bh")
    bad[1, 2:] = allowed[:, 3]  # the second head of keys serves the last two of queries
    huge[1, 2:] = allowed[:, 4] & ~allowed[:, 3]
    out, clean = to_numpy(out), to_numpy(clean)
    assert (np.isnan(out).all(-1) == bad).all()
    assert (np.isnan(to_numpy(record.lse)) == bad).all()
    assert (np.abs(out[huge]) > 1e20).all()
    assert huge.any()
    assert_close(out[~bad & ~huge], clean[~bad & ~huge])


def test_a_compiled_call_with_segments_keeps_hidden_garbage_out() -> None:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return attend(q, k, v, mask=Mask.segments(ids) & Mask.causal())

    ids = torch.from_numpy(IDS)
    torch.compiler.reset()
    try:
        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        clean = compiled(*map(torch.from_numpy, spoilt({})), ids)
        out = compiled(*map(torch.from_numpy, spoilt({"v": np.nan})), ids)
    finally:
        torch.compiler.reset()
    seeing = torch.zeros(2, 4, 8, dtype=torch.bool)
    seeing[1, 2:] = (ids == ids[3]) & (torch.arange(8) >= 3)
    assert out[seeing].isnan().all()
    assert torch.equal(out[~seeing], clean[~seeing])
