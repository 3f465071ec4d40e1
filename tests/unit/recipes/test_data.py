"""Data of a recipe: each task, a user's own files, trained and given tokenizers, and held-out data."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from regard.errors import ArgumentError, FileError
from regard.messages import use_language
from regard.recipes.data import DataSource, PreparedData, prepare
from regard.recipes.recipe import read_recipe
from regard.text.tokenizer_training import SPECIALS, learn_tokenizer
from regard.training.batches import BlockBatches, Data, PairBatches

PAIRS = [("hello you", "你好"), ("bye", "再见"), ("yes", "是"), ("no", "不"), ("good", "好"), ("you", "你")]
SMALL = {"data.max_len": "16", "data.batch_tokens": "40", "data.vocab_size": "60"}
TEXT = "to be, or not to be\n" * 6


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def made(name: str, path: Path | None, changes: Mapping[str, str], skip_bad: bool = False) -> PreparedData:
    return prepare(read_recipe(name, changes), DataSource(path, skip_bad, None))


def texts_of(prepared: PreparedData, data: Data) -> list[tuple[str, str]]:
    """The pairs of an epoch as text, in the order of their indices."""
    found = {}
    for index in range(data.batches_per_epoch):
        batch = data.batch(0, index)
        for row, number in enumerate(batch.examples):
            sides = (batch.inputs["source"][row], batch.inputs["ids"][row])
            found[number] = tuple(prepared.tokenizer.decode(side.tolist()) for side in sides)
    return [found[number] for number in sorted(found)]  # type: ignore[misc]


def read_through(prepared: PreparedData, data: BlockBatches) -> str:
    return prepared.tokenizer.decode(data.ids.tolist())


def test_puzzle_needs_no_files() -> None:
    prepared = made("sort", None, {"puzzle.valid_examples": "20", "data.batch_size": "8"})
    assert (prepared.files, prepared.notes) == ({}, ())
    assert prepared.data.batch(0, 0).inputs["ids"].shape[0] == 8
    assert prepared.valid.batches_per_epoch == 3
    assert prepared.data.fingerprint != made("sort", None, {"training.seed": "1"}).data.fingerprint


def test_data_for_a_puzzle_is_reported_as_unused(tmp_path: Path) -> None:
    assert made("sort", tmp_path, {"puzzle.valid_examples": "20"}).notes == (
        "sort generates its own examples: --data is not used",
    )


# --- pairs -----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "train.tsv", [f"{a}\t{b}" for a, b in PAIRS])
    write(tmp_path / "dev.tsv", ["hello\t好"])
    return tmp_path


def test_pairs_of_a_folder(folder: Path) -> None:
    changes = {**SMALL, "data.valid": "dev.tsv"}
    prepared = made("en-zh", folder, changes)
    assert texts_of(prepared, prepared.data) == PAIRS
    assert texts_of(prepared, prepared.valid) == [("hello", "好")]
    assert list(prepared.files) == ["train.tsv", "dev.tsv"]
    assert prepared.tokenizer.vocab_size <= 60
    again = made("en-zh", folder, changes)
    assert (again.data.fingerprint, again.valid.fingerprint) == (prepared.data.fingerprint, prepared.valid.fingerprint)
    assert again.files == prepared.files
    write(folder / "dev.tsv", ["hello\t你"])
    changed = made("en-zh", folder, changes)
    assert changed.data.fingerprint == prepared.data.fingerprint
    assert changed.valid.fingerprint != prepared.valid.fingerprint
    assert changed.files["dev.tsv"] != prepared.files["dev.tsv"]


@pytest.mark.parametrize("name", ["own.tsv", "own.jsonl", "own.txt"])
def test_own_file_is_split(tmp_path: Path, name: str) -> None:
    def line(a: str, b: str) -> str:
        return json.dumps({"source": a, "target": b}) if name.endswith("jsonl") else f"{a}\t{b}"

    own = write(tmp_path / name, [line(a, b) for a, b in PAIRS])
    prepared = made("en-zh", own, SMALL)
    assert texts_of(prepared, prepared.data) == PAIRS[:5]
    assert len(texts_of(prepared, prepared.valid)) == 1
    assert list(prepared.files) == [name]
    half = made("en-zh", own, {**SMALL, "data.valid_share": "0.5"})
    assert texts_of(half, half.data) == PAIRS[:3]
    # The tokenizer is not trained on held-out text: these characters are unknown.
    assert half.tokenizer.encode("不") == [SPECIALS.index("<unk>")]


def test_two_plain_files(tmp_path: Path) -> None:
    for at, lang in enumerate(("en", "zh")):
        write(tmp_path / f"train.{lang}", [pair[at] for pair in PAIRS])
    files = {"data.train": '["train.en", "train.zh"]', "data.valid": "[]", "data.valid_share": "0.34"}
    prepared = made("en-zh", tmp_path, SMALL | files)
    assert texts_of(prepared, prepared.data) == PAIRS[:3]
    assert list(prepared.files) == ["train.en + train.zh"]


def test_multi30k_from_its_raw_files(tmp_path: Path) -> None:
    for split in ("train", "val"):
        write(tmp_path / f"{split}.en", ["A man's hat.", "Two dogs."])
        write(tmp_path / f"{split}.de", ["Der Hut.", "Zwei Hunde."])
    prepared = made("multi30k-en-de", tmp_path, {**SMALL, "data.max_len": "40"})
    assert texts_of(prepared, prepared.valid)[0] == ("a man &apos;s hat .", "der hut .")
    own = write(tmp_path / "own.tsv", ["A man's hat.\tDer Hut.", "Two dogs.\tZwei Hunde."])
    prepared = made("multi30k-en-de", own, {**SMALL, "data.max_len": "40"})
    assert texts_of(prepared, prepared.data) == [("a man &apos;s hat .", "der hut .")]


def test_long_sentences_raise_or_are_skipped(tmp_path: Path) -> None:
    lines = [f"{a}\t{b}" for a, b in PAIRS]
    own = write(tmp_path / "own.tsv", [*lines[:3], f"{'x ' * 20}\ty", "alone", *lines[3:], f"{'y' * 30}\tz"])
    changes = SMALL | {"data.valid_share": "0.3"}  # the last of them is held out
    with pytest.raises(FileError, match=r"own\.tsv, line 5: columns found"):
        made("en-zh", own, changes)
    prepared = made("en-zh", own, changes, skip_bad=True)
    assert texts_of(prepared, prepared.data) == PAIRS[:4]
    assert [target for _, target in texts_of(prepared, prepared.valid)] == ["好", "你"]
    (note,) = prepared.notes
    assert note.startswith("own.tsv: 3 lines were left out; the first: ")
    with use_language("zh"):
        assert made("en-zh", own, changes, skip_bad=True).notes[0].startswith("own.tsv：跳过了 3 行")
    write(own, [*lines, f"{'y' * 30}\tz"])
    with pytest.raises(FileError, match=rf"{own}, line 7 makes \d+ tokens, and the model reads 16"):
        made("en-zh", own, changes)


# --- running text ----------------------------------------------------------------------------------------


def test_end_of_a_text_is_held_out(tmp_path: Path) -> None:
    (tmp_path / "tinyshakespeare.txt").write_text(TEXT, encoding="utf-8")
    prepared = made("shakespeare-char", tmp_path, {"data.max_len": "8"})
    assert isinstance(prepared.data, BlockBatches)
    assert isinstance(prepared.valid, BlockBatches)
    assert read_through(prepared, prepared.data) + read_through(prepared, prepared.valid) == TEXT
    assert len(prepared.valid.ids) == 12  # a tenth of 120
    assert prepared.tokenizer.vocab_size == len(set(TEXT))  # no control tokens
    again = made("shakespeare-char", tmp_path / "tinyshakespeare.txt", {"data.max_len": "8"})
    assert again.data.fingerprint == prepared.data.fingerprint
    assert again.valid.fingerprint == prepared.valid.fingerprint


def test_validation_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "b.txt").write_text("到此为止", encoding="utf-8")
    prepared = made("shakespeare-char", tmp_path, {"data.max_len": "8", "data.train": "a.txt", "data.valid": "b.txt"})
    assert isinstance(prepared.data, BlockBatches)
    assert isinstance(prepared.valid, BlockBatches)
    assert read_through(prepared, prepared.data) == TEXT
    assert read_through(prepared, prepared.valid) == "到此为止"
    assert list(prepared.files) == ["a.txt", "b.txt"]


def test_lines_end_with_eos(tmp_path: Path) -> None:
    poems = ["床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"]
    write(tmp_path / "tang_poems.tsv", [f"t\ta\t{poem}" for poem in poems])
    prepared = made("tang-poet", tmp_path, {"data.max_len": "8", "data.valid_share": "0.25"})
    assert isinstance(prepared.data, BlockBatches)
    assert prepared.tokenizer.pieces(prepared.data.ids.tolist()) == [
        piece for poem in poems[:3] for piece in (*poem, "<eos>")
    ]
    assert prepared.tokenizer.encode("乡") == [prepared.tokenizer.unknown]


@pytest.mark.parametrize("kind", ["pieces", "words", "bytes"])
def test_text_with_every_kind_of_tokenizer(tmp_path: Path, kind: str) -> None:
    own = tmp_path / "own.txt"
    own.write_text(TEXT, encoding="utf-8")
    prepared = made("shakespeare-char", own, {"data.max_len": "4", "data.tokenizer": kind, "data.vocab_size": "300"})
    assert isinstance(prepared.data, BlockBatches)
    assert read_through(prepared, prepared.data).strip() == TEXT[:108].strip()
    assert (prepared.tokenizer.eos is None) == (kind == "bytes")


# --- tokenizers ------------------------------------------------------------------------------------------


def test_given_tokenizer_is_used(folder: Path) -> None:
    mine = learn_tokenizer(["abcdefghijklmnopqrstuvwxyz 你好再见"], "characters")
    mine.save(folder / "mine.json")
    prepared = made("en-zh", folder, {**SMALL, "data.tokenizer_file": "mine.json"})
    assert prepared.tokenizer.vocab_size == mine.vocab_size
    assert texts_of(prepared, prepared.data)[:2] == PAIRS[:2]
    own = made("en-zh", folder / "train.tsv", {**SMALL, "data.tokenizer_file": "mine.json"})  # beside the file
    assert own.tokenizer.vocab_size == mine.vocab_size
    with pytest.raises(FileError, match=r"yours\.json"):
        made("en-zh", folder, {**SMALL, "data.tokenizer_file": "yours.json"})
    learn_tokenizer(["abc"], "characters", specials=["<unk>"]).save(folder / "mine.json")
    with pytest.raises(ArgumentError, match="the tokenizer has no control token <pad>"):
        made("en-zh", folder, {**SMALL, "data.tokenizer_file": "mine.json"})


def test_tokenizer_of_a_resumed_run_is_used(folder: Path) -> None:
    known = learn_tokenizer(["abcdefghijklmnopqrstuvwxyz 你好再见"], "characters")
    prepared = prepare(read_recipe("en-zh", SMALL), DataSource(folder, False, known))
    assert prepared.tokenizer is known
    assert isinstance(prepared.data, PairBatches)


# --- too little ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "content", "message"),
    [
        ("en-zh", "a\tb\n", "own.tsv has too little text"),
        ("tang-poet", "t\ta\tp\n", "own.tsv has too little text"),
        (
            "tang-poet",
            "t\ta\tp\nt\ta\tq\nt\ta\tr\n",
            r"own.tsv: the text to train on makes 4 tokens, but needs more than .* 16",
        ),
    ],
)
def test_too_little_text_raises(tmp_path: Path, recipe: str, content: str, message: str) -> None:
    own = tmp_path / "own.tsv"
    own.write_text(content, encoding="utf-8")
    with pytest.raises(FileError, match=message):
        made(recipe, own, {"data.max_len": "16"})


def test_validation_text_of_one_token_raises(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("to be or not", encoding="utf-8")
    changes = {"data.max_len": "8", "data.valid_share": "0.01"}
    with pytest.raises(FileError, match=r"own\.txt: the validation text has 1 tokens, and at least 2 are needed"):
        made("shakespeare-char", own, changes)


def test_missing_data_raises(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="the recipe en-zh needs text: add --data"):
        made("en-zh", None, SMALL)
    with pytest.raises(FileError, match=r"there is no .*nowhere; check --data"):
        made("en-zh", tmp_path / "nowhere", SMALL)


def test_every_token_is_predicted_once(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text(TEXT, encoding="utf-8")
    valid = made("shakespeare-char", own, {"data.max_len": "8", "data.batch_size": "2"}).valid
    targets = np.concatenate([valid.batch(0, i).targets.flatten() for i in range(valid.batches_per_epoch)])
    assert (targets >= 0).sum() == 11  # all of twelve but the first
