"""Translation quality: reads a trained model and test sets, translates by beam search, and computes scores."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.checkpoints.model_folder import (
    RUN_MODEL,
    RUN_RECIPE,
    file_in_folder,
    model_folder_of,
    read_json,
    run_folder_of,
)
from regard.errors import FileError
from regard.evaluation.scores import Score, chrf, paper_bleu, sacre_bleu
from regard.generation.beams import BATCH_TOKENS, TranslationModel, search_many
from regard.models import Model, read_any_model
from regard.text.corpus import Corpus, read_lines
from regard.text.normalise import is_chinese, moses_detokenised, moses_tokenised
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from regard.text.tokenizer import Tokenizer


class Sources(NamedTuple):
    """Lines as ids, each with its eos; an empty line is []. `cut` is the number of truncated lines."""

    ids: list[list[int]]
    cut: int


def translate_lines(
    model: TranslationModel,
    tokenizer: "Tokenizer",
    lines: Sequence[str],
    *,
    beams: int = 5,
    length_penalty: float = 1.0,
    batch_tokens: int = BATCH_TOKENS,
    device: Any = None,
) -> list[str]:
    """The best translation by beam search for each line; an empty line for an empty one.

    FileError gives the number of a line that is too long for the model. A torch model is moved to `device`, if given.
    """
    sources = encode_sources(tokenizer, lines, model.config.max_len)
    model = model if device is None else model.to(device)  # type: ignore[attr-defined]
    how: dict[str, Any] = {"beams": beams, "length_penalty": length_penalty, "batch_tokens": batch_tokens}
    return translate(model, tokenizer, sources.ids, **how)


def encode_sources(
    tokenizer: "Tokenizer",
    lines: Sequence[str],
    max_len: int | None,
    *,
    numbers: Sequence[int] | None = None,
    cut: bool = False,
) -> Sources:
    """Lines as ids with an eos. A line longer than `max_len` raises FileError or, with `cut`, is truncated and counted.

    numbers   the line numbers in the file, if they are not 1, 2, …
    """
    eos = tokenizer.special("eos")
    too_long = 0
    found = []
    for at, ids in enumerate(tokenizer.encode_all(list(lines))):
        if max_len is not None and len(ids) >= max_len:
            if not cut:
                number = at + 1 if numbers is None else numbers[at]
                raise FileError("translate-too-long", line=number, found=len(ids) + 1, limit=max_len)
            ids, too_long = ids[: max_len - 1], too_long + 1
        found.append([*ids, eos] if ids else [])
    return Sources(found, too_long)


def translate(
    model: TranslationModel,
    tokenizer: "Tokenizer",
    sources: Sequence[list[int]],
    *,
    beams: int = 5,
    length_penalty: float = 1.0,
    batch_tokens: int = BATCH_TOKENS,
) -> list[str]:
    """The same for lines as ids, as returned by `encode_sources`."""
    bos, eos = tokenizer.special("bos"), tokenizer.special("eos")
    how: dict[str, Any] = {"beams": beams, "length_penalty": length_penalty, "batch_tokens": batch_tokens}
    return [tokenizer.decode(ids) for ids in search_many(model, sources, bos=bos, eos=eos, **how)]


MODEL, TOKENIZER, RECIPE, RUN = RUN_MODEL, "tokenizer.json", RUN_RECIPE, "run.json"
"""The names of a run's files."""
SETTINGS = "generation_config.json"


class TrainedModel(NamedTuple):
    """A trained model with its tokenizer.

    run        the run folder with the recipe; None for a model without a run
    language   the target language, if the model's settings name it
    """

    model: Model
    tokenizer: Tokenizer
    run: Path | None
    language: str | None


def read_trained(folder: str | os.PathLike[str]) -> TrainedModel:
    """The model of a run folder, of its `model` folder, or of any folder with a model and its tokenizer.

    FileError names what is missing: an unfinished run has no model yet.
    """
    given = Path(folder)
    if not given.is_dir():
        raise FileError("model-not-folder" if given.exists() else "model-no-folder", path=str(given))
    run, place = run_folder_of(given), model_folder_of(given)
    return TrainedModel(read_any_model(place), Tokenizer.read(place / TOKENIZER, within=place), run, _language(place))


def _language(folder: Path) -> str | None:
    if not os.path.lexists(folder / SETTINGS):
        return None
    match read_json(file_in_folder(folder, SETTINGS)):
        case {"target_language": str(language)}:
            return language
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Languages:
    """Source and target language; `tokenised` if the model's text is tokenised by `moses_tokenised`."""

    source: str
    target: str
    tokenised: bool


@dataclass(frozen=True, slots=True)
class PairSet:
    """Source sentences as model input, with references: `written` in the model's form, `plain` as plain text.

    `lines` are the line numbers of the sentences in their file.
    """

    name: str
    sources: list[str]
    lines: list[int]
    written: list[list[str]] | None
    plain: list[list[str]] | None
    languages: Languages

    def scores(self, hypotheses: Sequence[str]) -> list[Score]:
        """The scores for which there are references."""
        target = self.languages.target
        found = [] if self.written is None else [paper_bleu(hypotheses, self.written)]
        if self.plain is not None:
            lowercase = self.languages.tokenised  # the model was trained on lower-cased text
            texts = moses_detokenised(list(hypotheses), target) if self.languages.tokenised else hypotheses
            found.append(sacre_bleu(texts, self.plain, lowercase=lowercase, language=target))
            found.append(chrf(texts, self.plain, lowercase=lowercase))
        return found


def language_of(references: Sequence[str]) -> str:
    """The language of the references for scoring: "zh" for Chinese, "en" for any other.

    >>> language_of(["我爱你。", "谢谢！"]), language_of(["Ich liebe dich."])
    ('zh', 'en')
    """
    return "zh" if is_chinese("".join(references)) else "en"


def pair_set(corpus: Corpus, languages: Languages) -> PairSet:
    """A set of plain pairs. References of the same source sentence are grouped, so that it is translated once."""
    grouped: dict[str, list[str]] = {}
    first: dict[str, int] = {}
    for source, target, line in zip(*corpus.columns, corpus.lines, strict=True):
        grouped.setdefault(source, []).append(target)
        first.setdefault(source, line)
    sources, lines, plain = list(grouped), list(first.values()), list(grouped.values())
    if not languages.tokenised:
        return PairSet(corpus.name, sources, lines, None, plain, languages)
    written = [moses_tokenised(several, languages.target) for several in plain]
    return PairSet(corpus.name, moses_tokenised(sources, languages.source), lines, written, plain, languages)


def split_set(folder: Path, split: str, languages: Languages, *, pattern: str, raw: str | None) -> PairSet:
    """A set of parallel files, line by line, found by the name of the split.

    pattern   path of the tokenised files, such as "tok/{split}.lc.norm.tok.{lang}"; missing ones come from `raw`
    raw       path of the plain files, such as "{split}.{lang}"

    Raises FileError if neither exists, or if source and references differ in length.
    """

    def place(template: str, lang: str) -> Path:
        return folder / template.format(split=split, lang=lang)

    def tokenised(lang: str) -> list[str]:
        path = place(pattern, lang)
        if path.is_file() or raw is None:
            return _lines(path)
        plain = place(raw, lang)
        if not plain.is_file():
            raise FileError("evaluate-split-absent", split=split, paths=f"{path}, {plain}")
        return moses_tokenised(_lines(plain), lang)

    sources, written = tokenised(languages.source), tokenised(languages.target)
    plain = None
    if raw is not None and place(raw, languages.target).is_file():
        plain = _lines(place(raw, languages.target))
    for lines in (written, plain):
        if lines is not None and len(lines) != len(sources):
            raise FileError("evaluate-split-lengths", split=split, sources=len(sources), references=len(lines))
    each = [[line] for line in written], None if plain is None else [[line] for line in plain]
    return PairSet(split, sources, list(range(1, len(sources) + 1)), *each, languages)


def _lines(path: Path) -> list[str]:
    return read_lines([path]).columns[0]
