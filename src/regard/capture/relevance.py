"""Attention × gradient: which weights a loss depends on, from one backward pass and without a T × S gradient.

The gradient of a weight is dA = dO · vᵀ, where dO is the gradient of the attention's output. PyTorch's backward
operators receive dO, v, q and k; a dispatch mode reads them there and finds their Record by its kept q and k. Where the
model computed its own softmax, the backward of the softmax receives dA itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention_call import WeightsFromQK
from regard.axes import bin_count, bin_width
from regard.capture.operators import named
from regard.capture.torch_internals import SOFTMAX_BACKWARD, Isolated, TorchDispatchMode
from regard.errors import ArgumentError, NotKeptError
from regard.exact_weights import ExactWeights, WeightsArray
from regard.messages import Listed
from regard.records import Record, See
from regard.statistics_table import STATISTICS
from regard.trace import Trace

WEIGHTS_AT_A_TIME = 2**22
"""Number of weights computed at once, of all samples and heads together: 16 MiB of float32."""

FUSED_BACKWARDS = frozenset(
    f"aten::_scaled_dot_product_{kind}_backward"
    for kind in (
        "flash_attention_for_cpu",
        "flash_attention",
        "efficient_attention",
        "cudnn_attention",
        "fused_attention_overrideable",
    )
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RelevanceWeights(ExactWeights):
    """max(0, A ⊙ dA): how far each weight raises the loss, to first order.

    weights    A
    gradient   dO, B H T Ev; or dA, B H T S, where `values` is None
    values     B G S Ev
    """

    weights: ExactWeights
    gradient: Tensor
    values: Tensor | None
    lse: None = None

    def block(self, rows: slice, cols: slice) -> Tensor:
        weights = self.weights.block(rows, cols)
        found: Tensor = weights * self._gradient(rows, cols).to(weights.dtype)
        return found.clamp_min_(0)

    def _gradient(self, rows: slice, cols: slice) -> Tensor:
        """dA of rows × cols, B H rows cols, in float32 at least."""
        if self.values is None:
            return self.gradient[:, :, rows, cols]
        exact = torch.promote_types(self.values.dtype, torch.float32)
        v = self.values[:, :, cols].to(exact)
        v = v.repeat_interleave(self.gradient.shape[1] // v.shape[1], 1)
        return self.gradient[:, :, rows].to(exact) @ v.mT

    def of_head(self, sample: int, head: int) -> ExactWeights:
        b, h = slice(sample, sample + 1), slice(head, head + 1)
        values = self.values
        if values is not None:
            group = head // (self.gradient.shape[1] // values.shape[1])
            values = values[b, group : group + 1]
        return RelevanceWeights(self.weights.of_head(sample, head), self.gradient[b, h], values)

    @property
    def arrays(self) -> tuple[Tensor, ...]:
        own = (self.gradient,) if self.values is None else (self.gradient, self.values)
        return (*self.weights.arrays, *own)


class Gradient(NamedTuple):
    """What a backward pass computed for a record; see `RelevanceWeights`."""

    gradient: Tensor
    values: Tensor | None


@dataclass(slots=True)
class RecordGradients:
    """The gradients of the records of a trace, by number, as the backward pass of their calls finds them."""

    records: list[Record]
    found: dict[int, Gradient] = field(default_factory=dict)

    def add_fused(self, given: dict[str, Any]) -> None:
        """Read the arguments of the backward of a fused attention."""
        q, k = given["query"], given["key"]

        def is_call(exact: ExactWeights) -> bool:
            return isinstance(exact, WeightsFromQK) and _is_same(exact.q, q) and _is_same(exact.k, k)

        number = self._number(is_call)
        if number is None:
            return
        if given.get("dropout_p"):
            raise ArgumentError("relevance-dropout", name=self.records[number].name)
        gradient = given["grad_out"] if "grad_out" in given else given["grad_out_"]
        self.found[number] = Gradient(gradient.detach().clone(), given["value"].detach().clone())

    def add_softmax(self, gradient: Tensor, weights: Tensor) -> None:
        """Read the arguments of the backward of a softmax that a model computed itself."""
        number = self._number(
            lambda exact: (
                isinstance(exact, WeightsArray) and _are_same_weights(exact.weights, _like(weights, exact.weights))
            )
        )
        if number is not None:
            self.found[number] = Gradient(_like(gradient, self.records[number]).detach().clone(), None)

    def _number(self, is_call: Callable[[ExactWeights], bool]) -> int | None:
        """The latest record without a gradient that the call made: backward passes begin with the last call."""
        for number in reversed(range(len(self.records))):
            exact = self.records[number].exact
            if number not in self.found and exact is not None and is_call(exact):
                return number
        return None


def _like(x: Tensor, other: Any) -> Tensor:
    """x in the shape of `other`, if it has as many numbers."""
    shape = tuple(other.shape)
    return x.reshape(shape) if x.numel() == torch.Size(shape).numel() else x


def _is_same(kept: Any, x: Tensor) -> bool:
    """Whether the tensors hold the same numbers; a model may cast weights after its softmax."""
    comparable = isinstance(kept, Tensor) and kept.shape == x.shape and kept.device == x.device
    return comparable and torch.equal(kept, x.to(kept.dtype))


def _are_same_weights(kept: Any, x: Tensor) -> bool:
    """The same for weights, of which a Record keeps no rows of padding queries."""
    if not isinstance(kept, Tensor) or kept.shape != x.shape or kept.device != x.device:
        return False
    rows = kept.any(-1)
    return bool(rows.any()) and torch.equal(kept[rows], x[rows].to(kept.dtype))


class GradientMode(TorchDispatchMode):
    """Reads the backward operators of attention while a backward pass runs."""

    def __init__(self, gradients: RecordGradients) -> None:
        super().__init__()
        self._gradients = gradients

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is SOFTMAX_BACKWARD:
            with Isolated():
                self._gradients.add_softmax(args[0], args[1])
        elif func._schema.name in FUSED_BACKWARDS:
            with Isolated():
                self._gradients.add_fused(named(func, args, kwargs))
        return func(*args, **kwargs)


def relevance_records(trace: Trace, loss: Any, map: int | None = 256) -> list[Record]:
    """The records of the trace with max(0, A ⊙ dA) in place of their weights; see `Trace.relevance`."""
    bins = See(map=map).map  # validates it
    _check(trace, loss)
    gradients = RecordGradients(list(trace))
    with GradientMode(gradients):
        try:
            torch.autograd.grad(loss, list(_leaves(loss)), retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            if "a second time" in str(error):
                raise ArgumentError("relevance-freed") from error
            raise
    missing = [record.name for number, record in enumerate(trace) if number not in gradients.found]
    if missing:
        raise ArgumentError("relevance-missing", names=Listed.few(missing, 3), count=len(missing), of=len(trace))
    return [_relevance_record(record, gradients.found[number], bins) for number, record in enumerate(trace)]


def _check(trace: Trace, loss: Any) -> None:
    if not len(trace):
        raise ArgumentError("trace-empty")
    if not isinstance(loss, Tensor):
        raise ArgumentError("relevance-loss", found=type(loss).__name__)
    if loss.numel() != 1 or not loss.requires_grad:
        raise ArgumentError("relevance-scalar", shape=tuple(loss.shape), requires_grad=loss.requires_grad)
    for record in trace:
        if record.exact is None:
            raise NotKeptError("relevance-not-kept", name=record.name)


def _leaves(loss: Tensor) -> Iterator[Tensor]:
    """The tensors on which the loss depends and that keep gradients: parameters, mostly."""
    waiting, seen = [loss.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        waiting.extend(before for before, _ in node.next_functions)


def _relevance_record(record: Record, found: Gradient, bins: int | None) -> Record:
    assert record.exact is not None
    exact = RelevanceWeights(record.exact, found.gradient, found.values)
    others = {one.name: None for one in STATISTICS}
    return record.changed(**others).changed(rest="relevance", exact=exact, map=_map(record, exact, bins))


@torch.no_grad()
def _map(record: Record, exact: RelevanceWeights, bins: int | None) -> Tensor | None:
    """The relevance summed over the keys of each bin, averaged over its queries that are not fully masked."""
    if bins is None:
        return None
    B, H, T, S = record.shape
    high, wide = bin_width(T, bins), bin_width(S, bins)
    rows = high * max(1, WEIGHTS_AT_A_TIME // max(1, B * H * S * high))
    parts = [_pooled(record, exact, slice(at, min(T, at + rows)), high, wide) for at in range(0, T, rows)]
    return torch.cat(parts, 2) if parts else exact.gradient.new_zeros(B, H, 0, bin_count(S, bins))


def _pooled(record: Record, exact: RelevanceWeights, rows: slice, high: int, wide: int) -> Tensor:
    """Some rows of the map; `rows` starts at the start of a bin."""
    keys = slice(0, record.shape[3])
    found = exact.block(rows, keys)
    ragged = (0, -found.shape[3] % wide, 0, -found.shape[2] % high)
    by_key = torch.nn.functional.pad(found, ragged).unflatten(3, (-1, wide)).sum(-1)
    if high == 1:
        return by_key
    seen = exact.weights.block(rows, keys).any(-1)  # B H rows
    count = torch.nn.functional.pad(seen, ragged[2:]).unflatten(2, (-1, high)).sum(-1)
    return by_key.unflatten(2, (-1, high)).sum(3) / count.clamp_min(1)[..., None]
