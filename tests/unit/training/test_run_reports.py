"""metrics.jsonl and events: one line and one event per step, the validation loss in the line of its step."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.errors import FileError
from regard.training.run_reports import Event, Report, RunReports, Stepped, Throughput, Validated


class Steady(Throughput):
    """Always 100 tokens and half a step per second."""

    tokens_per_second = 100.0
    seconds_per_step = 2.0


def report(step: int, loss: float | None = 2.5) -> Report:
    return Report(step, 0.1, loss, None if loss is None else 0.5, False, 30, (4, 7))


def reports_of(folder: Path, *, silent: bool = False) -> tuple[RunReports, list[Event]]:
    events: list[Event] = []
    made = RunReports(folder, 10, [events.append], silent=silent)
    made.throughput = Steady()
    return made, events


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_lines_are_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = reports_of(tmp_path)
    for step in (1, 2, 3):
        made.step(report(step))
    assert not (tmp_path / "metrics.jsonl").exists()
    monkeypatch.setattr("regard.training.run_reports.WRITE_SECONDS", -1.0)
    made.step(report(4))
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3]


def test_line_holds_the_step_and_its_validation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.run_reports.WRITE_SECONDS", -1.0)
    made, events = reports_of(tmp_path)
    made.step(report(1))
    made.step(report(2))
    made.validated(2, 2.25, 2.125)
    assert [line["step"] for line in lines(tmp_path)] == [1]  # the newest waits for its validation
    made.flush()
    assert lines(tmp_path) == [
        {"step": 1, "loss": 2.5, "lr": 0.1, "norm": 0.5, "tokens": 30, "tokens_per_second": 100.0},
        {
            "step": 2,
            "loss": 2.5,
            "lr": 0.1,
            "norm": 0.5,
            "tokens": 30,
            "tokens_per_second": 100.0,
            "valid_loss": 2.25,
        },
    ]
    assert [type(event) for event in events] == [Stepped, Stepped, Validated]
    made.flush()
    assert len(lines(tmp_path)) == 2


def test_event_has_speed_share_and_remaining_time(tmp_path: Path) -> None:
    made, events = reports_of(tmp_path)
    made.step(report(4))
    made.share_per_rate = 0.002
    made.step(report(5))
    before, after = events
    assert isinstance(before, Stepped)
    assert isinstance(after, Stepped)
    assert (before.share, before.eta_seconds) == (None, 12.0)
    assert after.share == pytest.approx(0.2)
    assert after.eta_seconds == 10.0
    assert (after.tokens_per_second, after.skipped) == (100.0, False)


def test_skipped_step_is_marked_and_its_examples_are_written(tmp_path: Path) -> None:
    made, events = reports_of(tmp_path)
    made.step(report(3, None))
    made.flush()
    (line,) = lines(tmp_path)
    assert line["loss"] is None
    assert line["skipped"] is True
    assert json.loads((tmp_path / "bad" / "step-00000003.json").read_text()) == {"step": 3, "examples": [4, 7]}
    (event,) = events
    assert isinstance(event, Stepped)
    assert event.skipped
    assert event.loss is None


def test_unwritable_examples_raise(tmp_path: Path) -> None:
    made, _ = reports_of(tmp_path)
    (tmp_path / "bad").write_text("a file in the way")
    with pytest.raises(FileError, match="step-00000003"):
        made.step(report(3, None))


def test_silent_journal_writes_and_notifies_nothing(tmp_path: Path) -> None:
    made, events = reports_of(tmp_path, silent=True)
    made.begin(0)
    made.step(report(1))
    made.step(report(2, None))
    made.validated(2, 1.0, 1.0)
    made.flush()
    assert events == []
    assert list(tmp_path.iterdir()) == []


def test_lines_after_the_resumed_step_are_removed(tmp_path: Path) -> None:
    first, _ = reports_of(tmp_path)
    for step in (1, 2, 3):
        first.step(report(step))
    first.flush()
    second, _ = reports_of(tmp_path)
    second.begin(1)
    second.step(report(2, 9.0))
    second.flush()
    assert [(line["step"], line["loss"]) for line in lines(tmp_path)] == [(1, 2.5), (2, 9.0)]
