"""see, translate and generate with the models that come with regard: what people type, and what nobody should.

Whatever is given, the answer is a sensible output or one sentence, in either language, and never a byte that steers the
terminal.
"""

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from rich.cells import cell_len

EMOJI, CHINESE, CONTROL = "😀🎉👍", "我爱你", "\x00\x07\x1b\x7f\x9b"
WORDS = "The old man walked to the market and bought some fish for dinner. " * 385
BINARY = b"\x7fELF\x02\x01\xff\xfe\x1b[2J\x00\x90" * 200
USAGE, FILE, NO_ROOM = 2, 3, 5

languages = pytest.mark.parametrize("lang", ["en", "zh"])


def check_plain(text: str) -> None:
    """Nothing but what is shown, and line ends."""
    assert [sign for sign in text if sign != "\n" and unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Co")] == []


def check_sentence(text: str, lang: str) -> None:
    """One line that says what is wrong, in that language."""
    check_plain(text)
    assert text.count("\n") == 1
    assert text.startswith("regard")
    assert "Traceback" not in text
    assert any("\u4e00" <= sign <= "\u9fff" for sign in text.replace(CHINESE, "")) == (lang == "zh")


# --- what people type -------------------------------------------------------------------------------------


@languages
def test_see(run, lang: str) -> None:
    code, out, err = run("see", "I", "love", "you", "--lang", lang)
    check_plain(out + err)
    first, _, named, *_ = out.splitlines()
    assert code == 0
    assert first.startswith("I love you → ")
    assert [sign for sign in first if sign in CHINESE] == list(CHINESE)
    assert ("best aligns" if lang == "en" else "对齐得最好") in named
    for sign in CHINESE:  # each of them has a row
        assert any(line.split()[:1] == [sign] for line in out.splitlines())


def test_heads_shows_a_translation_that_is_right_and_heads_of_many_kinds(run) -> None:
    told = json.loads(run("heads", "--json").out)
    assert (told["text"], told["output"]) == ("He likes tea and she likes tea, too.", "他喜欢茶，她也喜欢茶。")
    assert {"previous", "same", "induction", "alignment"} <= {head["looks_at"] for head in told["heads"]}


def test_the_table_of_heads_names_what_find_takes_in_chinese_too(run) -> None:
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
def test_lines_without_punctuation_are_told(run, prompt: list[str], form: str | None, written: str | None) -> None:
    asked = [] if form is None else ["--form", form]
    code, out, err = run("generate", *prompt, *asked, "--lang", "zh")
    assert code == 0
    assert out
    assert err == ("" if written is None else f"提示里没有标点，被当成一句；请加上标点，例如写成“{written}”\n")


def test_see_as_json(run) -> None:
    told = json.loads(run("see", "I love you", "--json").out)
    assert told.keys() == {"model", "text", "output", "unknown", "lost_numbers", "records"}
    (record,) = told["records"]
    assert (told["model"], told["text"], record["kind"]) == ("translator", "I love you", "cross")
    (weights,) = record["weights"]
    looks = {query: record["keys"][row.index(max(row))] for query, row in zip(record["written"], weights, strict=True)}
    assert (looks["我"], looks["爱"], looks["你"]) == ("I", "love", "you")


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_kind_of_attention(run, kind: str) -> None:
    code, out, _ = run("see", "The cat sat on the mat.", "--kind", kind, "--layer", "all", "--head", "mean")
    assert code == 0
    check_plain(out)
    assert out.count("mean of all heads") == out.count("queries × keys") > 1


def test_the_poet_is_seen(run) -> None:
    code, out, _ = run("see", "--model", "poet")
    assert code == 0
    check_plain(out)
    assert out.startswith("床前明月光，")


@languages
def test_translate(run, lang: str) -> None:
    code, out, err = run("translate", "Where", "is", "the", "bathroom?", "--lang", lang)
    check_plain(out)
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert out.endswith("？\n")


def test_translate_lines(run) -> None:
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
def test_casual_text_is_read_as_it_is_written_well(run, lang: str, typed: str, written: str) -> None:
    well = run("translate", written)
    assert (well.code, well.err) == (0, "")
    said = f"read as “{written}”\n" if lang == "en" else f"读作“{written}”\n"
    assert run("translate", typed, "--lang", lang) == (0, well.out, said)
    code, out, err = run("see", typed, "--head", "0", "--layer", "0", "--lang", lang)
    assert (code, err) == (0, said)
    assert out.startswith(f"{written} → {well.out}")


@languages
@pytest.mark.parametrize("command", ["see", "translate", "heads"])
def test_what_is_no_english_is_named(run, lang: str, command: str) -> None:
    code, out, err = run(command, "I love 北京", "--lang", lang)
    assert (code, bool(out)) == (0, True)
    first = err.splitlines()[0]
    assert ("does not know: 北京" if lang == "en" else "不认识：北京") in first
    assert ("English" if lang == "en" else "只读英文") in first


@languages
def test_generate(run, lang: str) -> None:
    code, out, err = run("generate", "明月", "--form", "七绝", "--seed", "1", "--lang", lang)
    check_plain(out)
    assert (code, err) == (0, "")
    assert out.startswith("明月")
    assert run("generate", "明月", "--form", "7x4", "--seed", "1").out == out
    assert run("generate", "明月", "--form", "七绝", "--seed", "2").out != out


# --- what nobody should -----------------------------------------------------------------------------------


NO_TEXT = {
    "see nothing": (["see", ""], USAGE),
    "see Chinese": (["see", CHINESE], USAGE),
    "see emoji": (["see", EMOJI], USAGE),
    "see control characters": (["see", CONTROL], USAGE),
    "see 5,000 words": (["see", WORDS], NO_ROOM),
    "translate nothing": (["translate", ""], USAGE),
    "translate spaces": (["translate", " \t\u3000\u200b"], USAGE),
    "translate Chinese": (["translate", CHINESE], USAGE),
    "translate emoji": (["translate", EMOJI], USAGE),
    "translate control characters": (["translate", CONTROL], USAGE),
    "generate from emoji": (["generate", EMOJI], USAGE),
    "generate from control characters": (["generate", CONTROL], USAGE),
    "generate from English": (["generate", "I love you"], USAGE),
    "generate from 10,000 characters": (["generate", "明月" * 5000], NO_ROOM),
}


@languages
@pytest.mark.parametrize(("arguments", "expected"), NO_TEXT.values(), ids=NO_TEXT)
def test_what_cannot_be_read(run, arguments: list[str], expected: int, lang: str) -> None:
    code, out, err = run(*arguments, "--lang", lang)
    assert (code, out) == (expected, "")
    check_sentence(err, lang)


@languages
@pytest.mark.parametrize("command", ["see", "translate", "generate"])
def test_binary_on_stdin(run, command: str, lang: str) -> None:
    code, out, err = run(command, "-", "--lang", lang, stdin=BINARY)
    assert (code, out) == (FILE, "")
    check_sentence(err, lang)


@pytest.mark.parametrize(
    "text",
    [f"I love you {EMOJI}", "I\x07 love\u200b\x1b you", "\ufeffI love\u2028you\x9b"],
    ids=["emoji", "control characters", "other signs for a line"],
)
@pytest.mark.parametrize("command", ["see", "translate"])
def test_what_is_left_is_read(run, command: str, text: str) -> None:
    code, out, err = run(command, text)
    check_plain(out + err)
    assert code == 0
    assert [sign for sign in out.replace("\n", "")[:40] if sign in CHINESE] == list(CHINESE)


def test_five_thousand_words(run) -> None:
    code, out, err = run("translate", "--beams", "1", WORDS)
    check_plain(out)
    assert (code, err, out.count("\n")) == (0, "", 1)
    first = run("translate", "--beams", "1", WORDS[: WORDS.index(".") + 1]).out.strip()
    assert out == first * 385 + "\n"


def test_bad_lines_among_good_ones(run) -> None:
    lines = ["I love you.", CHINESE, EMOJI, CONTROL, "I love you."]
    code, out, err = run("translate", "-", stdin="\n".join(lines).encode())
    check_plain(out + err)
    first, *bad, last, end = out.split("\n")
    assert (code, bad, end) == (FILE, ["", "", ""], "")
    assert first == last != ""
    assert [line.split(":")[0] for line in err.splitlines()] == ["line 2", "line 3"]


# --- in a process of its own ------------------------------------------------------------------------------


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


def test_a_note_names_unknown_words_and_lost_numbers(run) -> None:
    ran = run("translate", "The", "quokka", "has", "12345", "eggs")
    assert ran.code == 0
    words, numbers = ran.err.splitlines()
    assert "never read these words while it was trained: quokka;" in words
    assert "lacks these numbers of the text: 12345;" in numbers
    told = json.loads(run("translate", "The quokka has 12345 eggs", "--json").out)
    assert (told["unknown"], told["lost_numbers"]) == (["quokka"], ["12345"])
    told = json.loads(run("see", "The quokka has 12345 eggs", "--json").out)
    assert (told["unknown"], told["lost_numbers"]) == (["quokka"], ["12345"])
    assert "从未见过这些词：quokka；" in run("see", "The quokka sleeps.", "--lang", "zh").err
    assert "quokka" in run("see", "The quokka sleeps.", "--output", "你好").err
    lines = run("translate", "-", stdin=b"A quokka.\nA dog.\nA zorblax.\n").err
    assert lines.count("\n") == 1
    assert lines.startswith("line 1: ")
    assert "(2 such lines in all)" in lines
