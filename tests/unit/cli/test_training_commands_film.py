"""regard film: choice of head, speed and output; drawing is tested with the views."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard import Trace
from regard.cli.training_commands import film
from regard.errors import ArgumentError, FileError
from regard.messages import use_language
from regard.reference import softmax


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run with two heads over three tokens; head 1 learns the anti-diagonal."""
    folder = tmp_path / "reverse"
    (folder / "film").mkdir(parents=True)
    for step in (0, 10, 20):
        weights = softmax(np.stack([np.zeros((3, 3)), np.eye(3)[::-1] * step]))
        trace = Trace.from_weights(weights, ["我", "爱", "你"], name="decoder.layers.0.cross_attention", kind="cross")
        trace.save(folder / "film" / f"step-{step:08d}.safetensors")
    (folder / "metrics.jsonl").write_text('{"step": 10, "loss": 2.5}\n{"step": 20, "loss": null, "skipped": true}\n')
    return folder


def test_the_head_that_changes_most_is_shown(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film(run_folder)
    out, err = capsys.readouterr()
    assert err.startswith("decoder.layers.0.cross_attention, head 1: of 2 heads it changes most; ")
    assert "67 % of its attention" in err
    assert "step 10 · loss 2.500 · frame 2 of 3" in out
    assert "step 20 · frame 3 of 3" in out
    assert "\x1b" not in out
    with use_language("zh"):
        film(run_folder, layer="0", head="0")
    out, err = capsys.readouterr()
    assert "头 0（共 2 个）" in out
    assert err == ""


def test_a_single_head_is_not_reported_as_chosen(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for step in (0, 10, 20):
        weights = softmax(np.eye(3)[None] * step)
        Trace.from_weights(weights, name="cross").save(run_folder / "film" / f"step-{step:08d}.safetensors")
    film(run_folder)
    assert capsys.readouterr().err.startswith("cross, head 0: 67 % of its attention moved")


def test_json(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film(run_folder, as_json=True)
    result = json.loads(capsys.readouterr().out)
    assert (result["layer"], result["head"], result["kind"]) == ("decoder.layers.0.cross_attention", 1, "cross")
    assert result["queries"] == ["我", "爱", "你"]
    assert [(frame["step"], frame["loss"]) for frame in result["frames"]] == [(0, None), (10, 2.5), (20, None)]
    assert np.allclose(result["frames"][2]["map"], np.eye(3)[::-1], atol=1e-6)


def test_gif_instead_of_the_terminal(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film(run_folder, head="1", gif=run_folder / "f.gif", speed="5")
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"saved {run_folder / 'f.gif'}\n")
    assert (run_folder / "f.gif").read_bytes().startswith(b"GIF89a")


def test_a_film_needs_no_metrics(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_folder / "metrics.jsonl").write_text("")
    film(run_folder, head="1")
    out, err = capsys.readouterr()
    assert "no whole line yet" in err
    assert "loss" not in out
    (run_folder / "metrics.jsonl").unlink()
    film(run_folder, head="1")
    assert capsys.readouterr() == (out, "")


@pytest.mark.parametrize("speed", ["x", "0", "-3", "nan", "inf", "61", ""])
def test_a_bad_speed_is_refused(run_folder: Path, speed: str) -> None:
    with pytest.raises(ArgumentError, match=r"--speed must be a number of frames a second from 0\.1 to 60"):
        film(run_folder, speed=speed)


def test_a_model_folder_finds_its_run(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_folder / "model").mkdir()
    (run_folder / "recipe.toml").touch()
    film(run_folder, head="1")
    by_run = capsys.readouterr()
    film(run_folder / "model", head="1")
    assert capsys.readouterr() == by_run


def test_bad_arguments_are_refused(run_folder: Path) -> None:
    with pytest.raises(ArgumentError, match=r"f\.mp4 has an ending .*; call it .*f\.gif"):
        film(run_folder, gif=run_folder / "f.mp4")
    with pytest.raises(ArgumentError, match="which run"):
        film()
    with pytest.raises(ArgumentError, match="--head must be a whole number"):
        film(run_folder, head="one")
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        film(run_folder, head="2")
    for file in (run_folder / "film").iterdir():
        file.unlink()
    with pytest.raises(FileError, match="train with --film"):
        film(run_folder)
