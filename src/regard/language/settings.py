"""Settings: the default options of a model, from generation_config.json beside its weights.

The file uses the names of Hugging Face where there are any. Every value is validated, and an absent one has its
default; an unknown name is refused, so that a typing error does not silently give the default.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from regard.arrays import is_integer
from regard.checkpoints.model_folder import read_json
from regard.config import TransformerConfig
from regard.errors import FileError
from regard.messages import Listed
from regard.number_checks import is_number

Task = Literal["translation", "text"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The default options of a model.

    task              "translation" for a model with an encoder and a decoder, "text" for a decoder
    longest           the most tokens read at once; a longer text is translated in parts
    beams, length_penalty                for translations
    temperature, top_k, top_p, max_new   for texts
    alignment_heads   (layer, head) of cross-attention, or of self-attention in a decoder, the most informative first:
                      in cross-attention the one that best aligns the token being written
    forms             the header of a text of each form, such as {"5x4": "五绝｜"}
    """

    task: Task
    source_language: str | None = None
    target_language: str | None = None
    longest: int = 256
    beams: int = 5
    length_penalty: float = 1.0
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    max_new: int = 128
    alignment_heads: tuple[tuple[int, int], ...] = ()
    forms: dict[str, str] = field(default_factory=dict)


class _Field(NamedTuple):
    """A field of Settings, a test for valid values, and their description in symbols."""

    name: str
    is_valid: Callable[[Any], bool]
    wanted: str


def _is_count(most: int) -> Callable[[Any], bool]:
    return lambda value: is_integer(value) and 1 <= value <= most


def _is_between(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: is_number(value) and low <= value <= high


def _is_language(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", value) is not None


def _are_forms(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) and name and text for name, text in value.items())


HEADS = "alignment_heads"
FIELDS = {
    "task": _Field("task", lambda value: value in get_args(Task), '"translation" | "text"'),
    "source_language": _Field("source_language", _is_language, '"en", "zh", "zh-CN", …'),
    "target_language": _Field("target_language", _is_language, '"en", "zh", "zh-CN", …'),
    "max_source_length": _Field("longest", _is_count(2**20), "1 … 2²⁰"),
    "num_beams": _Field("beams", _is_count(256), "1 … 256"),
    "length_penalty": _Field("length_penalty", _is_between(-10, 10), "-10 … 10"),
    "temperature": _Field("temperature", _is_between(0.01, 100), "0.01 … 100"),
    "top_k": _Field("top_k", _is_count(2**20), "1 … 2²⁰"),
    "top_p": _Field("top_p", lambda value: is_number(value) and 0 < value <= 1, "0 < top_p ≤ 1"),
    "max_new_tokens": _Field("max_new", _is_count(2**20), "1 … 2²⁰"),
    HEADS: _Field(HEADS, lambda value: isinstance(value, list), "[[layer, head], …]"),
    "forms": _Field("forms", _are_forms, '{"5x4": "五绝｜", …}'),
}
"""By the names in the file."""


def read_settings(path: Path | None, config: TransformerConfig) -> Settings:
    """The settings in the file for a model of that config; defaults without a file. Raises FileError with the place."""
    task: Task = "translation" if config.kind == "encoder-decoder" else "text"
    if path is None:
        return Settings(task=task)
    given = read_json(path)
    if not isinstance(given, dict):
        raise _invalid_value(path, "JSON", given, "{…}")
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        raise FileError("settings-unknown", path=str(path), found=unknown[0][:80], known=Listed(FIELDS))
    found: dict[str, Any] = {"task": task}
    for place, value in given.items():
        name, is_valid, wanted = FIELDS[place]
        if not is_valid(value):
            raise _invalid_value(path, place, value, wanted)
        found[name] = value
    if found["task"] != task:
        raise _invalid_value(path, "task", found["task"], f'"{task}"')
    found["alignment_heads"] = tuple(_head(path, at, pair, config) for at, pair in enumerate(given.get(HEADS, [])))
    return Settings(**found)


def _head(path: Path, at: int, pair: Any, config: TransformerConfig) -> tuple[int, int]:
    """A layer and a head, if the decoder has them."""
    match pair:
        case [layer, head] if is_integer(layer) and is_integer(head):
            if 0 <= layer < config.layers_of("decoder") and 0 <= head < config.n_heads:
                return layer, head
    most = f"[0 … {config.layers_of('decoder') - 1}, 0 … {config.n_heads - 1}]"
    raise _invalid_value(path, f"{HEADS}[{at}]", pair, most)


def _invalid_value(path: Path, place: str, found: Any, wanted: str) -> FileError:
    return FileError("settings-value", path=str(path), place=place, found=repr(found)[:80], wanted=wanted)
