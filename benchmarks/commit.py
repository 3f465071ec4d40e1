"""Which commit is measured."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commit() -> str:
    """REGARD_COMMIT, where someone says it; else what git knows, and whether src/ has changed since; else nothing."""
    return os.environ.get("REGARD_COMMIT", "").strip() or _told_by_git()


def with_commit(title: str) -> str:
    """A report's title, and the commit where it is known."""
    known = commit()
    return f"{title}, commit {known}" if known else title


def _told_by_git() -> str:
    try:
        name = _git("rev-parse", "--short", "HEAD")
        return f"{name} and changes" if _git("status", "--porcelain", "--", "src") else name
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*command: str) -> str:
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
