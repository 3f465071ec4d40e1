"""Text translated: read, split into sentences, searched with beams in batches, and put together again.

What cannot be read is told in one sentence, text by text. Ids are all that the search sees of it.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.errors import ArgumentError
from regard.generation import search_many
from regard.kernels.blocked.workers import run_all
from regard.language.input_text import EMPTY, check_text, readable
from regard.reference import Transformer
from regard.text.segmentation import split_sentences
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from regard.language.model import LanguageModel

BATCH_TOKENS = 2048
"""Ids of a batch, counted once for each beam: some thirty sentences, so that every core has a batch of its own."""
_CUTS = (re.compile(r"(?<=[,;:])\s+"), re.compile(r"\s+"))
"""Where a sentence that is too long is cut: at a comma, or else at a space."""

Lines = list[list[list[int]]]
"""A text as the model reads it: of each line, the ids of each sentence, no eos."""


def translate(
    model: "LanguageModel", text: str | Sequence[str], *, beams: int | None, length_penalty: float | None
) -> str | list[str]:
    """What `LanguageModel.translate` says."""
    one = isinstance(text, str | bytes) or not isinstance(text, Sequence)
    texts: Sequence[Any] = [text] if one else text
    for each in texts:
        check_text(each)
    found = translate_each(model, texts, beams=beams, length_penalty=length_penalty)
    wrong = next((each for each in found if isinstance(each, ArgumentError) and (one or each.key != EMPTY)), None)
    if wrong is not None:
        raise wrong
    answers = ["" if isinstance(each, ArgumentError) else each for each in found]
    return answers[0] if one else answers


def translate_each(
    model: "LanguageModel",
    texts: Sequence[str],
    *,
    beams: int | None = None,
    length_penalty: float | None = None,
) -> list[str | ArgumentError]:
    """The translation of each text, or what is wrong with it: one bad line does not stop the others."""
    check_translates(model)
    read: list[Lines | ArgumentError] = []
    for text in texts:
        try:
            read.append(_read(model, text))
        except ArgumentError as error:
            read.append(error)
    sources = [ids for each in read if not isinstance(each, ArgumentError) for line in each for ids in line]
    written = map(model.tokenizer.decode, search(model, sources, beams=beams, length_penalty=length_penalty))
    between = "" if (model.settings.target_language or "").startswith("zh") else " "
    return [
        each
        if isinstance(each, ArgumentError)
        else "\n".join(between.join(next(written) for _ in line) for line in each)
        for each in read
    ]


def search(
    model: "LanguageModel",
    sources: Sequence[list[int]],
    *,
    beams: int | None = None,
    length_penalty: float | None = None,
) -> list[list[int]]:
    """The best translation of each sentence, ids to ids; none of them with its eos."""
    tokenizer, settings = model.tokenizer, model.settings
    how: dict[str, Any] = {
        "bos": tokenizer.special("bos"),
        "eos": tokenizer.special("eos"),
        "beams": settings.beams if beams is None else beams,
        "length_penalty": settings.length_penalty if length_penalty is None else length_penalty,
    }
    ended = [[*ids, how["eos"]] for ids in sources]
    if isinstance(model.model, Transformer):  # NumPy: BLAS' own threads gain little on rows this few
        return search_many(model.model, ended, **how, batch_tokens=BATCH_TOKENS, run=run_all)
    return search_many(model.model, ended, **how)


def check_translates(model: "LanguageModel") -> None:
    """A model with an encoder and a decoder; else an ArgumentError that says what it is."""
    if model.settings.task != "translation":
        raise ArgumentError("translate-task", name=model.name)


def _read(model: "LanguageModel", text: str) -> Lines:
    """A text as ids, line by line and sentence by sentence, no sentence longer than the model reads."""
    most = max(1, model.longest - 1)  # and an eos
    lines = []
    for line in readable(model, text).split("\n"):
        parts = (ids for sentence in split_sentences(line) for ids in _fitting(model.tokenizer, sentence, most))
        lines.append([ids for ids in parts if ids])
    return lines


def _fitting(tokenizer: Tokenizer, sentence: str, most: int) -> list[list[int]]:
    """The ids of a sentence, or of its parts: cut near its middle, again and again, until each part fits."""
    ids = tokenizer.encode(sentence)
    if len(ids) <= most:
        return [ids]
    if len(sentence) < 2:
        return [ids[:most]]
    middle = len(sentence) // 2
    cuts = (
        min((found.start() for found in cut.finditer(sentence)), key=lambda at: abs(at - middle), default=0)
        for cut in _CUTS
    )
    at = next((at for at in cuts if at > 0), middle)
    halves = (sentence[:at], sentence[at:].lstrip())
    return [ids for half in halves for ids in _fitting(tokenizer, half, most)]
