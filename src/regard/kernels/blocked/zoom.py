"""Exact weights of any rectangle, from q, k and the LSE alone: exp(score − LSE)."""

import numpy as np

from regard.kernels.blocked.scores import Head
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
    exact = np.dtype(np.float64 if q.dtype == np.float64 else np.float32)
    served = H // k.shape[1] if H else 1
    weights = np.zeros((B, H, max(0, rows.stop - rows.start), max(0, cols.stop - cols.start)), exact)
    if not weights.size:
        return weights
    for b, h in np.ndindex(B, H):
        keys = np.ascontiguousarray(k[b, h // served], dtype=exact)
        head = Head(
            q=q[b, h].astype(exact) * exact.type(scale),
            k=keys,
            v=keys,
            mask=None if mask is None else mask.pick(b, h),
            bias=None if bias is None else bias[b if bias.shape[0] > 1 else 0, h if bias.shape[1] > 1 else 0],
            softcap=softcap,
        )
        with np.errstate(invalid="ignore", over="ignore"):
            scores = head.scores(rows, cols.start, cols.stop, weights[b, h])
            shift = lse[b, h, rows].astype(exact)
            # Nothing seen: LSE is -inf and every score is too; exp(-inf - 0) is the 0 it should be.
            scores -= np.where(shift == -np.inf, 0, shift)[:, None]
            np.exp(scores, out=scores)
    return weights
