"""`LanguageModel.see`: one recorded run of a whole model, and the head that matters most for its output."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.arrays import Array, to_kind_of, to_numpy
from regard.dispatch import attend_within
from regard.errors import TooLargeError
from regard.generation.beams import room_for
from regard.kernels.blocked.workers import one_blas_thread
from regard.language.input_text import check_text, readable, without_unknown
from regard.language.translating import search
from regard.language.writing import Prompt, check_length, go_on, read_prompt, room_to_write, sampling
from regard.records import Attend, Kind, See
from regard.reference import log_sum_exp
from regard.trace import Trace
from regard.trace.recorder import Looking

if TYPE_CHECKING:
    from regard.language.model import LanguageModel


CANDIDATES = 8
"""So many heads are silenced, each in a run of its own: those with the highest scores."""


class Silenced:
    """An Attend as models call it, in which one head of one module adds nothing to the output."""

    def __init__(self, module: str, head: int) -> None:
        self.module, self.head = module, head

    def __call__(self, q: Array, k: Array, v: Array, *, name: str, kind: Kind, **options: Any) -> Array:
        """softmax(q kᵀ) v, B H T Ev, the head left 0."""
        out = attend_within(q, k, v, name=name, kind=kind, **options)
        if name == self.module:
            out[:, self.head] = 0
        return out


def head_that_matters(trace: Trace, run: Callable[[Attend], Array]) -> tuple[str, int] | None:
    """The name of a record and the number of its head: of those with a clear pattern, the one that moves most.

    run   from an Attend to the logits of the same texts, B T W

    How far the probabilities move is Σ p log(p / p′), p with the head and p′ without it, a mean over all positions.
    None where no head has a clear pattern; heads that rest on the first token are no candidates.
    """
    named = [head for head in trace.heads() if head.best is not None and head.best.pattern != "first"]
    if not named:
        return None
    before = _log_probabilities(run(attend_within))
    moved = [
        float((np.exp(before) * (before - _log_probabilities(run(Silenced(head.name, head.head))))).sum(-1).mean())
        for head in named[:CANDIDATES]
    ]
    best = named[int(np.argmax(moved))]
    return best.name, best.head


def _log_probabilities(logits: Array) -> np.ndarray:
    scores = np.asarray(to_numpy(logits), np.float64)
    return scores - log_sum_exp(scores)[..., None]


class Seen(NamedTuple):
    """What was read, what the model made of it, and the Trace of that one pass; its labels are the tokens.

    A row has read one token (`Record.queries`) and writes the next (`Record.written`): it shows where the model looked
    to write it.
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
    eos, ended = tokenizer.special("eos"), True
    if output is None:
        written = search(model, [source])[0]
        output = tokenizer.decode(written)
        ended = len(written) < room_for([*source, eos], model.config.max_len)  # else it was cut off
    else:
        written = tokenizer.encode(output)
        _check_length(model, len(written) + 1)
    ids, source = [tokenizer.special("bos"), *written], [*source, eos]
    _run(model, looking, ids, source)
    after = [*labels(model, written), tokenizer.pieces([eos])[0] if ended else ""]
    trace = looking.label(labels(model, ids), labels(model, source), after)
    trace.texts = text, output
    return Seen(text, output, _with_opening(model, trace, ids, source))


def _continuation(model: "LanguageModel", text: str, output: str | None, looking: Looking) -> Seen:
    tokenizer, start = model.tokenizer, read_prompt(model, text)
    check_length(start, model.longest)
    before = [*start.header, *start.ids]
    last = ""  # what the last query writes
    if output is None:
        found = go_on(model, start, sampling(model, seed=0))
        written = found[: model.longest - len(before)]
        output = tokenizer.decode(written)
        if len(written) < len(found):
            last = labels(model, found)[len(written)]
        elif tokenizer.eos is not None and len(found) < room_to_write(model, start):
            last = tokenizer.pieces([tokenizer.eos])[0]
    else:
        written = tokenizer.encode(output)
        check_length(Prompt(start.header, [*start.ids, *written]), model.longest)
    ids = [*before, *written]
    _run(model, looking, ids)
    # Of the prompt only the last query writes: what follows the others was given.
    after = [*[""] * (len(before) - 1), *labels(model, written), last]
    trace = looking.label(labels(model, ids), written=after if any(after) else None)
    return Seen(text, output, _with_opening(model, trace, ids))


def _with_opening(model: "LanguageModel", trace: Trace, *texts: list[int]) -> Trace:
    """The Trace, which opens with the head that the model's settings name first, else with one that matters."""
    kinds = [record.kind for record in trace]
    records = trace.select(kind="cross" if "cross" in kinds else "decoder")
    named = next(iter(model.settings.alignment_heads), None)
    if named is not None:
        layer, head = named
        trace.opening = (records[layer].name, head)
    elif "cross" not in kinds and all(record.has_weights for record in records):
        trace.opening = head_that_matters(records, lambda attend: _run(model, attend, *texts))
    return trace


def labels(model: "LanguageModel", ids: list[int]) -> list[str]:
    """What a reader sees of each token: no space before a word, unless it is all there is."""
    return [piece.lstrip(" ") or piece for piece in model.tokenizer.pieces(ids)]


def _run(model: "LanguageModel", attend: Attend, *texts: list[int]) -> Array:
    """The logits on ids, and on a source where there is one, each a batch of one in the arrays that the model takes."""
    parameters = getattr(model.model, "parameters", None)
    like = None if parameters is None else next(parameters())
    with one_blas_thread():  # for a sentence, several would wait for each other longer than they work
        return model.model(*(to_kind_of(np.array([ids]), like) for ids in texts), attend=attend)


def _check_length(model: "LanguageModel", found: int) -> None:
    if found > model.longest:
        raise TooLargeError("see-too-long", found=found, most=model.longest)
