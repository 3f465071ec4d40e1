"""regard translate, with a model of random weights in place of the bundled one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run
from narrowing import present

from regard.language import load

pytestmark = pytest.mark.usefixtures("bundled")
NO_NOTES: dict[str, list[str]] = {"unknown": [], "lost_numbers": []}


def test_a_text_needs_no_quotes(run: Run, bundled: Path) -> None:
    expected = load(bundled / "translator").translate("I love you")
    assert run("translate", "I", "love", "you") == (0, f"{expected}\n", "")
    result = json.loads(run("translate", "I love you", "--json").out)
    assert result == {"model": "translator", "text": "I love you", "output": expected, **NO_NOTES}


def test_beams_and_another_folder(run: Run, bundled: Path) -> None:
    greedy = load(bundled / "translator").translate("The cat sat", beams=1)
    finished = run("translate", "The cat sat", "--beams", "1", "--model", str(bundled / "translator"))
    assert finished == (0, f"{greedy}\n", "")


def test_one_output_line_for_each_input_line(run: Run, bundled: Path) -> None:
    lines = ["I love you.", "", "  ", "The cat sat on the mat.", "😀 I love you", "He went home. The cat sat!"] * 20
    code, out, err = run("translate", "-", stdin=("\ufeff" + "\r\n".join(lines)).encode())
    assert (code, err) == (0, "line 5: read as “I love you” (20 such lines in all)\n")
    found = out.split("\n")
    assert found.pop() == ""
    assert [bool(line) for line in found] == [bool(line.strip()) for line in lines]
    assert found[0] == load(bundled / "translator").translate(lines[0])
    result = run("translate", "-", "--json", stdin="\n".join(lines).encode()).out.splitlines()
    assert [json.loads(line) for line in result] == [
        {"model": "translator", "text": text, "output": output, **NO_NOTES}
        for text, output in zip(lines, found, strict=True)
    ]
    assert run("translate", "-") == (0, "", "")


def test_notes_about_many_lines_are_merged(run: Run) -> None:
    given = "I love you.\nhe went home\nYou love 我\nthe cat sat\n我爱你\n".encode()
    code, _, err = run("translate", "-", stdin=given)
    assert code == 3
    chinese, changed, strange = err.splitlines()
    assert chinese.startswith("line 5: ")
    assert changed == "line 2: read as “He went home” (2 such lines in all)"
    assert strange.startswith("line 3: the model 'translator' reads English only and does not know: 我;")
    _, changed, strange = run("translate", "-", "--lang", "zh", stdin=given).err.splitlines()
    assert changed == "第 2 行：读作“He went home”（共有 2 行如此）"
    assert strange.startswith("第 3 行：模型 'translator' 只能读英文，不认识：我")


def test_bad_lines_are_reported_and_the_rest_translated(run: Run) -> None:
    given = "I love you.\n我爱你\nThe cat\n😀\n".encode()
    code, out, err = run("translate", "-", stdin=given)
    first, chinese, cat, unread, end = out.split("\n")
    assert code == 3
    assert first
    assert cat
    assert (chinese, unread, end) == ("", "", "")
    message = err.splitlines()
    assert message[0].startswith("line 2: '我爱你' is already in Chinese characters")
    assert message[1].startswith("line 4: ")
    assert len(message) == 2
    code, out, err = run("translate", "-", "--json", "--lang", "zh", stdin=given)
    assert (code, [json.loads(line)["output"] is None for line in out.splitlines()]) == (3, [False, True, False, True])
    assert err.startswith("第 2 行：")


def test_lines_before_invalid_bytes_are_translated(run: Run) -> None:
    code, out, err = run("translate", "-", stdin=b"I love you.\nThe cat\ncaf\xe9\nI\n")
    assert (code, out.count("\n")) == (3, 2)
    assert err == "regard: stdin is not UTF-8: byte 0xe9 at position 23; convert it, for example with iconv\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "what should be translated? For example: regard translate I love you"),
        (["--beams", "0", "I"], "--beams must be a whole number of at least 1; found '0'"),
        (["--beams", "257", "I"], "--beams must be at most 256; found 257"),
        ([""], "nothing to translate"),
        (["我爱你"], "already in Chinese characters"),
        (["😀"], "knows none of the characters"),
        (["--model", "poet", "I"], "does not translate"),
    ],
)
def test_bad_arguments_are_refused(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run("translate", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_five_thousand_words(run: Run) -> None:
    code, out, err = run("translate", "--beams", "1", "love " * 5000)
    assert (code, err) == (0, "")
    assert out.count("\n") == 1


# --- in a separate process --------------------------------------------------------------------------------


def test_each_line_is_translated_as_it_arrives(tiny_models: Path) -> None:
    command = [sys.executable, "-m", "regard", "translate", "-", "--json", "--model", str(tiny_models / "translator")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        for text in ("I love you", "The cat", "", "He went home"):
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["text"] == text  # the next line is sent only after it
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0


def test_a_closed_pipe_ends_an_endless_text(tiny_models: Path) -> None:
    folder = tiny_models / "translator"
    lines = "import sys\nwhile True: print('I love you', flush=True)"
    with (
        subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as endless,
        subprocess.Popen(
            [sys.executable, "-m", "regard", "translate", "-", "--beams", "1", "--model", str(folder)],
            stdin=endless.stdout,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        present(endless.stdout).close()
        assert present(process.stdout).readline().strip()
        present(process.stdout).close()
        assert (process.wait(timeout=60), present(process.stderr).read()) == (0, b"")
        endless.kill()


@pytest.mark.parametrize(("text", "script"), [("こんにちは", "Japanese"), ("안녕", "Korean"), ("Привет", "Cyrillic")])
def test_another_script_is_named(run: Run, text: str, script: str) -> None:
    for command in ("translate", "see", "heads"):
        finished = run(command, text)
        assert (finished.code, finished.out) == (2, "")
        assert f"'{text}' is in {script}" in finished.err
        assert "Chinese" not in finished.err


def test_unreadable_digits_are_reported(run: Run, bundled: Path) -> None:
    finished = run("translate", "The cat sat on 12 mats.")
    assert "read as “The cat sat on mats.”" in finished.err
    assert "numbers of the text are missing in the translation: 12;" in finished.err
