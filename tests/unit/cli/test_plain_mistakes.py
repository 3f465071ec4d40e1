"""Common mistakes in arguments and files: one message and the documented exit code."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Run

from regard.cli.entry import LONGEST_MESSAGE, message_and_code, shortened
from regard.config import TransformerConfig
from regard.config.weights import weight_shapes
from regard.errors import ArgumentError, FileError, TooLargeError
from regard.files.json_and_toml import parse_toml, parse_value
from regard.models import Transformer
from regard.recipes import read_recipe
from regard.recipes.data import files_below
from regard.recipes.running import require_memory
from regard.text.corpus import read_text

LONG = "9" * 5000
DEEP = "[" * 3000
NESTED = ".".join(["a"] * 3000)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    return tmp_path


# --- numbers and nesting ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "copy", "--out", "x", "--seed", LONG],
        ["train", "copy", "--out", "x", "--set", f"training.steps={LONG}"],
        ["train", "copy", "--out", "x", "--set", f"training.lr={LONG}"],
        ["train", "copy", "--out", "x", "--set", f"training.lr=[{LONG}]"],
        ["train", "copy", "--out", "x", "--timeout", LONG],
        ["train", "copy", "--out", "x", "--set", f"training.steps={DEEP}"],
        ["train", "copy", "--out", "x", "--set", f"training.betas={DEEP}1{']' * 3000}"],
        ["train", "copy", "--out", "x", "--set", f"model.norm.{NESTED}=1"],
        ["train", "copy", "--out", "x", "--set", f"model.norm={{{NESTED} = 1}}"],
        ["train", "copy", "--out", "x", "--set", f"{NESTED}=1"],
        ["evaluate", "translator", "--beams", LONG],
        ["film", "x", "--head", LONG],
        ["film", "x", "--speed", LONG],
        ["see", "--head", LONG],
        ["see", "--layer", LONG],
        ["see", "--width", LONG],
        ["heads", "--count", LONG],
        ["translate", "--beams", LONG, "a"],
        ["generate", "--seed", LONG],
        ["generate", "--count", LONG],
        ["generate", "--temperature", LONG],
        ["explain", "--q", LONG, "--k", "1", "--v", "1"],
        ["explain", "--q", "1", "--k", "1", "--v", f"1 {LONG}"],
        ["explain", "--q", "1", "--k", "1", "--v", "1", "--mask", LONG],
        ["learn", "check", "softmax", "--seed", LONG],
        ["learn", "hint", "softmax", "--step", LONG],
        ["learn", "solution", "by-hand", "--seed", LONG],
        ["learn", "read", LONG],
        [LONG],
    ],
    ids=lambda arguments: " ".join(arguments)[:60],
)
def test_a_long_number_or_deep_nesting_is_usage(run: Run, arguments: list[str]) -> None:
    finished = run(*arguments)
    assert (finished.code, finished.out) == (2, ""), finished.err
    assert finished.err.startswith("regard: ")
    assert len(finished.err) < LONGEST_MESSAGE


@pytest.mark.parametrize("text", [f"x = {LONG}", f"x = {DEEP}", f"{NESTED} = 1", f"x = {'{a=' * 3000}", "x = 1 ="])
def test_a_recipe_that_cannot_be_read_is_a_file_error(run: Run, text: str) -> None:
    Path("r.toml").write_text(text, encoding="utf-8")
    finished = run("train", "r.toml", "--out", "x")
    assert finished.code == 3
    assert "r.toml" in finished.err
    assert not Path("x").exists()


def test_toml_has_one_kind_of_error() -> None:
    assert parse_toml("a.b = [[1]]") == {"a": {"b": [[1]]}}
    for text in (f"x = {LONG}", f"x = {DEEP}", f"{NESTED} = 1", "x = "):
        with pytest.raises(ValueError, match=r"digits|levels|Invalid") as caught:
            parse_toml(text)
        assert type(caught.value).__name__ == "TOMLDecodeError"
    assert parse_value(DEEP) == DEEP
    assert parse_value(LONG) == LONG


@pytest.mark.parametrize("sheet", [f"seed = {LONG}", f"seed = {DEEP}", f"{NESTED} = 1", LONG])
def test_a_sheet_of_such_numbers(run: Run, sheet: str) -> None:
    Path("by-hand.toml").write_text(sheet, encoding="utf-8")
    assert run("learn", "check", "by-hand").code == 1
    assert run("learn", "start", "by-hand").code == 0
    assert run("learn", "solution", "by-hand", "--give-up").code == 0
    assert run("learn", "reset", "by-hand").code == 0


def test_a_matrix_may_say_infinity_but_not_by_accident(run: Run) -> None:
    assert run("explain", "--q", "1", "--k", "1", "--v", "1e309").code == 2
    assert run("explain", "--q", "1", "--k", "1", "--v", "1e308").code == 0


def test_a_complaint_is_never_pages_long() -> None:
    assert len(shortened(f"found '{LONG}'")) < 100
    assert len(shortened("a b " * 10**5)) <= LONGEST_MESSAGE + 1
    assert shortened("/usr/share/a-folder/with-a-name") == "/usr/share/a-folder/with-a-name"


# --- paths ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["train", "valid", "tests"])
@pytest.mark.parametrize("path", ["/etc/passwd", "", " ", "a\\u0000b", "/"])
def test_a_recipe_names_files_below_its_folder(run: Run, key: str, path: str) -> None:
    finished = run("train", "shakespeare-char", "--data", ".", "--out", "x", "--set", f'data.{key}=["{path}"]')
    assert finished.code == 2, finished.err
    assert f"data.{key}" in finished.err
    assert not Path("x").exists()


def test_the_error_for_an_absolute_path_shows_how_to_write_it(here: Path) -> None:
    with pytest.raises(ArgumentError, match=r'give --data /data/books and data\.train = \["all\.txt"\]'):
        read_recipe("shakespeare-char", {"data.train": '["/data/books/all.txt"]'})


def test_patterns_that_glob_does_not_know(here: Path) -> None:
    (here / "a.txt").write_text("text", encoding="utf-8")
    assert files_below(here, ["*.txt"]) == [here / "a.txt"]
    for pattern in ("/a.txt", "", "a\0"):
        with pytest.raises(ArgumentError):
            files_below(here, [pattern])


# --- texts of nothing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["\u3000", "\u00a0\n\u2003", "\n\n", " \t", "\u2028", ""])
def test_a_text_of_spaces_alone_is_empty(run: Run, blank: str) -> None:
    Path("u.txt").write_text(blank, encoding="utf-8")
    with pytest.raises(FileError, match="is empty"):
        read_text([Path("u.txt")])
    with pytest.raises(FileError, match="nothing is left"):
        read_text([Path("u.txt")], skip_bad=True)
    assert run("train", "shakespeare-char", "--data", "u.txt", "--out", "x").code == 3
    for command in (["see", blank], ["translate", blank], ["heads", blank], ["see", "--model", "handmade", blank]):
        assert run(*command).code == 2


# --- memory -----------------------------------------------------------------------------------------------


def test_the_error_for_a_model_that_does_not_fit_has_figures(run: Run) -> None:
    finished = run("train", "copy", "--out", "x", "--set", "model.d_model=131072", "--set", "model.n_heads=8")
    assert finished.code == 5
    assert "3.0 TiB" in finished.err
    assert "are free on cpu" in finished.err
    assert not Path("x/recipe.toml").exists()


def test_the_estimate_counts_every_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    small: dict[str, Any] = {
        "vocab_size": 50,
        "max_len": 32,
        "d_model": 24,
        "n_heads": 3,
        "d_ff": 40,
        "n_decoder_layers": 2,
    }
    config = replace(TransformerConfig.gpt2(), **small)
    count = sum(weight.numel() for weight in Transformer(config).parameters())
    assert count == sum(map(math.prod, weight_shapes(config).values()))
    monkeypatch.setattr("regard.memory.available_bytes", lambda: 16 * count)
    require_memory(config, torch.device("cpu"))
    monkeypatch.setattr("regard.memory.available_bytes", lambda: 16 * count - 1)
    with pytest.raises(TooLargeError, match=f"{count:,} parameters"):
        require_memory(config, torch.device("cpu"))


def test_what_pytorch_cannot_allocate_is_no_bug() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55, dtype=torch.float32)
    assert message_and_code(caught.value) == ("out of memory: 131072.0 TiB requested", 5)
    gpu = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 3.00 GiB"
    assert message_and_code(RuntimeError(gpu)) == ("out of memory: 2.50 GiB requested", 5)
    assert message_and_code(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))[1] == 70
