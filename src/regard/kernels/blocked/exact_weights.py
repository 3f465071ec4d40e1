"""Exact weights of any rectangle, from q, k and the LSE alone: exp(score − LSE).

Where the LSE is so large that its last digit counts, the rows are weighed again, with all their keys.
"""

import numpy as np

from regard.kernels.blocked.forward import ROWS, shift_by_maximum
from regard.kernels.blocked.scores import Head, exact_dtype
from regard.kernels.tiles import is_coarse, row_blocks, rows_per_block
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
            shift = lse[b, h, rows].astype(weights.dtype)
            if is_coarse(shift, np.finfo(shift.dtype).eps):
                _weigh_again(head, rows, cols, weights[b, h])
                weights[b, h, shift == -np.inf] = 0
                continue
            scores = head.scores(rows, cols.start, cols.stop, weights[b, h])
            # A query that sees nothing, or is padding, has an LSE of -inf and no weights.
            scores -= np.where(shift == -np.inf, np.inf, shift)[:, None]
            np.exp(scores, out=scores)
    return weights


def _weigh_again(head: Head, rows: slice, cols: slice, weights: np.ndarray) -> None:
    """The same without an LSE, into `weights`."""
    S = head.k.shape[0]
    for some in row_blocks(rows.start, rows.stop, rows_per_block(rows.stop - rows.start, S, ROWS)):
        powers = head.scores(some, 0, S, np.empty((some.stop - some.start, S), weights.dtype))
        shift_by_maximum(powers)
        np.exp(powers, out=powers)
        total = powers.sum(1, keepdims=True)
        weights[some.start - rows.start : some.stop - rows.start] = powers[:, cols] / np.where(total == 0, 1, total)
