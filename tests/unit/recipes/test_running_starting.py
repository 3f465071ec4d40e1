"""Runs that start from the weights of another model, and runs that train a head on word links."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from tolerances import assert_same_bits

import regard
from regard.errors import ArgumentError, FileError
from regard.evaluation.alignment import best_heads, read_aligned
from regard.evaluation.translation import read_trained
from regard.recipes.recipe import read_recipe, to_toml
from regard.recipes.running import TrainingResult, train
from regard.training.run_reports import Event, Started

SMALL = {
    "model.n_layers": "1",
    "model.d_model": "16",
    "model.d_ff": "16",
    "model.dropout": "0.1",
    "data.max_len": "16",
    "data.batch_tokens": "200",
    "data.vocab_size": "60",
    "data.valid": '"train.tsv"',
    "training.steps": "3",
    "training.save_every": "2",
    "training.warmup": "0",
    "training.average": "1",
    "training.keep": "2",
}
PAIRS = [("I see.", "我看。"), ("You go!", "你去！"), ("I go.", "我去。"), ("You see!", "你看！")]


def write_pairs(folder: Path, links: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    lines = ("\t".join([*pair, *([] if links is None else [links])]) for pair in PAIRS)
    (folder / "train.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def run(data: Path, out: Path, changes: Mapping[str, str] = {}, **options: Any) -> TrainingResult:
    recipe = read_recipe("en-zh", SMALL | dict(changes))
    return train(recipe, data=write_pairs(data) if not data.exists() else data, out=out, device="cpu", **options)


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A finished run."""
    run(tmp_path / "data", tmp_path / "first")
    return tmp_path / "first"


# --- start ------------------------------------------------------------------------------------------------


def test_a_run_starts_with_the_weights_and_tokenizer_of_the_model(first: Path, tmp_path: Path) -> None:
    frozen = {"training.lr": "0", "model.dropout": "0.3"}
    run(tmp_path / "data", tmp_path / "second", frozen, start=first)
    one, other = read_trained(first), read_trained(tmp_path / "second")
    for name, weight in one.model.state_dict().items():
        assert_same_bits(other.model.state_dict()[name], weight)
    assert other.tokenizer.to_json() == one.tokenizer.to_json()
    assert other.model.config.dropout == 0.3


def test_the_start_model_is_recorded_by_its_hashes(first: Path, tmp_path: Path) -> None:
    run(tmp_path / "data", tmp_path / "second", start=first)
    about = json.loads((tmp_path / "second" / "run.json").read_bytes())
    assert sorted(about["start"]) == ["model.safetensors", "tokenizer.json"]
    assert "start" not in json.loads((first / "run.json").read_bytes())


def test_a_run_is_resumed_only_with_the_same_start(first: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    interrupted, straight = tmp_path / "second", tmp_path / "third"

    def stop(event: Event) -> None:
        if isinstance(event, Started):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "data", interrupted, start=first, listeners=[stop])
    with pytest.raises(FileError, match="was started from another model"):
        run(tmp_path / "data", interrupted)
    run(tmp_path / "data", interrupted, start=first, listeners=[events.append])
    run(tmp_path / "data", straight, start=first)
    one, other = (read_trained(folder).model.state_dict() for folder in (interrupted, straight))
    assert all(torch.equal(weight, other[name]) for name, weight in one.items())


def test_another_config_is_refused(first: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"differs from the model in .*first.* in: d_ff; set model\.d_ff to 16, not 24"):
        run(tmp_path / "data", tmp_path / "second", {"model.d_ff": "24"}, start=first)
    assert not (tmp_path / "second" / "recipe.toml").exists()


def test_another_tokenizer_is_refused(first: Path, tmp_path: Path) -> None:
    content = json.loads((first / "tokenizer.json").read_bytes())
    content["added_tokens"][0]["content"] = "<padding>"
    vocab = content["model"]["vocab"]
    content["model"]["vocab"] = {"<padding>" if name == "<pad>" else name: i for name, i in vocab.items()}
    (tmp_path / "data" / "mine.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises((FileError, ArgumentError), match="tokenizer"):
        run(tmp_path / "data", tmp_path / "second", {"data.tokenizer_file": "mine.json"}, start=first)


def test_an_absent_start_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="absent"):
        run(tmp_path / "data", tmp_path / "second", start=tmp_path / "absent")


# --- links ------------------------------------------------------------------------------------------------

ALIGNED = {
    "training.alignment": '{layer = "decoder.layers.0.cross_attention", head = 3, weight = 2.0}',
    "training.steps": "120",
    "training.save_every": "120",
    "training.lr": "0.01",
    "training.schedule": "constant",
    "data.valid": '"valid.tsv"',
}


def test_a_head_learns_the_links_and_another_does_not(tmp_path: Path) -> None:
    # The links run against the text: the first word of the target with the last word of the source.
    data = write_pairs(tmp_path / "data", "2-0 1-1 0-2")
    (data / "valid.tsv").write_text("I see.\t我看。\n", encoding="utf-8")
    run(data, tmp_path / "run", ALIGNED)
    (tmp_path / "aligned.tsv").write_text("I see .\t我 看 。\t2-0 1-1 0-2\n", encoding="utf-8")
    model = regard.load(tmp_path / "run")
    pairs = read_aligned(tmp_path / "aligned.tsv")
    heads = best_heads([(pair, model.see(pair.text, output=pair.output).trace) for pair in pairs], "written")
    assert heads[0] == (0, 3, 0.0)
    assert heads[1].error > 0


def test_recipe_with_an_aligned_head_is_written_and_read(tmp_path: Path) -> None:
    recipe = read_recipe("en-zh", SMALL | ALIGNED)
    (tmp_path / "mine.toml").write_text(to_toml(recipe), encoding="utf-8")
    again = read_recipe(tmp_path / "mine.toml")
    assert again.training.alignment == recipe.training.alignment


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("0-9", r"train\.tsv, line 1: '0-9' are not links such as 0-0 2-1 between 3 source words and 3 target words"),
        ("one", r"line 1: 'one' are not links"),
        (None, r"line 1: columns found.*2; wanted: 3"),
    ],
)
def test_bad_links_are_named_with_their_line(tmp_path: Path, links: str | None, message: str) -> None:
    data = write_pairs(tmp_path / "data", links)
    with pytest.raises(FileError, match=message):
        run(data, tmp_path / "run", ALIGNED | {"data.valid": '"train.tsv"'})


def test_pairs_that_the_tokenizer_does_not_know_are_not_aligned(first: Path, tmp_path: Path) -> None:
    data = write_pairs(tmp_path / "other", "0-0")
    with (data / "train.tsv").open("a", encoding="utf-8") as file:
        file.write("I see.\t鼯看。\t0-0\n")
    (data / "valid.tsv").write_text("I see.\t我看。\n", encoding="utf-8")
    notes: list[str] = []
    run(data, tmp_path / "run", ALIGNED | {"training.steps": "2"}, start=first, say_note=notes.append)
    assert notes[0].startswith("1 pairs have characters that the tokenizer does not know")


def test_a_recipe_for_another_task_has_no_aligned_head() -> None:
    with pytest.raises(ArgumentError, match="only for the task 'translation'"):
        read_recipe("copy", {"training.alignment": ALIGNED["training.alignment"]})
