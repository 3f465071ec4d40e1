"""The screen of `regard train`: a live panel on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.style import Style
from rich.text import Text

from regard.messages import Language, language, say
from regard.views.caption import wrap_pieces
from regard.views.curves import bin_points, loss_text
from regard.views.labels import cut, printable_label
from regard.views.terminal import can_encode

if TYPE_CHECKING:
    from regard.training.run_reports import Event, Finished, Saved, Started, Stepped, Validated


_SPARKS = "▁▂▃▄▅▆▇█"
_DONE, _REMAINING = "━", "─"
CHARACTERS = f"·{_DONE}{_REMAINING}{_SPARKS}"
"""The characters that the terminal must support for the live panel."""
_SPARK_COLUMNS = 32
_DIM, _BOLD = Style(dim=True), Style(bold=True)


@dataclass(slots=True)
class ScreenState:
    """The latest event of each kind, and the recent losses."""

    recipe: str
    started: "Started | None" = None
    stepped: "Stepped | None" = None
    validated: "Validated | None" = None
    saved: "Saved | None" = None
    finished: "Finished | None" = None
    losses: list[float] = field(default_factory=list)
    skipped: int = 0

    @property
    def step(self) -> int:
        """The current step."""
        event = self.finished or self.stepped or self.started
        return event.step if event is not None else 0


# --- lines printed once ----------------------------------------------------------------------------------


def started_lines(state: ScreenState, lang: Language) -> list[str]:
    """What is trained, the step it continues from, and the checkpoints that were skipped."""
    event = state.started
    assert event is not None
    lines = [
        say(
            "training-started",
            lang,
            recipe=state.recipe,
            parameters=f"{event.parameters:,}",
            device=event.device,
            ranks=event.ranks,
            steps=f"{event.steps:,}",
        )
    ]
    lines += [say("training-checkpoint-skipped", lang, reason=printable_label(reason)) for reason in event.skipped]
    if event.resumed_from is not None:
        lines.append(say("training-resumed", lang, step=f"{event.resumed_from:,}"))
    return lines


def finished_lines(event: "Finished", lang: Language) -> list[str]:
    """How the run ended, and its results."""
    lines = [say(f"training-ended-{event.reason}", lang, step=f"{event.step:,}")]
    loss, best, step = (event.figures.get(name) for name in ("valid_loss", "best_valid_loss", "best_step"))
    if loss is not None and best is not None:
        lines.append(say("training-figures", lang, loss=loss_text(loss), best=loss_text(best), step=f"{step:,}"))
    return lines


def progress_line(state: ScreenState, lang: Language) -> str:
    """The progress in one plain line."""
    steps = state.started.steps if state.started else state.step
    pieces = [say("training-step", lang, step=f"{state.step:,}", steps=f"{steps:,}")]
    pieces += [*_loss_parts(state, lang), *_speed_parts(state, lang), *_checkpoint_parts(state, lang)]
    if state.stepped is not None and state.stepped.eta_seconds is not None:
        pieces.append(say("training-left", lang, time=duration(state.stepped.eta_seconds)))
    return say("training-comma", lang).join(pieces)


# --- the live panel --------------------------------------------------------------------------------------


def panel(state: ScreenState, elapsed: float, width: int, lang: Language) -> Group:
    """The live panel, with lines of at most `width` columns."""
    pieces = [say("training-elapsed", lang, time=duration(elapsed))]
    if state.started is None:
        return Group(*wrap_pieces([state.recipe, say("training-preparing", lang), *pieces], width))
    steps = state.started.steps
    if state.stepped is not None and state.stepped.eta_seconds is not None and state.finished is None:
        pieces.append(say("training-left", lang, time=duration(state.stepped.eta_seconds)))
    count = say("training-step", lang, step=f"{state.step:,}", steps=f"{steps:,}")
    head = wrap_pieces([state.recipe, count, *pieces], width)
    head[0].stylize(_BOLD, 0, len(cut(state.recipe, width)))
    lines = [*head, bar(state.step / steps, width)]
    spark = sparkline(state.losses, _SPARK_COLUMNS)
    losses = _loss_parts(state, lang)
    if losses and spark:
        losses[0] += f" {spark}"
    for group in (losses, _speed_parts(state, lang), _checkpoint_parts(state, lang)):
        lines += wrap_pieces(group, width)
    return Group(*lines)


def bar(share: float, width: int) -> Text:
    """A progress bar."""
    length = max(4, min(width, 80) - 6)
    done = min(length, int(max(0.0, share) * length))
    line = Text(_DONE * done, Style(color="green"))
    line.append(_REMAINING * (length - done), _DIM)
    return line.append(f" {min(1.0, max(0.0, share)):4.0%}")


def sparkline(values: list[float], columns: int) -> str:
    """The values as a curve of at most `columns` characters, from lowest to highest; empty for fewer than two.

    >>> sparkline([4.0, 3.0, 2.0, 1.0], 4)
    '█▆▃▁'
    """
    if len(values) < 2:
        return ""
    columns = min(columns, len(values))
    mean = bin_points(np.arange(len(values), dtype=float), np.array(values), columns, (0, len(values) - 1)).mean
    low, high = mean.min(), mean.max()
    levels = (mean - low) / (high - low) * (len(_SPARKS) - 1) if high > low else np.zeros(columns)
    return "".join(_SPARKS[int(level)] for level in levels.round())


def _loss_parts(state: ScreenState, lang: Language) -> list[str]:
    """The losses."""
    pieces = []
    if state.losses:
        pieces.append(say("training-loss", lang, loss=loss_text(state.losses[-1])))
    if state.validated is not None:
        loss, best = loss_text(state.validated.loss), loss_text(state.validated.best)
        pieces.append(say("training-validation", lang, loss=loss, step=f"{state.validated.step:,}", best=best))
    return pieces


def _speed_parts(state: ScreenState, lang: Language) -> list[str]:
    """Learning rate and speed."""
    event = state.stepped
    if event is None:
        return []
    pieces = [say("training-lr", lang, lr=f"{event.lr:.2e}")]
    if event.tokens_per_second is not None:
        pieces.append(say("training-speed", lang, speed=f"{event.tokens_per_second:,.0f}"))
    if event.share is not None:
        pieces.append(say("training-share", lang, share=f"{100 * event.share:.1f}"))
    return pieces


def _checkpoint_parts(state: ScreenState, lang: Language) -> list[str]:
    """The last checkpoint, and the number of skipped steps."""
    pieces = [say("training-saved", lang, step=f"{state.saved.step:,}")] if state.saved is not None else []
    return [*pieces, say("training-skipped", lang, count=state.skipped)] if state.skipped else pieces


def duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> duration(59.6), duration(3725), duration(200000)
    ('1:00', '1:02:05', '55:33:20')
    """
    minutes, second = divmod(round(max(0.0, seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


PER_SECOND = 2
PLAIN_SECONDS = 10.0
FIRST_SECONDS = 3.0
"""Until the first plain line: by then the first steps give an estimate of the remaining time."""
RECENT = 400
"""The number of losses in the sparkline."""


class TrainingScreen:
    """Shows the run of one recipe: `with TrainingScreen("copy") as screen: train(…, listeners=[screen])`."""

    def __init__(
        self,
        recipe: str,
        file: TextIO | None = None,
        lang: Language | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        stream: Any = _ErrorTolerantStream(file or sys.stderr)
        self.console = Console(file=stream, highlight=False, force_jupyter=False)
        # The drawing thread does not inherit the language of this thread.
        self.lang: Language = lang or language()
        self.clock = clock
        self.state = ScreenState(recipe=printable_label(recipe))
        self.live: Live | None = None
        self._started_at = self._last_printed = clock()
        self._has_printed = False
        if (
            self.console.is_terminal
            and not self.console.is_dumb_terminal
            and can_encode(CHARACTERS, self.console.encoding)
        ):
            self.live = Live(
                console=self.console,
                refresh_per_second=PER_SECOND,
                get_renderable=self._panel,
                redirect_stdout=False,  # data stays on stdout
            )

    def __enter__(self) -> "TrainingScreen":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Draw once more and release the terminal; a second call does nothing."""
        if self.live is not None:
            self.live.transient = self.state.started is None  # a run that never started leaves nothing on the screen
            self.live.stop()

    def __call__(self, event: "Event") -> None:
        """Store the event; start and end are printed at once."""
        getattr(self, f"_{type(event).__name__.lower()}")(event)

    # --- events ------------------------------------------------------------------------------------------

    def _started(self, event: "Started") -> None:
        self.state.started = event
        self._print_lines(started_lines(self.state, self.lang))

    def _stepped(self, event: "Stepped") -> None:
        state = self.state
        state.stepped = event
        if event.skipped:
            state.skipped += 1
        if event.loss is not None:
            state.losses.append(event.loss)
            if len(state.losses) > 2 * RECENT:  # a new list: the drawing thread may be reading the old one
                state.losses = state.losses[-RECENT:]
        wait = PLAIN_SECONDS if self._has_printed else FIRST_SECONDS
        if (
            self.live is None
            and self.clock() - self._last_printed >= wait
            and (self._has_printed or event.eta_seconds is not None)
        ):
            self._print_progress()

    def _validated(self, event: "Validated") -> None:
        self.state.validated = event
        if self.live is None:
            self._print_progress()

    def _saved(self, event: "Saved") -> None:
        self.state.saved = event

    def _finished(self, event: "Finished") -> None:
        self.state.finished = event
        self.stop()  # the final lines go below the panel
        self._print_lines(finished_lines(event, self.lang))

    # --- writing -----------------------------------------------------------------------------------------

    def _print_progress(self) -> None:
        self._has_printed = True
        self._last_printed = self.clock()
        self._print_lines([progress_line(self.state, self.lang)])

    def _print_lines(self, lines: list[str]) -> None:
        for line in lines:
            self.console.print(line, soft_wrap=True, markup=False)

    def _panel(self) -> Group:
        return panel(self.state, self.clock() - self._started_at, self.console.width, self.lang)


class _ErrorTolerantStream:
    """A stream that ignores write errors: a run does not end because its terminal was closed or its disk is full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text if possible."""
        with suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush if possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()
