"""tokenizer.json from elsewhere: tried in a process of its own (`tokenizer_trial`) before this one loads it.

It costs one start of Python and one walk over the file; what was accepted once is remembered by its hash as long as
this process runs.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from regard.errors import FileError
from regard.memory import spell
from regard.text.regex_cost import Cost

WALL = 20.0
"""Seconds. Its processor time is limited much earlier; this is for a machine with no such limit, or a very busy one."""

_ACCEPTED: dict[bytes, Cost] = {}


def check_content(path: Path, content: bytes) -> Cost:
    """How long the patterns of this file may take; FileError where it is not safe, or not possible, to use it."""
    key = hashlib.sha256(content).digest()
    if key not in _ACCEPTED:
        found = _tried(content)
        if "key" in found:
            reason = str(found["key"]).removeprefix("tokenizer-")
            raise FileError(f"tokenizer-{reason}", path=str(path), **found["values"])
        _ACCEPTED[key] = Cost(found["cost"])
    return _ACCEPTED[key]


def _tried(content: bytes) -> dict[str, Any]:
    from regard.text import tokenizer_trial

    slow = {"key": "tokenizer-slow", "values": {"seconds": f"> {tokenizer_trial.SECONDS}", "most": "1"}}
    try:
        process = subprocess.Popen(
            _command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a panic of Rust prints there
            env=_environment(),
        )
    except OSError:  # no second process here, as in a browser: without its limits, then
        return tokenizer_trial.answer(content)
    with process:
        try:
            said = process.communicate(content, timeout=WALL)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return slow
        except BaseException:
            process.kill()
            raise
    if process.returncode == 0:
        return dict(json.loads(said))
    if process.returncode in (-getattr(signal, "SIGXCPU", 0), -getattr(signal, "SIGKILL", 0)):
        return slow
    return {"key": "tokenizer-memory", "values": {"most": spell(tokenizer_trial.memory(len(content)))}}


def _command() -> list[str]:
    """Python without its start-up files; packages are found where this process finds them."""
    folders = [each for each in sys.path if os.path.isabs(each)]
    program = f"import sys; sys.path[:] = {folders!r}; from regard.text.tokenizer_trial import main; main()"
    return [sys.executable, "-I", "-S", "-B", "-c", program]


def _environment() -> dict[str, str]:
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG")
    given = {name: os.environ[name] for name in kept if name in os.environ}
    return given | {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
