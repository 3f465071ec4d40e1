"""A folder as `regard learn new` writes it, which a test may change."""

from collections.abc import Callable
from pathlib import Path

import pytest

from regard.course.own_exercises.loading import write_folder

Change = Callable[[str, str, str], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "mean-pooling")
    return tmp_path / "mean-pooling"


@pytest.fixture
def change(folder: Path) -> Change:
    """Replace text in a file of the folder."""

    def replace(name: str, old: str, new: str) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")

    return replace
