"""The kernels return the same top keys as the reference: the earlier of equal ones, masked ones last."""

from typing import Any

import numpy as np
import pytest
import torch
from narrowing import three

from regard import Mask, See, attend
from regard.arrays import to_numpy


@pytest.mark.parametrize(
    ("top", "scale"),
    [(3, 0.5), (30, 64.0), *(pytest.param(*case, marks=pytest.mark.long) for case in ((30, 0.5), (3, 64.0)))],
    ids=["few, different weights", "all, weights of 0", "all, different weights", "few, weights of 0"],
)
@pytest.mark.parametrize("mask", [None, Mask.causal(), Mask.window(2, 1)], ids=["full", "causal", "window"])
def test_the_same_keys_as_the_reference(mask: Mask | None, top: int, scale: float, device: str) -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.integers(-1, 2, (20, 16)).astype(np.float32) for _ in range(2))
    k = k[rng.integers(0, 6, 22)]  # keys are repeated
    tensors = three(torch.tensor(x, device=device) for x in (q, k, k))
    options: dict[str, Any] = {"mask": mask, "scale": scale, "see": See(top=top)}
    right, found = attend(q, k, k, **options, backend="reference")[1], attend(*tensors, **options, backend="triton")[1]
    assert right.top is not None
    assert found.top is not None
    np.testing.assert_array_equal(to_numpy(found.top.indices), right.top.indices)
