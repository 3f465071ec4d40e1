"""Settings: the default options of a model, from generation_config.json beside its weights. SpecialIds: control ids.

The file uses the names of Hugging Face where there are any. Every value is validated, and an absent one has its
default; an unknown name is refused, so that a typing error does not silently give the default.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from regard.checkpoints.model_folder import read_json
from regard.config import TransformerConfig
from regard.config.tree import JSON_TYPES, Fault, TreeReader
from regard.errors import FileError
from regard.messages import Listed
from regard.text.tokenizer import Tokenizer

Task = Literal["translation", "text", "encoding"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The default options of a model.

    task              "translation" for a model with an encoder and a decoder, "text" for a decoder, "encoding" for an
                      encoder alone
    verbatim          whether a text is read exactly as given, without tidying its spaces and punctuation
    samples           whether `generate` samples; otherwise it takes the most likely token
    longest           the most tokens read at once; a longer text is translated in parts
    beams, length_penalty                for translations
    temperature, top_k, top_p, min_p, repetition_penalty, max_new   for texts
    max_seen          the most tokens that `see` adds to a text; None for max_new
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
    verbatim: bool = False
    samples: bool = True
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    max_new: int = 128
    max_seen: int | None = None
    alignment_heads: tuple[tuple[int, int], ...] = ()
    forms: dict[str, str] = field(default_factory=dict)


class _Field(NamedTuple):
    """A field of Settings, the type of its values, a test for valid ones, and their description in symbols."""

    name: str
    kind: Any
    is_valid: Callable[[Any], bool]
    wanted: str


def _is_between(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: low <= value <= high


def _is_language(value: str) -> bool:
    return re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", value) is not None


HEADS = "alignment_heads"
FIELDS = {
    "task": _Field("task", Task, lambda _: True, '"translation" | "text"'),
    "source_language": _Field("source_language", str, _is_language, '"en", "zh", "zh-CN", …'),
    "target_language": _Field("target_language", str, _is_language, '"en", "zh", "zh-CN", …'),
    "max_source_length": _Field("longest", int, _is_between(1, 2**20), "1 … 2²⁰"),
    "num_beams": _Field("beams", int, _is_between(1, 256), "1 … 256"),
    "length_penalty": _Field("length_penalty", float, _is_between(-10, 10), "-10 … 10"),
    "temperature": _Field("temperature", float, _is_between(0.01, 100), "0.01 … 100"),
    "top_k": _Field("top_k", int, _is_between(1, 2**20), "1 … 2²⁰"),
    "top_p": _Field("top_p", float, lambda value: 0 < value <= 1, "0 < top_p ≤ 1"),
    "max_new_tokens": _Field("max_new", int, _is_between(1, 2**20), "1 … 2²⁰"),
    HEADS: _Field(HEADS, tuple[tuple[int, int], ...], lambda _: True, "[[layer, head], …]"),
    "forms": _Field("forms", dict[str, str], lambda forms: all(forms) and all(forms.values()), '{"5x4": "五绝｜", …}'),
}
"""By the names in the file."""


def read_settings(path: Path | None, config: TransformerConfig) -> Settings:
    """The settings in the file for a model of that config; defaults without a file. Raises FileError with the place."""
    task: Task = "translation" if config.kind == "encoder-decoder" else "text"
    if path is None:
        return Settings(task=task)
    given = read_json(path)
    reader = TreeReader(error=lambda fault: _file_error(path, given, fault), type_names=JSON_TYPES)
    reader.value(given, dict[str, Any], "JSON")
    reader.check_keys(given, FIELDS, "JSON")
    found: dict[str, Any] = {"task": task}
    for place, value in given.items():
        name, kind, is_valid, wanted = FIELDS[place]
        found[name] = reader.value(value, kind, place)
        if not is_valid(found[name]):
            raise _invalid_value(path, place, value, wanted)
    if found["task"] != task:
        raise _invalid_value(path, "task", found["task"], f'"{task}"')
    for at, pair in enumerate(found.get(HEADS, ())):
        _check_head(path, at, pair, config)
    return Settings(**found)


def _check_head(path: Path, at: int, pair: tuple[int, int], config: TransformerConfig) -> None:
    """FileError unless the decoder has this layer and this head."""
    layer, head = pair
    if not (0 <= layer < config.layers_of("decoder") and 0 <= head < config.n_heads):
        most = f"[0 … {config.layers_of('decoder') - 1}, 0 … {config.n_heads - 1}]"
        raise _invalid_value(path, f"{HEADS}[{at}]", list(pair), most)


def _file_error(path: Path, given: Any, fault: Fault) -> FileError:
    """The error for a fault, with the whole value of the setting."""
    if fault.kind == "unknown":
        return FileError("settings-unknown", path=str(path), found=min(fault.found)[:80], known=Listed(FIELDS))
    if not isinstance(given, dict):
        return _invalid_value(path, fault.place, given, "{…}")
    place = re.split(r"[\[.]", fault.place)[0]
    return _invalid_value(path, place, given[place], FIELDS[place].wanted)


def _invalid_value(path: Path, place: str, found: Any, wanted: str) -> FileError:
    return FileError("settings-value", path=str(path), place=place, found=repr(found)[:80], wanted=wanted)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialIds:
    """Control ids around texts.

    start            the first id that the decoder of an encoder–decoder model reads
    ends             the ids that end a text; the first one is shown as the end
    before_prompt    before a text that a decoder continues
    before, after    around a text that an encoder reads
    """

    start: int | None = None
    ends: tuple[int, ...] = ()
    before_prompt: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def around(self, ids: list[int]) -> list[int]:
        """The ids of a text as an encoder reads them."""
        return [*self.before, *ids, *self.after]


def special_ids_of(tokenizer: Tokenizer) -> SpecialIds:
    """The rules of models that this package trains: a text begins after an <eos>, and a source ends with one."""
    end = () if tokenizer.eos is None else (tokenizer.eos,)
    return SpecialIds(start=tokenizer.bos, ends=end, before_prompt=end, after=end)
