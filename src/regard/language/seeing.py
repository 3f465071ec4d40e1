"""`LanguageModel.see` and `silence`: one recorded run of a whole model, and its output without one of its heads."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.arrays import Array, convert_like, to_numpy
from regard.axes import in_range
from regard.dispatch import attend_in_model
from regard.errors import ArgumentError, TooLargeError
from regard.generation.beams import Beam, max_translation_length
from regard.kernels.division import one_blas_thread
from regard.language.generating import Prompt, check_length, chosen_pick, continue_prompt, default_max_new, read_prompt
from regard.language.input_text import Note, check_text, input_notes, read_input, without_unknown
from regard.language.translating import find_beams
from regard.masks import Mask
from regard.records import Attend, Kind, See
from regard.reference import log_sum_exp
from regard.trace import Trace
from regard.trace.recorder import Recorder
from regard.trace.trace import Candidates, Temperatures

if TYPE_CHECKING:
    from regard.language.model import LanguageModel


LIKELIEST = 5
"""The number of likeliest tokens that a Trace keeps for every row."""
STOPS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
"""Temperatures at which the probabilities of these tokens are exact."""
CANDIDATES = 8
"""The number of heads that are silenced, each in its own run: those with the highest scores."""


class Silenced:
    """An Attend for models in which the output of one head of one module is 0."""

    def __init__(self, module: str, head: int) -> None:
        self.module, self.head = module, head

    def __call__(self, q: Array, k: Array, v: Array, *, name: str, kind: Kind, **options: Any) -> Array:
        """softmax(q kᵀ) v, B H T Ev, with the head set to 0."""
        out = attend_in_model(q, k, v, name=name, kind=kind, **options)
        if name == self.module:
            out[:, self.head] = 0
        return out


class CutEdge:
    """An Attend for models in which one query of one head does not see one key."""

    def __init__(self, module: str, head: int, edge: tuple[int, int]) -> None:
        self.module, self.head, self.edge = module, head, edge

    def __call__(self, q: Array, k: Array, v: Array, *, name: str, kind: Kind, **options: Any) -> Array:
        """softmax(q kᵀ) v, B H T Ev, where the key is masked for the query."""
        if name == self.module:
            allowed = np.ones((1, q.shape[1], q.shape[2], k.shape[2]), bool)
            allowed[:, self.head, self.edge[0], self.edge[1]] = False
            mask = options.pop("mask", None)
            options["mask"] = Mask.of(convert_like(allowed, q)) & (Mask.window(None, None) if mask is None else mask)
        return attend_in_model(q, k, v, name=name, kind=kind, **options)


def most_effective_head(trace: Trace, run: Callable[[Attend], Array]) -> tuple[str, int] | None:
    """The record name and number of the head with the largest effect, among those with a clear pattern.

    run   from an Attend to the logits of the same texts, B T W

    The effect is Σ p log(p / p′), with p the probabilities with the head and p′ without it, averaged over all
    positions. None where no head has a clear pattern; heads that attend to the first token are not candidates.
    """
    candidates = [head for head in trace.heads() if head.best is not None and head.best.pattern != "first"]
    if not candidates:
        return None
    before = _log_probabilities(run(attend_in_model))
    effects = [
        float((np.exp(before) * (before - _log_probabilities(run(Silenced(head.name, head.head))))).sum(-1).mean())
        for head in candidates[:CANDIDATES]
    ]
    best = candidates[int(np.argmax(effects))]
    return best.name, best.head


def _log_probabilities(logits: Array) -> np.ndarray:
    scores = np.asarray(to_numpy(logits), np.float64)
    return scores - log_sum_exp(scores)[..., None]


class _Seen(NamedTuple):
    text: str
    output: str
    trace: Trace


class Seen(_Seen):
    """The text as read, the model's output, and the Trace of that one pass, labelled with the tokens.

    A row has read one token (`Record.query_tokens`) and writes the next (`Record.written`): it shows what the model
    attends to in order to write it. `notes` are about the text: corrected spelling, unknown words, lost numbers.
    """

    notes: tuple[Note, ...] = ()
    ids: tuple[list[int], ...] = ()
    """What the model read: ids of the text it continued, or of the translation and then of the source."""


class SilencedToken(NamedTuple):
    """One token that the model wrote, and its probability with and without a head."""

    read: str
    written: str
    before: float
    after: float
    instead: str
    """The most likely token without the head."""


def silence_head(model: "LanguageModel", seen: Seen, module: str, head: int) -> list[SilencedToken]:
    """The implementation of `LanguageModel.silence`."""
    record = seen.trace[module]  # raises UnknownNameError
    in_range("head", head, record.shape[1])
    rows = next(one for one in seen.trace if one.kind == "decoder")
    assert rows.query_tokens is not None
    written = () if rows.written is None else rows.written[0]
    before, after = (
        _log_probabilities(run_model(model, attend, *seen.ids))[0]
        for attend in (attend_in_model, Silenced(module, head))
    )
    found = []
    for row, token in enumerate(written):
        if not token:
            continue
        following = seen.ids[0][row + 1] if row + 1 < len(seen.ids[0]) else model.special.ends[0]
        likeliest = labels(model, [int(after[row].argmax())])[0]
        p, q = (float(np.exp(one[row, following])) for one in (before, after))
        found.append(SilencedToken(rows.query_tokens[0][row], token, p, q, likeliest))
    return found


def predictions_without(
    model: "LanguageModel", seen: Seen, module: str, head: int, edge: tuple[int, int] | None = None
) -> tuple[np.ndarray, np.ndarray, int]:
    """The implementation of `LanguageModel.predictions_without`."""
    record = seen.trace[module]  # raises UnknownNameError
    in_range("head", head, record.shape[1])
    edited: Attend = Silenced(record.name, head)
    if edge is not None:
        edge = in_range("query", edge[0], record.shape[2]), in_range("key", edge[1], record.shape[3])
        edited = CutEdge(record.name, head, edge)
    before, after = (_log_probabilities(run_model(model, attend, *seen.ids))[0] for attend in (attend_in_model, edited))
    row = len(before) - 1
    if edge is not None and record.kind != "encoder":
        row = edge[0]
    elif edge is None:  # the row that moved most
        row = int((np.exp(before) * (before - after)).sum(-1).argmax())
    return before[row], after[row], row


def run_recorded(model: "LanguageModel", text: str, *, output: str | None = None, see: See | None = None) -> Seen:
    """The implementation of `LanguageModel.see`."""
    recorder = Recorder(See(qk=True, v=True) if see is None else see)
    if output is not None:
        check_text(output)
        output = without_unknown(model.tokenizer, output)
    if model.settings.task == "translation":
        return _translation(model, text, output, recorder)
    if model.settings.task == "encoding":
        return _encoding(model, text, output, recorder)
    return _continuation(model, text, output, recorder)


def _translation(model: "LanguageModel", text: str, output: str | None, recorder: Recorder) -> Seen:
    tokenizer = model.tokenizer
    given = read_input(model, text)
    text = given.text if model.settings.verbatim else given.text.replace("\n", " ")
    bare = tokenizer.encode(text)
    source = model.special.around(bare)
    _check_length(model, len(source))
    ended, most = True, max_translation_length(source, model.config.max_len)
    beams: list[Beam] = []
    if output is None:
        beams = find_beams(model, bare)
        written = beams[0].ids if beams else []
        output = tokenizer.decode(written)
        notes = input_notes(model, given, output)
        ended = len(written) < most  # otherwise it was cut off
    else:
        written = tokenizer.encode(output)
        _check_length(model, len(written) + 1)
        notes = input_notes(model, given, None)
    assert model.special.start is not None  # checked by `load`
    ids = [model.special.start, *written]
    logits = run_model(model, recorder, ids, source)
    end = tokenizer.pieces(model.special.ends[:1])[0]
    after = [*labels(model, written), end if ended else ""]
    trace = recorder.label(labels(model, ids), labels(model, source), after)
    if beams:
        trace.beams = tuple(
            ((*labels(model, one.ids), *([end] if len(one.ids) < most else [])), one.score) for one in beams
        )
    trace.texts, trace.candidates = (text, output), _candidates(model, logits)
    trace.temperatures = temperatures_of(logits)
    seen = Seen(text, output, _with_opening(model, trace, ids, source))
    seen.notes, seen.ids = notes, (ids, source)
    return seen


def _continuation(model: "LanguageModel", text: str, output: str | None, recorder: Recorder) -> Seen:
    tokenizer, start = model.tokenizer, read_prompt(model, text)
    check_length(start, model.longest)
    before = [*start.header, *start.ids]
    last = ""  # the token that the last query writes
    if output is None:
        pick = chosen_pick(model)
        most = default_max_new(model, start)
        most = most if model.settings.max_seen is None else min(most, model.settings.max_seen)
        found = continue_prompt(model, start, pick, most)
        written = found[: model.longest - len(before)]
        output = tokenizer.decode(written)
        if len(written) < len(found):
            last = labels(model, found)[len(written)]
        elif model.special.ends and len(found) < most:
            last = tokenizer.pieces(model.special.ends[:1])[0]
    else:
        written = tokenizer.encode(output)
        check_length(Prompt(start.header, [*start.ids, *written]), model.longest)
    ids = [*before, *written]
    logits = run_model(model, recorder, ids)
    # In the prompt only the last query writes a token: the others are followed by given ones.
    after = [*[""] * (len(before) - 1), *labels(model, written), last]
    trace = recorder.label(labels(model, ids), written=after if any(after) else None)
    if written:
        trace = Trace(record.changed(prompt=len(before)) for record in trace)
    trace.candidates, trace.temperatures = _candidates(model, logits), temperatures_of(logits, len(before) - 1)
    seen = Seen(text, output, _with_opening(model, trace, ids))
    seen.ids = (ids,)
    return seen


def _encoding(model: "LanguageModel", text: str, output: str | None, recorder: Recorder) -> Seen:
    """An encoder reads the text and writes nothing."""
    check_text(text)
    if output is not None:
        raise ArgumentError("see-encoder-output", name=model.name)
    ids = model.special.around(model.tokenizer.encode(text))
    if not ids:
        raise ArgumentError("translate-empty")
    _check_length(model, len(ids))
    run_model(model, recorder, ids)
    trace = recorder.label(labels(model, ids))
    seen = Seen(text, "", trace)
    seen.ids = (ids,)
    return seen


def _with_opening(model: "LanguageModel", trace: Trace, *texts: list[int]) -> Trace:
    """The Trace, with its opening head: the first one in the model's settings, else the one with the largest effect."""
    kinds = [record.kind for record in trace]
    records = trace.select(kind="cross" if "cross" in kinds else "decoder")
    named = next(iter(model.settings.alignment_heads), None)
    if named is not None:
        layer, head = named
        trace.opening = (records[layer].name, head)
    elif "cross" not in kinds and all(record.has_weights for record in records):
        trace.opening = most_effective_head(records, lambda attend: run_model(model, attend, *texts))
    return trace


def _candidates(model: "LanguageModel", logits: Array) -> tuple[Candidates, ...]:
    """The likeliest next tokens of every row of the logits, 1 T W."""
    rows = np.exp(_log_probabilities(logits)[0])
    best = np.argsort(-rows, axis=-1, kind="stable")[:, :LIKELIEST]
    return tuple(
        tuple(zip(labels(model, ids.tolist()), row[ids].tolist(), strict=True))
        for ids, row in zip(best, rows, strict=True)
    )


def temperatures_of(logits: Array, first: int = 0) -> Temperatures:
    """log Σ p^(1/T) of the rows of the logits, 1 T W, for each T of STOPS; () for the rows before `first`.

    >>> [round(one, 3) for one in temperatures_of(np.log([[[0.5, 0.25, 0.25]]])).log_sums[0][2:5]]  # 0.6, 0.8, 1
    [-0.667, -0.256, 0.0]
    """
    rows = _log_probabilities(logits)[0][first:]
    sums = np.stack([log_sum_exp(rows / T) for T in STOPS], -1)
    return Temperatures(STOPS, ((),) * first + tuple(map(tuple, sums.tolist())))


def labels(model: "LanguageModel", ids: list[int]) -> list[str]:
    """The label of each token: its text without the space before a word, unless it is a space."""
    return [piece.lstrip(" ") or piece for piece in model.tokenizer.pieces(ids)]


def run_model(model: "LanguageModel", attend: Attend, *texts: list[int]) -> Array:
    """The logits of ids, and of a source if there is one, each a batch of one in the model's array type."""
    parameters = getattr(model.model, "parameters", None)
    like = None if parameters is None else next(parameters())
    with one_blas_thread():  # for one sentence, several threads would wait longer than they work
        return model.model(*(convert_like(np.array([ids]), like) for ids in texts), attend=attend)


def record_ids(model: "LanguageModel", ids: list[int]) -> Trace:
    """The Trace of one run on ids, with exact weights."""
    recorder = Recorder(See(qk=True))
    run_model(model, recorder, ids)
    return recorder.trace


def _check_length(model: "LanguageModel", found: int) -> None:
    if found > model.longest:
        raise TooLargeError("see-too-long", found=found, most=model.longest)
