"""see, translate and generate with the bundled models, on usual and on hostile input.

Any input gives a sensible output or one message, in either language, without control characters.
"""

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from command_line import Run
from rich.cells import cell_len

EMOJI, CHINESE, CONTROL = "😀🎉👍", "我爱你", "\x00\x07\x1b\x7f\x9b"
WORDS = "The old man walked to the market and bought some fish for dinner. " * 385
BINARY = b"\x7fELF\x02\x01\xff\xfe\x1b[2J\x00\x90" * 200
USAGE, FILE, OUT_OF_RESOURCES = 2, 3, 5

languages = pytest.mark.parametrize("lang", ["en", "zh"])


def check_plain(text: str) -> None:
    """Only visible characters and line ends."""
    assert [
        character
        for character in text
        if character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co")
    ] == []


def check_sentence(text: str, lang: str) -> None:
    """One line with an error message in that language."""
    check_plain(text)
    assert text.count("\n") == 1
    assert text.startswith("regard")
    assert "Traceback" not in text
    assert any("\u4e00" <= character <= "\u9fff" for character in text.replace(CHINESE, "")) == (lang == "zh")


# --- usual input ------------------------------------------------------------------------------------------


@languages
def test_see(run: Run, lang: str) -> None:
    code, out, err = run("see", "I", "love", "you", "--lang", lang)
    check_plain(out + err)
    first, _, named, *_ = out.splitlines()
    assert code == 0
    assert first.startswith("I love you → ")
    assert [character for character in first if character in CHINESE] == list(CHINESE)
    assert ("best aligns" if lang == "en" else "对齐得最好") in named
    for character in CHINESE:  # each has a row
        assert any(line.split()[:1] == [character] for line in out.splitlines())


def test_heads_of_the_default_text_are_of_many_kinds(run: Run) -> None:
    result = json.loads(run("heads", "--json").out)
    assert (result["text"], result["output"]) == (
        "Tom likes tea, and Mary likes tea, too.",
        "汤姆喜欢茶，玛丽也喜欢茶。",
    )
    assert {"previous", "local", "itself", "separator", "alignment"} <= {head["looks_at"] for head in result["heads"]}


def test_the_chinese_table_of_heads_shows_the_names_for_find(run: Run) -> None:
    out = run("heads", "--lang", "zh", "--find", "separator").out
    assert "标点和分隔符 separator" in out
    assert max(cell_len(line) for line in run("heads", "--lang", "zh", "--count", "100").out.splitlines()) <= 84


@pytest.mark.parametrize(
    ("prompt", "form", "written"),
    [
        (["床前明月光疑是地上霜"], None, "床前明月光，疑是地上霜"),
        (["床前明月光", "疑是地上霜"], None, "床前明月光，疑是地上霜"),
        (["朝辞白帝彩云间千里江陵一日还"], None, "朝辞白帝彩云间，千里江陵一日还"),
        (["春眠不觉晓处处闻啼鸟夜来"], "五绝", "春眠不觉晓，处处闻啼鸟。夜来"),
        (["床前明月光疑是地上霜"], "7x4", "床前明月光，疑是地上霜"),
        (["明月松间照清泉"], "5x4", "明月松间照，清泉"),
        (["明月松间照清泉"], None, None),
        (["明月松间照"], "7x4", None),
        (["床前明月光，疑是地上霜"], None, None),
        ([], None, None),
    ],
)
def test_lines_without_punctuation_print_a_hint(
    run: Run, prompt: list[str], form: str | None, written: str | None
) -> None:
    options = [] if form is None else ["--form", form]
    code, out, err = run("generate", *prompt, *options, "--lang", "zh")
    assert code == 0
    assert out
    assert err == ("" if written is None else f"提示词里没有标点，被当成一句；请加上标点，例如写成“{written}”\n")


def test_see_as_json(run: Run) -> None:
    result = json.loads(run("see", "I love you", "--json").out)
    assert result.keys() == {"model", "text", "output", "unknown", "lost_numbers", "records"}
    (record,) = result["records"]
    assert (result["model"], result["text"], record["kind"]) == ("translator", "I love you", "cross")
    (weights,) = record["weights"]
    attended = {
        query: record["keys"][row.index(max(row))] for query, row in zip(record["written"], weights, strict=True)
    }
    assert (attended["我"], attended["爱"], attended["你"]) == ("I", "love", "you")


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_kind_of_attention(run: Run, kind: str) -> None:
    code, out, _ = run("see", "The cat sat on the mat.", "--kind", kind, "--layer", "all", "--head", "mean")
    assert code == 0
    check_plain(out)
    assert out.count("mean of all heads") == out.count("queries × keys") > 1


def test_see_with_the_poet(run: Run) -> None:
    code, out, _ = run("see", "--model", "poet")
    assert code == 0
    check_plain(out)
    assert out.startswith("床前明月光，")


@languages
def test_translate(run: Run, lang: str) -> None:
    code, out, err = run("translate", "Where", "is", "the", "bathroom?", "--lang", lang)
    check_plain(out)
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert out.endswith("？\n")


def test_translate_lines(run: Run) -> None:
    lines = ["I love you.", "", "Good morning.", f"{EMOJI} I love you.", "He went home. She went home."]
    code, out, err = run("translate", "-", stdin="\n".join(lines).encode())
    found = out.split("\n")
    assert (code, err, found.pop()) == (0, "line 4: read as “I love you.”\n", "")
    assert [bool(line) for line in found] == [bool(line) for line in lines]
    assert found[0] == found[3]
    assert found[4].count("。") == 2


@languages
@pytest.mark.parametrize(
    ("typed", "written"),
    [("i love you", "I love you"), ("I LOVE YOU", "I love you"), ("I dont know", "I don't know"), ("hi", "Hi")],
)
def test_casual_text_is_read_with_corrected_spelling(run: Run, lang: str, typed: str, written: str) -> None:
    correct = run("translate", written)
    assert (correct.code, correct.err) == (0, "")
    message = f"read as “{written}”\n" if lang == "en" else f"读作“{written}”\n"
    assert run("translate", typed, "--lang", lang) == (0, correct.out, message)
    code, out, err = run("see", typed, "--head", "0", "--layer", "0", "--lang", lang)
    assert (code, err) == (0, message)
    assert out.startswith(f"{written} → {correct.out}")


@languages
@pytest.mark.parametrize("command", ["see", "translate", "heads"])
def test_parts_that_are_not_english_are_listed(run: Run, lang: str, command: str) -> None:
    code, out, err = run(command, "I love 北京", "--lang", lang)
    assert (code, bool(out)) == (0, True)
    first = err.splitlines()[0]
    assert ("does not know: 北京" if lang == "en" else "不认识：北京") in first
    assert ("English" if lang == "en" else "只能读英文") in first


@languages
def test_generate(run: Run, lang: str) -> None:
    code, out, err = run("generate", "明月", "--form", "七绝", "--seed", "1", "--lang", lang)
    check_plain(out)
    assert (code, err) == (0, "")
    assert out.startswith("明月")
    assert run("generate", "明月", "--form", "7x4", "--seed", "1").out == out
    assert run("generate", "明月", "--form", "七绝", "--seed", "2").out != out


# --- hostile input ----------------------------------------------------------------------------------------


NO_TEXT = {
    "see nothing": (["see", ""], USAGE),
    "see Chinese": (["see", CHINESE], USAGE),
    "see emoji": (["see", EMOJI], USAGE),
    "see control characters": (["see", CONTROL], USAGE),
    "see 5,000 words": (["see", WORDS], OUT_OF_RESOURCES),
    "translate nothing": (["translate", ""], USAGE),
    "translate spaces": (["translate", " \t\u3000\u200b"], USAGE),
    "translate Chinese": (["translate", CHINESE], USAGE),
    "translate emoji": (["translate", EMOJI], USAGE),
    "translate control characters": (["translate", CONTROL], USAGE),
    "generate from emoji": (["generate", EMOJI], USAGE),
    "generate from control characters": (["generate", CONTROL], USAGE),
    "generate from English": (["generate", "I love you"], USAGE),
    "generate from 10,000 characters": (["generate", "明月" * 5000], OUT_OF_RESOURCES),
}


@languages
@pytest.mark.parametrize(("arguments", "expected"), NO_TEXT.values(), ids=NO_TEXT)
def test_unreadable_texts_are_refused(run: Run, arguments: list[str], expected: int, lang: str) -> None:
    code, out, err = run(*arguments, "--lang", lang)
    assert (code, out) == (expected, "")
    check_sentence(err, lang)


@languages
@pytest.mark.parametrize("command", ["see", "translate", "generate"])
def test_binary_on_stdin(run: Run, command: str, lang: str) -> None:
    code, out, err = run(command, "-", "--lang", lang, stdin=BINARY)
    assert (code, out) == (FILE, "")
    check_sentence(err, lang)


@pytest.mark.parametrize(
    "text",
    [f"I love you {EMOJI}", "I\x07 love\u200b\x1b you", "\ufeffI love\u2028you\x9b"],
    ids=["emoji", "control characters", "other line separators"],
)
@pytest.mark.parametrize("command", ["see", "translate"])
def test_the_readable_rest_is_read(run: Run, command: str, text: str) -> None:
    code, out, err = run(command, text)
    check_plain(out + err)
    assert code == 0
    assert [character for character in out.replace("\n", "")[:40] if character in CHINESE] == list(CHINESE)


def test_five_thousand_words(run: Run) -> None:
    code, out, err = run("translate", "--beams", "1", WORDS)
    check_plain(out)
    assert (code, err, out.count("\n")) == (0, "", 1)
    first = run("translate", "--beams", "1", WORDS[: WORDS.index(".") + 1]).out.strip()
    assert out == first * 385 + "\n"


def test_bad_lines_among_good_ones(run: Run) -> None:
    lines = ["I love you.", CHINESE, EMOJI, CONTROL, "I love you."]
    code, out, err = run("translate", "-", stdin="\n".join(lines).encode())
    check_plain(out + err)
    first, *bad, last, end = out.split("\n")
    assert (code, bad, end) == (FILE, ["", "", ""], "")
    assert first == last != ""
    assert [line.split(":")[0] for line in err.splitlines()] == ["line 2", "line 3"]


# --- in a separate process --------------------------------------------------------------------------------


BYTES = {
    "a sentence": ([b"see", b"I love you"], b"", 0),
    "Latin-1": ([b"see", b"I love you\xff\xe9\x1b[2J"], b"", 0),
    "no UTF-8": ([b"translate", b"\xff\xfe"], b"", USAGE),
    "binary stdin": ([b"translate", b"-"], BINARY, FILE),
    "binary after a line": ([b"translate", b"-"], b"I love you.\n" + BINARY, FILE),
}


@pytest.mark.parametrize(("arguments", "stdin", "expected"), BYTES.values(), ids=BYTES)
def test_bytes_in_and_text_out(arguments: list[bytes], stdin: bytes, expected: int, tmp_path: Path) -> None:
    command = [sys.executable.encode(), b"-W", b"error", b"-m", b"regard", *arguments]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, input=stdin, capture_output=True, cwd=tmp_path, env=environment, timeout=60)
    out, err = done.stdout.decode(), done.stderr.decode()
    check_plain(out + err)
    assert done.returncode == expected, err
    assert err.count("\n") <= 1
    assert "Traceback" not in err


def test_a_note_names_unknown_words_and_lost_numbers(run: Run) -> None:
    finished = run("translate", "The", "quokka", "has", "1234567", "eggs")
    assert finished.code == 0
    words, numbers = finished.err.splitlines()
    assert "never read these words in training: quokka;" in words
    assert "numbers of the text are missing in the translation: 1234567;" in numbers
    result = json.loads(run("translate", "The quokka has 1234567 eggs", "--json").out)
    assert (result["unknown"], result["lost_numbers"]) == (["quokka"], ["1234567"])
    result = json.loads(run("see", "The quokka has 1234567 eggs", "--json").out)
    assert (result["unknown"], result["lost_numbers"]) == (["quokka"], ["1234567"])
    assert "从未见过这些词：quokka；" in run("see", "The quokka sleeps.", "--lang", "zh").err
    assert "quokka" in run("see", "The quokka sleeps.", "--output", "你好").err
    lines = run("translate", "-", stdin=b"A quokka.\nA dog.\nA zorblax.\n").err
    assert lines.count("\n") == 1
    assert lines.startswith("line 1: ")
    assert "(2 such lines in all)" in lines
