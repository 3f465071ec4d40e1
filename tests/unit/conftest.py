"""`--quick`: the three smallest test files of every folder, so that each package is tested within a minute."""

from pathlib import Path

import pytest

FILES = 3
"""Test files of one folder that a quick run takes."""

SLOW = {"test_triton.py", "test_hopper.py", "test_running.py", "test_running_filming.py"}
"""Small files that compile kernels or train models."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help=f"only the {FILES} smallest test files of every folder")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--quick") or collection_path.is_dir():
        return None
    files = [path for path in collection_path.parent.glob("test_*.py") if path.name not in SLOW]
    taken = sorted(files, key=lambda path: (path.stat().st_size, path.name))[:FILES]
    return None if collection_path in taken else True
