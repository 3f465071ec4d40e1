"""The screen of a run: a panel on a terminal, plain lines elsewhere, at little cost."""

import io
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from regard.cli.training_screen import RECENT, ScreenState, TrainingScreen, bar, duration, panel, sparkline
from regard.messages import LANGUAGES
from regard.training.run_reports import Event, Finished, Saved, Started, Stepped, Validated

STARTED = Started(step=0, steps=1000, ranks=2, device="cpu", parameters=2_600_000)


class Screen(io.StringIO):
    """A stream that reports to be a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def step(number: int, loss: float | None = 2.5) -> Stepped:
    return Stepped(
        step=number, loss=loss, lr=1e-3, norm=0.5, tokens_per_second=12345.6, share=0.431, eta_seconds=3725,
        skipped=loss is None,
    )  # fmt: skip


def printed(*events: Event, lang: str = "en") -> list[str]:
    out = io.StringIO()
    with TrainingScreen("copy", file=out, lang=lang) as screen:  # type: ignore[arg-type]
        for event in events:
            screen(event)
    return out.getvalue().splitlines()


def drawn(state: ScreenState, width: int, lang: str = "en") -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(panel(state, 61, width, lang))  # type: ignore[arg-type]
    return out.getvalue().splitlines()


# --- off a terminal ---------------------------------------------------------------------------------------


def test_plain_lines() -> None:
    assert printed(
        STARTED,
        step(1),
        Saved(step=1, path=Path("x")),
        step(2, None),
        Validated(step=2, loss=2.25, best=2.0),
        Finished(
            step=2, reason="steps", figures={"valid_loss": 2.125, "best_valid_loss": 0.0000108, "best_step": 1000}
        ),
    ) == [
        "copy: 2,600,000 parameters on cpu, ranks: 2, steps: 1,000",
        "step 2 of 1,000, loss 2.5000, validation 2.2500 at step 2 (best 2.0000), learning rate 1.00e-03, "
        "12,346 tokens/s, 43.1 % of the measured peak, last checkpoint: step 1, skipped steps (loss not finite): 1, "
        "1:02:05 left",
        "finished: 2 steps done",
        "validation loss of the final model 2.1250, the best on the way 1.1e-05 at step 1,000",
    ]


def test_plain_lines_in_chinese() -> None:
    lines = printed(STARTED, step(1), Validated(step=1, loss=2.25, best=2.0), lang="zh")
    assert lines == [
        "copy：2,600,000 个参数，设备 cpu，进程数 2，共 1,000 步",
        "第 1/1,000 步，损失 2.5000，验证损失 2.2500（第 1 步；最好 2.0000），学习率 1.00e-03，每秒 12,346 个词元，"
        "达到实测峰值的 43.1%，还需 1:02:05",
    ]


def test_a_first_line_after_three_seconds_then_one_at_most_every_ten() -> None:
    out, clock = io.StringIO(), Clock()
    screen = TrainingScreen("copy", file=out, lang="en", clock=clock)
    for number in range(1, 1001):
        clock.now = number / 10
        screen(step(number))
    assert [line.split(" ")[1] for line in out.getvalue().splitlines()] == [f"{n:,}" for n in range(30, 1001, 100)]
    assert all("left" in line for line in out.getvalue().splitlines())


def test_a_resumed_run_prints_its_step_and_skipped_checkpoints() -> None:
    resumed = Started(step=100, steps=200, resumed_from=100, skipped=("step-200: wrong hash\nin \x1b[31mmodel",))
    assert printed(resumed)[1:] == ["checkpoint skipped: step-200: wrong hash␊in ␛[31mmodel", "going on from step 100"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_ending_has_a_message(lang: str) -> None:
    ends = {printed(Finished(step=7, reason=why), lang=lang)[0] for why in ("steps", "patience", "already", "signal")}
    assert len(ends) == 4
    assert all("7" in end for end in ends)


def test_no_control_characters_off_a_terminal_or_on_a_dumb_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for out in (io.StringIO(), Screen()):
        with TrainingScreen("co\x1b[31mpy", file=out) as screen:
            for event in (STARTED, step(1), Validated(step=1, loss=1.0, best=1.0), Finished(step=1, reason="signal")):
                screen(event)
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", out.getvalue())


# --- on a terminal ----------------------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    return Screen()


def test_final_lines_follow_the_panel(terminal: Screen) -> None:
    with TrainingScreen("copy", file=terminal, lang="zh") as screen:
        for event in (STARTED, step(500), Validated(step=500, loss=2.0, best=2.0), Finished(step=1000, reason="steps")):
            screen(event)
    text = terminal.getvalue()
    assert "第 1,000/1,000 步" in text  # drawn by another thread in the language of this one
    assert text.rindex("训练完成") > text.rindex("第 1,000/1,000 步")
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_a_run_that_never_started_leaves_no_panel(terminal: Screen) -> None:
    """A run with bad data ends while reading: no empty bar may remain above the error."""
    with TrainingScreen("copy", file=terminal) as screen:
        screen.live.refresh()  # type: ignore[union-attr]
    assert "copy · reading the data · 0:00 so far" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K")  # cursor up, line cleared


def test_ctrl_c_restores_the_cursor(terminal: Screen) -> None:
    def train() -> None:
        with TrainingScreen("copy", file=terminal) as screen:
            screen(STARTED)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l")


def test_an_event_is_fast(terminal: Screen) -> None:
    screen = TrainingScreen("copy", file=terminal)
    event, began = step(1), time.perf_counter()
    for _ in range(10_000):
        screen(event)
    assert (time.perf_counter() - began) / 10_000 < 50e-6  # measured: 1 µs; another thread draws
    assert terminal.getvalue() == ""
    assert len(screen.state.losses) <= 2 * RECENT


def example_state() -> ScreenState:
    saved, validated = Saved(step=400, path=Path("x")), Validated(step=400, loss=2.0, best=1.9)
    losses = [5 - n / 100 for n in range(300)]
    return ScreenState("多语言-recipe", STARTED, step(500), validated, saved, losses=losses, skipped=3)


def test_the_panel() -> None:
    assert drawn(example_state(), 90) == [
        "多语言-recipe · step 500 of 1,000 · 1:01 so far · 1:02:05 left",
        "━" * 37 + "─" * 37 + "  50%",
        "loss 2.0100 ███▇▇▇▇▆▆▆▆▆▅▅▅▅▄▄▄▄▃▃▃▃▃▂▂▂▂▁▁▁ · validation 2.0000 at step 400 (best 1.9000)",
        "learning rate 1.00e-03 · 12,346 tokens/s · 43.1 % of the measured peak",
        "last checkpoint: step 400 · skipped steps (loss not finite): 3",
    ]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("width", [12, 24, 40, 80, 200])
def test_no_line_is_too_wide(lang: str, width: int) -> None:
    for state in (example_state(), ScreenState("copy"), ScreenState("copy", STARTED)):
        lines = panel(state, 1e6, width, lang).renderables  # type: ignore[arg-type]
        assert max(line.cell_len for line in lines) <= max(width, 10)  # type: ignore[union-attr]


@given(st.lists(st.floats(-1e6, 1e6), max_size=100), st.integers(1, 40))
def test_sparklines(values: list[float], columns: int) -> None:
    spark = sparkline(values, columns)
    assert len(spark) == (min(columns, len(values)) if len(values) > 1 else 0)
    assert set(spark) <= set("▁▂▃▄▅▆▇█")
    if len(set(spark)) > 1:
        assert {"▁", "█"} <= set(spark)


@given(st.floats(-0.5, 1.5), st.integers(10, 200))
def test_the_bar_has_its_width(share: float, width: int) -> None:
    assert bar(share, width).cell_len == max(10, min(width, 80)) - 1


def test_durations() -> None:
    assert [duration(s) for s in (0, 59.4, 3599.6, -5)] == ["0:00", "0:59", "1:00:00", "0:00"]


def test_a_run_continues_when_its_stream_is_closed() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    with TrainingScreen("copy", file=Closed()) as screen:
        for event in (STARTED, step(1), Validated(step=1, loss=2.0, best=2.0)):
            screen(event)
    assert (screen.state.stepped, screen.state.losses) == (step(1), [2.5])
