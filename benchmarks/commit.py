"""The commit that is measured."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commit() -> str:
    """REGARD_COMMIT if set; otherwise git's commit, and whether src/ has changed since; otherwise an empty string."""
    return os.environ.get("REGARD_COMMIT", "").strip() or _git_commit()


def with_commit(title: str) -> str:
    """A report's title, with the commit if it is known."""
    name = commit()
    return f"{title}, commit {name}" if name else title


def _git_commit() -> str:
    try:
        name = _git("rev-parse", "--short", "HEAD")
        return f"{name} and changes" if _git("status", "--porcelain", "--", "src") else name
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*command: str) -> str:
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
