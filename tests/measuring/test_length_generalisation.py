"""The experiment on longer texts: its task is right, and the lesson shows the numbers of the dated report."""

from pathlib import Path

import torch

from benchmarks.length_generalisation import LETTERS, Result, cells, summary, texts
from regard.course.drawings import measured
from regard.training.batches import IGNORED

RESULTS = Path(__file__).parents[2] / "benchmarks/results"


def test_the_target_is_the_last_capital() -> None:
    ids, targets = texts(torch.Generator().manual_seed(0), 4, 12)
    for row, wanted in zip(ids.tolist(), targets.tolist(), strict=True):
        last = None
        for letter, target in zip(row, wanted, strict=True):
            last = letter - LETTERS if letter >= LETTERS else last
            assert target == (IGNORED if letter >= LETTERS else last)


def test_shares_are_means_over_seeds() -> None:
    right, wrong = [(1, 1)] * 128, [(0, 1)] * 128
    found = summary([right, wrong])
    assert found.ranges == [0.5] * 3
    assert (found.lowest, found.highest) == ([0.0] * 3, [1.0] * 3)
    assert found.bins == [0.5] * 16


def test_the_picture_shows_the_newest_report() -> None:
    report = sorted(RESULTS.glob("length-generalisation_*.md"))[-1].read_text(encoding="utf-8")
    for kind, result in measured("length-generalisation")["kinds"].items():
        assert f"| {kind} | {' | '.join(cells(Result(**result)))} |" in report
