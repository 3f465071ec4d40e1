"""The trial of an untrusted tokenizer.json in a separate process: load it and use it on revealing texts.

    content on stdin  →  one line of JSON on stdout: {"cost": "linear"}, or {"key": …, "values": {…}}

The process first limits its own memory and processor time. It imports neither NumPy nor torch. `check_content` starts
it and reads its answer before the calling process loads the file. The trial costs one start of Python and one pass over
the file. Accepted files are cached by their hash until the calling process ends.
"""

import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import Regex, normalizers

from regard.errors import FileError
from regard.memory import format_bytes
from regard.text.process_limits import limit_process, start
from regard.text.regex_cost import Cost, search_cost
from regard.text.regex_parse import PatternError, SlowPatternError
from regard.text.tokenizer_limits import MOST_GROWTH, Refusal, check_bytes, check_tree, parse_json

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
