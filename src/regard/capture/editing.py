"""`edit`: silence heads, cut edges, freeze patterns, replace outputs in any PyTorch model, inside a `with` block.

A function mode intercepts every attention before it is computed. Which softmax calls were attention is known only
afterwards, from their products; an audit reports edits of a softmax that was not. Compiled code runs uncompiled inside
the block.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from threading import Lock
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.axes import Shape
from regard.capture.attention_kinds import Positions, kind_by_name
from regard.capture.dispatch_mode import in_backward
from regard.capture.edit_audit import EditAudit, ModuleCall
from regard.capture.edits import (
    Edit,
    edited_attention,
    edited_softmax,
    masked_score_mod,
    parse_edits,
    resampled,
    text_queries,
)
from regard.capture.layouts import HEAD_COUNT_NAMES, by_heads, is_one_head
from regard.capture.model_facts import check_module
from regard.capture.module_names import ModuleNames
from regard.capture.torch_internals import flex_attention_scores
from regard.errors import ArgumentError, UnknownNameError
from regard.messages import Listed

_COMPILING = {"torch._dynamo", "torch.nn.attention.flex_attention"}
"""If one of these was imported, something may be compiled. `set_stance` itself imports them, which takes a second."""

_lock = Lock()
_users = 0
_switch = ExitStack()


@contextmanager
def uncompiled() -> Iterator[None]:
    """Run nothing compiled inside the block.

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


_active: ContextVar[tuple["EditMode", ...]] = ContextVar("regard_edits", default=())
"""The edits of this thread, outermost first. The innermost applies all of them."""


KINDS = ("silence", "cut", "freeze", "mean", "resample")


def edit(
    model: nn.Module,
    silence: Any = None,
    cut: Any = None,
    freeze: Any = None,
    *,
    mean: Any = None,
    resample: Any = None,
    **unknown: Any,
) -> AbstractContextManager[None]:
    """Change what attention computes, by the names of a Trace; after the block everything is as before.

    silence  {name: heads}: these heads add nothing to the output
    cut      {name: edges}: (query, key) for all heads or (head, query, key) for one; or a Mask of the edges that stay.
             The other keys share the weight; a fully masked query gets zero.
    freeze   {name: weights, or a Record that kept them}: use these weights, whatever the scores are
    mean     {name: heads}: the output of these heads becomes its mean over the queries of the call, sample by sample.
             {name: (mean, heads)}, or {name: mean} for all heads: the mean of other texts, a Trace or a Record with
             `See(outputs=True)`, over all their calls, samples and queries; or an array, H Ev
    resample {name: Record} or {name: (Record, heads)}: the outputs of these heads, or of all, become those of another
             run, recorded with `See(outputs=True)`

    For freeze, mean and resample, a whole Trace stands for all its records.
    A name selects every call of its module; `name#2` only the third. A number selects a layer, as `watch(layers=)`
    counts them, if the layer has one attention. Positions below 0 count from the end. Every softmax
    of a module counts as a call; an edit of one that is not attention, such as a gate, raises.
    Raises if an edit could not be made, at the latest when the block ends. If activations are checkpointed,
    `backward` must run inside the block too.

    >>> layer = nn.MultiheadAttention(8, 2, bias=False).eval()
    >>> x = torch.ones(3, 8)
    >>> with edit(layer, silence={"attention": [0, 1]}):
    ...     out, _ = layer(x, x, x)
    >>> out.abs().max().item()
    0.0
    """
    check_keywords("edit", unknown, KINDS)
    check_module(model, "edit")
    names = ModuleNames(model)
    return _edited(names, parse_edits(names, silence, cut, freeze, mean, resample))


def check_keywords(function: str, unknown: Iterable[str], known: tuple[str, ...]) -> None:
    """Raise ArgumentError for keywords that the function does not have, and list those that it has."""
    for name in unknown:
        raise ArgumentError("edit-keyword", function=function, asked=name, known=Listed(known))


@contextmanager
def _edited(names: ModuleNames, edits: list[Edit]) -> Iterator[None]:
    """The context of `edit`."""
    if not edits:
        yield
        return
    mode = EditMode(names, edits)
    token = _active.set((*_active.get(), mode))
    try:
        with uncompiled(), mode.audit, mode:  # the mode cannot intercept compiled code
            yield
    finally:
        _active.reset(token)
    mode.require_all_done()


@dataclass(slots=True)
class CallSite:
    """The running module, its edits, and the position of its first query."""

    name: str = ""
    module: nn.Module = field(default_factory=nn.Module)
    edits: list[Edit] = field(default_factory=list)
    first: int | None = 0
    text: Tensor | None = None
    """Which of its queries are no padding, B T, where a head is averaged; None for all."""
    calls: list[tuple[EditAudit, ModuleCall]] = field(default_factory=list)
    """This call as each of the active blocks counts it."""
    shape: Shape = ()
    """…, T, S of the weights, where the module computes its own softmax."""

    def log(self, shape: tuple[int, ...], weights: Tensor | None = None) -> None:
        """Report the call, its (…, T, S), and the result of its softmax to the audits; None for a fused attention."""
        for audit, call in self.calls:
            audit.add(call, shape, weights)

    def require_heads(self, shape: tuple[int, ...]) -> None:
        """Raise if four axes are not B H · ·, as far as the module states its number of heads."""
        counts = [n for name in HEAD_COUNT_NAMES if isinstance(n := getattr(self.module, name, None), int)]
        if len(shape) == 4 and counts and shape[1] not in counts:
            raise ArgumentError("edit-layout", asked=self.name, shape=tuple(shape), H=counts[0])


class Products:
    """The weights of calls whose outputs are to be replaced, until they are multiplied with the values."""

    def __init__(self) -> None:
        self._weights: list[tuple[Tensor, CallSite]] = []

    def expect(self, weights: Tensor, here: CallSite) -> None:
        """Note that the product of these weights is the output of `here`."""
        here.shape = tuple(weights.shape)
        self._weights.append((weights, here))

    def follow(self, before: Any, after: Any) -> None:
        """Note that `after` is made of the weights `before`."""
        here = self._site(before)
        if here is not None and isinstance(after, Tensor) and after is not before:
            self._weights.append((after, here))

    def found(self, args: tuple[Any, ...]) -> CallSite | None:
        """The call whose weights are among the arguments of a product; it is no longer expected then."""
        here = next((site for x in args if (site := self._site(x)) is not None), None)
        if here is not None:
            self._weights = [pair for pair in self._weights if pair[1] is not here]
        return here

    def missed(self) -> CallSite | None:
        """A call whose product was not found; None where all were."""
        return self._weights[0][1] if self._weights else None

    def _site(self, x: Any) -> CallSite | None:
        return next((here for weights, here in self._weights if weights is x), None)


class EditMode(TorchFunctionMode):
    """Intercepts every attention and softmax of this thread before PyTorch computes it."""

    def __init__(self, names: ModuleNames, edits: list[Edit]) -> None:
        super().__init__()
        self._names, self._edits = names, edits
        self.audit = EditAudit()
        self._calls: dict[str, int] = {}
        self._columns: dict[str, int] = {}
        self._positions = Positions()
        self._products = Products()
        self._text: Tensor | None = None
        """Which queries of the last self-attention are no padding, B T."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in _HANDLERS or (_active.get() or (self,))[-1] is not self:
            return func(*args, **kwargs)
        return _HANDLERS[func](self, func, *args, **kwargs)

    # --- handlers of functions ---------------------------------------------------------------------------------------

    def fused(self, func: Any, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A call of `scaled_dot_product_attention`."""
        options = dict(zip(("attn_mask", "dropout_p", "is_causal"), args, strict=False)) | kwargs
        mask = options.get("attn_mask")
        masked = mask is not None or options.get("is_causal", False)
        here = self._here(query.shape[-2], key.shape[-2], mask, masked)
        shape = (*query.shape[:-1], key.shape[-2])
        here.log(shape)
        here.text = self._text_queries(mask, shape)
        if not here.edits:
            return func(query, key, value, *args, **kwargs)
        here.require_heads(query.shape)
        to_heads = _to_heads(shape, here.module)
        if mask is not None and query.dim() == mask.dim() != 4:
            options["attn_mask"] = to_heads(mask)
        q, k, v = (to_heads(x) for x in (query, key, value))
        out = edited_attention(func, here.edits, q, k, v, options, here.first, here.text)
        return out.reshape(*query.shape[:-1], value.shape[-1])

    def flex(self, func: Any, query: Tensor, key: Tensor, value: Tensor, score_mod: Any, *rest: Any) -> Any:
        """A call of `flex_attention`: (output, log-sum-exp, largest scores)."""
        here = self._here(query.shape[-2], key.shape[-2], None)
        shape = (*query.shape[:-1], key.shape[-2])
        here.log(shape)
        if self._averages:
            here.text = self._text_queries(flex_attention_scores(query, key, value, score_mod, *rest)[1], shape)
        if not here.edits:
            return func(query, key, value, score_mod, *rest)
        extra: list[Tensor] = []

        def fused(q: Tensor, k: Tensor, v: Tensor, enable_gqa: bool, attn_mask: Tensor | None = None) -> Tensor:
            out, *extra[:] = func(q, k, v, masked_score_mod(score_mod, attn_mask, q, k), *rest)
            return out

        out = edited_attention(fused, here.edits, query, key, value, {"enable_gqa": True}, here.first, here.text)
        if not extra:  # frozen: there are no scores
            extra[:] = [out.new_full(out.shape[:-1], torch.nan)] * 2
        return out, *extra

    def softmax(self, func: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A softmax that the module computes itself."""
        if input.dim() < 2:
            return func(input, *args, **kwargs)
        sinks = self._sinks(input)
        mask_or_scores = input[..., : input.shape[-1] - sinks]
        here = self._here(mask_or_scores.shape[-2], mask_or_scores.shape[-1], mask_or_scores)
        here.text = self._text_queries(mask_or_scores, tuple(mask_or_scores.shape))
        if not here.edits:
            weights = func(input, *args, **kwargs)
            here.log(weights.shape, weights)
            return weights
        dim = args[0] if args else kwargs.get("dim")
        if dim not in (-1, input.dim() - 1):
            raise ArgumentError("edit-axis", asked=here.name, shape=tuple(input.shape), dim=dim)
        here.require_heads(input.shape)
        scores = _to_heads(input.shape, here.module)(input)
        dtype = next((value for value in (*args, *kwargs.values()) if isinstance(value, torch.dtype)), None)
        weights = edited_softmax(scores, here.edits, dtype, here.first, sinks, here.text)
        weights = weights.reshape(input.shape)
        here.log(weights.shape, weights)
        if any(edit.source is not None for edit in here.edits):
            self._products.expect(weights, here)
        return weights

    def derived(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """A function of weights whose result is still weights, such as dropout."""
        result = func(*args, **kwargs)
        self._products.follow(args[0], result)
        return result

    def product(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """A product that may be that of weights and values."""
        out = func(*args, **kwargs)
        here = self._products.found(args)
        if here is None:
            return out
        if out.shape[-2] != here.shape[-2] or out.shape[:-2].numel() != torch.Size(here.shape[:-2]).numel():
            raise ArgumentError("edit-product", asked=here.name, shape=tuple(out.shape))
        heads = _to_heads(here.shape, here.module)(out.reshape(*here.shape[:-1], -1))
        return resampled(heads, here.edits).reshape(out.shape)

    def run_inside(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a PyTorch function that computes attention inside, or repeats it in a backward pass.

        While PyTorch calls the mode for such a function, the mode is off. So a copy of the function runs, which does
        not dispatch to modes, with the mode on.
        """
        unwrapped = {"has_torch_function": _never, "has_torch_function_unary": _never}
        copy = FunctionType(func.__code__, func.__globals__ | unwrapped, func.__name__, func.__defaults__)
        copy.__kwdefaults__ = func.__kwdefaults__
        with self:
            return copy(*args, **kwargs)

    # --- the running module ------------------------------------------------------------------------------------

    def _here(self, T: int, S: int, mask_or_scores: Tensor | None, masked: bool = True) -> CallSite:
        """The running module, with its edits of all active modes."""
        here, calls = CallSite(), []
        for mode in _active.get() or (self,):
            place = mode._names.innermost()
            if place is not None:
                first = mode._first(place.name, T, S, mask_or_scores, masked)
                edits = mode._next_call(place.name)
                calls.append((mode.audit, ModuleCall(place.name, mode._calls[place.name], edits)))
                if edits:
                    _check_mean(edits, T, S)
                    here = CallSite(place.name, place.module, here.edits + edits, first)
        here.calls = [] if in_backward() else calls  # softmaxes are not tracked there
        return here

    def _first(self, name: str, T: int, S: int, mask_or_scores: Tensor | None, masked: bool) -> int | None:
        if not any(edit.cuts for edit in self._edits):
            return 0
        return self._positions.first(kind_by_name(name, self._names.ancestors(name)), T, S, mask_or_scores, masked)

    @property
    def _averages(self) -> bool:
        """Whether an active edit averages over the queries of a call."""
        return any(edit.averaged for mode in _active.get() or (self,) for edit in mode._edits)

    def _text_queries(self, mask_or_scores: Tensor | None, shape: Shape) -> Tensor | None:
        """Which queries of a call of (…, T, S) are no padding, B T, if an edit averages; None for all of them.

        The queries of cross-attention are those of the self-attention before it.
        """
        place = self._names.innermost() if self._averages else None
        if place is None:
            return None
        to_heads = _to_heads(shape, place.module)
        whole = tuple(to_heads(torch.empty(shape, device="meta")).shape)
        if kind_by_name(place.name, self._names.ancestors(place.name)) == "cross":
            return self._text if self._text is not None and self._text.shape == (whole[0], whole[2]) else None
        if mask_or_scores is not None and mask_or_scores.dim() == len(shape) != 4:
            mask_or_scores = to_heads(mask_or_scores)
        self._text = text_queries(mask_or_scores, whole, is_cross=False)
        return self._text

    def _sinks(self, scores: Tensor) -> int:
        """The number of columns of a module's softmax that are not keys.

        Hugging Face's `sinks` are one more column, or scale the output later: the first call, of a whole text, shows
        which.
        """
        place = self._names.innermost()
        if place is None or not isinstance(getattr(place.module, "sinks", None), Tensor):
            return 0
        return self._columns.setdefault(place.name, int(scores.shape[-1] > scores.shape[-2]))

    def _next_call(self, name: str) -> list[Edit]:
        number = self._calls[name] = self._calls.get(name, -1) + 1
        edits = [edit for edit in self._edits if name in edit.modules and edit.number in (None, number)]
        for edit in edits:
            edit.edited.add(name)
        # Checkpointed layers run again in the backward pass; which of their calls is repeated is unknown.
        if in_backward():
            for edit in self._edits:
                if name in edit.modules and edit.number is not None:
                    raise ArgumentError("edit-call-again", asked=edit.name)
        return edits

    def require_all_done(self) -> None:
        """Raise if a requested edit was not made."""
        missed = self._products.missed()
        if missed is not None:
            raise ArgumentError("edit-product", asked=missed.name, shape=missed.shape)
        for edit in self._edits:
            if not edit.edited and not self._calls:
                raise UnknownNameError("edit-nothing-seen", asked=edit.name)
            if not edit.edited:
                nearest = get_close_matches(edit.name, self._calls, n=1, cutoff=0.0)[0]
                raise UnknownNameError("edit-not-done", asked=edit.name, nearest=nearest or "attention")
            if edit.is_layer and len(edit.edited) > 1:
                names = Listed(repr(name) for name in sorted(edit.edited))
                raise ArgumentError("edit-layer-several", asked=edit.name, names=names)
            if edit.missed:
                head, *ends = min(edit.missed, key=str)
                edge = tuple(ends) if head is None else (head, *ends)
                T, S = edit.largest_sizes
                raise ArgumentError("edit-edge-missed", asked=edit.name, edge=edge, T=T, S=S)
            wrong_edit = self.audit.wrong_edit(edit)
            if wrong_edit is not None:
                call, others = wrong_edit
                meant = Listed.few([repr(other.label) for other in others], 3)
                raise ArgumentError("edit-gate", asked=edit.name, call=call.label, shape=call.shape, meant=meant)


def _check_mean(edits: list[Edit], T: int, S: int) -> None:
    """Raise for the mean over the queries of a call with one query, which would change nothing."""
    edit = next((edit for edit in edits if edit.averaged), None)
    if edit is not None and T == 1 < S:
        raise ArgumentError("edit-mean-step", asked=edit.name, S=S)


def _to_heads(shape: tuple[int, ...], module: nn.Module) -> Callable[[Tensor], Tensor]:
    """A function from tensors in the module's layout of weights to B H · ·, as in a Trace."""
    if is_one_head(shape, module):
        return lambda x: x[:, None]
    return lambda x: by_heads(x, module)


def _never(_: Any) -> bool:
    return False


_HANDLERS: dict[Any, Callable[..., Any]] = {
    F.scaled_dot_product_attention: EditMode.fused,
    torch.ops.higher_order.flex_attention: EditMode.flex,
    F.multi_head_attention_forward: EditMode.run_inside,
    Tensor.backward: EditMode.run_inside,
    torch.autograd.backward: EditMode.run_inside,
    torch.autograd.grad: EditMode.run_inside,
    F.softmax: EditMode.softmax,
    torch.softmax: EditMode.softmax,
    torch.special.softmax: EditMode.softmax,
    Tensor.softmax: EditMode.softmax,
    **dict.fromkeys(
        (F.dropout, Tensor.to, Tensor.type_as, Tensor.float, Tensor.view, Tensor.reshape), EditMode.derived
    ),
    **dict.fromkeys((Tensor.contiguous, Tensor.half, Tensor.bfloat16, Tensor.__getitem__), EditMode.derived),
    **dict.fromkeys((torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm), EditMode.product),
}
