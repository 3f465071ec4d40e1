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
        (["--max-tokens", "0"], 2, "--max-tokens must be a whole number of at least 1; found '0'"),
        (["--top-k", "0"], 2, "--top-k must be a whole number"),
        (["--top-p", "1.5"], 2, "top_p must be greater than 0 and at most 1; found 1.5"),
        (["--min-p", "2"], 2, "min_p must be between 0 and 1"),
        (["--beams", "257"], 2, "--beams must be at most 256"),
        (["--beams", "2", "--top-k", "3"], 2, "leave out beams or top_k"),
        (["--beams", "2", "--stream"], 2, "leave out beams or stream"),
        (["--stream", "--json"], 2, "leave out --stream or --json"),
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


def test_options_of_sampling_are_those_of_the_library(run: Run, bundled: Path) -> None:
    poet = load(bundled / "poet")
    wanted = poet.generate("明", max_new_tokens=9, temperature=3.0, top_k=7, top_p=0.9, min_p=0.01, seed=2)
    options = [
        "--max-tokens",
        "9",
        "--temperature",
        "3",
        "--top-k",
        "7",
        "--top-p",
        "0.9",
        "--min-p",
        "0.01",
        "--seed",
        "2",
    ]
    assert run("generate", "明", *options).out == in_lines(wanted) + "\n"
    assert wanted != poet.generate("明", max_new_tokens=9, seed=2)
    best = poet.generate("明", max_new_tokens=6, beams=3)
    assert run("generate", "明", "--max-tokens", "6", "--beams", "3").out == in_lines(best) + "\n"
    whole = poet.generate("明", temperature=0)
    first, second = whole[3], whole[6]
    found = run("generate", "明", "--temperature", "0", "--stop", second, "--stop", first).out
    assert found == in_lines(poet.generate("明", temperature=0, stop=[first, second])) + "\n"
    assert len(found) < len(whole)


@pytest.mark.parametrize("prompt", [[], ["床前明月光，疑是地上霜。举"]])
def test_a_streamed_text_is_the_same(
    run: Run, bundled: Path, prompt: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run("generate", *prompt, "--seed", "4", "--count", "3")
    assert run("generate", *prompt, "--seed", "4", "--count", "3", "--stream") == whole
    shown: list[str] = []
    monkeypatch.setattr("regard.cli.language_commands.put", lambda text="", **_: shown.append(text))
    run("generate", *prompt, "--seed", "4", "--count", "3", "--stream")
    assert len(shown) > 15, "piece by piece"
