"""Exact weights of any rectangle, from q, k and the LSE alone: exp(score − LSE)."""

import numpy as np

from regard.kernels.blocked.scores import Head, exact_dtype
from regard.masks import BoundMask


def rectangle(
    q: np.ndarray,
    k: np.ndarray,
    lse: np.ndarray,
    rows: slice,
    cols: slice,
    *,
    mask: BoundMask | None = None,
    bias: np.ndarray | None = None,
    scale: float,
    softcap: float | None = None,
) -> np.ndarray:
    """The weights of rows × cols, B H rows cols. q B H T E, k B G S E, lse B H T."""
    B, H = q.shape[:2]
    weights = np.zeros((B, H, rows.stop - rows.start, cols.stop - cols.start), exact_dtype(q))
    if not weights.size:
        return weights
    with np.errstate(invalid="ignore", over="ignore"):
        for b, h in np.ndindex(B, H):
            head = Head.of(q, k, k, b, h, mask=mask, bias=bias, scale=scale, softcap=softcap)
            scores = head.scores(rows, cols.start, cols.stop, weights[b, h])
            shift = lse[b, h, rows].astype(weights.dtype)
            # Nothing seen: LSE is -inf and every score is too; exp(-inf - 0) is the 0 it should be.
            scores -= np.where(shift == -np.inf, 0, shift)[:, None]
            np.exp(scores, out=scores)
    return weights
