"""One block of scores in NumPy: the product, softcap, bias and mask, in a buffer that is used again."""

from dataclasses import dataclass

import numpy as np

from regard.kernels.tiles import COLUMNS_PER_QUESTION
from regard.masks import BoundMask


@dataclass(frozen=True, slots=True)
class Head:
    """One head of one sample: its queries already scaled, its keys and values, and who may look where."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    mask: BoundMask | None
    bias: np.ndarray | None
    softcap: float | None

    def reach(self, rows: slice) -> tuple[int, int]:
        return (0, self.k.shape[0]) if self.mask is None else self.mask.reach(rows)

    def scores(self, rows: slice, low: int, high: int, out: np.ndarray) -> np.ndarray:
        """The scores of these rows and of the keys low … high, -inf where hidden, written into `out`."""
        scores = np.matmul(self.q[rows], self.k[low:high].T, out=out)
        if self.softcap is not None:
            np.divide(scores, self.softcap, out=scores)
            np.tanh(scores, out=scores)
            np.multiply(scores, self.softcap, out=scores)
        if self.bias is not None:
            scores += self.bias[
                rows if self.bias.shape[0] > 1 else slice(None),
                slice(low, high) if self.bias.shape[1] > 1 else slice(None),
            ]
        if self.mask is not None:
            hide(scores, self.mask, rows, low, high)
        return scores


def hide(scores: np.ndarray, mask: BoundMask, rows: slice, low: int, high: int, value: float = -np.inf) -> None:
    """Write `value` where the rows may not look."""
    for tile, seen in mask.doubtful(rows, low, high, COLUMNS_PER_QUESTION):
        part = scores[:, tile.start - low : tile.stop - low]
        if seen is False:
            part[...] = value
        else:
            np.copyto(part, value, where=~seen)
