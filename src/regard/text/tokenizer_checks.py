"""The check of an untrusted tokenizer.json: limits of its sizes, then a trial in a separate process on revealing texts.

    content on stdin  →  one line of JSON on stdout: {"cost": "linear"}, or {"key": …, "values": {…}}

Each limit is far above the files of public models and far below what takes minutes or gigabytes; it is checked in the
JSON tree, before `tokenizers` reads the file. The process of the trial first limits its memory and processor time. It
imports neither NumPy nor torch. `check_content` starts it and reads its answer before the calling process loads the
file. The trial costs one start of Python and one pass over the file. Accepted files are cached by their hash until the
calling process ends.
"""

import base64
import binascii
import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
from tokenizers import Regex, normalizers

from regard.errors import FileError
from regard.memory import format_bytes
from regard.text.process_limits import limit_process, start
from regard.text.regex_cost import LONGEST_PATTERN, Cost, search_cost, shortest_match
from regard.text.regex_parse import PatternError, SlowPatternError

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


SECONDS = 3
"""Of processor time, for the whole trial."""
MEMORY, PER_BYTE = 192 * 2**20, 10
"""Bytes beyond what the process has when it starts: a constant, and a number for each byte of the file."""
LARGEST_WITH_OWN_MODEL = 2**22
"""Bytes. A larger file is tried with a small model in place of its own, which would take seconds to load."""
LONGEST_PROBE = 1.0
"""Seconds of processor time for a text of 40,000 characters."""
MOST_IDS = 8
"""Tokens for each byte of a text after replacements."""

_LONG = 40_000
_SHORT = (
    "The quick brown fox, don't you know?  1234567890 3.14\n\n\tend",
    "小明喜欢猫。他说：“你好！”",
    "これはテスト。한국어 문장. Русский текст. نص عربي. हिन्दी पाठ. ไทย",
    "é\u0301\u200d👩\u200d👩\u200d👧 ﷺ \u0000\ufffd ½ ǅ ß",
    " \u3000\u00a0\u2003  ",
)


def examine(content: bytes) -> Cost:
    """How the time of the file's patterns grows; Refusal where the file must not be used."""
    check_bytes(content)
    tree = parse_json(content)
    patterns = check_tree(tree)
    cost = _cost_of(patterns)
    inner = _loaded(tree, content)
    _probe(inner, cost)
    return cost


def _cost_of(patterns: list[Any]) -> Cost:
    found = Cost.LINEAR
    for pattern in patterns:
        try:
            if search_cost(pattern.regex, _remover) is Cost.QUADRATIC:
                found = Cost.QUADRATIC
        except PatternError as error:
            values = {"place": pattern.place[:80], "pattern": pattern.regex[:80], "found": str(error)[:80]}
            slow = isinstance(error, SlowPatternError)
            raise Refusal("tokenizer-pattern-slow" if slow else "tokenizer-pattern", **values) from error
    return found


def _remover(regex: str) -> Callable[[str], str]:
    try:
        return normalizers.Replace(Regex(regex), "").normalize_str
    except Exception as error:
        raise PatternError(str(error).splitlines()[0]) from error


def _loaded(tree: dict[str, Any], content: bytes) -> tokenizers.Tokenizer:
    if len(content) <= LARGEST_WITH_OWN_MODEL:
        inner = tokenizers.Tokenizer.from_buffer(content)
    else:
        # The other sections work with any model.
        small = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [], "unk_token": "a"}
        inner = tokenizers.Tokenizer.from_str(json.dumps(tree | {"model": small, "added_tokens": []}))
    inner.no_padding()  # which may ask for 10⁹ tokens
    inner.no_truncation()
    return inner


def _probe(inner: tokenizers.Tokenizer, cost: Cost) -> None:
    """Encode and decode runs of one character in many scripts, then mixed texts. Raises Refusal."""
    length = _LONG if cost is Cost.LINEAR else 2**13
    runs = [character * (length // 20) + end for character, end in zip("a1 .猫éaA\n▁", "b b猫aa  bb", strict=False)]
    most = MOST_GROWTH * MOST_IDS
    for text in ("a" * length + "b", *runs, *(text * (length // 50 // len(text) + 1) for text in _SHORT)):
        began = time.process_time()
        ids = inner.encode(text, add_special_tokens=False).ids
        if len(ids) > most * max(16, len(text.encode())):
            raise Refusal("tokenizer-growth", found=f"{len(ids) / len(text):,.0f}", most=most)
        decoded = inner.decode(ids[: 2**14])
        if len(decoded) > MOST_GROWTH * 64 * max(16, len(ids)):
            raise Refusal("tokenizer-growth", found=f"{len(decoded) / max(1, len(ids)):,.0f}", most=MOST_GROWTH * 64)
        if (seconds := time.process_time() - began) > LONGEST_PROBE:
            raise Refusal("tokenizer-slow", seconds=f"{seconds:.1f}", most=f"{LONGEST_PROBE:.0f}")
    some = range(0, inner.get_vocab_size(), inner.get_vocab_size() // 4096 + 1)
    inner.decode(list(some))


def try_content(content: bytes) -> dict[str, Any]:
    """The answer of the process. An error or panic of `tokenizers` is an answer too."""
    try:
        return {"cost": examine(content).value}
    except Refusal as refusal:
        return {"key": refusal.key, "values": refusal.values}
    except (KeyboardInterrupt, SystemExit):
        raise
    except MemoryError:
        return {"key": "tokenizer-memory", "values": {"most": format_bytes(memory_limit(len(content)))}}
    except BaseException as error:
        return {"key": "tokenizer-garbled", "values": {"reason": (str(error).splitlines() or ["?"])[0][:200]}}


def memory_limit(size: int) -> int:
    """Bytes that the process may allocate for a file of this size, beyond what it starts with."""
    return MEMORY + PER_BYTE * size


def main() -> None:
    """Read the content from stdin, limit the process, try the file and print the answer."""
    gc.disable()  # a large file makes millions of objects, and each collection visits all of them
    content = sys.stdin.buffer.read()
    limit_process(memory=memory_limit(len(content)), seconds=SECONDS)
    print(json.dumps(try_content(content)), flush=True)
    os._exit(0)  # freeing a large tree takes long


# --- the calling process ---------------------------------------------------------------------------------

TIMEOUT = 20.0
"""Seconds. The limit on processor time is lower; this one is for systems without such a limit, or very busy ones."""

_ACCEPTED: dict[bytes, Cost] = {}


def check_content(path: Path, content: bytes) -> Cost:
    """How the time of this file's patterns grows; FileError where the file is unsafe or unusable."""
    key = hashlib.sha256(content).digest()
    if key not in _ACCEPTED:
        found = _run_trial(content)
        if "key" in found:
            reason = str(found["key"]).removeprefix("tokenizer-")
            raise FileError(f"tokenizer-{reason}", path=str(path), **found["values"])
        _ACCEPTED[key] = Cost(found["cost"])
    return _ACCEPTED[key]


def _run_trial(content: bytes) -> dict[str, Any]:
    slow = {"key": "tokenizer-slow", "values": {"seconds": f"> {SECONDS}", "most": "1"}}
    try:
        process = start(__name__)
    except OSError:  # no second process is possible, as in a browser: try it here, without limits
        return try_content(content)
    with process:
        try:
            output = process.communicate(content, timeout=TIMEOUT)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return slow
        except BaseException:
            process.kill()
            raise
    if process.returncode == 0:
        return dict(json.loads(output))
    if process.returncode in (-getattr(signal, "SIGXCPU", 0), -getattr(signal, "SIGKILL", 0)):
        return slow
    return {"key": "tokenizer-memory", "values": {"most": format_bytes(memory_limit(len(content)))}}
