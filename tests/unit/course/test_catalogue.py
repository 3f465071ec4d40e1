"""The list of exercises, and loading one by id."""

import subprocess
import sys
from collections import Counter

import pytest

from regard.course.catalogue import entries, entry, exercise
from regard.errors import UnknownNameError
from regard.messages import LANGUAGES


def test_ids_are_unique_and_well_formed() -> None:
    assert not [name for name, times in Counter(row.id for row in entries()).items() if times > 1]
    assert all(row.id == row.id.lower().replace("_", "-") for row in entries())


def test_entries_have_valid_fields() -> None:
    for row in entries():
        assert row.kind in ("code", "bug", "sheet")
        assert row.track in ("numpy", "torch")
        assert 1 <= row.lesson <= 12
        assert row.title.en.strip()
        assert row.title.zh.strip()
        assert (row.kind == "bug") == row.id.startswith("bug-")


def test_lessons_never_decrease_within_a_track() -> None:
    """Sorted by lesson: no exercise needs a later one."""
    for track in ("numpy", "torch"):
        lessons = [row.lesson for row in entries() if row.track == track]
        assert lessons == sorted(lessons)


@pytest.mark.parametrize("name", ["self-attention", "self_attention", " Self-Attention "])
def test_an_id_may_be_typed_in_several_ways(name: str) -> None:
    assert entry(name).id == "self-attention"


def test_an_unknown_id_suggests_the_closest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        exercise("selfattention")
    assert caught.value.values["nearest"] == "self-attention"
    assert "'self-attention'" in caught.value.text("zh")


def test_an_id_without_a_close_match_points_to_the_list() -> None:
    with pytest.raises(UnknownNameError) as caught:
        exercise("nosuch")
    assert "nearest" not in caught.value.values
    for lang in LANGUAGES:
        assert "regard learn list" in caught.value.text(lang)


def test_a_sheet_has_no_program_and_a_program_no_sheet() -> None:
    assert exercise("by-hand").grader is None
    assert exercise("by-hand").solution == ""
    assert exercise("softmax").sheet is None


def test_the_list_is_read_without_numpy_or_any_grader() -> None:
    program = (
        "import sys; from regard.course.catalogue import entries; entries(); "
        "print([name for name in sys.modules if name == 'numpy' or '.exercises' in name or '.grading' in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
