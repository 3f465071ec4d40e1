"""The screen of a run: a listener that shows live on stderr how training goes; off a terminal, a line now and then.

An event is only kept; a thread draws what is newest, a few times a second, so a step does not wait for the screen.
Events are told apart by the names of their classes: their room needs torch, and the command line does not.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, Group
from rich.live import Live

from regard.cli.training_lines import SIGNS, State, finished_lines, news_line, panel, started_lines
from regard.views.labels import visible
from regard.views.terminal import holds
from regard.words import Language, language

if TYPE_CHECKING:
    from regard.training.events import Event, Finished, Saved, Started, Stepped, Validated

PER_SECOND = 2
PLAIN_SECONDS = 10.0
FIRST_SECONDS = 3.0
"""Until the first plain line: by then the first steps tell how long the whole run takes on this machine."""
RECENT = 400
"""The losses that the sparkline is made of."""


class TrainingScreen:
    """Shows the run of one recipe: `with TrainingScreen("copy") as screen: train(…, listeners=[screen])`."""

    def __init__(
        self,
        recipe: str,
        file: TextIO | None = None,
        lang: Language | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        talk: Any = _Forgiving(file or sys.stderr)
        self.console = Console(file=talk, highlight=False, force_jupyter=False)
        # The thread that draws does not inherit the language that was chosen for this one.
        self.lang: Language = lang or language()
        self.clock = clock
        self.state = State(recipe=visible(recipe))
        self.live: Live | None = None
        self._began = self._spoke = clock()
        self._has_news = False
        if self.console.is_terminal and not self.console.is_dumb_terminal and holds(SIGNS, self.console.encoding):
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
        """Draw for the last time and give the terminal back; a second time does nothing."""
        if self.live is not None:
            self.live.transient = self.state.started is None  # of what never began nothing is left standing
            self.live.stop()

    def __call__(self, event: "Event") -> None:
        """Keep the event; what will not come again is said at once."""
        getattr(self, f"_{type(event).__name__.lower()}")(event)

    # --- events ------------------------------------------------------------------------------------------

    def _started(self, event: "Started") -> None:
        self.state.started = event
        self._say(started_lines(self.state, self.lang))

    def _stepped(self, event: "Stepped") -> None:
        state = self.state
        state.stepped = event
        if event.skipped:
            state.skipped += 1
        if event.loss is not None:
            state.losses.append(event.loss)
            if len(state.losses) > 2 * RECENT:  # a new list: the thread may be reading the old one
                state.losses = state.losses[-RECENT:]
        wait = PLAIN_SECONDS if self._has_news else FIRST_SECONDS
        if (
            self.live is None
            and self.clock() - self._spoke >= wait
            and (self._has_news or event.eta_seconds is not None)
        ):
            self._news()

    def _validated(self, event: "Validated") -> None:
        self.state.validated = event
        if self.live is None:
            self._news()

    def _saved(self, event: "Saved") -> None:
        self.state.saved = event

    def _finished(self, event: "Finished") -> None:
        self.state.finished = event
        self.stop()  # the last word stands under the panel
        self._say(finished_lines(event, self.lang))

    # --- writing -----------------------------------------------------------------------------------------

    def _news(self) -> None:
        self._has_news = True
        self._spoke = self.clock()
        self._say([news_line(self.state, self.lang)])

    def _say(self, lines: list[str]) -> None:
        for line in lines:
            self.console.print(line, soft_wrap=True, markup=False)

    def _panel(self) -> Group:
        return panel(self.state, self.clock() - self._began, self.console.width, self.lang)


class _Forgiving:
    """A stream that nobody may be reading any more: a run does not end because its screen was closed, or is full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """As much as can be."""
        with suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Where there is somebody."""
        with suppress(OSError, ValueError):
            self._stream.flush()
