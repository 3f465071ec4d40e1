"""`effect`: how far an edit moves a model's prediction. Compares two runs, one of them edited, in a table."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from rich.cells import cell_len
from torch import Tensor, nn

from regard.arrays import is_integer
from regard.capture.editing import KINDS, check_keywords, edit
from regard.capture.edits import modules_in_layer
from regard.capture.model_facts import check_module
from regard.capture.module_names import ModuleNames
from regard.capture.token_labels import token_names_function
from regard.capture.watching import watch
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.messages import Language, Listed, language, printable, say
from regard.records import Record, See
from regard.trace import Trace

Kind = Literal["next", "masked", "token", "class", "token-class"]
_BIDIRECTIONAL = ("MaskedLM", "WithLMHeadModel", "ForPreTraining")
"""Parts of the class names of Hugging Face models that predict a token from both sides."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is predicted, and where.

    kind      next: the next token; masked: the token under a mask; token: the token at a position, from both sides;
              class: of the whole input; token-class: of the token at a position
    position  B: the position in the logits; None for a class of the whole input
    found     whether the position is the one that moved most, because none was given
    """

    kind: Kind
    position: Tensor | None = None
    found: bool = False

    def of(self, logits: Tensor) -> Tensor:
        """Log-probabilities, B W, of the logits, B T W or B W."""
        if self.position is not None:
            logits = logits[torch.arange(len(logits), device=logits.device), self.position]
        return logits.double().log_softmax(-1)


def logits_of(out: Any) -> Tensor:
    """The logits, B T W or B W, of a model's output. ShapeError if there are none."""
    logits = out if isinstance(out, Tensor) else None
    for name in ("logits", "prediction_logits"):
        logits = getattr(out, name, None) if logits is None else logits
    if logits is None and isinstance(out, tuple) and out:
        logits = out[0]
    if not isinstance(logits, Tensor) or logits.dim() not in (2, 3):
        found = tuple(logits.shape) if isinstance(logits, Tensor) else type(out).__name__
        raise ShapeError("effect-logits", found=found)
    if logits.shape[-1] == 1:  # the softmax of one number is always 1
        raise ShapeError("effect-one-number", found=tuple(logits.shape))
    return logits


def prediction_of(
    model: nn.Module,
    given: Mapping[str, Any],
    before: Tensor,
    after: Tensor,
    *,
    position: Any = None,
    tokenizer: Any = None,
) -> Prediction:
    """What the logits of two runs of the model, `before` and `after` an edit, predict.

    given   the arguments of the call by name
    """
    config = getattr(model, "config", None)
    if getattr(config, "problem_type", None) == "multi_label_classification":
        raise ArgumentError("effect-multi-label")
    is_token = _is_vocabulary(model, before.shape[-1], default=before.dim() == 3)
    if before.dim() == 2:
        if position is not None:
            raise ArgumentError("effect-no-position", shape=tuple(before.shape), found=position)
        return Prediction("next" if is_token else "class")
    if position is not None:
        return Prediction("token" if is_token else "token-class", _given_position(position, before))
    if not is_token:
        return Prediction("token-class", _most_moved(before, after, _keep(given, before)), found=True)
    if _is_bidirectional(model):
        masked = _masked(given, before, _mask_id(config, tokenizer))
        if masked is not None:
            return Prediction("masked", masked)
        return Prediction("token", _most_moved(before, after, _keep(given, before)), found=True)
    return Prediction("next", _last(_keep(given, before), before))


def kl_divergence(before: Tensor, after: Tensor) -> Tensor:
    """Σ p log(p / p′) over the last axis, in nats, of log-probabilities; terms with p = 0 are 0."""
    p = before.exp()
    return torch.where(p > 0, p * (before - after), 0.0).sum(-1)


def label_name_function(model: nn.Module) -> Callable[[int], str]:
    """A function from class numbers to the names in the model's config, or to the numbers."""
    labels = getattr(getattr(model, "config", None), "id2label", None)
    names = labels if isinstance(labels, Mapping) else {}
    return lambda number: repr(str(names[number])) if number in names else str(number)


def _is_vocabulary(model: nn.Module, width: int, default: bool) -> bool:
    """Whether logits of this width are scores of tokens, not of classes."""
    config: Any = getattr(model, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    size: Any = getattr(text, "vocab_size", None)
    if is_integer(size):
        return bool(width >= size)
    tables = [module.num_embeddings for module in model.modules() if isinstance(module, nn.Embedding)]
    return width in tables if tables else default


def _is_bidirectional(model: nn.Module) -> bool:
    config = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False) or getattr(config, "is_decoder", False):
        return False
    name = type(getattr(model, "_orig_mod", model)).__name__
    return getattr(config, "kind", None) == "encoder" or any(part in name for part in _BIDIRECTIONAL)


def _mask_id(config: Any, tokenizer: Any) -> int | None:
    for holder in (tokenizer, config):
        found: Any = getattr(holder, "mask_token_id", None)
        if is_integer(found):
            return int(found)
    return None


def _masked(given: Mapping[str, Any], logits: Tensor, mask_id: int | None) -> Tensor | None:
    """The first masked position of each sample; None if the mask id is unknown or no token is masked."""
    ids = next((x for x in given.values() if isinstance(x, Tensor) and x.shape == logits.shape[:2]), None)
    if isinstance(named := given.get("input_ids"), Tensor):
        ids = named
    if mask_id is None or ids is None or ids.shape != logits.shape[:2]:
        return None
    is_mask = ids == mask_id
    has_mask = is_mask.any(-1)
    if not has_mask.any():
        return None
    if not has_mask.all():
        raise ArgumentError("effect-unmasked", sample=int((~has_mask).nonzero()[0]), mask=mask_id)
    return is_mask.int().argmax(-1).to(logits.device)


def _given_position(position: Any, logits: Tensor) -> Tensor:
    B, T = logits.shape[:2]
    positions = position.tolist() if isinstance(position, Tensor) else position
    positions = [position] * B if is_integer(position) else positions
    is_list = isinstance(positions, list | tuple) and len(positions) == B
    if not is_list or not all(is_integer(at) and -T <= at < T for at in positions):
        raise ArgumentError("effect-position", found=position, B=B, last=T - 1)
    return torch.tensor([int(at) % T for at in positions], device=logits.device)


def _keep(given: Mapping[str, Any], logits: Tensor) -> Tensor:
    """Which positions of the logits are not padding, B T."""
    B, T = logits.shape[:2]
    keep = given.get("decoder_attention_mask" if "decoder_input_ids" in given else "attention_mask")
    if not isinstance(keep, Tensor) or keep.shape != (B, T):
        return torch.ones(B, T, dtype=torch.bool, device=logits.device)
    return (keep != 0).to(logits.device)


def _last(keep: Tensor, logits: Tensor) -> Tensor:
    """The last position of each sample that is not padding."""
    return (keep * torch.arange(logits.shape[1], device=keep.device)).argmax(-1)


def _most_moved(before: Tensor, after: Tensor, keep: Tensor) -> Tensor:
    """The position of each sample whose probabilities moved most, by KL, without padding."""
    kl = kl_divergence(*(logits.double().log_softmax(-1) for logits in (before, after)))  # B T
    return kl.masked_fill(~keep, -torch.inf).argmax(-1)


class BeforeAfter(NamedTuple):
    """A value before and after the edit."""

    before: Tensor
    after: Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Effect:
    """What an edit did to a prediction; prints as a table.

    before, after   log-probabilities of the predicted token or class, B W, float64
    token           the followed token or class of each sample, B: the most likely before the edit, unless one was given
    kind, position  what is predicted and at which position, B; see `Prediction`
    """

    before: Tensor
    after: Tensor
    token: Tensor
    token_name: Callable[[int], str] = str
    """Converts an id to text."""
    kind: Kind = "next"
    position: Tensor | None = None
    most_moved: bool = False
    """Whether the position is the one that moved most, because none was given."""

    @property
    def kl(self) -> Tensor:
        """How far the probabilities moved, in nats, B: Σ p log(p / p′), p before the edit and p′ after it."""
        return kl_divergence(self.before, self.after)

    @property
    def probability(self) -> BeforeAfter:
        """The probability of the followed token, B each."""
        return BeforeAfter(*(side.gather(-1, self.token[:, None])[:, 0].exp() for side in (self.before, self.after)))

    def top(self, count: int = 5) -> BeforeAfter:
        """The most likely tokens in descending order, B k each."""
        count = min(count, self.before.shape[-1])
        return BeforeAfter(self.before.topk(count).indices, self.after.topk(count).indices)

    def text(self, lang: Language | None = None, count: int = 5) -> str:
        """A table for each sample: the most likely tokens before and after the edit, and the followed token."""
        lang = lang or language()
        tables = [self._table(sample, lang, count) for sample in range(len(self.token))]
        followed = say(f"effect-followed-{self._what}", lang) + say("effect-caution", lang)
        return printable("\n\n".join([*tables, followed]))

    @property
    def _what(self) -> str:
        return "class" if self.kind in ("class", "token-class") else "token"

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _table(self, sample: int, lang: Language, count: int) -> str:
        at = {} if self.position is None else {"position": int(self.position[sample])}
        title = say(f"effect-title-{self.kind}", lang, kl=float(self.kl[sample]), **at)
        if self.most_moved:
            title = f"{title}\n{say('effect-most-moved', lang)}"
        if len(self.token) > 1:
            title = f"{say('effect-sample', lang, sample=sample)}{title}"
        chosen = int(self.token[sample])
        ids = dict.fromkeys([chosen, *(i for side in self.top(count) for i in side[sample].tolist())])
        rows = [tuple(say(f"effect-{word}-column", lang) for word in (self._what, "before", "after", "change"))]
        for i in sorted(ids, key=lambda i: -float(self.before[sample, i])):
            was, now = (float(side[sample, i].exp()) for side in (self.before, self.after))
            sign = "→ " if i == chosen else "  "
            rows.append(
                (
                    sign + self.token_name(i),
                    f"{was:.4f}",
                    f"{now:.4f}",
                    f"{round(now - was, 4) + 0.0:+.4f}".replace("-", "−"),
                )
            )
        return "\n".join([title, *columns(rows)])


def effect(
    model: nn.Module,
    inputs: Any,
    silence: Any = None,
    cut: Any = None,
    freeze: Any = None,
    *,
    mean: Any = None,
    resample: Any = None,
    path: Any = None,
    token: Any = None,
    position: Any = None,
    tokenizer: Any = None,
    **unknown: Any,
) -> Effect:
    """How far an edit moves what the model predicts: the next token, a masked token, or a class.

    inputs      what the model is called with: ids, a dict of arguments, or a tuple of them
    silence, cut, freeze, mean, resample   the edits, as for `edit`
    path        ((name, head), (name, head)); a name may be the number of a layer. Cut the path from the first head to
                the second, which then reads as if the first were silent; all other heads keep their outputs, so only
                the residual stream and what lies in it between the two (norms, feed-forward layers) carries the change
                (Wang et al. 2023, section 3.1)
    token       the token or class to follow, one id or one per sample; by default the most likely before the edit
    position    the position of the prediction, one or one per sample. By default the last token of a text that is
                continued, the first masked token of a masked language model, else the position whose prediction moves
                most.
    tokenizer   to print tokens instead of ids, and to find the mask token

    The model must be in eval mode: with dropout, two runs differ anyway.

    >>> from regard.config import TransformerConfig
    >>> from regard.models import Transformer
    >>> model = Transformer(TransformerConfig.gpt2(vocab_size=9, d_model=8, n_heads=2, d_ff=16, n_layers=2)).eval()
    >>> moved = effect(model, torch.tensor([[1, 2, 3]]), silence={"layers.0.self_attention": [0]})
    >>> bool(moved.kl > 0), moved.probability.before.shape
    (True, torch.Size([1]))
    """
    check_keywords("effect", unknown, (*KINDS, "path", "token", "position", "tokenizer"))
    _check(model, silence)
    args, kwargs = call_of(inputs)
    given = named_call(model, args) | kwargs
    if given.get("past_key_values") is not None:  # the first run would fill it for the second
        raise ArgumentError("effect-cache")
    with torch.no_grad():
        before = logits_of(_run(model, args, kwargs, given))
        if path is not None:
            resample = {**(resample or {}), **without_path(model, lambda: model(*args, **kwargs), path)}
        with edit(model, silence, cut, freeze, mean=mean, resample=resample):
            after = logits_of(model(*args, **kwargs))
    predicted = prediction_of(model, given, before, after, position=position, tokenizer=tokenizer)
    was, now = predicted.of(before), predicted.of(after)
    token_name = (
        label_name_function(model) if predicted.kind in ("class", "token-class") else token_name_function(tokenizer)
    )
    return Effect(was, now, chosen_token(token, was), token_name, predicted.kind, predicted.position, predicted.found)


def without_path(model: nn.Module, run: Callable[[], Any], path: Any) -> dict[str, tuple[Record, list[int]]]:
    """The outputs of the second head of a path, as they are when the first is silent for it alone; for `resample`."""
    (first, first_head), (second, second_head) = _checked_path(path)
    kept = See(map=None, lse=False, sink=False, outputs=True)
    with watch(model, see=kept) as clean:
        run()
    sender, receiver = (_record_of(clean, model, end) for end in (first, second))
    if clean.names.index(sender) >= clean.names.index(receiver):
        raise ArgumentError("effect-path-order", first=sender, second=receiver)
    others = {record.name: record for record in clean if record.name not in (sender, receiver)}
    with edit(model, silence={sender: [first_head]}, resample=others), watch(model, see=kept) as changed:
        run()
    return {receiver: (changed[receiver], [second_head])}


def _record_of(trace: Trace, model: nn.Module, end: str | int) -> str:
    """The name of the record of an end of a path: a name, or the number of a layer that has one attention."""
    if isinstance(end, str):
        return trace[end].name
    modules = modules_in_layer(ModuleNames(model), end)
    found = [record.name for record in trace if record.module in modules]
    if len(found) != 1:
        names = Listed.few([repr(name) for name in found or trace.names], 4)
        raise ArgumentError("edit-layer-several" if found else "effect-path-layer", asked=end, names=names)
    return found[0]


def _checked_path(path: Any) -> tuple[tuple[str | int, int], tuple[str | int, int]]:
    is_pair = isinstance(path, tuple | list) and len(path) == 2
    ends = [end for end in path if isinstance(end, tuple | list) and len(end) == 2] if is_pair else []
    is_name = [isinstance(name, str) or is_integer(name) for name, _ in ends]
    if len(ends) != 2 or not all(is_name) or not all(is_integer(head) and head >= 0 for _, head in ends):
        raise ArgumentError("effect-path", found=path)
    return (ends[0][0], int(ends[0][1])), (ends[1][0], int(ends[1][1]))


def _check(model: nn.Module, silence: Any) -> None:
    check_module(model, "effect")
    if model.training:
        raise ArgumentError("effect-training")
    if isinstance(silence, Mapping) and silence and set(silence) <= set(KINDS):  # one dict of all edits
        raise ArgumentError("effect-edits", first=next(iter(silence)))


def _run(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], given: Mapping[str, Any]) -> Any:
    """Run the model; if the input of an encoder–decoder's decoder is missing, the error explains how to give it."""
    try:
        return model(*args, **kwargs)
    except (TypeError, ValueError) as error:
        config = getattr(model, "config", None)
        if not getattr(config, "is_encoder_decoder", False) or given.get("decoder_input_ids") is not None:
            raise
        start = getattr(config, "decoder_start_token_id", None)
        start = "decoder_start_token_id" if start is None else start
        raise ArgumentError("effect-decoder", model=type(model).__name__, start=start) from error


def call_of(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and named arguments."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, Tensor):
        return (inputs,), {}
    if isinstance(inputs, tuple):
        return inputs, {}
    raise DtypeError("effect-inputs", found=type(inputs).__name__)


def named_call(model: nn.Module, args: tuple[Any, ...]) -> dict[str, Any]:
    """Positional arguments by the parameter names of the model; {} if they do not fit."""
    forward = getattr(model, "_orig_mod", model).forward  # the compiled wrapper accepts any arguments
    try:
        return inspect.signature(forward).bind_partial(*args).arguments
    except (TypeError, ValueError):  # the model's own error is clearer
        return {}


def chosen_token(token: Any, before: Tensor, option: str = "token") -> Tensor:
    """An id for each sample, B; by default the most likely. Raises ArgumentError, with the name of the option."""
    B, W = before.shape
    if token is None:
        return before.argmax(-1)
    ids = [token] * B if is_integer(token) else token.tolist() if isinstance(token, Tensor) else token
    good = isinstance(ids, Sequence) and len(ids) == B and all(is_integer(i) and 0 <= i < W for i in ids)
    if not good:
        raise ArgumentError("effect-token", option=option, found=token, B=B, last=W - 1)
    return torch.tensor([int(i) for i in ids], device=before.device)


def token_name_function(tokenizer: Any) -> Callable[[int], str]:
    """A function from ids to quoted tokens: decoded text if it is valid, so that spaces and line breaks show."""
    token_name = token_names_function(tokenizer)
    if token_name is None:
        return str

    def quoted(i: int) -> str:
        text = tokenizer.decode([i]) if hasattr(tokenizer, "decode") else ""
        return repr(text if text and "\ufffd" not in text else token_name([i])[0])

    return quoted


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as aligned lines: the first column left, numbers right; 注 is two columns wide."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        spaces = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join([row[0] + spaces[0], *(s + cell for s, cell in zip(spaces[1:], row[1:], strict=True))]))
    return lines
