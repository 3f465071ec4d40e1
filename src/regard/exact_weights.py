"""ExactWeights: the interface for the exact weights of one attention call, of which any rectangle is computed.

`WeightsArray` holds them. Other kinds are beside the code that makes them: from q, k and the LSE (`attention_call`), a
decoding step, several calls stitched together, the mean of heads, weights times the norms of values.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from regard.arrays import Array
from regard.axes import Shape
from regard.masks import BoundMask, Mask


class KnownMask(NamedTuple):
    """What masks the keys of a call, and nothing else does: a mask, or None where every key is visible.

    lead   the caller's axes before T and S, to which the mask applies
    like   an array of the type that the mask should return; None for NumPy
    """

    mask: Mask | None
    lead: Shape
    like: Array | None = None

    def bind(self, T: int, S: int) -> BoundMask:
        """The mask of T queries and S keys."""
        mask = Mask.window(None, None) if self.mask is None else self.mask
        return mask.bind(self.lead, T, S, self.like)


class ExactWeights(ABC):
    """The exact weights of one attention call."""

    __slots__ = ()

    lse: Array | None
    """B H T, where the weights are those of a softmax whose LSE is known; else None."""

    @abstractmethod
    def block(self, rows: slice, cols: slice) -> Array:
        """The weights of rows × cols, B H rows cols; both slices have a start and a stop inside the matrix."""

    def of_head(self, sample: int, head: int) -> "ExactWeights":
        """The weights of one head of one sample, 1 1 T S, computed without the others where that is possible."""
        return SelectedHead(self, sample, head)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays that are held in memory for these weights."""
        return ()

    @property
    def values(self) -> Array | None:
        """B G S Ev, the values that the weights are multiplied with; None where they were not kept."""
        return None

    @property
    def known_mask(self) -> KnownMask | None:
        """The mask of the call; None where it is unknown, or where a bias may mask keys too."""
        return None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WeightsArray(ExactWeights):
    """The weights themselves, B H T S."""

    weights: Array
    known_mask: KnownMask | None = None
    lse: Array | None = None
    values: Array | None = None

    def block(self, rows: slice, cols: slice) -> Array:
        return self.weights[..., rows, cols]

    def of_head(self, sample: int, head: int) -> ExactWeights:
        return WeightsArray(self.weights[sample : sample + 1, head : head + 1])

    @property
    def arrays(self) -> tuple[Array, ...]:
        return (self.weights,) if self.values is None else (self.weights, self.values)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SelectedHead(ExactWeights):
    """One head of one sample, selected after the weights of all are computed."""

    every: ExactWeights
    sample: int
    head: int

    @property
    def lse(self) -> Array | None:  # type: ignore[override]
        whole = self.every.lse
        return None if whole is None else whole[self.sample : self.sample + 1, self.head : self.head + 1]

    def block(self, rows: slice, cols: slice) -> Array:
        return self.every.block(rows, cols)[self.sample : self.sample + 1, self.head : self.head + 1]

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.every.arrays
