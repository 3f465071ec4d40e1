"""The files beside the weights: tokenizer, control ids, default options (`Settings`) and chat template.

From a Hugging Face folder or a GGUF file: tokenizer.json, or vocab.txt, or vocab.json with merges.txt; a folder without
any of them works in ids. Keys of its generation_config.json that are not used are reported, not refused. In a folder of
our own every value is validated, and an unknown name is refused, so that a typing error does not silently give the
default. No file outside the folder is opened.
"""

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from regard.arrays import is_integer, is_number
from regard.checkpoints.hub_folder import ADAPTER
from regard.checkpoints.model_folder import LARGEST_CONFIG, file_in_folder, read_json
from regard.config import TransformerConfig
from regard.config.tree import JSON_TYPES, Fault, TreeReader
from regard.errors import FileError
from regard.files.output import reason_of
from regard.files.safe_open import read_file
from regard.language.chat import ChatTemplate, template_values
from regard.messages import Listed, say
from regard.text.tokenizer import AnyTokenizer, IdTokenizer, Tokenizer
from regard.text.tokenizer_formats import (
    byte_pair_tokenizer,
    gguf_tokenizer,
    marian_tokenizer,
    sentence_piece_tokenizer,
    word_piece_tokenizer,
)

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


CONFIG, SETTINGS, TOKENIZER_CONFIG = "config.json", "generation_config.json", "tokenizer_config.json"
TOKEN_NAMES = "special_tokens_map.json"
TEMPLATE = "chat_template.jinja"
MOST_ENDS = 64
OF_SENTENCE_PIECES = ("llama", "mistral", "gemma2", "gemma3_text", "phi3", "t5")
"""Families that number the pieces of a SentencePiece model as the model does."""
LARGEST_TOKENIZER_CONFIG, LARGEST_TEMPLATE = 2**24, 2**20
"""Gemma 3 has 1.2 MB of added tokens in tokenizer_config.json."""
_USED = {
    "bos_token_id",
    "decoder_start_token_id",
    "do_sample",
    "eos_token_id",
    "length_penalty",
    "max_length",
    "max_new_tokens",
    "min_p",
    "num_beams",
    "pad_token_id",
    "repetition_penalty",
    "temperature",
    "top_k",
    "top_p",
}
_OF_THE_FILE = {
    "_from_model_config",
    "output_attentions",
    "output_hidden_states",
    "output_logits",
    "output_scores",
    "return_dict_in_generate",
    "transformers_version",
    "use_cache",
}


class HubFiles:
    """The JSON files of a folder, each absent, or read and checked to be an object."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = self._read(CONFIG)
        self.generation = self._read(SETTINGS)
        # In older folders the names of control tokens are in a file of their own.
        self.tokenizer_config = {**self._read(TOKEN_NAMES), **self._read(TOKENIZER_CONFIG, LARGEST_TOKENIZER_CONFIG)}

    def _read(self, name: str, most: int = LARGEST_CONFIG) -> Mapping[str, Any]:
        if not os.path.lexists(self.folder / name):
            return {}
        found = read_json(file_in_folder(self.folder, name), most)
        if not isinstance(found, dict):
            raise FileError("model-garbled", path=str(self.folder / name), place="{…}")
        return found

    @property
    def config_path(self) -> Path:
        """The file with the keys of config.json, for messages."""
        return self.folder / CONFIG

    def chat_template(self) -> str | None:
        """The template of a conversation, from its own file or from tokenizer_config.json; None without one."""
        if os.path.lexists(self.folder / TEMPLATE):
            content = read_file(self.folder / TEMPLATE, most=LARGEST_TEMPLATE, within=self.folder)
            try:
                return content.decode()
            except UnicodeDecodeError as error:
                path = str(self.folder / TEMPLATE)
                raise FileError("model-unreadable", path=path, reason=reason_of(error)) from error
        found = self.tokenizer_config.get("chat_template")
        if isinstance(found, list):  # several by name, one of them for calls of tools
            named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
            found = named.get("default")
        return found if isinstance(found, str) and found else None

    def template(self) -> ChatTemplate | None:
        """The chat template with the values that it may read."""
        text = self.chat_template()
        return None if text is None else ChatTemplate(text, template_values(self.tokenizer_config))

    def special_tokens(self) -> dict[str, str]:
        """The texts of the control tokens by name, bos_token and so on, from tokenizer_config.json."""
        return template_values(self.tokenizer_config)

    def added_tokens(self) -> dict[int, tuple[str, bool]]:
        """The text of each token that was added to a vocabulary, and whether it is a control token."""
        given = self.tokenizer_config.get("added_tokens_decoder")
        found = {text: number for text, number in self._read("added_tokens.json").items() if is_integer(number)}
        tokens = {number: (text, True) for text, number in found.items()}
        for number, about in given.items() if isinstance(given, dict) else ():
            text = about.get("content") if isinstance(about, dict) else None
            if number.isdecimal() and len(number) < 10 and isinstance(text, str) and text:
                tokens[int(number)] = text, about.get("special") is not False
        return tokens

    def unused_settings(self, task: Task) -> tuple[str, ...]:
        """The keys of generation_config.json that change nothing here; null counts as absent."""
        given = {name for name, value in self.generation.items() if value is not None}
        of_texts = set() if task == "text" else {"min_p", "repetition_penalty"}
        return tuple(sorted(given - (_USED - of_texts) - _OF_THE_FILE))

    def special_id(self, name: str, vocab_size: int) -> tuple[int, ...]:
        """The ids of a control token from generation_config.json, else from config.json; () where there is none."""
        for file, given in ((SETTINGS, self.generation), (CONFIG, self.config)):
            value = given.get(name)
            if value is None:
                continue
            ids = value if isinstance(value, list) else [value]
            if len(ids) > MOST_ENDS or not all(map(is_integer, ids)):
                raise self._invalid(file, name, value, f"0 … {vocab_size - 1}")
            if not all(0 <= one < vocab_size for one in ids):
                if name in ("bos_token_id", "pad_token_id"):  # -1, or that of a larger vocabulary: there is none
                    continue
                raise self._invalid(file, name, value, f"0 … {vocab_size - 1}")
            return tuple(ids)
        return ()

    def settings(self, task: Task) -> Settings:
        """The settings of generation; an absent one has Hugging Face's default: greedy, with one beam."""
        given, found = self.generation, dict[str, Any]()
        checks = {
            "temperature": ("temperature", lambda x: is_number(x) and x >= 0, "≥ 0"),
            "top_k": ("top_k", lambda x: is_integer(x) and x >= 0, "≥ 0"),
            "top_p": ("top_p", lambda x: is_number(x) and 0 < x <= 1, "0 < top_p ≤ 1"),
            "min_p": ("min_p", lambda x: is_number(x) and 0 <= x <= 1, "0 ≤ min_p ≤ 1"),
            "repetition_penalty": ("repetition_penalty", lambda x: is_number(x) and x > 0, "> 0"),
            "max_new_tokens": ("max_new", lambda x: is_integer(x) and 1 <= x <= 2**24, "1 … 2²⁴"),
            "num_beams": ("beams", lambda x: is_integer(x) and 1 <= x <= 256, "1 … 256"),
            "length_penalty": ("length_penalty", lambda x: is_number(x) and -10 <= x <= 10, "-10 … 10"),
        }
        for name, (ours, is_valid, wanted) in checks.items():
            value = given.get(name)
            if value is None:
                continue
            if not is_valid(value):
                raise self._invalid(SETTINGS, name, value, wanted)
            found[ours] = value
        samples = bool(given.get("do_sample", False)) and found.get("temperature") != 0
        found["temperature"] = found.get("temperature") or 1.0
        found["top_k"] = found.get("top_k") or None  # 0 means all
        return Settings(
            task=task, verbatim=True, samples=samples, longest=LONGEST, max_seen=MOST_SEEN, **{"beams": 1} | found
        )

    def _invalid(self, file: str, name: str, value: Any, wanted: str) -> FileError:
        path = str(self.folder / file)
        return FileError("settings-value", path=path, place=name, found=repr(value)[:80], wanted=wanted)


class UnusedKeysWarning(UserWarning):
    """A file of a model has keys or weights that are not used here."""


def report_adapter(folder: Path) -> None:
    """Warn that an adapter beside the weights is not applied."""
    if os.path.lexists(folder / ADAPTER):
        warnings.warn(say("adapter-unused", path=str(folder / ADAPTER)), UnusedKeysWarning, stacklevel=4)


def report_unused(files: HubFiles, task: Task, config_keys: Sequence[str] = (), weights: Sequence[str] = ()) -> None:
    """Name the keys that change nothing, the weights of other tasks and an adapter, once per file, as warnings."""
    if not isinstance(files, GgufFiles):  # one file is the whole model
        report_adapter(files.folder)
    for file, keys in ((CONFIG, config_keys), (SETTINGS, files.unused_settings(task))):
        if keys:
            message = say("config-keys-unused", path=str(files.folder / file), names=Listed.few(keys))
            warnings.warn(message, UnusedKeysWarning, stacklevel=4)
    if weights:
        message = say("weights-unused", path=str(files.folder), count=len(weights), names=Listed.few(weights))
        warnings.warn(message, UnusedKeysWarning, stacklevel=4)


MOST_SEEN = 12
"""The tokens that `see` adds to a text by default: enough to see a model write, few enough for a picture."""
LONGEST = 4096
"""The most tokens that `see` reads at once; the model's own limit is often far beyond what a picture shows."""


class GgufFiles(HubFiles):
    """The same of a GGUF file. A tokenizer.json beside it is used in place of its own tokenizer."""

    def __init__(self, path: Path, config: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        self.path, self.folder, self.config, self.metadata = path, path.parent, config, metadata
        self.generation = {}
        names = {"bos": "bos_token", "eos": "eos_token"}
        tokens = metadata.get("tokenizer.ggml.tokens") or []
        ids = {theirs: metadata.get(f"tokenizer.ggml.{ours}_token_id") for ours, theirs in names.items()}
        marks = {name: tokens[i] for name, i in ids.items() if type(i) is int and i < len(tokens)}
        self.tokenizer_config = marks | {"chat_template": metadata.get("tokenizer.chat_template")}

    @property
    def config_path(self) -> Path:
        return self.path

    def chat_template(self) -> str | None:
        found = self.tokenizer_config["chat_template"]
        return found if isinstance(found, str) and found else None

    def special_id(self, name: str, vocab_size: int) -> tuple[int, ...]:
        """The ids that end a text include the end of a turn."""
        found = super().special_id(name, vocab_size)
        turn = self.metadata.get("tokenizer.ggml.eot_token_id")
        if name != "eos_token_id" or type(turn) is not int or turn >= vocab_size or turn in found:
            return found
        return (*found, turn)


def read_tokenizer(files: HubFiles, vocab_size: int) -> AnyTokenizer:
    """The tokenizer of a folder; ids as text where it has none. Raises FileError."""
    folder, names = files.folder, {"bos": "bos_token_id", "eos": "eos_token_id", "pad": "pad_token_id"}
    named = {ours: ids[0] for ours, theirs in names.items() if (ids := files.special_id(theirs, vocab_size))}
    if os.path.lexists(folder / "tokenizer.json"):
        return Tokenizer.read(file_in_folder(folder, "tokenizer.json"), within=folder, named=named, gaps=True)
    if isinstance(files, GgufFiles):
        return gguf_tokenizer(files.path, files.metadata) or IdTokenizer(vocab_size, **named)
    if os.path.lexists(folder / "vocab.txt"):
        lower = files.tokenizer_config.get("do_lower_case", True) is not False
        return word_piece_tokenizer(file_in_folder(folder, "vocab.txt"), lower_case=lower, named=named)
    if os.path.lexists(folder / "vocab.json") and os.path.lexists(folder / "merges.txt"):
        files_of_pairs = file_in_folder(folder, "vocab.json"), file_in_folder(folder, "merges.txt")
        prefix = files.tokenizer_config.get("add_prefix_space") is True
        special = files.special_tokens().values()
        around = _around(files)
        return byte_pair_tokenizer(*files_of_pairs, named=named, around=around, prefix=prefix, special=special)
    return _sentence_pieces(files, named) or IdTokenizer(vocab_size, **named)


def _sentence_pieces(files: HubFiles, named: Mapping[str, int]) -> Tokenizer | None:
    """The tokenizer of a SentencePiece model, for families whose ids are those of its pieces; else None."""
    folder, kind, about = files.folder, files.config.get("model_type"), files.tokenizer_config

    def has(name: str) -> bool:
        return os.path.lexists(folder / name)

    if kind == "marian" and has("source.spm") and has("vocab.json") and not has("target_vocab.json"):
        pieces, vocabulary = (file_in_folder(folder, name) for name in ("source.spm", "vocab.json"))
        return marian_tokenizer(pieces, vocabulary, named=named)
    name = next((one for one in ("tokenizer.model", "spiece.model") if has(one)), None)
    if name is None or kind not in OF_SENTENCE_PIECES:
        return None
    around = None
    if kind != "t5":
        around = about.get("add_bos_token", True) is True, about.get("add_eos_token", False) is True
    path = file_in_folder(folder, name)
    return sentence_piece_tokenizer(path, named=named, added=files.added_tokens(), around=around)


def _around(files: HubFiles) -> tuple[str | None, str | None]:
    """The control tokens that a tokenizer without tokenizer.json puts before and after a text."""
    names, about, kind = files.special_tokens(), files.tokenizer_config, files.config.get("model_type")
    named = str(about.get("tokenizer_class") or "")
    if named.startswith(("Roberta", "Bart")) or (not named and kind in ("roberta", "bart")):
        return names.get("cls_token", "<s>"), names.get("sep_token", "</s>")
    begins = about.get("add_bos_token", kind == "opt" and not named) is True
    before = names.get("bos_token", "</s>" if kind == "opt" else None) if begins else None
    return before, names.get("eos_token") if about.get("add_eos_token") is True else None


def mask_of(files: HubFiles, tokenizer: AnyTokenizer) -> int | None:
    """The id that stands for a word to predict, such as BERT's [MASK]; None where there is none."""
    name = files.special_tokens().get("mask_token")
    controls = tokenizer.control_tokens if isinstance(tokenizer, Tokenizer) else ()
    found = next((one for one in (name, "[MASK]", "<mask>") if one in controls), None)
    return None if found is None or not isinstance(tokenizer, Tokenizer) else tokenizer.control_id(found)


def special_ids(files: HubFiles, tokenizer: AnyTokenizer, config: TransformerConfig) -> SpecialIds:
    """The control ids around texts: those of the tokenizer's own template, and those that the JSON files name."""
    size = config.vocab_size or tokenizer.vocab_size
    ends = files.special_id("eos_token_id", size) or (() if tokenizer.eos is None else (tokenizer.eos,))
    start = files.special_id("decoder_start_token_id", size) or files.special_id("bos_token_id", size)
    before, after = tokenizer.surrounding_ids()
    if config.kind == "encoder-decoder" and isinstance(tokenizer, IdTokenizer):
        after = ends[:1]
    prompt = before
    return SpecialIds(start=start[0] if start else None, ends=ends, before_prompt=prompt, before=before, after=after)
