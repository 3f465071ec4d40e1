"""The parts of the bundled models: which exercise each belongs to, and which program takes its place in a run.

A part is the learner's if a program for its exercise has passed, or is given for this run. Runs nothing.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.course.catalogue import entry, exercise
from regard.course.grading.learner_source import read_source
from regard.course.learner_model.program.our_parts import FUNCTIONS, STAND_INS
from regard.course.passed_answers import PassedAnswers
from regard.course.progress import Progress
from regard.errors import ArgumentError
from regard.messages import Listed

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
