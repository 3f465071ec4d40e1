"""Scores of a model: BLEU and chrF with signatures; loss, perplexity, bits per byte and per character."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.errors import ArgumentError, MissingPackageError
from regard.masks import Mask
from regard.training.batches import IGNORED, Data

References = Sequence[str] | Sequence[Sequence[str]]
"""One reference for each line, or several for each."""


@dataclass(frozen=True, slots=True)
class Score:
    """A number by its name, and how sacreBLEU counted it: None for what it did not."""

    name: str
    value: float
    signature: str | None


def paper_bleu(hypotheses: Sequence[str], references: References) -> Score:
    """BLEU-4 of lower-cased text that is tokenised already, as multi-bleu.perl and fairseq count it.

    Nothing is smoothed: without a common 4-gram in the whole corpus it is 0. Papers on Multi30k print this number.

    >>> round(paper_bleu(["a dog runs fast ."], ["A dog runs very fast ."]).value, 2)
    0.0
    >>> round(paper_bleu(["a dog runs fast now ."], ["A dog runs fast ."]).value, 2)
    53.73
    """
    # force: sacreBLEU otherwise warns that the text looks tokenised, which is what this number is about.
    how = {"tokenize": "none", "lowercase": True, "smooth_method": "none", "force": True}
    return _scored("bleu", _metrics("paper_bleu").BLEU(**how), hypotheses, references)


def sacre_bleu(
    hypotheses: Sequence[str], references: References, *, lowercase: bool = False, language: str = "en"
) -> Score:
    """BLEU of plain, detokenised text, tokenised by sacreBLEU alike for everyone; Chinese by characters.

    >>> sacre_bleu(["小明在看书。"], ["小明在看书。"], language="zh").signature.rpartition("|version")[0]
    'nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp'
    """
    how = {"tokenize": tokenizer_for(language), "lowercase": lowercase}
    return _scored("sacrebleu", _metrics("sacre_bleu").BLEU(**how), hypotheses, references)


def tokenizer_for(language: str) -> str:
    """sacreBLEU's name for how it splits text of a language: Chinese by characters, any other as mteval-v13a does."""
    return "zh" if language.startswith("zh") else "13a"


def chrf(hypotheses: Sequence[str], references: References, *, lowercase: bool = False) -> Score:
    """chrF2: how many characters in a row are common, whatever the words are; spaces do not count.

    >>> chrf(["小明在看书。"], ["小明在看书。"]).value
    100.0
    """
    return _scored("chrf", _metrics("chrf").CHRF(lowercase=lowercase), hypotheses, references)


def _metrics(what: str) -> Any:
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise MissingPackageError("missing-package", what=what, package="sacrebleu", extra="train") from error
    return metrics


def _scored(name: str, metric: Any, hypotheses: Sequence[str], references: References) -> Score:
    value = metric.corpus_score(list(hypotheses), _streams(hypotheses, references)).score
    return Score(name, float(value), str(metric.get_signature().format()))


def _streams(hypotheses: Sequence[str], references: References) -> list[list[str | None]]:
    """The first references of all lines, then the second ones, …; None where a line has no more."""
    lines = [[line] if isinstance(line, str) else list(line) for line in references]
    if len(lines) != len(hypotheses):
        raise ArgumentError("scores-count", hypotheses=len(hypotheses), references=len(lines))
    if not lines:
        raise ArgumentError("scores-empty")
    for number, line in enumerate(lines, 1):
        if not line:
            raise ArgumentError("scores-no-reference", line=number)
    most = max(len(line) for line in lines)
    return [[line[at] if at < len(line) else None for line in lines] for at in range(most)]


GivesLogits = Callable[..., Tensor]
"""From a batch's inputs, by name, to logits (B, T, W)."""


@dataclass(frozen=True, slots=True)
class TextLoss:
    """Negative log-likelihood of a text in nats, and what it is divided by.

    `solved` of the `examples` (rows of batches) were foreseen without a mistake: as each token is predicted from the
    right ones before it, these are just those that the model, taking the likeliest id each time, would write itself.

    >>> told = TextLoss(nats=8 * math.log(2), tokens=4, examples=1, solved=0, bytes=2, characters=1)
    >>> round(told.perplexity, 6), told.bits_per_byte, told.bits_per_character
    (4.0, 4.0, 8.0)
    """

    nats: float
    tokens: int
    examples: int
    solved: int
    bytes: int | None = None
    characters: int | None = None

    @property
    def loss(self) -> float:
        """Nats per predicted token."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        """Among how many equally likely tokens the model might as well choose; infinite beyond what a float holds."""
        return math.inf if self.loss > 709 else math.exp(self.loss)

    @property
    def bits_per_byte(self) -> float | None:
        """Comparable between tokenizers; None where nobody counted the bytes."""
        return None if self.bytes is None else self.nats / math.log(2) / self.bytes

    @property
    def bits_per_character(self) -> float | None:
        """The same for characters, of which Chinese has one where UTF-8 has three bytes."""
        return None if self.characters is None else self.nats / math.log(2) / self.characters


@torch.no_grad()
def text_loss(model: GivesLogits, data: Data, *, text: str | None = None, device: Any = None) -> TextLoss:
    """The loss over one epoch of `data`: built with shuffle=False, it predicts each token once.

    text   what the tokens spell, for bits per byte and per character. The first token of blocks, which has nothing
           before it, is not predicted, but its bytes count

    Sums are float64, logarithms float32 at least. ArgumentError where nothing is predicted.
    """
    nats, tokens, examples, solved = 0.0, 0, 0, 0
    for index in range(data.batches_per_epoch):
        batch = data.batch(0, index)
        logits = model(**{name: each.to(device) for name, each in batch.inputs.items()})  # B T W
        logits = logits if logits.dtype == torch.float64 else logits.float()
        targets = batch.targets.to(logits.device)
        losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none")
        nats += losses.double().sum().item()
        tokens += batch.n_targets
        examples += len(targets)
        solved += int(((logits.argmax(-1) == targets) | (targets == IGNORED)).all(-1).sum())
    if not tokens:
        raise ArgumentError("text-loss-nothing")
    if text is None:
        return TextLoss(nats, tokens, examples, solved)
    return TextLoss(nats, tokens, examples, solved, len(text.encode("utf-8", "surrogatepass")), len(text))


def translated(model: GivesLogits, ids: Tensor, source: Tensor, source_keep: Tensor, **options: Any) -> Tensor:
    """Logits of a Transformer with an encoder, whose source is padded: `source_keep`, as PairBatches gives it."""
    return model(ids, source, source_mask=Mask.from_keep(source_keep), **options)


def taking_keep(model: GivesLogits) -> GivesLogits:
    """The model as one that takes a batch's inputs, `source_keep` among them."""
    return partial(translated, model)
