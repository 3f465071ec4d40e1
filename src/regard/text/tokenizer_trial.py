"""A tokenizer.json from elsewhere, tried in a process of its own: loaded, and used on texts that show what is wrong.

    content on stdin  →  one line of JSON on stdout: {"cost": "linear"}, or {"key": …, "values": {…}}

The process limits its own memory and processor time first, so that whatever the file does ends here. It imports
neither NumPy nor torch. `untrusted` starts it and reads its answer.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import tokenizers
from tokenizers import Regex, normalizers

from regard.memory import spell
from regard.text.regex_cost import Cost, judge
from regard.text.regex_parse import PatternError, SlowPatternError
from regard.text.tokenizer_limits import MOST_GROWTH, Refusal, check_bytes, check_tree, parsed

SECONDS = 3
"""Of processor time, for everything."""
MEMORY, PER_BYTE = 192 * 2**20, 10
"""Bytes beyond what the process has when it starts: so many, and so many for each byte of the file."""
WHOLE = 2**22
"""Bytes of a file whose model is tried too; a larger one is tried with a small model, since its own takes seconds."""
LONGEST_PROBE = 1.0
"""Seconds of processor time for a text of 40,000 characters."""
MOST_IDS = 8
"""Tokens for each byte that the replacements may have made of a text."""

_LONG = 40_000
_SHORT = (
    "The quick brown fox, don't you know?  1234567890 3.14\n\n\tend",
    "小明喜欢猫。他说：“你好！”",
    "これはテスト。한국어 문장. Русский текст. نص عربي. हिन्दी पाठ. ไทย",
    "é\u0301\u200d👩\u200d👩\u200d👧 ﷺ \u0000\ufffd ½ ǅ ß",
    " \u3000\u00a0\u2003  ",
)


def examine(content: bytes) -> Cost:
    """How long the file's patterns may take; Refusal where it is not to be used at all."""
    check_bytes(content)
    tree = parsed(content)
    patterns = check_tree(tree)
    cost = _judged(patterns)
    inner = _loaded(tree, content)
    _probe(inner, cost)
    return cost


def _judged(patterns: list[Any]) -> Cost:
    found = Cost.LINEAR
    for pattern in patterns:
        try:
            if judge(pattern.regex, _remover) is Cost.QUADRATIC:
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
    if len(content) <= WHOLE:
        inner = tokenizers.Tokenizer.from_buffer(content)
    else:
        # The other parts are what they are with any model.
        small = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [], "unk_token": "a"}
        inner = tokenizers.Tokenizer.from_str(json.dumps(tree | {"model": small, "added_tokens": []}))
    inner.no_padding()  # of 10⁹ tokens, perhaps
    inner.no_truncation()
    return inner


def _probe(inner: tokenizers.Tokenizer, cost: Cost) -> None:
    """Encode and decode: runs of one character of many scripts and their ends, then all kinds of text together."""
    length = _LONG if cost is Cost.LINEAR else 2**13
    runs = [sign * (length // 20) + end for sign, end in zip("a1 .猫éaA\n▁", "b b猫aa  bb", strict=False)]
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


def answer(content: bytes) -> dict[str, Any]:
    """What the process says. An error of `tokenizers`, and a panic, which is no Exception, is an answer too."""
    try:
        return {"cost": examine(content).value}
    except Refusal as refusal:
        return {"key": refusal.key, "values": refusal.values}
    except (KeyboardInterrupt, SystemExit):
        raise
    except MemoryError:
        return {"key": "tokenizer-memory", "values": {"most": spell(memory(len(content)))}}
    except BaseException as error:
        return {"key": "tokenizer-garbled", "values": {"reason": (str(error).splitlines() or ["?"])[0][:200]}}


def memory(size: int) -> int:
    """Bytes that the process may take for a file of this size, beyond what it starts with."""
    return MEMORY + PER_BYTE * size


def limit(size: int) -> None:
    """No more memory and processor time than a file of this size needs. Nothing where the system has no such limits."""
    try:
        import resource
    except ImportError:
        return
    wanted = {resource.RLIMIT_CPU: SECONDS, resource.RLIMIT_CORE: 0}
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            wanted[resource.RLIMIT_AS] = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        wanted[resource.RLIMIT_AS] += memory(size)
    except OSError:
        pass
    for kind, most in wanted.items():
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (most, most))
        except (ValueError, OSError):  # macOS refuses some
            continue


def main() -> None:
    """Read, limit, try, answer."""
    gc.disable()  # a walk over all objects so far, many times while a large file is parsed
    content = sys.stdin.buffer.read()
    limit(len(content))
    print(json.dumps(answer(content)), flush=True)
    os._exit(0)  # large trees take long to take apart
