"""Models run with a learner's programs in the sandbox: the same tokens, or a sentence about the part that failed."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

import regard
from regard.course.catalogue import exercise
from regard.course.exercise import CallResult, RunResult
from regard.course.learner_model import building
from regard.course.learner_model.building import USED, Built, BuiltOutput, Part, build, poem_task, translation_task
from regard.course.learner_model.program import program_text
from regard.errors import ArgumentError, TooLargeError
from regard.language import LanguageModel


@cache
def loaded(name: str) -> LanguageModel:
    return regard.load(name)


def all_parts(model: str) -> list[Part]:
    return [Part(id, "passed", exercise(id).solution.encode()) for id in USED[model]]


def built_with(*parts: Part, text: str = "I love you") -> Built:
    return build(loaded("translator"), translation_task(loaded("translator"), text), parts)


def test_all_parts_of_the_learner_translate_the_same() -> None:
    built = built_with(*all_parts("translator"))
    assert built.failure is None
    assert built.yours is not None
    assert (built.yours.text, built.yours.ids) == ("我爱你", built.ours.ids)
    assert built.is_right
    assert set(built.calls) == {part.id for part in all_parts("translator")}
    assert built.weight_difference(1, 5) == pytest.approx(0, abs=1e-6)


def test_all_parts_of_the_learner_write_the_same_poem() -> None:
    poet = loaded("poet")
    built = build(poet, poem_task(poet, "春", 2), all_parts("poet"))
    assert built.yours is not None, built.failure
    assert built.yours.text == poet.generate("春", seed=2)
    assert built.is_right


def test_without_parts_nothing_runs_in_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "sandboxed", None)
    built = built_with(Part("softmax", "ours"))
    assert (built.yours, built.failure, built.is_right) == (None, None, True)


def test_a_wrong_part_shows_what_it_does() -> None:
    built = built_with(
        Part("softmax", "given", b"import numpy as np\ndef softmax(x, axis=-1):\n    return np.exp(x)\n")
    )
    assert built.yours is not None
    assert not built.is_same
    assert not built.is_right
    assert built.first_difference == 0
    assert list(built.differing) == ["softmax"]
    gap = built.weight_difference(1, 5)
    assert gap is not None
    assert gap > 0.1


HOSTILE = {
    "x = (": "line 1",
    "def softmax(x, axis=-1):\n    return x @ 3": "line 2: ",
    "def softmax(x, axis=-1):\n    return x[..., :2]": "must return an array",
    "def softmin(x): pass": "does not define softmax",
    "1 / 0": "ZeroDivisionError",
    "import os\ndef softmax(x, axis=-1):\n    os._exit(0)": "ended the process",
    "import sys\ndef softmax(x, axis=-1):\n    sys.exit()": "SystemExit",
    "def softmax(x, axis=-1):\n    open('/etc/passwd', 'w')": "line 2",
    "import regard": "regard",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "def softmax(x, axis=-1):\n    class E(BaseException):\n        __str__ = None\n    raise E": "E",
    "import sys\ndef softmax(x, axis=-1):\n    sys.modules['your_file'].__dict__.clear()\n    return x": "",
    "": "empty",
}


@pytest.mark.parametrize("source", HOSTILE)
def test_a_broken_program_gives_a_sentence_about_its_part(source: str) -> None:
    built = built_with(Part("softmax", "given", source.encode()))
    assert built.failure is not None
    assert built.failure.part == "softmax"
    assert HOSTILE[source] in built.failure.reason
    assert built.ours.text == "我爱你"


def test_an_endless_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = program_text().replace("CLOCK = 12.0", "CLOCK = 0.5")
    monkeypatch.setattr(building, "program_text", lambda: text)
    endless = b"def layer_norm(x, gamma, beta, eps=1e-5):\n    while True: pass\n"
    right = [part for part in all_parts("translator") if part.id != "layer-norm"]
    built = built_with(*right, Part("layer-norm", "given", endless))
    assert built.failure == building.Failure("layer-norm", "it takes too long")


def test_what_a_program_prints_is_ignored() -> None:
    noisy = exercise("softmax").solution.replace("    shifted", "    print(x)\n    shifted")
    assert built_with(Part("softmax", "given", noisy.encode())).is_right


VALUES: list[object] = [
    *(None, 3, [], {}, {"ids": [1]}),
    {"ids": [10**6], "weights": np.zeros((3, 8, 2, 8)), "score": 0.0, "again": 0.0, "cached": 0.0},
    {"ids": [5], "weights": np.zeros((3, 8, 3, 8)), "score": 0.0, "again": 0.0, "cached": 0.0},
    {"ids": [5], "weights": "x", "score": 0.0, "again": 0.0, "cached": 0.0},
    {"ids": [True], "weights": np.zeros((3, 8, 2, 8)), "score": 0.0, "again": 0.0, "cached": 0.0},
    {"ids": [5], "weights": np.zeros((3, 8, 2, 4)), "score": None, "again": 0.0, "cached": 0.0},
    {"failed": 3, "why": []},
    {"failed": {"why": "raises", "part": [], "line": "x", "raised": {}}},
    {"failed": {"why": "unknown", "part": "softmax"}},
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_forged_answers_do_not_break_the_command(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def forged(source: str, calls: Sequence[object], track: str, limits: object) -> RunResult:
        return RunResult((CallResult({}), CallResult(value)))

    monkeypatch.setattr(building, "sandboxed", forged)
    built = built_with(Part("softmax", "given", b"pass"))
    assert built.failure is not None
    assert built.failure.part == "softmax"


def test_a_long_or_unreadable_sentence_is_refused() -> None:
    with pytest.raises(TooLargeError):
        translation_task(loaded("translator"), "very " * 40)
    with pytest.raises(ArgumentError):
        translation_task(loaded("translator"), "你好")


def test_the_first_difference_is_where_one_text_ends() -> None:
    def output(*ids: int) -> BuiltOutput:
        return BuiltOutput(ids, "", 0.0, 0.0, 0.0, np.zeros((1, 1, 1, 1)))

    assert Built(output(1, 2), output(1, 2)).first_difference is None
    assert Built(output(1, 2), output(1)).first_difference == 1
    assert Built(output(1, 2), output(3, 2)).first_difference == 0
    assert Built(output(1), output(1, 2)).first_difference == 1
