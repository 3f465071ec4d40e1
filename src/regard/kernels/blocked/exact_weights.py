"""Exact weights of any rectangle of the score matrix, from q, k and the LSE: exp(score − LSE).

Where the LSE is so large that its rounding error matters, the softmax of these rows is recomputed over all keys.
"""

import numpy as np

from regard.attention_call import AttentionCall
from regard.kernels.blocked.forward import ROWS, shift_by_maximum
from regard.kernels.blocked.scores import Head, exact_dtype
from regard.kernels.tiles import is_imprecise, row_blocks, rows_per_block


def rectangle(call: AttentionCall, lse: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
    """The weights of rows × cols, B H rows cols; lse is B H T. The values are not used."""
    B, H = call.q.shape[:2]
    weights = np.zeros((B, H, rows.stop - rows.start, cols.stop - cols.start), exact_dtype(call.q))
    if not weights.size:
        return weights
    with np.errstate(invalid="ignore", over="ignore"):
        for b, h in np.ndindex(B, H):
            head = Head.of(call, b, h)
            shift = lse[b, h, rows].astype(weights.dtype)
            if is_imprecise(shift, np.finfo(shift.dtype).eps):
                _recompute_weights(head, rows, cols, weights[b, h])
                weights[b, h, shift == -np.inf] = 0
                continue
            scores = head.scores(rows, cols.start, cols.stop, weights[b, h])
            # A fully masked or padding query has an LSE of -inf and no weights.
            scores -= np.where(shift == -np.inf, np.inf, shift)[:, None]
            np.exp(scores, out=scores)
    return weights


def _recompute_weights(head: Head, rows: slice, cols: slice, weights: np.ndarray) -> None:
    """Write the same weights into `weights`, computed without the LSE."""
    S = head.k.shape[0]
    for block in row_blocks(rows.start, rows.stop, rows_per_block(rows.stop - rows.start, S, ROWS)):
        exps = head.scores(block, 0, S, np.empty((block.stop - block.start, S), weights.dtype))
        shift_by_maximum(exps)
        np.exp(exps, out=exps)
        total = exps.sum(1, keepdims=True)
        weights[block.start - rows.start : block.stop - rows.start] = exps[:, cols] / np.where(total == 0, 1, total)
