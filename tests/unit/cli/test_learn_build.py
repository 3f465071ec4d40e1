"""regard learn build: the list of parts, the comparison, the picture, exit codes and --json."""

import json
import re
from pathlib import Path

import pytest
from command_line import Run

from regard.course.catalogue import exercise
from regard.course.learner_model.building import USED
from regard.course.passed_answers import PassedAnswers
from regard.course.progress import ProgressFile
from regard.messages import LANGUAGES, Language, say


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keep(*ids: str) -> None:
    for id in ids:
        PassedAnswers().keep(id, exercise(id).solution)


def test_without_passed_exercises_ours_translates(run: Run) -> None:
    code, out, err = run("learn", "build")
    assert code == 0
    assert "I love you → 我爱你" in out
    assert "regard learn start softmax" in out
    assert say("build-none", "en") in err


@pytest.mark.parametrize("lang", LANGUAGES)
def test_with_all_parts_only_the_weights_are_ours(run: Run, lang: Language) -> None:
    keep(*USED["translator"])
    code, out, err = run("learn", "build", "--lang", lang)
    assert code == 0
    assert out.count("✓") == len(USED["translator"])
    assert "I love you → 我爱你" in out
    assert "<bos> → 我" in out  # the picture: a row reads one token and writes the next, as in `regard see`
    assert "你 → <eos>" in out
    assert say("build-complete", lang) in err


def test_with_all_parts_the_poem_is_the_learners(run: Run) -> None:
    keep(*USED["poet"])
    code, out, err = run("learn", "build", "poem")
    assert code == 0
    assert out.count("✓") == len(USED["poet"])
    assert re.search("。 → <eos>|。 → .", out)
    assert "五 →" not in out  # the header was given, not written
    assert say("build-complete", "en") in err


def test_a_check_that_passes_makes_a_part_the_learners(run: Run, desk: Path) -> None:
    (desk / "causal-mask.py").write_text(exercise("causal-mask").solution, encoding="utf-8")
    assert run("learn", "check", "causal-mask").code == 0
    found = json.loads(run("learn", "build", "--json").out)
    assert [part["id"] for part in found["parts"] if part["yours"]] == ["causal-mask"]
    assert run("learn", "reset", "causal-mask").code == 0
    assert PassedAnswers().read("causal-mask") is None
    keep("causal-mask")
    assert run("learn", "reset", "--all").code == 0
    assert PassedAnswers().read("causal-mask") is None


def test_progress_without_a_program_is_to_be_checked_again(run: Run) -> None:
    ProgressFile().checked("softmax", True)
    out = run("learn", "build").out
    assert "regard learn check softmax" in out


def test_a_wrong_part_shows_both_translations_and_the_diagnosis(run: Run, desk: Path) -> None:
    wrong = "import numpy as np\n\n\ndef softmax(x, axis=-1):\n    return np.exp(x)\n"
    (desk / "softmax.py").write_text(wrong, encoding="utf-8")
    code, out, err = run("learn", "build", "--with", "softmax.py")
    assert code == 1
    assert "✗ softmax" in out
    assert say("build-with-yours", "en") in out
    assert "我爱你" in out
    assert "First difference" in out
    assert exercise("softmax").mistakes["not-divided"].en in err
    assert "regard learn check softmax softmax.py" in err


def test_a_part_that_writes_nothing(run: Run, desk: Path) -> None:
    (desk / "softmax.py").write_text("def softmax(x, axis=-1):\n    return 0 * x + 1\n", encoding="utf-8")
    assert "token 1: your parts wrote nothing, ours “我”" in run("learn", "build", "--with", "softmax.py").out
    chinese = run("learn", "build", "--with", "softmax.py", "--lang", "zh").out
    assert "第 1 个词元：你的部件什么也没写，我们的部件写的是“我”" in chinese


def test_a_mistake_that_one_sentence_hides_is_caught_by_the_check(run: Run, desk: Path) -> None:
    (desk / "mine.py").write_text(exercise("beam-search").solution.replace("[:beams]", "[:1]"), encoding="utf-8")
    code, out, err = run("learn", "build", "--with", "mine.py")
    assert code == 1
    assert "✗ beam-search" in out
    assert exercise("beam-search").mistakes["greedy"].en in err


def test_a_broken_part_is_named_with_its_command(run: Run, desk: Path) -> None:
    (desk / "a.py").write_text("def layer_norm(x, gamma, beta, eps=1e-5):\n    return x + unknown\n")
    code, out, err = run("learn", "build", "--with", "layer-norm=a.py")
    assert code == 1
    assert "layer-norm stopped the model: line 2: NameError" in out
    assert "regard learn check layer-norm a.py" in err
    assert "我爱你" in out


def test_a_wrong_part_that_makes_two_readings_differ_is_named(run: Run, desk: Path) -> None:
    """One deviation for all positions: the whole text and the cache give different numbers."""
    source = exercise("layer-norm").solution.replace("variance = ", "variance = x.std() + 0 * ")
    (desk / "norm.py").write_text(source, encoding="utf-8")
    err = run("learn", "build", "--with", "layer-norm=norm.py", "I love you").err
    assert "the wrong part is layer-norm" in err
    assert "two of the parts" not in err
    chinese = run("learn", "build", "--with", "layer-norm=norm.py", "--lang", "zh", "I love you").err
    assert "出错的部件是 layer-norm" in chinese


def test_a_poem_by_its_seed(run: Run) -> None:
    keep("kv-cache", "sampling")
    code, out, _ = run("learn", "build", "poem", "--seed", "3")
    assert code == 0
    assert out.count("✓") == 2
    poem = run("generate", "--seed", "3").out
    assert poem.strip() in out


def test_a_poem_with_its_beginning(run: Run) -> None:
    """It was translated: “poem 春” became “3首诗”."""
    out = run("learn", "build", "poem", "春", "--seed", "2").out
    assert run("generate", "春", "--seed", "2").out.strip() in out
    assert "→ 春" not in out.splitlines()[0]
    assert json.loads(run("learn", "build", "--model", "poet", "--seed", "3", "--json").out)["model"] == "poet"


def test_json_has_the_same(run: Run, desk: Path) -> None:
    keep("softmax")
    found = json.loads(run("learn", "build", "She reads a book", "--json").out)
    assert found["right"]
    assert found["same"]
    assert found["output"] == found["ours"]
    assert found["failed"] is None
    (part,) = [part for part in found["parts"] if part["yours"]]
    assert (part["id"], part["state"]) == ("softmax", "passed")
    attention = found["attention"]
    assert len(attention["weights"]) == len(attention["queries"])
    assert len(attention["weights"][0]) == len(attention["keys"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--model", "handmade"), 2),
        (("--seed", "1"), 2),
        (("--seed", "x", "poem"), 2),
        (("--with", "absent.py"), 3),
        (("--with", "by-hand=a.py"), 2),
        (("--with", "softmax=a.py", "--with", "softmax=a.py"), 2),
        (("--with", "sampling=a.py"), 2),
        (("你好",), 2),
    ],
)
def test_wrong_arguments_are_refused(run: Run, desk: Path, words: tuple[str, ...], code: int) -> None:
    (desk / "a.py").write_text("pass\n")
    found = run("learn", "build", *words)
    assert (found.code, found.out) == (code, "")
    assert len(found.err.strip().splitlines()) == 1
