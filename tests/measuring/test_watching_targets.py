"""benchmarks/watching_targets: the figures that it reads from other benchmarks, and their verdicts."""

import pytest

from benchmarks import watching_targets
from benchmarks.cases.monitor import EVERY_100
from benchmarks.watching_targets import Target, of_calls, of_monitor, verdicts


def test_calls_are_compared_by_events() -> None:
    rows = [
        ["attend, 4,096 tokens", "host", "0.2", ""],
        ["attend, 4,096 tokens", "events", "", "0.3"],
        ["cuDNN, 4,096 tokens", "host", "0.1", ""],
        ["cuDNN, 4,096 tokens", "events", "", "0.2"],
    ]
    found = of_calls(rows)
    assert found == pytest.approx({"attend, 4,096 tokens, host": 0.2, "attend, 4,096 tokens, events over cuDNN": 1.5})


def test_the_monitor_is_read_from_the_json_of_run() -> None:
    case = {"ratios": {"every=1, time over unmonitored": 1.2}, "facts": {EVERY_100: 1.002}}
    found = of_monitor({"cases": {"monitor-gpu": case}}, "monitor-gpu")
    assert found == {"monitor every=1, over unmonitored": 1.2, "monitor every=100, over unmonitored": 1.002}


def test_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching_targets, "TARGETS", (Target("a", 1.1), Target("b", 1.1), Target("c", 2, "ms")))
    rows, is_missed = verdicts({"a": 1.1, "b": 1.2})
    assert [row[-1] for row in rows] == ["met", "missed", "not measured"]
    assert is_missed
    assert not verdicts({"a": 1.0})[1]
