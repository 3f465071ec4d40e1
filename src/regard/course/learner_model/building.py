"""The parts of the bundled models, and runs of a model with a learner's parts and with our own.

A part is the learner's if a program for its exercise has passed, or is given for this run; otherwise ours. With the
learner's parts the `program` runs in the grader's sandbox, with our own in this process; the results are compared token
by token. The sandbox is untrusted: each value that it returns is validated.
"""

import ast
import math
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regard.course.catalogue import entry, exercise
from regard.course.exercise import Call, CallResult, RunResult
from regard.course.grading.process import RunLimits, cancelled_on_error
from regard.course.grading.python_source import read_source, syntax_hint
from regard.course.grading.sandbox import run as sandboxed
from regard.course.grading.verdict import plain
from regard.course.learner_model.program import program_text
from regard.course.learner_model.program.models import MARK, TASKS, letter_of, model_weights
from regard.course.learner_model.program.our_parts import FUNCTIONS, STAND_INS
from regard.course.learner_model.program.part_calls import TOLERANCE, Parts
from regard.course.passed_answers import PassedAnswers
from regard.course.progress import Progress
from regard.errors import ArgumentError
from regard.files.safe_open import read_file
from regard.generation.beams import max_translation_length
from regard.kernels.division import one_blas_thread
from regard.language.generating import default_max_new, read_prompt
from regard.language.input_text import read_input
from regard.language.model import LanguageModel
from regard.messages import Listed, say

TRANSLATOR = (
    *("softmax", "scaled-dot-product", "split-heads", "merge-heads", "layer-norm", "feed-forward"),
    *("positional-encoding", "causal-mask", "padding-mask", "encoder-block", "decoder-block"),
    *("transformer-forward", "kv-cache", "beam-search"),
)
POET = (
    *("softmax", "scaled-dot-product", "split-heads", "merge-heads", "layer-norm", "rope"),
    *("causal-mask", "kv-cache", "sampling", "gelu-feed-forward"),
)
USED: Mapping[str, tuple[str, ...]] = {"translator": TRANSLATOR, "poet": POET}
"""The parts of each bundled model, from the smallest to the largest; each is an exercise."""

_INSIDE = ("softmax", "scaled-dot-product", "split-heads", "merge-heads", "layer-norm", "feed-forward")
HELPERS: Mapping[str, tuple[str, ...]] = dict.fromkeys(("encoder-block", "decoder-block"), ("layer_norm", "attention"))
"""Functions that a task gives for use; where a learner has not changed them, the smaller parts take their place."""
CONTAINS: Mapping[str, tuple[str, ...]] = {
    "scaled-dot-product": ("softmax",),
    "kv-cache": ("softmax", "scaled-dot-product"),
    "sampling": ("softmax",),
    "encoder-block": _INSIDE,
    "decoder-block": (*_INSIDE, "causal-mask"),
}
"""The smaller parts inside a larger one. A learner's larger part computes them itself."""

State = Literal["passed", "given", "ours", "left-out", "check-again"]


@dataclass(frozen=True)
class Part:
    """One part of a model in one run.

    passed        a program that passed runs here
    given         a program given for this run
    ours          our own function: the exercise is not passed yet
    left-out      our own function, although the exercise is passed: a smaller part inside it is given for this run
    check-again   our own function: the exercise was passed before programs were kept
    """

    id: str
    state: State
    source: bytes = b""
    file: str = ""
    """The file of a given program."""

    @property
    def is_learners(self) -> bool:
        return self.state in ("passed", "given")


def choose_parts(
    model: str, progress: Progress, passed: PassedAnswers, given: Mapping[str, tuple[str, bytes]]
) -> list[Part]:
    """The parts of a model, in order. `given`: file and program of the parts given for this run, by exercise."""
    for id in given:
        if id not in USED[model]:
            raise ArgumentError("build-not-used", exercise=id, model=model, known=Listed(USED[model]))
    return [_part(id, progress, passed, given) for id in USED[model]]


def _part(id: str, progress: Progress, passed: PassedAnswers, given: Mapping[str, tuple[str, bytes]]) -> Part:
    if id in given:
        file, source = given[id]
        return Part(id, "given", source, file)
    kept = passed.read(id)
    if kept is None:
        return Part(id, "check-again" if progress.passed(id) else "ours")
    if any(inner in given for inner in CONTAINS.get(id, ())):
        return Part(id, "left-out")
    return Part(id, "passed", kept)


def exercise_of(file: Path, source: bytes) -> str:
    """The exercise that a program belongs to: by the name of its file, else by the function it defines.

    >>> exercise_of(Path("softmax.1.py"), b""), exercise_of(Path("mine.py"), b"def rope(x, positions): ...")
    ('softmax', 'rope')
    """
    stem = re.sub(r"(\.\d+)?\.\w+$", "", file.name).replace("_", "-").lower()
    if stem in FUNCTIONS:
        return stem
    defined = set(_bodies(read_source(source).text))
    found = [part for part, functions in FUNCTIONS.items() if defined.issuperset(functions)]
    inside = {inner for part in found for inner in CONTAINS.get(part, ())}
    largest = [part for part in found if part not in inside]
    if len(largest) != 1:
        raise ArgumentError("build-which-part", file=str(file), known=Listed(FUNCTIONS))
    return largest[0]


def helpers_of(part: str, text: str) -> list[str]:
    """The helper functions of a program in whose place parts are put.

    >>> from regard.course.catalogue import exercise
    >>> helpers_of("encoder-block", exercise("encoder-block").stub.replace("keepdims=True", "keepdims=1", 1))
    ['attention']
    """
    if part == "transformer-forward":
        return list(STAND_INS)
    given, own = _bodies(exercise(part).stub), _bodies(text)
    return [name for name in HELPERS.get(part, ()) if name in own and own[name] == given[name]]


def _bodies(text: str) -> dict[str, str]:
    """The arguments and statements of each function, without its docstring."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            found[node.name] = "\n".join(map(ast.dump, [node.args, *body]))
    return found


def named_part(name: str) -> str:
    """The id of a part. Raises an error for other exercises."""
    id = entry(name).id
    if id not in FUNCTIONS:
        raise ArgumentError("build-no-part", exercise=id, known=Listed(FUNCTIONS))
    return id


LIMITS = RunLimits(wall=15.0, cpu=15.0, output=20_000_000)
"""More time than a check: a softmax in plain Python needs five seconds for one sentence."""
WEIGHTS_FILE = "model.safetensors"
LARGEST_WEIGHTS = 2**24
PADDING = 4
"""The source is padded to a multiple of this, with at least one, so that the padding mask has something to hide."""
LONGEST = 24
"""The most source tokens: the table of a search grows with the square of its steps."""
DRIFT = 1e-3
"""Larger differences of weights and log-probabilities, through all layers, are more than rounding."""
POEM = 64
"""The most tokens of a poem; one of four lines has 24 or 32."""


@dataclass(frozen=True)
class BuildTask:
    """What one run computes: the name of the task in `program`, its options, and the labels of the tokens."""

    name: str
    options: Mapping[str, Any]
    text: str
    """The text as the model reads it."""
    keys: tuple[str, ...] = ()
    """Source tokens, padding included; empty for the poet."""


@dataclass(frozen=True)
class BuiltOutput:
    """The result of one run."""

    ids: tuple[int, ...]
    text: str
    score: float
    """The log-probability of the text."""
    again: float
    """The same, when the translation is read once more with the small parts; for the poet equal to `score`."""
    cached: float
    """The same, when it is read step by step with the cache."""
    weights: np.ndarray = field(repr=False)
    """The attention of every head: cross-attention L H T S of the translator, self-attention L H T T of the poet."""
    tokens: tuple[str, ...] = ()
    """Labels of the queries, T: the tokens that were read."""
    written: tuple[str, ...] = ()
    """Labels of the tokens that the queries wrote, T; "" in a prompt, and where the text was cut off."""

    @property
    def is_consistent(self) -> bool:
        """Whether all readings give the text the same log-probability."""
        bound = DRIFT * max(1.0, abs(self.score))
        return abs(self.again - self.score) < bound and abs(self.cached - self.score) < bound


@dataclass(frozen=True)
class Failure:
    """Why the model could not run: the part, and a sentence."""

    part: str
    reason: str


@dataclass(frozen=True)
class Built:
    """A model built from a learner's parts: our output, the learner's, and the comparison of both."""

    ours: BuiltOutput
    yours: BuiltOutput | None = None
    """None without parts of the learner, and if one of them failed."""
    failure: Failure | None = None
    differences: Mapping[str, float] = field(default_factory=dict)
    """Largest difference of each part of the learner from ours, relative to our largest number, by exercise."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """How often each part of the learner was called, by exercise."""

    @property
    def differing(self) -> dict[str, float]:
        """The parts whose numbers differ from ours by more than rounding."""
        return {part: gap for part, gap in self.differences.items() if gap > TOLERANCE}

    @property
    def is_same(self) -> bool:
        """Whether the output has the same tokens as ours."""
        return self.yours is not None and self.yours.ids == self.ours.ids

    @property
    def is_right(self) -> bool:
        """Whether no part failed, changed the output, or computed other numbers than ours."""
        if self.failure is not None or self.yours is None:
            return self.failure is None
        return self.is_same and not self.differing and self.yours.is_consistent and self._has_our_weights

    @property
    def _has_our_weights(self) -> bool:
        assert self.yours is not None
        return bool(np.abs(self.yours.weights - self.ours.weights).max() < DRIFT)  # False for NaN

    @property
    def first_difference(self) -> int | None:
        """The index of the first token that differs; None if none does."""
        if self.yours is None or self.is_same:
            return None
        pairs = zip(self.ours.ids, self.yours.ids, strict=False)
        same = next((at for at, (a, b) in enumerate(pairs) if a != b), None)
        return min(len(self.ours.ids), len(self.yours.ids)) if same is None else same

    def weight_difference(self, layer: int, head: int) -> float | None:
        """The largest difference of the weights of one head, over the queries and keys that both have."""
        if self.yours is None:
            return None
        ours, yours = self.ours.weights[layer, head], self.yours.weights[layer, head]
        T, S = (min(sizes) for sizes in zip(ours.shape, yours.shape, strict=True))
        gap = np.abs(ours[:T, :S] - yours[:T, :S])
        return math.inf if np.isnan(gap).any() else float(gap.max(initial=0.0))


# --- the task -----------------------------------------------------------------------------------------------


def translation_task(model: LanguageModel, text: str) -> BuildTask:
    """Translate one sentence. Raises ArgumentError where the model cannot read it."""
    from regard.errors import TooLargeError

    tokenizer, settings = model.tokenizer, model.settings
    given = read_input(model, text).text.replace("\n", " ")
    ids = [*tokenizer.encode(given), tokenizer.special("eos")]
    if len(ids) > LONGEST:
        raise TooLargeError("see-too-long", found=len(ids), most=LONGEST)
    pad = tokenizer.special("pad")
    padded = [*ids, *[pad] * (PADDING - len(ids) % PADDING)]
    options = {
        "source": np.array(padded),
        "n_heads": model.config.n_heads,
        "bos": tokenizer.special("bos"),
        "eos": tokenizer.special("eos"),
        "pad": pad,
        "beams": settings.beams,
        "max_len": max_translation_length(ids, model.config.max_len),
    }
    return BuildTask("translation", options, given, tuple(_labels(model, padded)))


def poem_task(model: LanguageModel, prompt: str, seed: int) -> BuildTask:
    """Continue a prompt, sampled with the seed as `regard generate` does."""
    settings = model.settings
    start = read_prompt(model, prompt)
    before = [*start.header, *start.ids]
    options = {
        "prompt": np.array(before),
        "uniform": np.random.default_rng((seed, 0)).random(min(POEM, default_max_new(model, start))),
        "n_heads": model.config.n_heads,
        "eos": model.tokenizer.special("eos"),
        "temperature": settings.temperature,
        "top_k": settings.top_k,
        "top_p": settings.top_p,
    }
    return BuildTask("text", options, model.tokenizer.decode(start.ids))


def _labels(model: LanguageModel, ids: Sequence[int]) -> list[str]:
    return [piece.lstrip(" ") or piece for piece in model.tokenizer.pieces(list(ids))]


# --- the run ------------------------------------------------------------------------------------------------


def build(model: LanguageModel, task: BuildTask, parts: Sequence[Part]) -> Built:
    """Run the task with our parts, and with the learner's if there are any."""
    stored = np.frombuffer(read_file(model.folder / WEIGHTS_FILE, most=LARGEST_WEIGHTS), dtype=np.uint8)
    learners = {part.id: part.source for part in parts if part.is_learners}
    with ThreadPoolExecutor(1) as executor, cancelled_on_error():
        running = executor.submit(copy_context().run, _run_sandboxed, task, learners, stored) if learners else None
        ours = run_ours(model, task, stored)
        found = running.result() if running is not None else None
    if found is None or isinstance(found, Failure):
        return Built(ours, failure=found)
    yours = _output(model, task, found)
    if yours is None:
        return Built(ours, failure=Failure(next(iter(learners)), say("build-garbled")))
    return Built(ours, yours, None, _by_part(found.get("differences"), float), _by_part(found.get("calls"), int))


def run_ours(model: LanguageModel, task: BuildTask, stored: np.ndarray) -> BuiltOutput:
    """The result with our own parts only."""
    with one_blas_thread():
        found = TASKS[task.name](Parts({}), model_weights(stored), **task.options)
    output = _output(model, task, found)
    assert output is not None
    return output


def _run_sandboxed(task: BuildTask, learners: Mapping[str, bytes], stored: np.ndarray) -> dict[str, Any] | Failure:
    """The result of `run_task` with these programs, or why there is none."""
    sources: dict[str, str] = {}
    for part, raw in learners.items():
        source = read_source(raw)
        if source.problem:
            return Failure(part, source.problem)
        sources[part] = source.text
    calls = [
        Call("load_part", (part, np.frombuffer(text.encode(), dtype=np.uint8), helpers_of(part, text)))
        for part, text in sources.items()
    ]
    calls.append(Call("run_task", (task.name, stored, dict(task.options))))
    outcome = sandboxed(program_text(), calls, "numpy", LIMITS)
    for answer in outcome.answers:
        if (failure := _failure(answer, sources)) is not None:
            return failure
    if outcome.ended or len(outcome.answers) < len(calls):
        return _ended(outcome, list(learners))
    value = outcome.answers[-1].value
    return value if isinstance(value, dict) else Failure(next(iter(learners)), say("build-garbled"))


def _failure(answer: CallResult, sources: Mapping[str, str]) -> Failure | None:
    """The failure that an answer reports, if any."""
    found = answer.value.get("failed", answer.value) if isinstance(answer.value, dict) else {}
    if not isinstance(found, dict) or "why" not in found:
        return Failure(next(iter(sources)), say("build-garbled")) if answer.raised or answer.fault else None
    part = found.get("part")
    part = part if isinstance(part, str) and part in sources else next(iter(sources))
    values = {name: plain(str(found.get(name)))[:300] for name in ("raised", "message", "name", "wanted", "found")}
    line = found.get("line")
    match found["why"]:
        case "raises" if values["raised"] in ("SyntaxError", "IndentationError", "TabError") and isinstance(line, int):
            return Failure(part, syntax_hint(sources[part], values["raised"], values["message"], line))
        case "raises" | "shape" | "value" | "missing-name" | "too-slow" | "too-much-memory" as why:
            where = say("build-line", line=line) if isinstance(line, int) else ""
            return Failure(part, say(f"build-{why}", where=where, **values))
    return Failure(part, say("build-garbled"))


def _ended(outcome: RunResult, learners: list[str]) -> Failure:
    """Why the process ended early; the part is the last one that it entered."""
    by_letter = {letter_of(part): part for part in FUNCTIONS}
    entered = [by_letter.get(letter, "") for letter in re.findall(f"{plain(MARK)}([a-z])", outcome.printed)]
    part = next((part for part in reversed(entered) if part in learners), learners[0])
    known = outcome.ended if outcome.ended in ("too-slow", "too-much-memory", "too-much-output") else "killed"
    return Failure(part, say(f"build-{known}"))


# --- what the sandbox returned ------------------------------------------------------------------------------


def _output(model: LanguageModel, task: BuildTask, found: Mapping[str, Any]) -> BuiltOutput | None:
    """The output of a run; None if its values are not what `program` returns."""
    ids, weights = found.get("ids"), found.get("weights")
    scores: list[Any] = [found.get(name) for name in ("score", "again", "cached")]
    vocab_size, H = model.tokenizer.vocab_size, model.config.n_heads
    if not isinstance(ids, list) or not all(type(id) is int and 0 <= id < vocab_size for id in ids):
        return None
    if not isinstance(weights, np.ndarray) or weights.dtype != np.float64 or weights.ndim != 4:
        return None
    if not all(type(score) is float for score in scores):
        return None
    if task.name == "translation":
        queries, keys = [task.options["bos"], *ids], len(task.keys)
    else:
        queries = [*task.options["prompt"].tolist(), *ids]
        keys = len(queries)
    after = [*_labels(model, ids), *(_labels(model, [task.options["eos"]]) if found.get("ended") is True else [""])]
    if weights.shape != (model.config.layers_of("decoder"), H, len(queries), keys):
        return None
    text, (score, again, cached) = model.tokenizer.decode(ids), scores
    return BuiltOutput(
        tuple(ids),
        f"{task.text}{text}" if task.name == "text" else text,
        score=score,
        again=again,
        cached=cached,
        weights=weights,
        tokens=tuple(_labels(model, queries)),
        written=(*[""] * (len(queries) - len(after)), *after),
    )


def _by_part(found: Any, kind: type) -> dict[str, Any]:
    """The largest value of the functions of each part."""
    merged: dict[str, Any] = {}
    for part, functions in FUNCTIONS.items():
        values: list[Any] = [found.get(name) for name in functions] if isinstance(found, dict) else []
        typed: list[Any] = [value for value in values if type(value) is kind]
        numbers = [value for value in typed if not value < 0]
        if numbers:
            merged[part] = max(numbers)
    return merged
