"""regard see."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard import read_trace
from regard.language.handmade import HEADS


def test_it_says_what_it_shows(run) -> None:
    code, out, err = run("see", "the cat sat")
    assert code == 0
    assert "built by hand" in err
    assert "head 0: previous word" in out
    assert "cat" in out
    assert "\x1b" not in out


def test_words_need_no_quotes_and_there_is_a_sentence(run) -> None:
    assert run("see", "the", "cat", "sat").out == run("see", "the cat sat").out
    assert "cat" in run("see").out
    assert "小" in run("see", "--lang", "zh").out


def test_heads(run) -> None:
    by_number, by_name = run("see", "--head", "1", "a b a"), run("see", "--head", "same-word", "a b a")
    assert by_number.out == by_name.out
    assert "head 1" in by_number.out
    assert "head 0" not in by_number.out
    every = run("see", "--head", "all", "a b a")
    assert all(f"head {number} of 4" in every.out for number in range(4))
    code, out, err = run("see", "--head", "4", "a")
    assert (code, out) == (2, "")
    assert "0 (previous-word)" in err


def test_json(run) -> None:
    code, out, err = run("see", "--json", "我 爱 我")
    told = json.loads(out)
    assert code == 0
    assert "built by hand" in err
    assert {key: told[key] for key in ("model", "text", "output")} == {
        "model": "handmade",
        "text": "我 爱 我",
        "output": None,
    }
    (record,) = told["records"]
    assert record["heads"] == list(HEADS)
    assert (record["name"], record["kind"]) == ("handmade.attention", "decoder")
    assert record["queries"] == record["keys"] == ["我", "爱", "我"]
    weights = np.array(record["weights"])
    assert weights.shape == (4, 3, 3)
    assert np.allclose(weights.sum(-1), 1)
    assert np.allclose(weights[1, 2], [0.5, 0, 0.5], atol=1e-3)
    one = json.loads(run("see", "--json", "--head", "3", "a b").out)["records"][0]
    assert one["heads"] == ["all-so-far"]
    assert np.shape(one["weights"]) == (1, 2, 2)


def test_stdin(run) -> None:
    assert json.loads(run("see", "-", "--json", stdin="\ufeff你好\n".encode()).out)["records"][0]["keys"] == [
        "你",
        "好",
    ]
    code, out, err = run("see", "-", stdin=b"caf\xe9")
    assert (code, out) == (3, "")
    assert err == "regard: stdin is not UTF-8: byte 0xe9 at position 3; convert it, for example with iconv\n"


@pytest.mark.parametrize("text", ["", "   ", "\t\n\u3000", "\x00\x1b"])
def test_no_words(run, text: str) -> None:
    code, out, err = run("see", text)
    assert (code, out) == (2, "")
    assert "there is no word in the text" in err


@pytest.mark.parametrize("text", ["👩\u200d🚀 flies", "a\x1b[31mred\x07", "bad\udcff", "x" * 500, "e\u0301 é"])
def test_odd_text(run, text: str) -> None:
    ran = run("see", text, "--width", "60")
    assert ran.code == 0
    assert not set(ran.out) & {"\x1b", "\x07"}
    assert run("see", text, "--json").code == 0


def test_long_text(run) -> None:
    ran = run("see", "word and other words " * 1250, "--width", "80")
    assert ran.code == 0
    assert "5000" in ran.out.replace(",", "")
    code, out, err = run("see", "--json", "word " * 1001)
    assert (code, out) == (5, "")
    assert "at most 1000 words; found 1001" in err


@pytest.mark.parametrize("width", ["x", "19", "-5", "3.5", ""])
def test_a_width_that_is_none(run, width: str) -> None:
    code, out, err = run("see", "--width", width, "a")
    assert (code, out) == (2, "")
    assert "--width must be a whole number of at least 24" in err


def test_save(run, tmp_path: Path) -> None:
    file = tmp_path / "trace.safetensors"
    ran = run("see", "the cat sat on the mat", "--save", str(file))
    assert ran.code == 0
    assert f"saved {file}" in ran.err
    record = read_trace(file)["handmade.attention"]
    assert record.queries == (("the", "cat", "sat", "on", "the", "mat"),)
    assert record.weights().shape == (1, 4, 6, 6)
    code, _, err = run("see", "a", "--save", str(tmp_path / "no" / "folder"))
    assert code == 3
    assert err.splitlines()[-1].startswith("regard: ")
