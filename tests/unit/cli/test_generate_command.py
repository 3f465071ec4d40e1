"""regard generate, with a model of random weights in place of the bundled one."""

import json
from pathlib import Path

import pytest
from command_line import Run

from regard.cli.language_commands import in_lines
from regard.language import load

pytestmark = pytest.mark.usefixtures("bundled")


def test_a_poem_depends_on_its_seed(run: Run, bundled: Path) -> None:
    poet = load(bundled / "poet")
    assert run("generate") == (0, in_lines(poet.generate()) + "\n", "")
    assert run("generate", "明月", "--seed", "3").out == in_lines(poet.generate("明月", seed=3)) + "\n"
    assert (
        run("generate", "-", "--seed", "3", stdin="明月\n".encode()).out == run("generate", "明月", "--seed", "3").out
    )
    warm = poet.generate("明月", form="7x4", temperature=2.0)
    for form in ("7x4", "七绝"):
        assert run("generate", "明月", "--form", form, "--temperature", "2").out == in_lines(warm) + "\n"


def test_several_texts(run: Run, bundled: Path) -> None:
    poet = load(bundled / "poet")
    texts = [poet.generate("明", seed=seed) for seed in (5, 6, 7)]
    assert len(set(texts)) == 3
    assert run("generate", "明", "--seed", "5", "--count", "3").out == "\n\n".join(map(in_lines, texts)) + "\n"
    result = json.loads(run("generate", "明", "--seed", "5", "--count", "3", "--json").out)
    outputs = [{"seed": seed, "output": text} for seed, text in zip((5, 6, 7), texts, strict=True)]
    assert result == {"model": "poet", "prompt": "明", "outputs": outputs}


def test_a_line_for_each_sentence() -> None:
    assert (
        in_lines("春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少？")
        == "春眠不觉晓，处处闻啼鸟。\n夜来风雨声，花落知多少？"
    )
    assert in_lines("曰：“去！”客去。\n\x1b") == "曰：“去！”客去。\n␛"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["龍"], 2, "does not know: '龍'"),
        (["hello"], 2, "does not know"),
        (["--form", "词"], 2, "there is no form '词'"),
        (["--seed", "-1"], 2, "--seed must be a whole number of at least 0; found '-1'"),
        (["--seed", "9" * 5000], 2, "--seed must be"),
        (["--count", "0"], 2, "--count must be a whole number of at least 1; found '0'"),
        (["--temperature", "-0.1"], 2, "--temperature must be a finite number of at least 0; found '-0.1'"),
        (["--temperature", "inf"], 2, "--temperature must be a finite number"),
        (["--temperature", "nan"], 2, "--temperature must be"),
        (["--temperature", "warm"], 2, "--temperature must be"),
        (["--model", "translator", "I"], 2, "does not continue a text"),
        (["--model", "nowhere"], 3, "nowhere"),
    ],
)
def test_bad_arguments_are_refused(run: Run, arguments: list[str], code: int, message: str) -> None:
    finished = run("generate", *arguments)
    assert (finished.code, finished.out) == (code, "")
    assert message in finished.err
    assert finished.err.count("\n") == 1


def test_a_temperature_of_zero_is_greedy(run: Run, bundled: Path) -> None:
    first, second = (run("generate", "明", "--temperature", "0", "--seed", seed) for seed in ("0", "9"))
    assert first.code == 0
    assert first == second
