"""Large scores, whose LSE has few digits left: entropy and exact weights keep their precision."""

import numpy as np
import pytest
import torch
from tolerances import assert_close

from regard import See, attend, reference
from regard.arrays import Array, to_numpy
from regard.kernels.division import run_all

FAR = [0.0, -1e3, 1e6, -1e8, float(np.finfo("f").min)]
"""A number added to all scores of a call; the last one is used by many models to mask padding."""


def call(like: str) -> list[Array]:
    # Quarters, and 16 of them per head: scores are exact in float32, in whatever order a processor adds.
    x = np.random.default_rng(0).integers(-8, 9, (3, 1, 2, 40, 16)).astype("f") / 4
    return list(torch.from_numpy(x) if like == "torch" else x)


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize(
    ("like", "backend"), [("torch", "chunked"), ("torch", "eager"), ("numpy", "blocked"), ("numpy", "reference")]
)
def test_entropy_and_weights_stay_exact_for_an_imprecise_lse(like: str, backend: str, far: float) -> None:
    q, k, v = call(like)
    bias = np.full((1, 1, 40, 40), far, "f")
    bias[..., 30:] = -np.inf
    given = torch.from_numpy(bias) if like == "torch" else bias
    see = See(map=40, entropy=True, qk=True)
    _, record = attend(q, k, v, bias=given, backend=backend, see=see, kind="cross")  # masked keys that are not padding
    exact = to_numpy(record.map)  # one bin per weight, from the pass itself
    assert_close(exact.sum(-1), np.ones((1, 2, 40)), "weights")
    assert_close(record.weights(rows=slice(3, 39), cols=slice(2, 40)), exact[..., 3:39, 2:], "weights")
    assert_close(record.entropy, reference.entropy(exact), "statistic")


def test_work_in_a_thread_may_use_threads() -> None:
    x = np.random.default_rng(0).standard_normal((1, 8, 600, 4)).astype("f")
    alone = attend(x, x, x)
    assert all(np.array_equal(found, alone) for found in run_all(lambda _: attend(x, x, x), range(8)))
