"""One block of scores in NumPy: product, softcap, bias and mask, in a reused buffer; and exact weights from them."""

from dataclasses import dataclass

import numpy as np

from regard.attention_call import AttentionCall
from regard.kernels.tiles import KEYS_PER_MASK_BLOCK, block_of, head_of, is_imprecise, row_blocks, rows_per_block
from regard.masks import BoundMask

ROWS = 256
"""Rows in a block where there are few keys."""


@dataclass(frozen=True, slots=True)
class HeadInputs:
    """One head of one sample: queries, keys, values, and mask."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: np.floating
    mask: BoundMask | None
    bias: np.ndarray | None
    softcap: float | None

    @classmethod
    def of(cls, call: AttentionCall, b: int, h: int) -> "HeadInputs":
        """Head h of sample b. Keys and values are made contiguous: BLAS copies any other layout, once per block."""
        q, k, v = call.q, call.k, call.v
        exact = exact_dtype(q)
        g = h // (q.shape[1] // k.shape[1])
        return cls(
            q=q[b, h],
            k=np.ascontiguousarray(k[b, g], dtype=exact),
            v=np.ascontiguousarray(v[b, g], dtype=exact),
            scale=exact.type(call.scale),
            mask=None if call.bound is None else call.bound.pick(b, h),
            bias=None if call.bias is None else head_of(call.bias, b, h),
            softcap=call.softcap,
        )

    def reach(self, rows: slice) -> tuple[int, int]:
        return (0, self.k.shape[0]) if self.mask is None else self.mask.reach(rows)

    def scores(self, rows: slice, low: int, high: int, out: np.ndarray) -> np.ndarray:
        """The scores of these rows and the keys low … high, -inf where masked, written into `out`."""
        # Scaled before the product, as in the definition; C order, so that rounding does not depend on the layout.
        queries = np.ascontiguousarray(self.q[rows], dtype=self.k.dtype) * self.scale
        scores = np.matmul(queries, self.k[low:high].T, out=out)
        if self.softcap is not None:
            np.divide(scores, self.softcap, out=scores)
            np.tanh(scores, out=scores)
            np.multiply(scores, self.softcap, out=scores)
        if self.bias is not None:
            scores += block_of(self.bias, rows, slice(low, high))
        if self.mask is not None:
            mask_out(scores, self.mask, rows, low, high)
        return scores


def exact_dtype(x: np.ndarray) -> np.dtype:
    """The dtype of the computation: float64 for float64, float32 for the others."""
    return np.dtype(np.float64 if x.dtype.itemsize == 8 else np.float32)


def mask_out(scores: np.ndarray, mask: BoundMask, rows: slice, low: int, high: int, value: float = -np.inf) -> None:
    """Write `value` where keys are masked for the rows."""
    for tile, visible in mask.partial_tiles(rows, low, high, KEYS_PER_MASK_BLOCK):
        part = scores[:, tile.start - low : tile.stop - low]
        if visible is False:
            part[...] = value
        else:
            np.copyto(part, value, where=~visible)


def shift_by_maximum(scores: np.ndarray) -> np.ndarray:
    """Subtract the maximum from each row in place and return it; a fully masked row keeps its -inf."""
    row_max = scores.max(axis=1)
    row_max[row_max == -np.inf] = 0
    scores -= row_max[:, None]
    return row_max


def rectangle(call: AttentionCall, lse: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
    """The weights of rows × cols, B H rows cols: exp(score − LSE); lse is B H T. The values are not used.

    Where the LSE is so large that its rounding error matters, the softmax of these rows is recomputed over all keys.
    """
    B, H = call.q.shape[:2]
    weights = np.zeros((B, H, rows.stop - rows.start, cols.stop - cols.start), exact_dtype(call.q))
    if not weights.size:
        return weights
    with np.errstate(invalid="ignore", over="ignore"):
        for b, h in np.ndindex(B, H):
            head = HeadInputs.of(call, b, h)
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


def _recompute_weights(head: HeadInputs, rows: slice, cols: slice, weights: np.ndarray) -> None:
    """Write the same weights into `weights`, computed without the LSE."""
    S = head.k.shape[0]
    for block in row_blocks(rows.start, rows.stop, rows_per_block(rows.stop - rows.start, S, ROWS)):
        exps = head.scores(block, 0, S, np.empty((block.stop - block.start, S), weights.dtype))
        shift_by_maximum(exps)
        np.exp(exps, out=exps)
        total = exps.sum(1, keepdims=True)
        weights[block.start - rows.start : block.stop - rows.start] = exps[:, cols] / np.where(total == 0, 1, total)
