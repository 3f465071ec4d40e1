"""Scores of a model: BLEU and chrF with signatures; loss, perplexity, bits per byte and character; the form of poems.

A regulated Chinese poem has lines of equal length that rhyme. Works on any plain text; meaning, tones and parallelism
are not checked.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.errors import ArgumentError, MissingPackageError
from regard.masks import Mask
from regard.training.batches import IGNORED, Data

References = Sequence[str] | Sequence[Sequence[str]]
"""One or several references for each line."""


@dataclass(frozen=True, slots=True)
class Score:
    """A named number with sacreBLEU's signature; None if sacreBLEU did not compute it."""

    name: str
    value: float
    signature: str | None


def paper_bleu(hypotheses: Sequence[str], references: References) -> Score:
    """BLEU-4 of lower-cased, tokenised text, as computed by multi-bleu.perl and fairseq.

    Without smoothing: it is 0 if the corpus has no common 4-gram. Papers on Multi30k report this number.

    >>> round(paper_bleu(["a dog runs fast ."], ["A dog runs very fast ."]).value, 2)
    0.0
    >>> round(paper_bleu(["a dog runs fast now ."], ["A dog runs fast ."]).value, 2)
    53.73
    """
    # force: without it sacreBLEU warns that the text looks tokenised, which is intended here.
    how = {"tokenize": "none", "lowercase": True, "smooth_method": "none", "force": True}
    return _scored("bleu", _metrics("paper_bleu").BLEU(**how), hypotheses, references)


def sacre_bleu(
    hypotheses: Sequence[str], references: References, *, lowercase: bool = False, language: str = "en"
) -> Score:
    """BLEU of plain, detokenised text with sacreBLEU's own tokenizer; Chinese by characters.

    >>> sacre_bleu(["小明在看书。"], ["小明在看书。"], language="zh").signature.rpartition("|version")[0]
    'nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp'
    """
    how = {"tokenize": tokenizer_for(language), "lowercase": lowercase}
    return _scored("sacrebleu", _metrics("sacre_bleu").BLEU(**how), hypotheses, references)


def tokenizer_for(language: str) -> str:
    """sacreBLEU's tokenizer for a language: characters for Chinese, mteval-v13a for any other."""
    return "zh" if language.startswith("zh") else "13a"


def chrf(hypotheses: Sequence[str], references: References, *, lowercase: bool = False) -> Score:
    """chrF2: the F-score of common character n-grams; spaces do not count.

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
    """The first references of all lines, then the second ones, …; None if a line has no more."""
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


LogitsFunction = Callable[..., Tensor]
"""A function from a batch's inputs, by name, to logits (B, T, W)."""


@dataclass(frozen=True, slots=True)
class TextLoss:
    """Negative log-likelihood of a text in nats, and the counts by which it is divided.

    `solved` of the `examples` (rows of batches) are predicted without a mistake. Each token is predicted from the
    correct ones before it, so greedy decoding would produce exactly these examples.

    >>> loss = TextLoss(nats=8 * math.log(2), tokens=4, examples=1, solved=0, bytes=2, characters=1)
    >>> round(loss.perplexity, 6), loss.bits_per_byte, loss.bits_per_character
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
        """exp(loss), the number of equally likely tokens with the same loss; infinite if it overflows a float."""
        return math.inf if self.loss > 709 else math.exp(self.loss)

    @property
    def bits_per_byte(self) -> float | None:
        """Comparable between tokenizers; None if the bytes were not counted."""
        return None if self.bytes is None else self.nats / math.log(2) / self.bytes

    @property
    def bits_per_character(self) -> float | None:
        """The same per character; a Chinese character has three bytes in UTF-8."""
        return None if self.characters is None else self.nats / math.log(2) / self.characters


@torch.no_grad()
def text_loss(model: LogitsFunction, data: Data, *, text: str | None = None, device: Any = None) -> TextLoss:
    """The loss over one epoch of `data`; data built with shuffle=False predicts each token once.

    text   the text of the tokens, for bits per byte and per character. The very first token has no context and is not
           predicted, but its bytes count

    Sums are float64, logarithms at least float32. Raises ArgumentError if nothing is predicted.
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


def translation_logits(
    model: LogitsFunction, ids: Tensor, source: Tensor, source_keep: Tensor, **options: Any
) -> Tensor:
    """Logits of an encoder-decoder Transformer; `source_keep`, as in PairBatches, is False for padding."""
    return model(ids, source, source_mask=Mask.from_keep(source_keep), **options)


def with_source_mask(model: LogitsFunction) -> LogitsFunction:
    """The model as a function of a batch's inputs, with `source_keep` converted to a mask."""
    return partial(translation_logits, model)


LINE_ENDS = "，。？！；"


class Form(NamedTuple):
    """A verse form: the number of characters per line and the number of lines."""

    characters: int
    lines: int


FORMS = {"五绝": Form(5, 4), "七绝": Form(7, 4), "五律": Form(5, 8), "七律": Form(7, 8)}
"""The named verse forms."""

# Groups of finals that rhyme: equal after the medial. ü is v as in pypinyin; syllables such as zhi and ci have -i.
_RHYMES = (
    "a ia ua",
    "o uo",
    "e",
    "ie ve",
    "-i",
    "er",
    "i",
    "ei uei",
    "ai uai",
    "u",
    "v",
    "ou iou",
    "ao iao",
    "an ian uan van",
    "en in uen vn",
    "ang iang uang",
    "eng ing ueng",
    "ong iong",
)
_RHYME_OF = {final: number for number, finals in enumerate(_RHYMES) for final in finals.split()}


def lines_of(poem: str) -> list[str]:
    """The lines of a poem, each up to one of ，。？！；, without it.

    >>> lines_of("床前明月光，疑是地上霜。")
    ['床前明月光', '疑是地上霜']
    """
    return [line for line in (part.strip() for part in re.split(f"[{LINE_ENDS}\\n]", poem)) if line]


def form_of(poem: str) -> str | None:
    """The name of the poem's form, by its number of lines and characters; None if it has none of them.

    >>> form_of("白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"), form_of("前不见古人，后不见来者。")
    ('五绝', None)
    """
    lengths = [len(line) for line in lines_of(poem)]
    return next((name for name, form in FORMS.items() if lengths == [form.characters] * form.lines), None)


def right_lines(poem: str, form: Form) -> float:
    """The share of lines with the form's length; missing and extra lines count as wrong.

    >>> right_lines("白日依山尽，黄河入海。欲穷千里目，更上一层楼。", FORMS["五绝"])
    0.75
    """
    lines = lines_of(poem)
    right = sum(len(line) == form.characters for line in lines[: form.lines])
    return right / max(form.lines, len(lines))


def rhymes(poem: str) -> bool:
    """Whether lines 2 and 4 end in the same final of modern Mandarin, and not in the same character.

    Finals rhyme if they sound alike from the main vowel to the end: 山 shān, 天 tiān and 远 yuǎn rhyme, so do 心 xīn
    and 门 mén, 青 qīng and 生 shēng; but 诗 shī and 西 xī do not, nor 东 dōng and 生 shēng, nor 雨 yǔ and 鼓 gǔ. These
    are the 18 rhymes of 中华新韵 (1941). Tones do not count. A character with several readings rhymes if one of them
    does. Poems that rhymed in Tang times may no longer do so: only a share of the real ones does.

    >>> rhymes("床前明月光，疑是地上霜。举头望明月，低头思故乡。"), rhymes("明月，青山。流水，白云。")
    (True, False)
    """
    ends = [line[-1] for line in lines_of(poem)[1:4:2]]
    return len(ends) == 2 and ends[0] != ends[1] and not rhyme_groups(ends[0]).isdisjoint(rhyme_groups(ends[1]))


@cache
def rhyme_groups(character: str) -> frozenset[int]:
    """The numbers of the rhymes of a character, one for each reading; empty for what is not a Chinese character.

    >>> rhyme_groups("霜") == rhyme_groups("乡"), rhyme_groups("，")
    (True, frozenset())
    """
    return frozenset(_RHYME_OF[final] for final in _finals(character) if final in _RHYME_OF)


def _finals(character: str) -> Iterator[str]:
    """The finals of every reading of a character."""
    package = _pypinyin()
    style = {"heteronym": True, "errors": "ignore"}
    for syllable in (each for found in package.pinyin(character, package.Style.NORMAL, **style) for each in found):
        final = package.contrib.tone_convert.to_finals(syllable, strict=True, v_to_u=False)
        yield "-i" if re.fullmatch("(?:[zcs]h?|r)i", syllable) else final


def _pypinyin() -> Any:
    try:
        import pypinyin
        import pypinyin.contrib.tone_convert
    except ImportError as error:
        raise MissingPackageError("missing-package", what="rhymes", package="pypinyin", extra="train") from error
    return pypinyin
