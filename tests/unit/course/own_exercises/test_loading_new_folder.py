"""The folder of a new exercise: complete, verified as it is, and nothing is overwritten."""

from pathlib import Path

import pytest

from regard.course import own_exercises
from regard.course.own_exercises.checks import verify
from regard.course.own_exercises.loading import FILES, load_folder, write_folder
from regard.errors import ArgumentError, FileError


def test_the_template_is_written_completely(folder: Path) -> None:
    template = Path(own_exercises.__file__).parents[1] / "exercises/template"
    bundled = {path.relative_to(template).as_posix() for path in template.rglob("*") if path.is_file()}
    assert {name for name in bundled if "__pycache__" not in name} == set(FILES)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == set(FILES)


def test_a_new_exercise_passes_verification(folder: Path) -> None:
    found = list(verify(load_folder(str(folder))))
    assert [finding for finding in found if not finding.is_right] == []
    assert len(found) >= 12


def test_existing_work_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    (folder / "task.toml").write_text("mine")
    with pytest.raises(ArgumentError, match="not empty"):
        write_folder(folder)
    assert (folder / "task.toml").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert len(write_folder(tmp_path / "empty")) == len(FILES)


@pytest.mark.parametrize("name", ["softmax", "平均", "-x"])
def test_names_that_cannot_be_used(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArgumentError):
        write_folder(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError):
        write_folder(tmp_path / "file" / "mine")
