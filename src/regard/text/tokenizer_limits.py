"""Limits on the sizes, counts and lengths in a tokenizer.json, checked before `tokenizers` reads the file.

Each limit is far above the files of public models and far below what takes minutes or gigabytes. Only the JSON tree is
checked; `tokenizer_trial` finds out whether `tokenizers` can use it.
"""

import base64
import binascii
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from regard.text.regex_cost import LONGEST_PATTERN, shortest_match
from regard.text.regex_parse import PatternError

DEEPEST = 24
MOST_PARTS = 64
"""Of normalizers, pre-tokenizers, decoders, or items of a post-processor."""
MOST_ADDED = 2**17
MOST_TOKENS = 2**21
MOST_UNIGRAM_CHARACTERS = 2**23
"""In all tokens of a Unigram model together: its trie takes about 300 bytes for each."""
LONGEST_TOKEN = 4096
LONGEST_STRING = 256
"""Of a prefix, a suffix, the name of a control token."""
LONGEST_WORD = 256
"""WordPiece's max_input_chars_per_word; its time is quadratic in it."""
MOST_GROWTH = 64
"""The most characters that one character may become through replacements."""
LARGEST_TABLE = 2**21
"""Bytes of a precompiled table of characters."""
SECTIONS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")

# Counted in the raw bytes, strings included, before parsing: Python objects take many times the size of the text.
MOST_OF_EACH = {b"{": 2**18, b"[": 2**21 + 2**18, b",": 2**23}


class Refusal(Exception):  # noqa: N818 - becomes a FileError, which has the path too
    """Why a file is refused: the key of a message and its values."""

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.key, self.values = key, values


class Pattern(NamedTuple):
    """A regular expression of the file, and its place in the JSON tree."""

    place: str
    regex: str


def check_bytes(content: bytes) -> None:
    """Refuse content that would take far more memory than its size once parsed."""
    for character, most in MOST_OF_EACH.items():
        if (found := content.count(character)) > most:
            raise Refusal("tokenizer-parts", place=f"'{character.decode()}'", found=found, most=most)


def parse_json(content: bytes) -> dict[str, Any]:
    """The JSON tree, which has a model. Raises Refusal where it is malformed."""
    try:
        tree = json.loads(content.decode(), object_pairs_hook=_without_duplicates)
    except Refusal:
        raise
    except json.JSONDecodeError as error:
        raise Refusal("tokenizer-garbled", reason=f"JSON, {error.lineno}:{error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise Refusal("tokenizer-garbled", reason=(str(error).splitlines() or ["JSON"])[0][:200]) from error
    if not isinstance(tree, dict) or not isinstance(tree.get("model"), dict):
        raise Refusal("tokenizer-garbled", reason="model")
    return tree


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names: set[str] = set()
        twice = next(name for name, _ in pairs if name in names or names.add(name))  # type: ignore[func-returns-value]
        raise Refusal("tokenizer-garbled", reason=f"{twice[:40]!r} × 2")
    return found


def check_tree(tree: dict[str, Any]) -> list[Pattern]:
    """Refuse a tree beyond the limits; return its regular expressions, whose cost is not checked yet."""
    _check_model(tree["model"])
    _check_added(tree.get("added_tokens"))
    patterns: list[Pattern] = []
    for section in SECTIONS:
        patterns += _check_section(section, tree.get(section))
    for places in (("normalizer", "pre_tokenizer"), ("decoder",)):
        growth = 1.0
        for place in places:
            growth *= _growth(tree.get(place))
        if growth > MOST_GROWTH:
            raise Refusal("tokenizer-growth", found=f"{growth:,.0f}", most=MOST_GROWTH)
    return patterns


# --- the model and the added tokens ----------------------------------------------------------------------


def _check_model(model: dict[str, Any]) -> None:
    vocab, merges = model.get("vocab"), model.get("merges", ())
    tokens = _tokens(vocab)
    for place, found in (("model.vocab", len(tokens)), ("model.merges", len(merges) if merges else 0)):
        _check_count(place, found, MOST_TOKENS)
    if not all(isinstance(token, str) for token in tokens):
        raise Refusal("tokenizer-garbled", reason="model.vocab")
    _check_length("model.vocab", max(map(len, tokens), default=0), LONGEST_TOKEN)
    if isinstance(vocab, list):
        _check_count("model.vocab", sum(map(len, tokens)), MOST_UNIGRAM_CHARACTERS)
    word = model.get("max_input_chars_per_word")
    if isinstance(word, int | float) and word > LONGEST_WORD:
        raise Refusal("tokenizer-parts", place="model.max_input_chars_per_word", found=word, most=LONGEST_WORD)
    for name, value in model.items():
        if isinstance(value, str):
            _check_length(f"model.{name}"[:60], len(value), LONGEST_STRING)


def _tokens(vocab: Any) -> list[Any]:
    if isinstance(vocab, dict):
        return list(vocab)
    if isinstance(vocab, list):
        return [each[0] if isinstance(each, list) and each else each for each in vocab]
    raise Refusal("tokenizer-garbled", reason="model.vocab")


def _check_added(added: Any) -> None:
    if added is None:
        return
    if not isinstance(added, list) or not all(isinstance(each, dict) for each in added):
        raise Refusal("tokenizer-garbled", reason="added_tokens")
    _check_count("added_tokens", len(added), MOST_ADDED)
    names = [each.get("content") for each in added]
    if not all(isinstance(name, str) and name for name in names):
        raise Refusal("tokenizer-garbled", reason="added_tokens: ''")
    if len(set(names)) < len(names):
        ((twice, _),) = Counter(names).most_common(1)
        raise Refusal("tokenizer-garbled", reason=f"added_tokens: {twice[:40]!r} × 2")
    _check_length("added_tokens", max(map(len, names), default=0), LONGEST_TOKEN)


def _check_count(place: str, found: int, most: int) -> None:
    if found > most:
        raise Refusal("tokenizer-parts", place=place, found=found, most=most)


def _check_length(place: str, found: int, most: int) -> None:
    if found > most:
        raise Refusal("tokenizer-string", place=place, found=found, most=most)


# --- normalizers, pre-tokenizers, post-processor, decoders -----------------------------------------------


def _check_section(section: str, tree: Any) -> Iterator[Pattern]:
    """The patterns of one section; counts its nodes and checks its strings on the way."""
    parts = 0
    for place, node in _nodes(section, tree, 0):
        if isinstance(node, dict | list):
            parts += 1
            _check_count(section, parts, 8 * MOST_PARTS)
            _check_count(place, len(node), MOST_PARTS)
        if isinstance(node, dict):
            _check_templates(place, node)
        if not isinstance(node, str):
            continue
        if place.endswith(".precompiled_charsmap"):
            _check_table(place, node)
        elif place.endswith(".Regex"):
            if len(node) > LONGEST_PATTERN:
                raise Refusal("tokenizer-string", place=place, found=len(node), most=LONGEST_PATTERN)
            yield Pattern(place, node)
        else:
            _check_length(place, len(node), LONGEST_STRING)


def _check_templates(place: str, node: dict[str, Any]) -> None:
    """Refuse a post-processor that repeats the text: a thousand copies would fill the memory."""
    for name, most in (("single", 1), ("pair", 2)):
        if isinstance(template := node.get(name), list):
            texts = [each for each in template if isinstance(each, dict) and "Sequence" in each]
            _check_count(f"{place}.{name}", len(texts), most)


def _nodes(place: str, tree: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Every value of a tree with its path."""
    if depth > DEEPEST:
        raise Refusal("tokenizer-parts", place=place[:60], found=depth, most=DEEPEST)
    yield place, tree
    if isinstance(tree, dict):
        for name, value in tree.items():
            _check_length(place[:200], len(name), LONGEST_STRING)
            yield from _nodes(f"{place}.{name}", value, depth + 1)
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from _nodes(f"{place}[{number}]", value, depth + 1)


def _check_table(place: str, text: str) -> None:
    """Check a SentencePiece table: the length of an index, the index, then the replacements, each ended by a zero."""
    _check_length(place, len(text), LARGEST_TABLE * 4 // 3)
    try:
        table = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refusal("tokenizer-garbled", reason=place) from error
    index = int.from_bytes(table[:4], "little")
    if text and (len(table) < 4 or index % 4 or index > len(table) - 4):
        raise Refusal("tokenizer-garbled", reason=place)
    growth = max(map(len, table[4 + index :].split(b"\0")), default=0)
    if growth > LONGEST_STRING:
        raise Refusal("tokenizer-growth", found=f"{growth:,}", most=LONGEST_STRING)


def _growth(tree: Any) -> float:
    """The most characters that one can become through the replacements of a section, applied in order."""
    found = 1.0
    for _, node in _nodes("", tree, 0):
        if isinstance(node, dict):
            found *= max(1, len(node["prepend"]) + 1 if isinstance(node.get("prepend"), str) else 1)
            found *= _replacement_growth(node)
    return found


def _replacement_growth(node: dict[str, Any]) -> float:
    match node:
        case {"type": "Replace", "content": str(content), "pattern": {"String": str(text)}}:
            return max(1.0, len(content) / len(text)) if text else len(content) + 1
        case {"type": "Replace", "content": str(content), "pattern": {"Regex": str(regex)}}:
            try:
                least = shortest_match(regex)
            except PatternError:
                return max(1, len(content))  # the pattern is refused later, with a better reason
            return max(1.0, len(content) / least) if least else len(content) + 1
        case {"type": "Replace", "content": str(content)}:
            return max(1, len(content))
    return 1.0
