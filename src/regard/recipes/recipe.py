"""Recipes as TOML files: model, data, training and evaluation settings. Functions to read, change, compare, write them.

A recipe holds only values: it opens no data and builds no model. `catalogue/` holds the bundled recipes.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import NoneType
from typing import Any, Literal

from regard.arrays import check_counts
from regard.config import RecurrentConfig, TransformerConfig
from regard.config.recurrent import CELLS
from regard.config.transformer import OTHER_LIBRARY_NAMES, SIZES
from regard.config.tree import Fault, TreeReader
from regard.config.weights import ModelConfig
from regard.errors import ArgumentError, FileError, RegardError, UnknownNameError
from regard.files.json_and_toml import Table, parse_toml, parse_value, plain_table, write_toml
from regard.files.output import reason_of
from regard.files.safe_open import read_file
from regard.messages import Listed, Message
from regard.training.plan import Plan

TaskKind = Literal["translation", "language", "synthetic"]
TokenizerKind = Literal["characters", "words", "pieces", "bytes"]
PuzzleKind = Literal["copy", "reverse", "sort", "addition", "induction"]
LARGEST_FILE = 2**20
DEEPEST_KEY = 8
"""The largest number of nested tables above a key in `changes`."""
LETTERS = 26
"""The number of letters in puzzles, a to z."""


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """A one-line description of a recipe."""

    en: str
    zh: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSpec:
    """The data files, relative to the folder --data, and how they are read.

    train, valid     files (TSV, JSONL, plain text; two plain files are parallel); with a pattern, names of splits.
                     With training.alignment, the training files have a third column of word links (`text.word_links`)
    tests            files or splits for evaluation only
    pattern          path of a tokenised file with {split} and {lang}; a missing file is produced from `raw`
    raw              path of the same text, untokenised
    source, target   languages: the values of {lang}, and how text is scored
    columns          columns of a TSV, counted from 1, or fields of a JSONL; None for the default ones
    simplified       convert traditional Chinese characters to simplified ones
    unique           remove duplicate lines, after that conversion
    unit             of a language model's text: whole files, or lines, each a separate text
    tokenizer        kind of tokenizer: see `text.tokenizer_training`
    tokenizer_file   a tokenizer.json to use instead of training one
    vocab_size       the largest number of tokens to learn; None for every character
    valid_share      the share at the end of the training text that is held out if `valid` is empty
    max_len          tokens of the longest sentence with special tokens; for a language model, the length of a block
    batch_tokens     tokens of a micro-batch of sentences, padding included
    batch_size       examples or blocks of a micro-batch
    """

    train: tuple[str, ...] = ()
    valid: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    pattern: str | None = None
    raw: str | None = None
    source: str | None = None
    target: str | None = None
    columns: tuple[int | str, ...] | None = None
    simplified: bool = False
    unique: bool = False
    unit: Literal["text", "lines"] = "text"
    tokenizer: TokenizerKind = "characters"
    tokenizer_file: str | None = None
    vocab_size: int | None = None
    valid_share: float | None = None
    max_len: int
    batch_tokens: int | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        check_counts(**{"data.max_len": (self.max_len, 2)})
        for name in ("vocab_size", "batch_tokens", "batch_size"):
            if getattr(self, name) is not None:
                check_counts(**{f"data.{name}": (getattr(self, name), 1)})
        if self.valid_share is not None and not 0 < self.valid_share < 1:
            raise ArgumentError("recipe-share", place="data.valid_share", value=self.valid_share)
        for place, path in (("data.pattern", self.pattern), ("data.raw", self.raw)):
            if path is not None:
                _check_pattern(place, path)
        named = {"train": self.train, "valid": self.valid, "tests": self.tests}
        named |= {name: (found,) for name in ("pattern", "raw") if (found := getattr(self, name)) is not None}
        for name, paths in named.items():
            for path in paths:
                check_relative(f"data.{name}", path)


@dataclass(frozen=True, kw_only=True, slots=True)
class Puzzle:
    """A synthetic task with generated examples: the answer and the keys to attend to are known.

    kind                copy, reverse, sort (letters); addition (numbers); induction (a block of letters, repeated)
    shortest, longest   letters of an example; digits of a number
    valid_examples      the size of the validation set, never trained on
    """

    kind: PuzzleKind
    shortest: int
    longest: int
    valid_examples: int = 512

    def __post_init__(self) -> None:
        check_counts(**{"puzzle.shortest": (self.shortest, 2), "puzzle.longest": (self.longest, self.shortest)})
        check_counts(**{"puzzle.valid_examples": (self.valid_examples, 1)})
        if self.longest > LETTERS:
            raise ArgumentError("recipe-puzzle-long", value=self.longest, most=LETTERS)

    @property
    def n_tokens(self) -> int:
        """Tokens of the longest example: letters and a special token, two numbers, + and one, or the block twice."""
        return {"addition": 2 * self.longest + 2, "induction": 2 * self.longest - 1}.get(self.kind, self.longest + 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationSpec:
    """How a trained translator is evaluated: `beams` and `length_penalty` of `generation.beam_search`."""

    beams: int = 5
    length_penalty: float = 1.0

    def __post_init__(self) -> None:
        check_counts(**{"evaluation.beams": (self.beams, 1)})


@dataclass(frozen=True, kw_only=True, slots=True)
class FilmSpec:
    """What --film saves: the attention maps of one text during training.

    text      the model's input; for a translator, the source
    target    the decoder input of a translator, None for the text itself; a puzzle uses its answer
    every     steps between two frames; the first and the last step are always saved
    layers    patterns for the names of attention layers, such as "decoder.*cross*"; empty for all
    """

    text: str
    target: str | None = None
    every: int
    layers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_counts(**{"film.every": (self.every, 1)})


@dataclass(frozen=True, kw_only=True, slots=True)
class MonitorSpec:
    """The health of attention in metrics.jsonl, as `regard.monitor` measures it.

    every     steps between two measurements; the first step is always measured
    heads     write the numbers of each head too
    """

    every: int = 100
    heads: bool = False

    def __post_init__(self) -> None:
        check_counts(**{"monitor.every": (self.every, 1)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """A complete training run. `model` holds the name of a "preset", its "size", and changes to its fields.

    For a recurrent model it holds its "kind", "lstm" or "elman", and the fields of RecurrentConfig.
    """

    name: str
    task: TaskKind
    about: About | None = None
    data: DataSpec
    puzzle: Puzzle | None = None
    model: dict[str, Any]
    training: Plan
    evaluation: EvaluationSpec = field(default_factory=EvaluationSpec)
    film: FilmSpec | None = None
    monitor: MonitorSpec | None = None

    def __post_init__(self) -> None:
        """Check that the task has all settings it needs, before a long run starts."""
        data = self.data
        needed: dict[TaskKind, dict[str, object]] = {
            "translation": {
                "data.train": data.train,
                "data.source": data.source,
                "data.target": data.target,
                "data.batch_tokens": data.batch_tokens,
                "data.valid": data.valid or data.valid_share,
            },
            "language": {
                "data.train": data.train,
                "data.batch_size": data.batch_size,
                "data.valid": data.valid or data.valid_share,
            },
            "synthetic": {"puzzle": self.puzzle, "data.batch_size": data.batch_size},
        }
        missing = [place for place, value in needed[self.task].items() if not value]
        if missing:
            raise ArgumentError("recipe-task-needs", task=self.task, missing=Listed(missing))
        if self.training.alignment is not None and (self.task != "translation" or data.pattern is not None):
            raise ArgumentError("recipe-alignment", task=self.task)
        n_columns = 2 if self.training.alignment is None else 3
        if self.task == "translation" and data.columns is not None and len(data.columns) != n_columns:
            key = "corpus-two-columns" if n_columns == 2 else "corpus-three-columns"
            raise ArgumentError(key, found=list(data.columns))
        if self.puzzle is not None and self.task != "synthetic":
            raise ArgumentError("recipe-puzzle-unneeded", task=self.task)
        if self.puzzle is not None and self.puzzle.n_tokens > data.max_len:
            raise ArgumentError("recipe-puzzle-max-len", needed=self.puzzle.n_tokens, value=data.max_len)
        config = config_of(self, vocab_size=1)
        is_decoder = self.task == "language" or (self.puzzle is not None and self.puzzle.kind == "induction")
        wanted = "decoder" if is_decoder else "encoder-decoder"
        if config.kind != wanted:
            raise ArgumentError("recipe-model-kind", task=self.task, wanted=wanted, found=config.kind)


# --- read ------------------------------------------------------------------------------------------------


def _recipe_error(fault: Fault) -> ArgumentError | UnknownNameError:
    place, found, wanted = fault.place, fault.found, fault.wanted
    match fault.kind:
        case "choice":
            return ArgumentError("unknown-choice", name=place, value=found, choices=Listed(wanted))
        case "large":
            return ArgumentError("recipe-large", place=place, most=wanted)
        case "count":
            return ArgumentError("recipe-count", place=place, wanted=wanted, found=found)
        case "missing":
            return ArgumentError("recipe-missing", place=place or "recipe", missing=Listed(wanted))
        case "unknown":
            ours = OTHER_LIBRARY_NAMES.get(found[0])
            nearest = ours if ours in wanted else get_close_matches(found[0], wanted, n=1, cutoff=0.0)[0]
            about = {"place": place or "recipe", "asked": found[0], "nearest": nearest, "known": Listed(wanted)}
            return UnknownNameError("recipe-unknown-key", **about)
    return ArgumentError("recipe-type", place=place, wanted=Listed(wanted), found=found)


# TOML's names of types, the same in every language. It has no null.
_TYPES = {bool: "boolean", int: "integer", float: "float", str: "string", dict: "table", list: "array", tuple: "array"}
_TOML = TreeReader(error=_recipe_error, type_names=_TYPES | {NoneType: '"none"'}, none="none", is_brief=True)


def read_recipe(
    recipe: str | os.PathLike[str], changes: Mapping[str, str] | None = None, *, within: Path | None = None
) -> Recipe:
    """The bundled recipe of this name, or the recipe in a .toml file, with changes such as {"training.steps": "100"}.

    within   the folder of the run that the file belongs to: links out of it are refused

    Raises FileError for an invalid file, UnknownNameError and ArgumentError for an invalid name or change.

    >>> read_recipe("copy", {"training.steps": "10"}).training.steps
    10
    """
    name, path = os.fspath(recipe), Path(recipe)
    if name in _bundled():
        text = files("regard.recipes").joinpath("catalogue", f"{name}.toml").read_text(encoding="utf-8")
    elif path.suffix == ".toml" or path.is_file():
        name, text = path.stem, _text_of(path, within)
    else:
        known = Listed(_bundled())
        near = get_close_matches(name, _bundled(), n=1)
        if not near:
            raise UnknownNameError("recipe-unknown", asked=name, known=known)
        raise UnknownNameError("recipe-unknown-near", asked=name, nearest=near[0], known=known)
    try:
        table = {"name": name} | parse_toml(text)
        found: Recipe = _TOML.table(table, Recipe, "")
    except tomllib.TOMLDecodeError as error:
        raise FileError("recipe-not-toml", path=os.fspath(recipe), reason=reason_of(error)) from error
    except RegardError as error:
        raise FileError("recipe-wrong", path=os.fspath(recipe), reason=error) from error
    for place, value in (changes or {}).items():
        _change(table, place, parse_value(value))
    changed: Recipe = _TOML.table(table, Recipe, "") if changes else found
    return changed


def recipe_names() -> dict[str, Message]:
    """The bundled recipes, each with its description.

    >>> recipe_names()["copy"].zh
    '照抄一串字母：交叉注意力的某个头沿对角线看'
    """
    abouts = {name: read_recipe(name).about for name in _bundled()}
    return {name: Message(**asdict(about)) for name, about in abouts.items() if about is not None}


def _bundled() -> list[str]:
    found = (Path(each.name) for each in files("regard.recipes").joinpath("catalogue").iterdir())
    return sorted(path.stem for path in found if path.suffix == ".toml")


def _text_of(path: Path, within: Path | None) -> str:
    content = read_file(path, most=LARGEST_FILE, within=within)
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise FileError("recipe-not-toml", path=str(path), reason=reason_of(error)) from error


def _change(table: Table, place: str, value: Any) -> None:
    """Set a key such as training.steps. It is validated later, when the table is read."""
    *path, last = place.split(".")
    if len(path) > DEEPEST_KEY:
        raise ArgumentError("recipe-deep", place=place, most=DEEPEST_KEY + 1)
    for i, name in enumerate(path):
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ArgumentError("recipe-no-table", place=place, part=".".join(path[: i + 1]))
    table[last] = value


def check_relative(place: str, path: str) -> None:
    """ArgumentError unless the path is relative: a recipe's files lie below the folder --data."""
    pure = PureWindowsPath(path) if os.name == "nt" else PurePosixPath(path)
    if not path.strip() or "\0" in path or pure.anchor:
        folder, name = os.path.split(path.rstrip("/\\\0 ")) if pure.anchor else ("", "")
        key = "recipe-path-absolute" if name else "recipe-path"
        raise ArgumentError(key, place=place, value=path.replace("\0", "\\0"), folder=folder, name=name)


def _check_pattern(place: str, path: str) -> None:
    """ArgumentError unless a pattern contains {split} and {lang}, and nothing else in braces."""
    try:
        path.format(split="", lang="")
        is_valid = "{split}" in path and "{lang}" in path
    except (KeyError, ValueError, IndexError, AttributeError):
        is_valid = False
    if not is_valid:
        raise ArgumentError("recipe-pattern", place=place, value=path)


# --- write and compare -----------------------------------------------------------------------------------


def to_toml(recipe: Recipe) -> str:
    """The recipe as TOML, with all defaults; `read_recipe` reads back an equal recipe."""
    return write_toml(plain_table(recipe))


def differences(one: Recipe, other: Recipe) -> list[str]:
    """The keys in which two recipes differ, in the order of the file.

    >>> differences(read_recipe("copy"), read_recipe("copy", {"training.steps": "10", "model.d_model": "32"}))
    ['model.d_model', 'training.steps']
    """
    mine, theirs = dict(_leaves(plain_table(one))), dict(_leaves(plain_table(other)))
    return [place for place in {**mine, **theirs} if mine.get(place) != theirs.get(place)]


def _leaves(table: Mapping[str, Any], place: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


# --- the model -------------------------------------------------------------------------------------------


def config_of(recipe: Recipe, vocab_size: int) -> ModelConfig:
    """The config of the recipe's model for a tokenizer of `vocab_size` tokens.

    If [model] does not set them, vocab_size is the tokenizer's and max_len the data's. A larger vocab_size is allowed,
    because some sizes are faster to multiply; a smaller one is not.

    >>> config_of(read_recipe("shakespeare-char"), vocab_size=65).max_len
    256
    """
    table = dict(recipe.model)
    if "kind" in table:
        return _recurrent_config(recipe, table, vocab_size)
    preset, size = table.pop("preset", None), table.pop("size", None)
    if not isinstance(preset, str) or preset not in SIZES:
        raise ArgumentError("unknown-choice", name="model.preset", value=preset, choices=Listed(SIZES))
    if size is not None and size not in SIZES[preset]:
        raise ArgumentError("unknown-choice", name="model.size", value=size, choices=Listed(SIZES[preset]))
    base: TransformerConfig = getattr(TransformerConfig, preset)(*[size] if size is not None else [])
    known = [*TransformerConfig.__dataclass_fields__, "n_layers"]
    _TOML.check_keys(table, known, "model")
    layers = table.pop("n_layers", None)
    if layers is not None:
        stacks = ("n_encoder_layers", "n_decoder_layers")
        table = {name: layers for name in stacks if getattr(base, name) is not None} | table
    table = _with_sizes(recipe, table, vocab_size)
    config: TransformerConfig = _TOML.table(table, TransformerConfig, "model", base)
    return config


def _recurrent_config(recipe: Recipe, table: Table, vocab_size: int) -> RecurrentConfig:
    """The config of a recurrent model: its "kind" is the cell."""
    cell = table.pop("kind")
    if not isinstance(cell, str) or cell not in CELLS:
        raise ArgumentError("unknown-choice", name="model.kind", value=cell, choices=Listed(CELLS))
    _TOML.check_keys(table, [name for name in RecurrentConfig.__dataclass_fields__ if name != "cell"], "model")
    table = _with_sizes(recipe, table, vocab_size) | {"cell": cell}
    config: RecurrentConfig = _TOML.table(table, RecurrentConfig, "model")
    return config


def _with_sizes(recipe: Recipe, table: Table, vocab_size: int) -> Table:
    """The table with the tokenizer's vocab_size and the data's max_len, unless it has larger ones."""
    table = {"vocab_size": vocab_size, "max_len": recipe.data.max_len} | table
    if type(table["vocab_size"]) is int and table["vocab_size"] < vocab_size:
        raise ArgumentError("recipe-vocabulary", value=table["vocab_size"], needed=vocab_size)
    if type(table["max_len"]) is int and table["max_len"] < recipe.data.max_len:
        raise ArgumentError("recipe-length", value=table["max_len"], needed=recipe.data.max_len)
    return table
