"""edit: silence heads, cut edges, freeze patterns in any PyTorch model, inside a `with` block.

A function mode sees every attention before it is computed. Which softmax calls were attention is known only afterwards,
from what they were multiplied with; an audit tells of edits that hit a gate. Compiled code runs uncompiled meanwhile.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import prod
from threading import Lock
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.axes import Shape
from regard.capture.attention_kinds import told_kind
from regard.capture.captured import CaughtWeights
from regard.capture.dispatch_mode import Catching, going_back
from regard.capture.edits import Edit, asked_for, edited_attention, edited_softmax, masking
from regard.capture.layouts import NAMES, by_heads, is_one_head
from regard.capture.module_names import Names
from regard.capture.query_positions import Positions
from regard.capture.softmax_tracking import Softmaxes
from regard.errors import ArgumentError, UnknownNameError
from regard.messages import Listed


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


_COMPILING = {"torch._dynamo", "torch.nn.attention.flex_attention"}
"""Where one of these was imported, something may be compiled; the switch alone would import a second's worth."""

_lock = Lock()
_users = 0
_switch = ExitStack()


@contextmanager
def uncompiled() -> Iterator[None]:
    """Nothing runs compiled inside the block.

    >>> double = torch.compile(lambda x: x + x)
    >>> with uncompiled():
    ...     double(torch.ones(1)).item()
    2.0
    """
    global _users
    if not _COMPILING & sys.modules.keys():
        yield
        return
    with _lock:
        if _users == 0:
            _switch.enter_context(torch.compiler.set_stance("force_eager"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _switch.close()


_active: ContextVar[tuple["Editing", ...]] = ContextVar("regard_edits", default=())
"""The edits of this thread, outermost first. The innermost does the work of all."""


KINDS = ("silence", "cut", "freeze")


def edit(
    model: nn.Module, silence: Any = None, cut: Any = None, freeze: Any = None, **unknown: Any
) -> AbstractContextManager[None]:
    """Change what attention does, by the names of a Trace; afterwards everything is as it was.

    silence  {name: heads}: these heads add nothing to the output
    cut      {name: edges}: (query, key) for all heads or (head, query, key) for one; or a Mask of who may still look
             where. The other keys share the weight; a query that is left with none gets zero.
    freeze   {name: weights, or a Record that kept them}: looked at like this, whatever the scores say

    A name means every call of its module; `name#2` only the third. A number is that of a layer, as `watch(layers=)`
    counts them, where the layer has one attention. Positions below 0 count from the end. Every softmax
    of a module counts as a call; where one of them was edited that is no attention, a gate perhaps, this is said.
    Raises where an edit could not be made, at the latest when the block ends. If activations are checkpointed,
    `backward` belongs inside the block too.

    >>> layer = nn.MultiheadAttention(8, 2, bias=False).eval()
    >>> x = torch.ones(3, 8)
    >>> with edit(layer, silence={"attention": [0, 1]}):
    ...     out, _ = layer(x, x, x)
    >>> out.abs().max().item()
    0.0
    """
    check_keywords("edit", unknown, KINDS)
    if not isinstance(model, nn.Module):
        raise ArgumentError("edit-model", found=type(model).__name__)
    names = Names(model)
    return _edited(names, asked_for(names, silence, cut, freeze))


def check_keywords(function: str, unknown: Iterable[str], known: tuple[str, ...]) -> None:
    """ArgumentError for keywords that the function does not have, with those that it has."""
    for name in unknown:
        raise ArgumentError("edit-keyword", function=function, asked=name, known=Listed(known))


@contextmanager
def _edited(names: Names, edits: list[Edit]) -> Iterator[None]:
    """The block."""
    if not edits:
        yield
        return
    mode = Editing(names, edits)
    token = _active.set((*_active.get(), mode))
    try:
        with uncompiled(), mode.taking, mode:  # compiled code would neither see us nor be seen
            yield
    finally:
        _active.reset(token)
    mode.require_all_done()


@dataclass(slots=True)
class Here:
    """The module that is running, what is asked of it, and where its queries stand."""

    name: str = ""
    module: nn.Module = field(default_factory=nn.Module)
    edits: list[Edit] = field(default_factory=list)
    first: int | None = 0
    calls: list[tuple[Taking, Call]] = field(default_factory=list)
    """What this call is in each of the active blocks."""

    def remember(self, shape: tuple[int, ...], weights: Tensor | None = None) -> None:
        """The call, its (…, T, S), and what its softmax gave; None for what is attention anyway."""
        for taking, call in self.calls:
            taking.add(call, shape, weights)

    def require_heads(self, shape: tuple[int, ...]) -> None:
        """Raise where four axes are not B H · ·, as far as the module tells its heads."""
        told = [n for word in NAMES if isinstance(n := getattr(self.module, word, None), int)]
        if len(shape) == 4 and told and shape[1] not in told:
            raise ArgumentError("edit-layout", asked=self.name, shape=tuple(shape), H=told[0])


class Editing(TorchFunctionMode):
    """Sees every attention and softmax of this thread before PyTorch computes it."""

    def __init__(self, names: Names, edits: list[Edit]) -> None:
        super().__init__()
        self._names, self._edits = names, edits
        self.taking = Taking()
        self._calls: dict[str, int] = {}
        self._columns: dict[str, int] = {}
        self._positions = Positions()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in _ROADS or (_active.get() or (self,))[-1] is not self:
            return func(*args, **kwargs)
        return _ROADS[func](self, func, *args, **kwargs)

    # --- the roads ---------------------------------------------------------------------------------------

    def fused(self, func: Any, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A call of `scaled_dot_product_attention`."""
        options = dict(zip(("attn_mask", "dropout_p", "is_causal"), args, strict=False)) | kwargs
        mask = options.get("attn_mask")
        masked = mask is not None or options.get("is_causal", False)
        here = self._here(query.shape[-2], key.shape[-2], mask, masked)
        here.remember((*query.shape[:-1], key.shape[-2]))
        if not here.edits:
            return func(query, key, value, *args, **kwargs)
        here.require_heads(query.shape)
        lay_out = _laying_out((*query.shape[:-1], key.shape[-2]), here.module)
        if mask is not None and query.dim() == mask.dim() != 4:
            options["attn_mask"] = lay_out(mask)
        q, k, v = (lay_out(x) for x in (query, key, value))
        out = edited_attention(func, here.edits, q, k, v, options, here.first)
        return out.reshape(*query.shape[:-1], value.shape[-1])

    def flex(self, func: Any, query: Tensor, key: Tensor, value: Tensor, score_mod: Any, *rest: Any) -> Any:
        """A call of `flex_attention`: (output, log-sum-exp, largest scores)."""
        here = self._here(query.shape[-2], key.shape[-2], None)
        here.remember((*query.shape[:-1], key.shape[-2]))
        if not here.edits:
            return func(query, key, value, score_mod, *rest)
        beside: list[Tensor] = []

        def fused(q: Tensor, k: Tensor, v: Tensor, enable_gqa: bool, attn_mask: Tensor | None = None) -> Tensor:
            out, *beside[:] = func(q, k, v, masking(score_mod, attn_mask, q, k), *rest)
            return out

        out = edited_attention(fused, here.edits, query, key, value, {"enable_gqa": True}, here.first)
        if not beside:  # frozen: there are no scores
            beside[:] = [out.new_full(out.shape[:-1], torch.nan)] * 2
        return out, *beside

    def softmax(self, func: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A softmax of the module's own."""
        if input.dim() < 2:
            return func(input, *args, **kwargs)
        sinks = self._sinks(input)
        hiding = input[..., : input.shape[-1] - sinks]
        here = self._here(hiding.shape[-2], hiding.shape[-1], hiding)
        if not here.edits:
            weights = func(input, *args, **kwargs)
            here.remember(weights.shape, weights)
            return weights
        dim = args[0] if args else kwargs.get("dim")
        if dim not in (-1, input.dim() - 1):
            raise ArgumentError("edit-axis", asked=here.name, shape=tuple(input.shape), dim=dim)
        here.require_heads(input.shape)
        scores = _laying_out(input.shape, here.module)(input)
        dtype = next((value for value in (*args, *kwargs.values()) if isinstance(value, torch.dtype)), None)
        weights = edited_softmax(scores, here.edits, dtype, here.first, sinks)
        weights = weights.reshape(input.shape)
        here.remember(weights.shape, weights)
        return weights

    def through(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """A function of PyTorch's that computes attention inside, or computes it again in a backward pass.

        While such a function is in our hands we are not asked again. So it runs as a copy that does not hand itself
        over, with us in place.
        """
        alone = {"has_torch_function": _never, "has_torch_function_unary": _never}
        copy = FunctionType(func.__code__, func.__globals__ | alone, func.__name__, func.__defaults__)
        copy.__kwdefaults__ = func.__kwdefaults__
        with self:
            return copy(*args, **kwargs)

    # --- who is asked ------------------------------------------------------------------------------------

    def _here(self, T: int, S: int, hiding: Tensor | None, masked: bool = True) -> Here:
        """The module that is running, with the edits of all active modes that are meant for it."""
        here, calls = Here(), []
        for mode in _active.get() or (self,):
            place = mode._names.innermost()
            if place is not None:
                first = mode._first(place.name, T, S, hiding, masked)
                edits = mode._next_call(place.name)
                calls.append((mode.taking, Call(place.name, mode._calls[place.name], edits)))
                if edits:
                    here = Here(place.name, place.module, here.edits + edits, first)
        here.calls = [] if going_back() else calls  # where nothing is followed
        return here

    def _first(self, name: str, T: int, S: int, hiding: Tensor | None, masked: bool) -> int | None:
        if not any(edit.cuts for edit in self._edits):
            return 0
        return self._positions.first(told_kind(name, self._names.around(name)), T, S, hiding, masked)

    def _sinks(self, scores: Tensor) -> int:
        """How many columns of a module's softmax are no keys.

        Hugging Face's `sinks` are one more column, or scale the output later: the first call, of a whole text, tells.
        """
        place = self._names.innermost()
        if place is None or not isinstance(getattr(place.module, "sinks", None), Tensor):
            return 0
        return self._columns.setdefault(place.name, int(scores.shape[-1] > scores.shape[-2]))

    def _next_call(self, name: str) -> list[Edit]:
        number = self._calls[name] = self._calls.get(name, -1) + 1
        edits = [edit for edit in self._edits if name in edit.modules and edit.number in (None, number)]
        for edit in edits:
            edit.met.add(name)
        # Checkpointed layers run once more in the backward pass; which of their calls is repeated, nobody can tell.
        if going_back():
            for edit in self._edits:
                if name in edit.modules and edit.number is not None:
                    raise ArgumentError("edit-call-again", asked=edit.asked)
        return edits

    def require_all_done(self) -> None:
        """Raise where something that was asked for has not been done."""
        for edit in self._edits:
            if not edit.met and not self._calls:
                raise UnknownNameError("edit-nothing-seen", asked=edit.asked)
            if not edit.met:
                nearest = get_close_matches(edit.asked, self._calls, n=1, cutoff=0.0)[0]
                raise UnknownNameError("edit-not-done", asked=edit.asked, nearest=nearest or "attention")
            if edit.is_layer and len(edit.met) > 1:
                names = Listed(repr(name) for name in sorted(edit.met))
                raise ArgumentError("edit-layer-several", asked=edit.asked, names=names)
            if edit.missed:
                head, *ends = min(edit.missed, key=str)
                edge = tuple(ends) if head is None else (head, *ends)
                T, S = edit.largest
                raise ArgumentError("edit-edge-missed", asked=edit.asked, edge=edge, T=T, S=S)
            misedited = self.taking.misedited(edit)
            if misedited is not None:
                call, others = misedited
                meant = Listed.few([repr(other.asked) for other in others], 3)
                raise ArgumentError("edit-gate", asked=edit.asked, call=call.asked, shape=call.shape, meant=meant)


def _laying_out(shape: tuple[int, ...], module: nn.Module) -> Callable[[Tensor], Tensor]:
    """How what belongs to weights of this shape, as the module has them, becomes B H · ·, as in a Trace."""
    if is_one_head(shape, module):
        return lambda x: x[:, None]
    return lambda x: by_heads(x, module)


def _never(_: Any) -> bool:
    return False


_ROADS: dict[Any, Callable[..., Any]] = {
    F.scaled_dot_product_attention: Editing.fused,
    torch.ops.higher_order.flex_attention: Editing.flex,
    F.multi_head_attention_forward: Editing.through,
    Tensor.backward: Editing.through,
    torch.autograd.backward: Editing.through,
    torch.autograd.grad: Editing.through,
    F.softmax: Editing.softmax,
    torch.softmax: Editing.softmax,
    torch.special.softmax: Editing.softmax,
    Tensor.softmax: Editing.softmax,
}
