"""One run of a whole model under Looking: what it read, what it wrote, and where every head looked.

The search is over before anybody looks: text and output are read once more, together, in a single pass.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from regard.errors import TooLargeError
from regard.kernels.blocked.workers import one_blas_thread
from regard.kinds import to_kind_of
from regard.language.reading import check_text, readable, without_unknown
from regard.language.translating import search
from regard.language.writing import Prompt, check_length, go_on, read_prompt, sampling
from regard.records import See
from regard.trace import Trace
from regard.trace.looking import Looking

if TYPE_CHECKING:
    from regard.language.model import LanguageModel


class Seen(NamedTuple):
    """What was read, what the model made of it, and the Trace of that one pass; its labels are the tokens.

    A row belongs to the token that has been read there, and shows where the model looked to go on from it.
    """

    text: str
    output: str
    trace: Trace


def look(model: "LanguageModel", text: str, *, output: str | None = None, see: See | None = None) -> Seen:
    """What `LanguageModel.see` says."""
    looking = Looking(See(qk=True) if see is None else see)
    if output is not None:
        check_text(output)
        output = without_unknown(model.tokenizer, output)
    if model.settings.task == "translation":
        return _translation(model, text, output, looking)
    return _continuation(model, text, output, looking)


def _translation(model: "LanguageModel", text: str, output: str | None, looking: Looking) -> Seen:
    tokenizer = model.tokenizer
    text = readable(model, text).replace("\n", " ")
    source = tokenizer.encode(text)
    _check_length(model, len(source) + 1)
    if output is None:
        written = search(model, [source])[0]
        output = tokenizer.decode(written)
    else:
        written = tokenizer.encode(output)
        _check_length(model, len(written) + 1)
    ids, source = [tokenizer.special("bos"), *written], [*source, tokenizer.special("eos")]
    _run(model, looking, ids, source)
    trace = looking.label(labels(model, ids), labels(model, source))
    trace.texts = text, output
    return Seen(text, output, trace)


def _continuation(model: "LanguageModel", text: str, output: str | None, looking: Looking) -> Seen:
    tokenizer, start = model.tokenizer, read_prompt(model, text)
    check_length(start, model.longest)
    before = [*start.header, *start.ids]
    if output is None:
        written = go_on(model, start, sampling(model, seed=0))[: model.longest - len(before)]
        output = tokenizer.decode(written)
    else:
        written = tokenizer.encode(output)
        check_length(Prompt(start.header, [*start.ids, *written]), model.longest)
    ids = [*before, *written]
    _run(model, looking, ids)
    return Seen(text, output, looking.label(labels(model, ids)))


def labels(model: "LanguageModel", ids: list[int]) -> list[str]:
    """What a reader sees of each token: no space before a word, unless it is all there is."""
    return [piece.lstrip(" ") or piece for piece in model.tokenizer.pieces(ids)]


def _run(model: "LanguageModel", looking: Looking, *texts: list[int]) -> None:
    """The model on ids, and on a source where it has one, each as a batch of one in the kind of array that it takes."""
    parameters = getattr(model.model, "parameters", None)
    like = None if parameters is None else next(parameters())
    with one_blas_thread():  # for a sentence, several would wait for each other longer than they work
        model.model(*(to_kind_of(np.array([ids]), like) for ids in texts), attend=looking)


def _check_length(model: "LanguageModel", found: int) -> None:
    if found > model.longest:
        raise TooLargeError("see-too-long", found=found, most=model.longest)
