"""Translation: split into sentences, beam search in batches, and the results joined.

A text that cannot be read gets its own error. The search works on ids only.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.errors import ArgumentError, TooLargeError
from regard.generation import beam_search, search_many
from regard.generation.beams import Beam, max_translation_length
from regard.kernels.division import one_blas_thread, run_all
from regard.language.input_text import EMPTY, InputText, Note, check_task, check_text, input_notes, read_input
from regard.reference import Transformer
from regard.text.segmentation import split_sentences
from regard.text.tokenizer import AnyTokenizer

if TYPE_CHECKING:
    from regard.language.model import LanguageModel

BATCH_TOKENS = 2048
"""Ids in a batch, counted once for each beam: about thirty sentences, so that every core has its own batch."""
_CUTS = (re.compile(r"(?<=[,;:])\s+"), re.compile(r"\s+"))
"""Where a long sentence is cut: at a comma, or else at a space."""

Lines = list[list[list[int]]]
"""A text as ids: for each line, the ids of each sentence, without eos."""


class Translation(NamedTuple):
    """The translation of a text, and the notes about the text."""

    output: str
    notes: tuple[Note, ...] = ()


def translate(
    model: "LanguageModel", text: str | Sequence[str], *, beams: int | None, length_penalty: float | None
) -> tuple[str | list[str], list[Note]]:
    """The implementation of `LanguageModel.translate`; also returns the notes about all texts."""
    is_single = isinstance(text, str | bytes) or not isinstance(text, Sequence)
    texts: Sequence[Any] = [text] if is_single else text
    for each in texts:
        check_text(each)
    found = translate_each(model, texts, beams=beams, length_penalty=length_penalty)
    error = next((each for each in found if isinstance(each, ArgumentError) and (is_single or each.key != EMPTY)), None)
    if error is not None:
        raise error
    translations = [Translation("") if isinstance(each, ArgumentError) else each for each in found]
    outputs = [each.output for each in translations]
    notes = [note for each in translations for note in each.notes]
    return outputs[0] if is_single else outputs, notes


def translate_each(
    model: "LanguageModel",
    texts: Sequence[str],
    *,
    beams: int | None = None,
    length_penalty: float | None = None,
) -> list[Translation | ArgumentError]:
    """The translation of each text, or its error: one bad text does not stop the others."""
    check_translates(model)
    inputs: list[InputText | ArgumentError] = []
    for text in texts:
        try:
            inputs.append(read_input(model, text))
        except ArgumentError as error:
            inputs.append(error)
    encoded = [[] if isinstance(each, ArgumentError) else _encode_text(model, each.text) for each in inputs]
    sources = [ids for lines in encoded for line in lines for ids in line]
    written = map(model.tokenizer.decode, search(model, sources, beams=beams, length_penalty=length_penalty))
    between = "" if (model.settings.target_language or "").startswith("zh") else " "
    found: list[Translation | ArgumentError] = []
    for given, lines in zip(inputs, encoded, strict=True):
        if isinstance(given, ArgumentError):
            found.append(given)
            continue
        output = "\n".join(between.join(next(written) for _ in line) for line in lines)
        found.append(Translation(output, input_notes(model, given, output)))
    return found


def search(
    model: "LanguageModel",
    sources: Sequence[list[int]],
    *,
    beams: int | None = None,
    length_penalty: float | None = None,
) -> list[list[int]]:
    """The best translation of each sentence as ids, without eos on either side."""
    if model.backend.name == "transformers":
        found: list[list[int]] = model.search(sources, beams=beams, length_penalty=length_penalty)  # type: ignore[attr-defined]
        return found
    settings, special = model.settings, model.special
    options: dict[str, Any] = {
        "bos": special.start,
        "eos": special.ends[0],
        "beams": settings.beams if beams is None else beams,
        "length_penalty": settings.length_penalty if length_penalty is None else length_penalty,
    }
    whole = [special.around(ids) for ids in sources]
    if isinstance(model.model, Transformer):  # NumPy: BLAS threads gain little on so few rows
        return search_many(model.model, whole, **options, batch_tokens=BATCH_TOKENS, run=run_all)
    return search_many(model.model, whole, **options)


def find_beams(model: "LanguageModel", ids: list[int]) -> list[Beam]:
    """All texts that beam search finished for one sentence, best first: the first is that of `search`."""
    settings, special = model.settings, model.special
    source = special.around(ids)
    with one_blas_thread():  # as `search`, so that the results are equal
        found = beam_search(
            model.model,
            [[special.start]],
            sources=[source],
            beams=settings.beams,
            max_new=[max_translation_length(source, model.config.max_len)],
            eos=special.ends[0],
            length_penalty=settings.length_penalty,
            best=settings.beams,
        )
    return list(found[0])


def check_translates(model: "LanguageModel") -> None:
    """Raise ArgumentError unless the model translates."""
    check_task(model, "translation")


def _encode_text(model: "LanguageModel", text: str) -> Lines:
    """A prepared text as ids, line by line and sentence by sentence; long sentences are split."""
    most = max(1, model.longest - len(model.special.around([])))
    if model.settings.verbatim:  # of the hub: it may have a prefix, or summarise, so the text stays whole
        whole = model.tokenizer.encode(text)
        if len(whole) > most:
            raise TooLargeError("see-too-long", found=len(whole), most=most)
        return [[whole]] if whole else []
    lines = []
    for line in text.split("\n"):
        parts = (ids for sentence in split_sentences(line) for ids in _fitting(model.tokenizer, sentence, most))
        lines.append([ids for ids in parts if ids])
    return lines


def _fitting(tokenizer: AnyTokenizer, sentence: str, most: int) -> list[list[int]]:
    """The ids of a sentence, or of its parts: it is cut near its middle until each part fits."""
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
