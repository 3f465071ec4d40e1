"""`regard chat` through a pipe and interrupted, `regard convert`; in both languages."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run
from public_folders import gpt2, llama

TEMPLATE = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}<s>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = llama(tmp_path_factory.mktemp("chat") / "llama")
    (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return path


def test_each_line_is_a_turn(run: Run, folder: Path) -> None:
    from regard import load

    done = run("chat", "--model", str(folder), "--max-tokens", "5", "--json", stdin="The cat\n\nsat 猫\n".encode())
    assert done.code == 0, done.err
    first, second = map(json.loads, done.out.splitlines())
    talk = [{"role": "user", "content": "The cat"}]
    assert first == {"text": "The cat", "answer": load(folder).chat(talk, max_new_tokens=5), "stopped": False}
    assert second["text"] == "sat 猫"


def test_options_of_sampling(run: Run, folder: Path) -> None:
    from regard import load

    options = [
        "--max-tokens",
        "9",
        "--temperature",
        "3",
        "--top-k",
        "9",
        "--top-p",
        "0.9",
        "--min-p",
        "0.01",
        "--seed",
        "5",
    ]
    done = run("chat", "--model", str(folder), "--json", *options, stdin=b"The cat\n")
    talk = [{"role": "user", "content": "The cat"}]
    lm = load(folder)
    wanted = lm.chat(talk, max_new_tokens=9, temperature=3.0, top_k=9, top_p=0.9, min_p=0.01, seed=5)
    assert json.loads(done.out)["answer"] == wanted
    stop = wanted.strip()[2]
    done = run("chat", "--model", str(folder), "--json", *options, "--stop", stop, stdin=b"The cat\n")
    assert json.loads(done.out)["answer"] == wanted[: wanted.index(stop)].strip()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_commands(run: Run, folder: Path, lang: str) -> None:
    lines = b"/see\nThe cat\n/see\n/help\n/new\n/nope\n/exit\nnot read\n"
    done = run("chat", "--model", str(folder), "--max-tokens", "4", "--lang", lang, stdin=lines)
    assert done.code == 0, done.err
    assert done.out.count("█") > 3
    assert " %" in done.out
    assert "cat" in done.out
    assert {"en": "/see   which", "zh": "/see   上一个"}[lang] in done.out
    assert {"en": "no answer yet", "zh": "还没有回答"}[lang] in done.err
    assert "/nope" in done.err
    assert "not read" not in done.out


def test_what_is_refused(run: Run, folder: Path, tmp_path: Path) -> None:
    assert (found := run("chat")).code == 2
    assert "--model" in found.err
    found = run("chat", "--model", str(gpt2(tmp_path / "gpt2")), stdin=b"x\n")
    assert found.code == 2
    assert "chat template" in found.err
    assert run("chat", "--model", "org/not-there", stdin=b"").code == 3


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
def test_ctrl_c_stops_one_answer(folder: Path) -> None:
    program = "import sys; from regard.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "chat", "--model", str(folder), "--max-tokens", "100000", "--lang", "en"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"The cat\n")
        process.stdin.flush()
        process.stdout.read(1)  # it writes
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(b"/help\n", timeout=120)
    assert process.returncode == 0, err
    assert b"(stopped)" in err
    assert b"/exit" in out


def test_convert(run: Run, folder: Path, tmp_path: Path) -> None:
    done = run("convert", str(folder), str(tmp_path / "new"), "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["family"] == "llama"
    assert run("chat", "--model", str(tmp_path / "new"), stdin=b"").code == 0
    assert run("convert", str(folder), str(tmp_path / "new")).code == 2
