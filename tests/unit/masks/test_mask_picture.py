"""The picture: exact for small masks, a corner of large ones, never wider than a terminal."""

import numpy as np
import pytest

from regard.masks.mask import LARGEST, draw


def test_samples_are_drawn_one_below_another() -> None:
    assert draw(np.stack([np.eye(2, dtype=bool), np.ones((2, 2), bool)])) == "[0]\n■ ·\n· ■\n[1]\n■ ■\n■ ■"


def test_single_sample_has_no_number() -> None:
    assert draw(np.zeros((1, 1, 1, 2), bool)) == "· ·"


@pytest.mark.parametrize(("T", "S"), [(LARGEST + 1, 3), (3, LARGEST + 1), (200, 200)])
def test_large_mask_shows_its_corner_and_its_size(T: int, S: int) -> None:
    lines = draw(np.ones((T, S), bool)).split("\n")
    assert max(len(line) for line in lines) <= 80
    assert len(lines) <= LARGEST + 1
    assert any("…" in line for line in lines)


def test_many_samples_are_counted() -> None:
    assert draw(np.ones((9, 1, 1), bool)).endswith("… (9)")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3), (0, 2, 2)])
def test_empty_mask_can_be_drawn(shape: tuple[int, ...]) -> None:
    assert isinstance(draw(np.ones(shape, bool)), str)
