"""Calls without samples, queries, keys or values: the results have the right shapes."""

import torch
from tolerances import assert_close

from regard import Mask, See, attend

EVERYTHING = See(map=2, max_score=True, entropy=True, received=True, top=2, distance=True, values=True, qk=True)


def test_empty_calls_equal_eager(device: str) -> None:
    for B, H, G, T, S, Ev in ((0, 4, 2, 1, 3, 2), (1, 2, 2, 0, 3, 2), (1, 4, 2, 3, 0, 2), (1, 2, 1, 1, 3, 0)):
        q, k, v = (torch.ones(shape, device=device) for shape in ((B, H, T, 2), (B, G, S, 2), (B, G, S, Ev)))
        for mask in (None, Mask.causal() & Mask.padding(torch.arange(S) - 1, pad=0)):
            out, record = attend(q, k, v, mask=mask, backend="triton", see=EVERYTHING)
            right, expected = attend(q, k, v, mask=mask, backend="eager", see=EVERYTHING)
            assert_close(out, right, "output", "float32")
            for name in ("map", "lse", "max_score", "entropy", "received", "sink", "distance", "value_norms"):
                assert_close(getattr(record, name), getattr(expected, name), "statistic", "float32")
            assert record.weights().shape == (B, H, T, S)
