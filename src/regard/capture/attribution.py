"""`logit_attribution`: what each head adds to the logit of a token, on the direct path through the residual stream.

Output layer, final norm and layers are found in one run of the model, by the tensors that modules take and return, not
by their names. What is not such a sum of heads, as in post-norm models, is refused.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from regard.capture.effects import (
    call_of,
    chosen_token,
    columns,
    logits_of,
    named_call,
    prediction_of,
    token_name_function,
)
from regard.capture.model_facts import check_module
from regard.capture.module_names import ModuleNames
from regard.capture.recording import COARSE, EXACT, output_projection, weight_of
from regard.capture.watching import watch
from regard.errors import ArgumentError
from regard.messages import Language, language, printable, say
from regard.records import Record, See
from regard.trace import Trace

PROBE = 64.0
"""The size of the numbers that a norm is tried with: large beside its ε, small enough for half precision."""


class HeadContribution(NamedTuple):
    """What one head adds to a logit."""

    name: str
    head: int
    value: float


@dataclass(frozen=True, eq=False, repr=False)
class LogitAttribution:
    """What the heads add to the logit of a token; prints as a table.

    logit      B, the logit; with `against`, the difference of two
    heads      for each attention, by name: B H, what its heads add
    rest       B, everything else: embeddings, feed-forward layers and biases
    token      B
    position   B, where the token is predicted
    against    B, the other token of a difference

    logit = rest + the sum of all heads. The final norm is frozen: its scale is that of this run.
    """

    logit: Tensor
    heads: dict[str, Tensor]
    rest: Tensor
    token: Tensor
    position: Tensor
    against: Tensor | None = None
    token_name: Callable[[int], str] = str
    """Converts an id to text."""

    def ranked(self, sample: int = 0) -> list[HeadContribution]:
        """The heads of one sample, the largest contributions of either sign first."""
        found = [
            HeadContribution(name, head, value)
            for name, values in self.heads.items()
            for head, value in enumerate(values[sample].tolist())
        ]
        return sorted(found, key=lambda one: -abs(one.value))

    def text(self, lang: Language | None = None, count: int = 10) -> str:
        """A table for each sample: the `count` largest heads, the other heads, the rest, and the logit."""
        lang = lang or language()
        tables = [self._table(sample, lang, count) for sample in range(len(self.token))]
        return printable("\n\n".join([*tables, say("attribution-caution", lang)]))

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _table(self, sample: int, lang: Language, count: int) -> str:
        position, names = int(self.position[sample]), {"token": self.token_name(int(self.token[sample]))}
        if self.against is not None:
            names["against"] = self.token_name(int(self.against[sample]))
        key = "attribution-title" if self.against is None else "attribution-title-against"
        title = say(key, lang, position=position, **names)
        title = f"{say('effect-sample', lang, sample=sample)}{title}" if len(self.token) > 1 else title
        heads = self.ranked(sample)
        others = sum(one.value for one in heads[count:])
        rows = [tuple(say(f"attribution-{word}-column", lang) for word in ("layer", "head", "adds"))]
        rows += [(one.name, str(one.head), _signed(one.value)) for one in heads[:count]]
        rows += [(say("attribution-others", lang), str(len(heads[count:])), _signed(others))] if heads[count:] else []
        rows += [(say("attribution-rest", lang), "", _signed(float(self.rest[sample])))]
        rows += [(say("attribution-logit", lang), "", _signed(float(self.logit[sample])))]
        return "\n".join([title, *columns(rows)])


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}".replace("-", "−")


@torch.inference_mode(False)  # the row of the token is a gradient
def logit_attribution(
    model: nn.Module,
    inputs: Any,
    token: Any = None,
    *,
    against: Any = None,
    position: Any = None,
    tokenizer: Any = None,
) -> LogitAttribution:
    """What each head adds to the logit of a token (direct logit attribution): its output · W_o · the token's row.

    inputs      what the model is called with: ids, a dict of arguments, or a tuple of them
    token       the token, one id or one per sample; by default the most likely one
    against     another token: the difference of the two logits in place of one
    position    where it is predicted, one position or one per sample; by default the last of the text
    tokenizer   to print tokens instead of ids

    Only the direct path counts: what a head changes in later heads and feed-forward layers is theirs. The final norm is
    frozen at the scale of this run, so that everything adds up to the logit (Elhage et al. 2021, "A mathematical
    framework for transformer circuits"). Raises ArgumentError where the model's logits are not such a sum.

    >>> from regard.config import TransformerConfig
    >>> from regard.models import Transformer
    >>> model = Transformer(TransformerConfig.gpt2(vocab_size=9, d_model=8, n_heads=2, d_ff=16, n_layers=2)).eval()
    >>> found = logit_attribution(model, torch.tensor([[1, 2, 3]]), token=4)
    >>> total = found.rest + sum(heads.sum(-1) for heads in found.heads.values())
    >>> list(found.heads), torch.allclose(total, found.logit)
    (['decoder.layers.0.self_attention', 'decoder.layers.1.self_attention'], True)
    """
    check_module(model, "logit_attribution")
    if model.training:
        raise ArgumentError("attribution-training")
    args, kwargs = call_of(inputs)
    given = named_call(model, args) | kwargs
    if given.get("past_key_values") is not None:  # the first run would fill it for the second
        raise ArgumentError("effect-cache")
    with torch.no_grad():
        logits = logits_of(model(*args, **kwargs))
    if logits.dim() != 3:
        raise ArgumentError("attribution-logits", shape=tuple(logits.shape))
    at = prediction_of(model, given, logits, logits, position=position, tokenizer=tokenizer).position
    assert at is not None  # logits have positions
    calls = _Calls(ModuleNames(model), at, logits.shape[:2])
    with torch.no_grad(), calls, watch(model, see=See(map=None, lse=False, sink=False, outputs=True)) as trace:
        model(*args, **kwargs)
    predicted = logits[torch.arange(len(at), device=at.device), at]
    stream = _Stream(calls, trace, predicted)
    tokens = chosen_token(token, predicted)
    others = None if against is None else chosen_token(against, predicted, "against")
    direction, logit = stream.direction(tokens, others)
    heads = {record.name: stream.contributions(record, direction) for record in stream.records}
    rest = logit - torch.stack([one.sum(-1) for one in heads.values()]).sum(0)
    return LogitAttribution(logit, heads, rest, tokens, at, others, token_name_function(tokenizer))


class _Call(NamedTuple):
    """One call of a module: its input and output at one position of each sample, B D, and its other arguments."""

    module: nn.Module
    name: str
    x: Tensor
    out: Tensor
    others: tuple[Any, ...]
    keywords: dict[str, Any]


class _Calls:
    """The calls of a model's modules during a block, in the order in which they end.

    position   B, the only position that is kept of each sample
    shape      B T of the texts: other calls are left out
    """

    def __init__(self, names: ModuleNames, position: Tensor, shape: Sequence[int]) -> None:
        self.names, self.position = names, position
        self._shape = tuple(shape)
        self._handles: list[Any] = []
        self.made: list[_Call] = []

    def __enter__(self) -> None:
        for name, module in self.names.places:
            self._handles.append(module.register_forward_hook(self._hook(name), with_kwargs=True))

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _hook(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
            out = out[0] if isinstance(out, tuple) and out else out
            key = "" if args else next((key for key, x in kwargs.items() if self._is_stream(x)), "")
            x: Any = args[0] if args else kwargs.get(key)
            if self._is_stream(x) and self._is_stream(out):
                others = {name: x for name, x in kwargs.items() if name != key}
                self.made.append(_Call(module, name, self.cut(x), self.cut(out), args[1:], others))

        return hook

    def _is_stream(self, x: Any) -> bool:
        return isinstance(x, Tensor) and x.dim() == 3 and x.is_floating_point() and x.shape[:2] == self._shape

    def cut(self, x: Tensor) -> Tensor:
        """x (B, T, …) at the position."""
        at = self.position.to(x.device)
        return x[torch.arange(len(at), device=x.device), at].clone()


class _Stream:
    """The residual stream of one run at one position: the layers that add to it, and how the logits are read from it.

    Raises ArgumentError where a part is unknown.
    """

    def __init__(self, calls: _Calls, trace: Trace, logits: Tensor) -> None:
        self._calls, self._names, self._all = calls, calls.names, trace
        output = next((one for one in calls.made if torch.equal(one.out, logits)), None)
        if output is None:
            raise ArgumentError("attribution-output")
        self._output = output
        self._norm, blocks = self._norm_above_layers(output.x)
        if not blocks:
            raise ArgumentError("attribution-blocks")
        for block in blocks:
            self._check_sum(block, self._inside(block))
        inside = {record.name for block in blocks for record in self._inside(block)}
        left = [record.name for record in trace if record.name not in inside and record.kind != "encoder"]
        if left:
            raise ArgumentError("attribution-layers", name=left[0])
        self.records = [record for record in trace if record.name in inside]
        """The attention that adds to the stream, in call order."""

    def direction(self, token: Tensor, against: Tensor | None) -> tuple[Tensor, Tensor]:
        """The vector, B D, whose product with what a layer adds is its part of the logit; and the logit, B."""
        row, logit = _row_of(self._output, token, against)
        return row if self._norm is None else _frozen(self._norm, row), logit

    def contributions(self, record: Record, direction: Tensor) -> Tensor:
        """What each head of an attention adds to the logit, B H."""
        return torch.einsum("bhe,hed,bd->bh", self._outputs(record), self._projection(record).weight, direction)

    def _norm_above_layers(self, x: Tensor) -> tuple[_Call | None, list[_Call]]:
        """The norm that returned x, None if there is none, and the layers below it."""
        for norm in self._calls.made:
            if torch.equal(norm.out, x) and norm.x.shape == x.shape and not torch.equal(norm.x, x):
                blocks = [] if self._inside(norm) else self._layers_below(norm.x)
                if blocks:
                    return norm, blocks
        return None, self._layers_below(x)

    def _layers_below(self, x: Tensor) -> list[_Call]:
        """The layers whose outputs led to x, the last one first."""
        found: list[_Call] = []
        while True:
            blocks = [one for one in self._calls.made if torch.equal(one.out, x) and self._inside(one)]
            if not blocks:
                return found
            found.append(min(blocks, key=lambda one: len(self._inside(one))))
            x = found[-1].x

    def _inside(self, block: _Call) -> list[Record]:
        """The attention inside a module; none if it is attention itself."""
        prefix = f"{block.name}." if block.name else ""
        return [record for record in self._all if record.name.startswith(prefix)]

    def _check_sum(self, block: _Call, records: Iterable[Record]) -> None:
        """Raise unless a layer returns x + its attention + the output of one of its other modules, or of none."""
        rest = _exact(block.out) - _exact(block.x)
        for record in records:
            W_o, bias = self._projection(record)
            rest -= torch.einsum("bhe,hed->bd", self._outputs(record), W_o) + bias
        parts = [
            one.out for one in self._calls.made if one.name.startswith(f"{block.name}.") and one.out.shape == rest.shape
        ]
        allowed = _tolerance(block.out) * _exact(block.out).norm()
        if not any((rest - added).norm() <= allowed for added in (torch.zeros_like(rest), *map(_exact, parts))):
            raise ArgumentError("attribution-layers", name=next(iter(records)).name)

    def _outputs(self, record: Record) -> Tensor:
        """The outputs of the heads at the position, B H Ev."""
        outputs: Any = record.with_outputs().outputs
        return _exact(self._calls.cut(outputs.transpose(1, 2)))

    def _projection(self, record: Record) -> "_Projection":
        H, Ev = self._outputs(record).shape[1:]
        module = output_projection(self._names.ancestors(record.module), H * Ev)
        weight = None if module is None else weight_of(module, H * Ev)
        if weight is None:
            raise ArgumentError("attribution-projection", name=record.name)
        bias = getattr(module, "bias", None)
        W_o = _exact(weight).unflatten(0, (H, Ev))
        return _Projection(W_o, torch.zeros_like(W_o[0, 0]) if bias is None else _exact(bias))


class _Projection(NamedTuple):
    """W_o of each head, H Ev D, and the bias of all, D."""

    weight: Tensor
    bias: Tensor


def _row_of(output: _Call, token: Tensor, against: Tensor | None) -> tuple[Tensor, Tensor]:
    """The token's row of the output layer, B D, and the logit, B; minus those of `against`."""

    def logit_of(x: Tensor) -> Tensor:
        logits = output.module(x[:, None], *output.others, **output.keywords)[:, 0]
        found: Tensor = logits.gather(-1, token[:, None])[:, 0]
        return found if against is None else found - logits.gather(-1, against[:, None])[:, 0]

    with torch.enable_grad():
        x = output.x.detach().requires_grad_()
        logit = logit_of(x)
        (row,) = torch.autograd.grad(logit.sum(), x)
    with torch.no_grad():
        constant = _exact(logit_of(torch.zeros_like(x)))
    row, x, logit = _exact(row), _exact(x), _exact(logit)
    error = ((row * x).sum(-1) + constant - logit).abs()
    if not (error <= _tolerance(output.out) * (row.norm(dim=-1) * x.norm(dim=-1) + 1)).all():
        raise ArgumentError("attribution-output")  # not linear: a bounded logit, or a head with layers of its own
    return row, logit


def _frozen(norm: _Call, row: Tensor) -> Tensor:
    """`row` times the final norm with its scale frozen, B D: found by calling the norm, whatever its class is.

    A norm returns gain ⊙ (x − centre) · scale(x) + bias, where the centre is the mean of x (LayerNorm) or 0 (RMSNorm).
    """
    exact = torch.promote_types(norm.x.dtype, torch.float32)
    parameters = {name: x.detach().to(exact) for name, x in norm.module.named_parameters()}

    @torch.no_grad()
    def call(x: Tensor) -> Tensor:
        return _exact(functional_call(norm.module, parameters, (x[:, None], *norm.others), norm.keywords)[:, 0])

    x = norm.x.to(exact)
    bias = call(torch.zeros_like(x))
    is_centred = torch.allclose(call(x + x.abs().mean()), call(x), rtol=1e-3, atol=1e-4)

    def centred(x: Tensor) -> Tensor:
        return x - x.mean(-1, keepdim=True) if is_centred else x

    signs = torch.full_like(x, PROBE)
    signs[:, ::2] *= -1
    probe = centred(_exact(signs))
    gain = (call(signs) - bias) / (probe / probe.square().mean(-1, keepdim=True).sqrt())
    shape, y = gain * centred(_exact(x)), _exact(norm.out)
    scale = ((y - bias) * shape).sum(-1, keepdim=True) / shape.square().sum(-1, keepdim=True)
    if not ((bias + scale * shape - y).norm(dim=-1) <= _tolerance(norm.out) * y.norm(dim=-1)).all():
        raise ArgumentError("attribution-norm")
    return centred(scale * gain * row)


def _exact(x: Tensor) -> Tensor:
    """In float64 on the CPU: some devices have no float64, and a model may lie on several."""
    return x.detach().cpu().double()


def _tolerance(like: Tensor) -> float:
    return COARSE if like.dtype in (torch.float16, torch.bfloat16) else EXACT
