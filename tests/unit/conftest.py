"""`--quick`: the three smallest test files of every folder, and one of each package that these leave out."""

from pathlib import Path

import pytest

UNIT = Path(__file__).parent

FILES = 3
"""Test files of one folder that a quick run takes."""

SLOW = {
    "kernels/test_triton.py",
    "kernels/test_hopper.py",
    "recipes/test_running.py",
    "recipes/test_running_filming.py",
    "recipes/test_running_starting.py",
    "surveys/test_running_processes.py",
    "course/learner_model/test_building.py",
    "course/learner_model/test_program.py",
}
"""Small files that compile kernels, train models or run a learner's program hundreds of times."""

ALSO = {
    "test_hand_calculation.py",
    "cli/test_learn_transfer.py",
    "course/drawings/test_measured.py",
    "course/test_questions_due.py",
    "kernels/test_hopper_config.py",
    "trace/test_measures.py",
}
"""Files of packages of which no test is among the smallest."""


def quick_files(folder: Path) -> list[Path]:
    """The test files of a folder that a quick run takes."""
    files = [path for path in folder.glob("test_*.py") if path.relative_to(UNIT).as_posix() not in SLOW]
    smallest = sorted(files, key=lambda path: (path.stat().st_size, path.name))[:FILES]
    also = [path for path in files if path.relative_to(UNIT).as_posix() in ALSO and path not in smallest]
    return smallest + also


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help=f"only the {FILES} smallest test files of every folder")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--quick") or collection_path.is_dir():
        return None
    return None if collection_path in quick_files(collection_path.parent) else True
