"""EditAudit: whether the softmaxes that an edit changed were attention.

A softmax that a model computes itself is edited before it is known to be attention: the audit follows its result.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from torch import Tensor

from regard.axes import Shape
from regard.capture.dispatch_mode import CaptureMode
from regard.capture.edits import Edit
from regard.capture.operators import CapturedWeights
from regard.capture.softmax_tracking import SoftmaxTracker


@dataclass(slots=True, eq=False)
class ModuleCall:
    """One attention or softmax call of a module."""

    name: str
    number: int
    edits: list[Edit]
    shape: Shape = ()  # …, T, S
    is_attention: bool = False

    @property
    def label(self) -> str:
        """The name that selects this call alone."""
        return f"{self.name or 'attention'}#{self.number}"

    @property
    def sizes(self) -> Shape:
        """The number of samples times heads, of queries, and of keys."""
        return prod(self.shape[:-2]), *self.shape[-2:]


class EditAudit(CaptureMode):
    """Runs below an edit and tracks every softmax to its product with values."""

    def __init__(self) -> None:
        super().__init__(_ignore)
        self._softmaxes: AuditedSoftmaxes = AuditedSoftmaxes()
        self._calls: list[ModuleCall] = []

    def add(self, call: ModuleCall, shape: Shape, weights: Tensor | None) -> None:
        """Add a call with its (…, T, S) and the result of its softmax; None for a fused attention."""
        call.shape, call.is_attention = tuple(shape), weights is None
        self._calls.append(call)
        if weights is not None:
            self._softmaxes.expect(call, weights)

    def wrong_edit(self, edit: Edit) -> tuple[ModuleCall, list[ModuleCall]] | None:
        """A call that was edited and is not attention, with the attention calls of its module; None if there is none.

        Modules without any attention call are skipped, because their products may be unknown to us. So is a softmax of
        the same sizes as attention: models compute weights twice, to return them.
        """
        for call in self._calls:
            if edit in call.edits and not call.is_attention:
                others = [other for other in self._calls if other.name == call.name and other.is_attention]
                if others and all(other.sizes != call.sizes for other in others):
                    return call, others
        return None


class AuditedSoftmaxes(SoftmaxTracker):
    """Tracked softmaxes with the calls that they belong to."""

    def __init__(self) -> None:
        super().__init__()
        self._calls_by_id: dict[int, ModuleCall] = {}
        """By the id of the tracked softmax, as long as it is tracked."""

    def expect(self, call: ModuleCall, weights: Tensor) -> None:
        """Note that `call` computed these weights."""
        followed = {id(one) for one in self.followed}
        self._calls_by_id = {key: other for key, other in self._calls_by_id.items() if key in followed}
        self._calls_by_id |= {id(one): call for one in self.followed if weights in one}

    def follow(self, func: Any, args: tuple[Any, ...], result: Any) -> CapturedWeights | None:
        """As in the base class. All softmaxes of a product are attention: a model may subtract one from another."""
        before = list(self.followed)
        captured = super().follow(func, args, result)
        if captured is not None:
            for one in before:
                if id(one) in self._calls_by_id and any(x in one for x in args):
                    self._calls_by_id[id(one)].is_attention = True
        return captured


def _ignore(captured: Any) -> None:
    """Ignore the captured call: only the fact that it was captured counts."""
