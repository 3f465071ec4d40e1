"""The run folder: its content, resuming, and which settings may change when a run is resumed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.errors import ArgumentError, FileError
from regard.models import Transformer
from regard.recipes.recipe import differences, read_recipe
from regard.recipes.running import TrainingResult, train
from regard.text.tokenizer import Tokenizer
from regard.trace import read_trace
from regard.training.metrics import MetricsFile
from regard.training.run_reports import Event, Finished, Saved, Started

SMALL = {
    "model.d_model": "16",
    "model.d_ff": "16",
    "puzzle.longest": "4",
    "puzzle.valid_examples": "8",
    "data.batch_size": "4",
    "training.steps": "5",
    "training.save_every": "2",
    "training.valid_every": "2",
    "training.warmup": "0",
    "film.text": "abba",
    "film.every": "2",
}
PAIRS = {
    "model.d_model": "16",
    "model.d_ff": "16",
    "model.n_layers": "1",
    "data.max_len": "16",
    "data.batch_tokens": "40",
    "data.vocab_size": "60",
    "training.steps": "2",
    "training.average": "1",
}


def run_copy(out: Path, changes: Mapping[str, str] = {}, **options: Any) -> TrainingResult:
    return train(read_recipe("copy", SMALL | dict(changes)), data=None, out=out, device="cpu", **options)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- from beginning to end -------------------------------------------------------------------------------


def test_folder_of_a_finished_run(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "run"
    result = run_copy(out, film=True)
    names = {path.name for path in out.iterdir()}
    assert names == {
        *("recipe.toml", "run.json", "tokenizer.json", "metrics.jsonl", "checkpoints", "film", "model"),
        *("finished.json", "lock"),
    }
    assert differences(read_recipe(out / "recipe.toml"), read_recipe("copy", SMALL)) == []
    about = json.loads((out / "run.json").read_bytes())
    assert about["versions"]["torch"] == torch.__version__
    assert (about["seed"], about["files"]) == (0, {})
    lines = MetricsFile(out / "metrics.jsonl").read()
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5]
    assert [line["step"] for line in lines if "valid_loss" in line] == [2, 4, 5]
    assert sorted(path.stem for path in (out / "film").iterdir()) == [f"step-0000000{i}" for i in (0, 2, 4, 5)]
    assert read_trace(out / "film" / "step-00000005.safetensors")[0].query_tokens == (("<bos>", *"abba"),)
    assert result.reason == "steps"
    assert result.figures.items() >= {"recipe": "copy", "seed": 0, "step": 5, "reason": "steps", "skipped": 0}.items()
    assert result.figures["valid_loss"] == pytest.approx(lines[-1]["valid_loss"], rel=1e-6)


def test_model_folder_is_self_contained(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = run_copy(out)
    model, tokenizer = Transformer.read(out / "model"), Tokenizer.read(out / "model" / "tokenizer.json")
    assert sum(weight.numel() for weight in model.parameters()) == result.figures["parameters"]
    assert model.config.vocab_size == tokenizer.vocab_size == 30
    assert tokenizer.encode("ab") == Tokenizer.read(out / "tokenizer.json").encode("ab")


def test_finished_run_is_unchanged(tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = run_copy(out, film=True)
    before = contents(out)
    events: list[Event] = []
    again = run_copy(out, film=True, listeners=[events.append])
    assert again == ("already", first.figures)
    assert contents(out) == before
    assert [(event.step, event.reason) for event in events if isinstance(event, Finished)] == [(5, "already")]
    assert len(events) == 1


def test_same_seed_gives_the_same_model_with_or_without_a_film(tmp_path: Path) -> None:
    models = []
    for name, changes, film in (("a", {}, False), ("b", {}, True), ("c", {"training.seed": "1"}, False)):
        run_copy(tmp_path / name, changes, film=film)
        models.append((tmp_path / name / "model" / "model.safetensors").read_bytes())
    assert models[0] == models[1] != models[2]


def test_monitor_writes_metrics_and_changes_no_weight(tmp_path: Path) -> None:
    """With accumulated gradients. `heads` adds the numbers of each head; a resumed run may have another monitor."""
    changes = {"training.accumulate": "2", "model.n_heads": "2"}
    run_copy(tmp_path / "plain", changes)
    run_copy(tmp_path / "watched", changes | {"monitor.every": "2", "monitor.heads": "true"})
    model = "model/model.safetensors"
    assert (tmp_path / "plain" / model).read_bytes() == (tmp_path / "watched" / model).read_bytes()
    lines = MetricsFile(tmp_path / "watched" / "metrics.jsonl").read()
    measured = {line["step"]: line for line in lines if "attention/entropy" in line}
    assert list(measured) == [1, 2, 4]
    layers = ["encoder.layers.0.self_attention", "decoder.layers.0.self_attention", "decoder.layers.0.cross_attention"]
    for layer in layers:
        names = [{name for name in measured[step] if name.startswith(f"attention/{layer}/")} for step in (1, 2)]
        assert [len(one) for one in names] == [6 + 2 * 4, 5 + 2 * 3]  # the distance, at every tenth measured step
        assert {name.rpartition("/")[2] for name in names[0] - names[1]} == {"distance"}
    before = read_recipe("copy", SMALL)
    assert differences(before, read_recipe("copy", SMALL | {"monitor.every": "7"})) == [
        "monitor.every",
        "monitor.heads",
    ]


# --- resuming --------------------------------------------------------------------------------------------


class StopError(Exception):
    """A simulated crash."""


def crash(out: Path, at: int, **options: Any) -> None:
    def listener(event: Event) -> None:
        if isinstance(event, Saved) and event.step == at:
            raise StopError

    with pytest.raises(StopError):
        run_copy(out, listeners=[listener], **options)


def test_resumed_run_gives_the_same_result(tmp_path: Path) -> None:
    run_copy(tmp_path / "whole", film=True)
    crash(tmp_path / "parts", 2, film=True)
    assert not (tmp_path / "parts" / "finished.json").exists()
    events: list[Event] = []
    assert run_copy(tmp_path / "parts", film=True, listeners=[events.append]).reason == "steps"
    assert [event.resumed_from for event in events if isinstance(event, Started)] == [2]
    whole, parts = contents(tmp_path / "whole"), contents(tmp_path / "parts")
    same = [name for name in whole if name.startswith(("model", "film", "recipe", "tokenizer"))]
    assert len(same) > 6
    assert {name: parts[name] for name in same} == {name: whole[name] for name in same}
    losses = [[line["loss"] for line in MetricsFile(tmp_path / n / "metrics.jsonl").read()] for n in ("whole", "parts")]
    assert losses[0] == losses[1]


def test_settings_that_may_change(tmp_path: Path) -> None:
    crash(tmp_path / "run", 2)
    for changes, keys in (({"training.lr": "0.5"}, "training.lr"), ({"data.batch_size": "8"}, "data.batch_size")):
        with pytest.raises(FileError, match=f"started with other values of: {keys}; repeat its command"):
            run_copy(tmp_path / "run", changes)
    changes = {"film.text": "cab", "evaluation.beams": "2"}
    assert run_copy(tmp_path / "run", changes, film=True).reason == "steps"
    assert read_recipe(tmp_path / "run" / "recipe.toml").film == read_recipe("copy", SMALL | changes).film


def test_folder_with_other_files_raises(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match=r"is not empty and holds no run \(notes\.txt\); give --out a new"):
        run_copy(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(FileError, match=r"notes\.txt"):
        run_copy(tmp_path / "notes.txt")


# --- data ------------------------------------------------------------------------------------------------


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("hello\t你好\nbye\t再见\nalone\nyes\t是\nno\t不\n", encoding="utf-8")
    return path


def test_notes_about_the_data(pairs: Path, tmp_path: Path) -> None:
    recipe, notes = read_recipe("en-zh", PAIRS), list[str]()
    with pytest.raises(FileError, match=r"pairs\.tsv, line 3: columns found"):
        train(recipe, data=pairs, out=tmp_path / "run", device="cpu")
    result = train(recipe, data=pairs, out=tmp_path / "run", device="cpu", skip_bad=True, say_note=notes.append)
    assert result.reason == "steps"
    assert notes == [f"pairs.tsv: 1 lines were left out; the first: {pairs}, line 3" + notes[0].partition("line 3")[2]]
    about = json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert list(about["files"]) == ["pairs.tsv"]


def test_changed_data_raise(pairs: Path, tmp_path: Path) -> None:
    changes = PAIRS | {"training.steps": "6", "training.save_every": "2", "training.valid_every": "2"}
    recipe, out = read_recipe("en-zh", changes), tmp_path / "run"

    def listener(event: Event) -> None:
        if isinstance(event, Saved):
            raise StopError

    options: dict[str, Any] = {"data": pairs, "out": out, "device": "cpu", "skip_bad": True}
    with pytest.raises(StopError):
        train(recipe, listeners=[listener], **options)
    content = pairs.read_bytes()
    pairs.write_bytes(content + b"good\tok\n")
    with pytest.raises(FileError, match=r"pairs\.tsv has changed since th.* run .*was started; restore the old file"):
        train(recipe, **options)
    pairs.write_bytes(content)
    assert train(recipe, **options).reason == "steps"


def test_failed_start_can_be_repeated(pairs: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    for changes, error in (
        ({"data.vocab_size": "6"}, "too small: the special tokens"),
        ({"model.vocab_size": "8"}, "less than the tokenizer's"),
    ):
        with pytest.raises(ArgumentError, match=error):
            train(read_recipe("en-zh", PAIRS | changes), data=pairs, out=out, device="cpu", skip_bad=True)
        assert [path.name for path in out.iterdir()] == ["lock"]
    assert train(read_recipe("en-zh", PAIRS), data=pairs, out=out, device="cpu", skip_bad=True).reason == "steps"
