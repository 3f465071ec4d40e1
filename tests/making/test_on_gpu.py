"""Training within a time limit: the number of steps, runs that are too slow, and runs that fail."""

import argparse
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_language import PAIRS, translator_folder

from making.translator import on_gpu
from regard.recipes import Recipe, read_recipe
from regard.recipes.running import FINISHED
from regard.training.run_files import read_hashed

TINY = {
    "model.d_model": "8",
    "model.n_heads": "2",
    "model.d_ff": "8",
    "model.n_layers": "1",
    "training.steps": "24",
    "training.save_every": "4",
    "training.valid_every": "8",
}


def recipe_of(**changes: str) -> Recipe:
    return read_recipe("copy", TINY | {f"training.{name}": value for name, value in changes.items()})


def options_of(folder: Path, seconds: float, *more: str) -> argparse.Namespace:
    """The options of one run that may train for the given seconds."""
    until = time.time() + on_gpu.ENDING + seconds
    places = ["--data", str(folder), "--out", str(folder), "--runs", str(folder / "runs"), "--name", "student-1"]
    return on_gpu.parse(["run", *places, "--pace", "8", "--until", str(until), *more])


def finished_step(folder: Path) -> int:
    found = read_hashed(folder / FINISHED)
    assert found is not None
    return int(found["step"])


def test_a_run_takes_the_steps_of_its_recipe_if_there_is_time(tmp_path: Path) -> None:
    on_gpu.train_in_time(recipe_of(), tmp_path / "run", options_of(tmp_path, 1000))
    assert finished_step(tmp_path / "run") == 24


def test_without_time_a_run_ends_where_its_pace_is_known(tmp_path: Path) -> None:
    on_gpu.train_in_time(recipe_of(), tmp_path / "run", options_of(tmp_path, -1))
    assert finished_step(tmp_path / "run") == 8
    assert read_recipe(tmp_path / "run" / "recipe.toml").training.steps == 8


def test_a_run_that_is_too_slow_ends_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpu, "SPARE", 1e6)  # it expects to be a million times as fast
    on_gpu.train_in_time(recipe_of(steps="1000000"), tmp_path / "run", options_of(tmp_path, 4))
    assert 8 <= finished_step(tmp_path / "run") < 1_000_000
    model = tmp_path / "run" / "model"
    assert (model / "model.safetensors").is_file()


def test_a_run_is_packed_with_its_translations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = tmp_path / "run" / "small"
    small.parent.mkdir()
    translator_folder(small)
    for name in ("recipe.toml", "metrics.jsonl", "finished.json"):
        (tmp_path / "run" / name).write_text("", encoding="utf-8")
    english = sorted({one for one, _ in PAIRS})
    (tmp_path / "valid.tsv").write_text("".join(f"{one}\tx\n" for one in english), encoding="utf-8")
    monkeypatch.setattr(on_gpu, "SENTENCES", tmp_path)
    on_gpu.write_translations(small, recipe_of(), options_of(tmp_path, 0, "--device", "cpu"))
    translated = (small / "translated-valid.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in translated] == english
    on_gpu.pack(tmp_path / "run", tmp_path / "student-1.tar")
    with tarfile.open(tmp_path / "student-1.tar") as file:
        names = {Path(name).name for name in file.getnames()}
    wanted = {"model.safetensors", "tokenizer.json", "recipe.toml", "metrics.jsonl", "finished.json"}
    assert names >= wanted | {"translated-valid.tsv"}


def test_a_run_that_fails_starts_again_without_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, list[str]]] = []

    def start(options: object, name: str, until: float, changes: Sequence[str]) -> on_gpu.Process:
        started.append((name, list(changes)))
        return on_gpu.Process(name, subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"]), list(changes))

    monkeypatch.setattr(on_gpu, "start", start)
    monkeypatch.setitem(on_gpu.RUNS, "students", {"student-1": {}})
    options = on_gpu.parse(["students", "--data", "d", "--out", "o", "--runs", str(tmp_path), "--set", "model.d_ff=8"])
    assert on_gpu.train_all(options, time.time() + 1000) == []
    assert started == [("student-1", ["model.d_ff=8"]), ("student-1", ["model.d_ff=8", "training.capture=false"])]


@pytest.mark.parametrize("stage", sorted(on_gpu.RUNS))
def test_the_changes_of_each_run_fit_its_recipe(stage: str) -> None:
    for changes in on_gpu.RUNS[stage].values():
        recipe = read_recipe(on_gpu.HERE / f"{stage.removesuffix('s')}.toml", changes)
        assert recipe.training.capture
        assert recipe.training.warmup >= on_gpu.PACE  # only then does the pace not depend on the number of steps


def test_the_students_differ_in_seed_and_in_how_often_they_read_tatoeba() -> None:
    """So that the better one says something about the mixture."""
    runs = on_gpu.RUNS["students"]
    recipes = [read_recipe(on_gpu.HERE / "student.toml", changes) for changes in runs.values()]
    counts = [Counter(recipe.data.train) for recipe in recipes]
    assert [count["train.links.tsv"] for count in counts] == [2, 1]
    assert all(count["own.links.tsv"] == 2 and count["distilled.links.tsv"] == 1 for count in counts)
    assert len({recipe.training.seed for recipe in recipes}) == 2
    plain = [replace(each, data=recipes[0].data, training=replace(each.training, seed=1)) for each in recipes]
    assert plain[0] == plain[1]
