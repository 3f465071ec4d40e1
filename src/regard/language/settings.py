"""Settings: how a model likes to be run, from generation_config.json beside its weights.

What Hugging Face has a name for is called by it in the file. Every value is looked at before it is believed, and what
is absent has its default; a name that nobody knows is refused, so that a slip of the pen is not a silent default.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from regard.arrays import is_whole
from regard.checkpoints.model_folder import read_json
from regard.config import TransformerConfig
from regard.errors import FileError
from regard.messages import Listed
from regard.position_rules import is_number

Task = Literal["translation", "text"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How a model is run unless a call says otherwise.

    task              "translation" of a model with an encoder and a decoder, "text" of a decoder
    longest           tokens read at once, at most; a longer text is translated in parts
    beams, length_penalty                for translations
    temperature, top_k, top_p, max_new   for texts
    alignment_heads   (layer, head) of cross-attention, or of a decoder its own, the most telling first: of
                      cross-attention the one that best aligns the token being written
    forms             what a text of that form begins with, such as {"5x4": "五绝｜"}
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
    """A field of Settings, how to tell a value that it may have, and how to say so in no language."""

    name: str
    fits: Callable[[Any], bool]
    wanted: str


def _count(most: int) -> Callable[[Any], bool]:
    return lambda value: is_whole(value) and 1 <= value <= most


def _between(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: is_number(value) and low <= value <= high


def _language(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", value) is not None


def _forms(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) and name and text for name, text in value.items())


HEADS = "alignment_heads"
FIELDS = {
    "task": _Field("task", lambda value: value in get_args(Task), '"translation" | "text"'),
    "source_language": _Field("source_language", _language, '"en", "zh", "zh-CN", …'),
    "target_language": _Field("target_language", _language, '"en", "zh", "zh-CN", …'),
    "max_source_length": _Field("longest", _count(2**20), "1 … 2²⁰"),
    "num_beams": _Field("beams", _count(256), "1 … 256"),
    "length_penalty": _Field("length_penalty", _between(-10, 10), "-10 … 10"),
    "temperature": _Field("temperature", _between(0.01, 100), "0.01 … 100"),
    "top_k": _Field("top_k", _count(2**20), "1 … 2²⁰"),
    "top_p": _Field("top_p", lambda value: is_number(value) and 0 < value <= 1, "0 < top_p ≤ 1"),
    "max_new_tokens": _Field("max_new", _count(2**20), "1 … 2²⁰"),
    HEADS: _Field(HEADS, lambda value: isinstance(value, list), "[[layer, head], …]"),
    "forms": _Field("forms", _forms, '{"5x4": "五绝｜", …}'),
}
"""The names of the file."""


def read_settings(path: Path | None, config: TransformerConfig) -> Settings:
    """What the file says for a model of that config; defaults where there is no file. FileError with the place."""
    task: Task = "translation" if config.kind == "encoder-decoder" else "text"
    if path is None:
        return Settings(task=task)
    given = read_json(path)
    if not isinstance(given, dict):
        raise _refused(path, "JSON", given, "{…}")
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        raise FileError("settings-unknown", path=str(path), found=unknown[0][:80], known=Listed(FIELDS))
    found: dict[str, Any] = {"task": task}
    for place, value in given.items():
        name, fits, wanted = FIELDS[place]
        if not fits(value):
            raise _refused(path, place, value, wanted)
        found[name] = value
    if found["task"] != task:
        raise _refused(path, "task", found["task"], f'"{task}"')
    found["alignment_heads"] = tuple(_head(path, at, pair, config) for at, pair in enumerate(given.get(HEADS, [])))
    return Settings(**found)


def _head(path: Path, at: int, pair: Any, config: TransformerConfig) -> tuple[int, int]:
    """A layer and a head that the decoder has."""
    match pair:
        case [layer, head] if is_whole(layer) and is_whole(head):
            if 0 <= layer < config.layers_of("decoder") and 0 <= head < config.n_heads:
                return layer, head
    most = f"[0 … {config.layers_of('decoder') - 1}, 0 … {config.n_heads - 1}]"
    raise _refused(path, f"{HEADS}[{at}]", pair, most)


def _refused(path: Path, place: str, found: Any, wanted: str) -> FileError:
    return FileError("settings-value", path=str(path), place=place, found=repr(found)[:80], wanted=wanted)
