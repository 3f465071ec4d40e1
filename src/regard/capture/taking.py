"""Which calls of an edited block were attention: known only afterwards, by what became of each softmax.

An edit has to be made before the softmax is. So all of a module's softmaxes are edited, and here is found out which of
them should not have been: a gate, a router. What is attention is decided as for `watch`, by `softmaxes`.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from torch import Tensor

from regard.axes import Shape
from regard.capture.caught import CaughtWeights
from regard.capture.edits import Edit
from regard.capture.mode import Catching
from regard.capture.softmaxes import Softmaxes


@dataclass(slots=True, eq=False)
class Call:
    """One attention or softmax of a module."""

    name: str
    number: int
    edits: list[Edit]
    shape: Shape = ()  # …, T, S
    is_attention: bool = False

    @property
    def asked(self) -> str:
        """What one writes to mean this call alone."""
        return f"{self.name or 'attention'}#{self.number}"

    @property
    def sizes(self) -> Shape:
        """Samples and heads, however they are laid out, queries, keys."""
        return prod(self.shape[:-2]), *self.shape[-2:]


class Taking(Catching):
    """Stands below an edit and follows every softmax on its way to a product with values."""

    def __init__(self) -> None:
        super().__init__(_ignore)
        self._softmaxes: Taken = Taken()
        self._calls: list[Call] = []

    def add(self, call: Call, shape: Shape, weights: Tensor | None) -> None:
        """A call, its (…, T, S), and what its softmax gave; None for what is attention anyway."""
        call.shape, call.is_attention = tuple(shape), weights is None
        self._calls.append(call)
        if weights is not None:
            self._softmaxes.expect(call, weights)

    def misedited(self, edit: Edit) -> tuple[Call, list[Call]] | None:
        """A call that was edited and is no attention, and those of the same module that are; None where all is well.

        A module of which nothing is attention is left in peace: perhaps we cannot follow what it does. So is a softmax
        of the same sizes as attention: models compute weights twice, to return them.
        """
        for call in self._calls:
            if edit in call.edits and not call.is_attention:
                others = [other for other in self._calls if other.name == call.name and other.is_attention]
                if others and all(other.sizes != call.sizes for other in others):
                    return call, others
        return None


class Taken(Softmaxes):
    """Softmaxes, with the calls that they are of."""

    def __init__(self) -> None:
        super().__init__()
        self._expected: dict[int, Call] = {}
        """By the id of what is followed, as long as it is."""

    def expect(self, call: Call, weights: Tensor) -> None:
        """`call` gave these weights."""
        followed = {id(one) for one in self.followed}
        self._expected = {key: other for key, other in self._expected.items() if key in followed}
        self._expected |= {id(one): call for one in self.followed if weights in one}

    def follow(self, func: Any, args: tuple[Any, ...], result: Any) -> CaughtWeights | None:
        """As ever; and all that went into the product were attention: a model may subtract one from another."""
        before = list(self.followed)
        caught = super().follow(func, args, result)
        if caught is not None:
            for one in before:
                if id(one) in self._expected and any(x in one for x in args):
                    self._expected[id(one)].is_attention = True
        return caught


def _ignore(caught: Any) -> None:
    """What was caught is of no interest, only that it was."""
