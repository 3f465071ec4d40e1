"""effect: how far an edit moves what a model says next. Two runs, one of them edited, and their difference as a table.

This is what a picture of attention cannot tell: whether anything depends on it. Attention is not explanation
(Jain & Wallace, 2019); an effect is at least a fact about this model on this input.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from rich.cells import cell_len
from torch import Tensor, nn

from regard.capture.editing import edit
from regard.capture.labelling import speller
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.kinds import is_whole
from regard.words import Language, Listed, language, say

KINDS = ("silence", "cut", "freeze")


class Moved(NamedTuple):
    """The same before and after the edit."""

    before: Tensor
    after: Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Effect:
    """What an edit did to the next token; prints as a table.

    before, after   log-probabilities of the next token, B W, float64
    token           the chosen token of each sample, B: the likeliest before the edit, unless one was given
    """

    before: Tensor
    after: Tensor
    token: Tensor
    spell: Callable[[int], str] = str
    """What a reader sees of an id."""

    @property
    def kl(self) -> Tensor:
        """How far the probabilities moved, in nats, B: Σ p log(p / p′), p before the edit and p′ after it."""
        p = self.before.exp()
        return torch.where(p > 0, p * (self.before - self.after), 0.0).sum(-1)

    @property
    def probability(self) -> Moved:
        """Of the chosen token, B each."""
        return Moved(*(side.gather(-1, self.token[:, None])[:, 0].exp() for side in (self.before, self.after)))

    def top(self, count: int = 5) -> Moved:
        """The likeliest tokens, likeliest first, B k each."""
        count = min(count, self.before.shape[-1])
        return Moved(self.before.topk(count).indices, self.after.topk(count).indices)

    def text(self, lang: Language | None = None, count: int = 5) -> str:
        """A table for each sample: what was likely before or is now, and the chosen token."""
        lang = lang or language()
        tables = [self._table(sample, lang, count) for sample in range(len(self.token))]
        return "\n\n".join([*tables, say("effect-caution", lang)])

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _table(self, sample: int, lang: Language, count: int) -> str:
        title = say("effect-title", lang, kl=float(self.kl[sample]))
        if len(self.token) > 1:
            title = f"{say('effect-sample', lang, sample=sample)}{title}"
        chosen = int(self.token[sample])
        ids = dict.fromkeys([chosen, *(i for side in self.top(count) for i in side[sample].tolist())])
        rows = [tuple(say(f"effect-{word}-column", lang) for word in ("token", "before", "after", "change"))]
        for i in sorted(ids, key=lambda i: -float(self.before[sample, i])):
            was, now = (float(side[sample, i].exp()) for side in (self.before, self.after))
            sign = "→ " if i == chosen else "  "
            rows.append(
                (
                    sign + self.spell(i),
                    f"{was:.4f}",
                    f"{now:.4f}",
                    f"{round(now - was, 4) + 0.0:+.4f}".replace("-", "−"),
                )
            )
        return "\n".join([title, *_columns(rows)])


def effect(
    model: nn.Module, inputs: Any, edits: Mapping[str, Any], *, token: Any = None, tokenizer: Any = None
) -> Effect:
    """How far `edits` move the probabilities of the next token.

    inputs      what the model is called with: ids, a dict of arguments, or a tuple of them
    edits       what `edit` takes: {"silence": {"h.5.attn": [3]}, "cut": …, "freeze": …}
    token       the token to follow, one id or one per sample; the likeliest before the edit if None
    tokenizer   to write tokens instead of ids

    The model has to be in eval mode: with dropout, two runs differ by themselves.

    >>> from regard.config import TransformerConfig
    >>> from regard.models import Transformer
    >>> model = Transformer(TransformerConfig.gpt2(vocab_size=9, d_model=8, n_heads=2, d_ff=16, n_layers=2)).eval()
    >>> moved = effect(model, torch.tensor([[1, 2, 3]]), {"silence": {"layers.0.self_attention": [0]}})
    >>> bool(moved.kl > 0), moved.probability.before.shape
    (True, torch.Size([1]))
    """
    _check(model, edits)
    args, kwargs = _call(inputs)
    given = _named(model, args) | kwargs
    if given.get("past_key_values") is not None:  # the first run would fill it for the second
        raise ArgumentError("effect-cache")
    with torch.no_grad():
        before = _next(model(*args, **kwargs), given)
        with edit(model, **edits):
            after = _next(model(*args, **kwargs), given)
    return Effect(before, after, _chosen(token, before), _speller(tokenizer))


def _check(model: nn.Module, edits: Any) -> None:
    if not isinstance(model, nn.Module):
        raise ArgumentError("edit-model", found=type(model).__name__)
    if model.training:
        raise ArgumentError("effect-training")
    if not isinstance(edits, Mapping) or not set(edits) <= set(KINDS):
        found = Listed(edits) if isinstance(edits, Mapping) else type(edits).__name__
        raise ArgumentError("effect-edits", choices=Listed(KINDS), found=found)


def _call(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and named arguments."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, Tensor):
        return (inputs,), {}
    if isinstance(inputs, tuple):
        return inputs, {}
    raise DtypeError("effect-inputs", found=type(inputs).__name__)


def _named(model: nn.Module, args: tuple[Any, ...]) -> dict[str, Any]:
    """Positional arguments by the names that the model has for them; none where it has none, or not so many."""
    forward = getattr(model, "_orig_mod", model).forward  # a compiled model takes whatever it is given
    try:
        return inspect.signature(forward).bind_partial(*args).arguments
    except (TypeError, ValueError):  # the model itself will say what is wrong
        return {}


def _next(out: Any, given: Mapping[str, Any]) -> Tensor:
    """Log-probabilities of the next token, B W, from whatever a model returns."""
    logits = out if isinstance(out, Tensor) else getattr(out, "logits", None)
    if logits is None and isinstance(out, tuple) and out:
        logits = out[0]
    if not isinstance(logits, Tensor) or logits.dim() not in (2, 3):
        found = tuple(logits.shape) if isinstance(logits, Tensor) else type(out).__name__
        raise ShapeError("effect-logits", found=found)
    if logits.dim() == 3:
        mask = given.get("decoder_attention_mask" if "decoder_input_ids" in given else "attention_mask")
        logits = logits[torch.arange(len(logits)), _last(mask, logits)]
    return logits.double().log_softmax(-1)


def _last(keep: Any, logits: Tensor) -> Tensor:
    """The last position of each sample that is no padding."""
    B, T = logits.shape[:2]
    if not isinstance(keep, Tensor) or keep.shape != (B, T):
        return torch.full((B,), T - 1, device=logits.device)
    return ((keep != 0) * torch.arange(T, device=keep.device)).argmax(-1)


def _chosen(token: Any, before: Tensor) -> Tensor:
    B, W = before.shape
    if token is None:
        return before.argmax(-1)
    ids = [token] * B if is_whole(token) else token.tolist() if isinstance(token, Tensor) else token
    good = isinstance(ids, Sequence) and len(ids) == B and all(is_whole(i) and 0 <= i < W for i in ids)
    if not good:
        raise ArgumentError("effect-token", found=token, B=B, last=W - 1)
    return torch.tensor([int(i) for i in ids], device=before.device)


def _speller(tokenizer: Any) -> Callable[[int], str]:
    """Tokens in quotes, as text where they are text by themselves: spaces and line breaks count."""
    spell = speller(tokenizer)
    if spell is None:
        return str

    def quoted(i: int) -> str:
        text = tokenizer.decode([i]) if hasattr(tokenizer, "decode") else ""
        return repr(text if text and "\ufffd" not in text else spell([i])[0])

    return quoted


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The first column to the left, numbers to the right; 注 is two columns wide."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        spaces = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join([row[0] + spaces[0], *(s + cell for s, cell in zip(spaces[1:], row[1:], strict=True))]))
    return lines
