"""One block of scores in NumPy: the product, softcap, bias and mask, in a buffer that is used again."""

from dataclasses import dataclass

import numpy as np

from regard.kernels.tiles import COLUMNS_PER_QUESTION, block_of, head_of
from regard.masks import BoundMask


@dataclass(frozen=True, slots=True)
class Head:
    """One head of one sample: its queries, keys and values, and who may look where."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: np.floating
    mask: BoundMask | None
    bias: np.ndarray | None
    softcap: float | None

    @classmethod
    def of(
        cls,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        b: int,
        h: int,
        *,
        mask: BoundMask | None,
        bias: np.ndarray | None,
        scale: float,
        softcap: float | None,
    ) -> "Head":
        """Head h of sample b. Keys and values are made contiguous: BLAS copies anything else, once per block."""
        exact = exact_dtype(q)
        g = h // (q.shape[1] // k.shape[1])
        return cls(
            q=q[b, h],
            k=np.ascontiguousarray(k[b, g], dtype=exact),
            v=np.ascontiguousarray(v[b, g], dtype=exact),
            scale=exact.type(scale),
            mask=None if mask is None else mask.pick(b, h),
            bias=head_of(bias, b, h),
            softcap=softcap,
        )

    def reach(self, rows: slice) -> tuple[int, int]:
        return (0, self.k.shape[0]) if self.mask is None else self.mask.reach(rows)

    def scores(self, rows: slice, low: int, high: int, out: np.ndarray) -> np.ndarray:
        """The scores of these rows and of the keys low … high, -inf where hidden, written into `out`."""
        # Scaled before the product, as the definition has it; C order, so that rounding does not follow the layout.
        queries = np.ascontiguousarray(self.q[rows], dtype=self.k.dtype) * self.scale
        scores = np.matmul(queries, self.k[low:high].T, out=out)
        if self.softcap is not None:
            np.divide(scores, self.softcap, out=scores)
            np.tanh(scores, out=scores)
            np.multiply(scores, self.softcap, out=scores)
        if self.bias is not None:
            scores += block_of(self.bias, rows, slice(low, high))
        if self.mask is not None:
            hide(scores, self.mask, rows, low, high)
        return scores


def exact_dtype(x: np.ndarray) -> np.dtype:
    """What to compute in: float64 for float64, float32 for the rest."""
    return np.dtype(np.float64 if x.dtype.itemsize == 8 else np.float32)


def hide(scores: np.ndarray, mask: BoundMask, rows: slice, low: int, high: int, value: float = -np.inf) -> None:
    """Write `value` where the rows may not look."""
    for tile, seen in mask.doubtful(rows, low, high, COLUMNS_PER_QUESTION):
        part = scores[:, tile.start - low : tile.stop - low]
        if seen is False:
            part[...] = value
        else:
            np.copyto(part, value, where=~seen)
