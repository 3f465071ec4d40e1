"""regard plot: output by arguments; drawing is tested with the views."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.training_commands import plot
from regard.errors import ArgumentError, FileError, UnknownNameError
from regard.messages import use_language


def write_run(folder: Path, steps: int = 200) -> Path:
    folder.mkdir(parents=True)
    lines = [
        {"step": n, "loss": 5 / n, "lr": 1e-3} | ({"valid_loss": 0.5} if n % 50 == 0 else {}) for n in range(1, steps)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_run_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot([write_run(tmp_path / "copy")])
    out, err = capsys.readouterr()
    assert out.startswith("loss, validation loss over steps\n")
    assert "copy · loss · last 0.02513" in out
    assert (err, "\x1b" in out) == ("", False)
    with use_language("zh"):
        plot([tmp_path / "copy"])
    assert capsys.readouterr().out.startswith("损失、验证损失随步数的变化\n")


def test_several_runs_and_one_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = write_run(tmp_path / "one"), write_run(tmp_path / "two", 90)
    plot([one, two, one], metric="lr")
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if "·" in line] == [
        "a one · learning rate · last 0.001 · lowest 0.001 at step 1",
        "b two · learning rate · last 0.001 · lowest 0.001 at step 1",
    ]


def test_json_has_every_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot([write_run(tmp_path / "copy")], as_json=True)
    loss, valid = json.loads(capsys.readouterr().out)["curves"]
    assert (loss["run"], loss["metric"], loss["steps"][:2], loss["values"][:2]) == ("copy", "loss", [1, 2], [5.0, 2.5])
    assert len(loss["steps"]) == len(loss["values"]) == 199
    assert valid == {"run": "copy", "metric": "valid_loss", "steps": [50, 100, 150], "values": [0.5] * 3}


def test_png_instead_of_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot([write_run(tmp_path / "copy")], png=tmp_path / "p.png")
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"saved {tmp_path / 'p.png'}\n")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_folder_finds_its_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "copy")
    (run / "model").mkdir()
    (run / "recipe.toml").touch()
    plot([run])
    plot([run / "model"])
    assert len(set(capsys.readouterr().out.split("loss, validation loss over steps\n"))) == 2


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_the_file_ending_chooses_the_format(tmp_path: Path, ending: str, start: bytes) -> None:
    plot([write_run(tmp_path / "copy")], png=tmp_path / f"p.{ending}")
    assert (tmp_path / f"p.{ending}").read_bytes().startswith(start)


def test_other_file_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"p\.jpg has an ending .*; call it .*p\.png"):
        plot([write_run(tmp_path / "copy")], png=tmp_path / "p.jpg")


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="which run"):
        plot([])
    with pytest.raises(FileError, match="there is no folder"):
        plot([tmp_path / "none"])
    with pytest.raises(UnknownNameError, match="it has: loss, lr, valid_loss"):
        plot([write_run(tmp_path / "copy")], metric="los")


def test_plot_does_not_need_torch(tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; from regard.cli import main; main(['plot', 'copy'])"
    write_run(tmp_path / "copy")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60, cwd=tmp_path
    )
    assert done.stdout.startswith("loss, validation loss over steps\n"), done.stderr


def test_an_unknown_matplotlib_backend_is_ignored(tmp_path: Path) -> None:
    """A notebook sets its backend in the environment of child processes; no command opens a window."""
    done = subprocess.run(
        [sys.executable, "-m", "regard", "plot", str(write_run(tmp_path / "copy")), "--png", str(tmp_path / "a.png")],
        env={**os.environ, "MPLBACKEND": "bogus"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.png").exists()
