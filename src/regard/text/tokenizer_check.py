"""An untrusted tokenizer.json, tried in a separate process (`tokenizer_trial`) before this process loads it.

The trial costs one start of Python and one pass over the file. Accepted files are cached by their hash until this
process ends.
"""

import hashlib
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from regard.errors import FileError
from regard.memory import format_bytes
from regard.text.process_limits import start
from regard.text.regex_cost import Cost

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
    from regard.text import tokenizer_trial

    slow = {"key": "tokenizer-slow", "values": {"seconds": f"> {tokenizer_trial.SECONDS}", "most": "1"}}
    try:
        process = start(tokenizer_trial.__name__)
    except OSError:  # no second process is possible, as in a browser: try it here, without limits
        return tokenizer_trial.try_content(content)
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
    return {"key": "tokenizer-memory", "values": {"most": format_bytes(tokenizer_trial.memory_limit(len(content)))}}
