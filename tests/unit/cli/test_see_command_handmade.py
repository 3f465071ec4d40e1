"""regard see --model handmade."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run

from regard import read_trace
from regard.language.handmade import HEADS

SEE = ("see", "--model", "handmade")


def test_the_heads_are_named(run: Run) -> None:
    code, out, err = run(*SEE, "the cat sat")
    assert code == 0
    assert "built by hand" in err
    assert "head 0: previous word" in out
    assert "cat" in out
    assert "\x1b" not in out


def test_words_need_no_quotes_and_there_is_a_default_text(run: Run) -> None:
    assert run(*SEE, "the", "cat", "sat").out == run(*SEE, "the cat sat").out
    assert "cat" in run(*SEE).out
    assert "小" in run(*SEE, "--lang", "zh").out


def test_heads(run: Run) -> None:
    by_number, by_name = run(*SEE, "--head", "1", "a b a"), run(*SEE, "--head", "same-word", "a b a")
    assert by_number.out == by_name.out
    assert "head 1" in by_number.out
    assert "head 0" not in by_number.out
    every = run(*SEE, "--head", "all", "a b a")
    assert all(f"head {number} of 4" in every.out for number in range(4))
    assert not by_number.out.endswith("\n\n")
    assert every.out.count("\n\nhead ") == 3
    for other in ("4", "9" * 5000):
        code, out, err = run(*SEE, "--head", other, "a")
        assert (code, out) == (2, "")
        assert "0 (previous-word)" in err


def test_json(run: Run) -> None:
    code, out, err = run(*SEE, "--json", "我 爱 我")
    result = json.loads(out)
    assert code == 0
    assert "built by hand" in err
    assert {key: result[key] for key in ("model", "text", "output")} == {
        "model": "handmade",
        "text": "我 爱 我",
        "output": None,
    }
    (record,) = result["records"]
    assert record["heads"] == list(HEADS)
    assert (record["name"], record["kind"]) == ("handmade.attention", "decoder")
    assert record["queries"] == record["keys"] == ["我", "爱", "我"]
    weights = np.array(record["weights"])
    assert weights.shape == (4, 3, 3)
    assert np.allclose(weights.sum(-1), 1)
    assert np.allclose(weights[1, 2], [0.5, 0, 0.5], atol=1e-3)
    one = json.loads(run(*SEE, "--json", "--head", "3", "a b").out)["records"][0]
    assert one["heads"] == ["all-so-far"]
    assert np.shape(one["weights"]) == (1, 2, 2)


def test_stdin(run: Run) -> None:
    assert json.loads(run(*SEE, "-", "--json", stdin="\ufeff你好\n".encode()).out)["records"][0]["keys"] == [
        "你",
        "好",
    ]
    code, out, err = run(*SEE, "-", stdin=b"caf\xe9")
    assert (code, out) == (3, "")
    assert err == "regard: stdin is not UTF-8: byte 0xe9 at position 3; convert it, for example with iconv\n"


@pytest.mark.parametrize("text", ["", "   ", "\t\n\u3000", "\x00\x1b"])
def test_a_text_without_words_is_refused(run: Run, text: str) -> None:
    code, out, err = run(*SEE, text)
    assert (code, out) == (2, "")
    assert "there is no word in the text" in err


@pytest.mark.parametrize("text", ["👩\u200d🚀 flies", "a\x1b[31mred\x07", "bad\udcff", "x" * 500, "e\u0301 é"])
def test_odd_text(run: Run, text: str) -> None:
    finished = run(*SEE, text, "--width", "60")
    assert finished.code == 0
    assert not set(finished.out) & {"\x1b", "\x07"}
    assert run(*SEE, text, "--json").code == 0


def test_long_text(run: Run) -> None:
    finished = run(*SEE, "word and other words " * 1250, "--width", "80")
    assert finished.code == 0
    assert "5000" in finished.out.replace(",", "")
    code, out, err = run(*SEE, "--json", "word " * 1001)
    assert (code, out) == (5, "")
    assert "at most 1000 words; found 1001" in err


def test_save(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "trace.safetensors"
    finished = run(*SEE, "the cat sat on the mat", "--save", str(file))
    assert finished.code == 0
    assert f"saved {file}" in finished.err
    record = read_trace(file)["handmade.attention"]
    assert record.query_tokens == (("the", "cat", "sat", "on", "the", "mat"),)
    assert record.weights().shape == (1, 4, 6, 6)
    code, _, err = run(*SEE, "a", "--save", str(tmp_path / "no" / "folder"))
    assert code == 3
    assert err.splitlines()[-1].startswith("regard: ")


def test_png(run: Run, tmp_path: Path) -> None:
    code, out, err = run(*SEE, "a", "b", "--head", "1", "--png", str(tmp_path / "a.png"))
    assert (code, out) == (0, "")
    assert err.endswith(f"saved {tmp_path / 'a.png'}\n")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("option", [("--layer", "0"), ("--kind", "decoder")])
def test_layer_and_kind_are_refused(run: Run, option: tuple[str, str]) -> None:
    code, out, err = run(*SEE, *option, "a")
    assert (code, out) == (2, "")
    assert "nothing to choose with --kind and --layer" in err
