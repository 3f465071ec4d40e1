"""What the screen of a run says: the lines of its live panel, and the plain lines for where nothing can be redrawn.

It turns the newest events into text; when that is drawn is known in `training_screen`.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.style import Style
from rich.text import Text

from regard.views.caption import flow
from regard.views.curves import loss_text, thin
from regard.views.labels import cut, visible
from regard.words import Language, say

if TYPE_CHECKING:
    from regard.training.events import Finished, Saved, Started, Stepped, Validated

_SPARKS = "▁▂▃▄▅▆▇█"
_DONE, _TO_DO = "━", "─"
SIGNS = f"·{_DONE}{_TO_DO}{_SPARKS}"
"""What a terminal must be able to write for the panel to be drawn on it."""
_SPARK_COLUMNS = 32
_DIM, _BOLD = Style(dim=True), Style(bold=True)


@dataclass(slots=True)
class State:
    """The newest of every kind of event, and the recent losses."""

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
        """How far the run is."""
        event = self.finished or self.stepped or self.started
        return event.step if event is not None else 0


# --- said once -------------------------------------------------------------------------------------------


def started_lines(state: State, lang: Language) -> list[str]:
    """What begins, where it goes on from, and which checkpoints could not be used."""
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
    lines += [say("training-checkpoint-skipped", lang, reason=visible(reason)) for reason in event.skipped]
    if event.resumed_from is not None:
        lines.append(say("training-resumed", lang, step=f"{event.resumed_from:,}"))
    return lines


def finished_lines(event: "Finished", lang: Language) -> list[str]:
    """How the run ended, and what came out."""
    lines = [say(f"training-ended-{event.reason}", lang, step=f"{event.step:,}")]
    loss, best, step = (event.figures.get(name) for name in ("valid_loss", "best_valid_loss", "best_step"))
    if loss is not None and best is not None:
        lines.append(say("training-figures", lang, loss=loss_text(loss), best=loss_text(best), step=f"{step:,}"))
    return lines


def news_line(state: State, lang: Language) -> str:
    """How it goes, in one plain line."""
    steps = state.started.steps if state.started else state.step
    pieces = [say("training-step", lang, step=f"{state.step:,}", steps=f"{steps:,}")]
    pieces += [*_course(state, lang), *_pace(state, lang), *_keeping(state, lang)]
    if state.stepped is not None and state.stepped.eta_seconds is not None:
        pieces.append(say("training-left", lang, time=duration(state.stepped.eta_seconds)))
    return say("training-comma", lang).join(pieces)


# --- drawn again and again -------------------------------------------------------------------------------


def panel(state: State, elapsed: float, width: int, lang: Language) -> Group:
    """The live panel: none of its lines wider than `width`."""
    pieces = [say("training-elapsed", lang, time=duration(elapsed))]
    if state.started is None:
        return Group(*flow([state.recipe, say("training-preparing", lang), *pieces], width))
    steps = state.started.steps
    if state.stepped is not None and state.stepped.eta_seconds is not None and state.finished is None:
        pieces.append(say("training-left", lang, time=duration(state.stepped.eta_seconds)))
    count = say("training-step", lang, step=f"{state.step:,}", steps=f"{steps:,}")
    head = flow([state.recipe, count, *pieces], width)
    head[0].stylize(_BOLD, 0, len(cut(state.recipe, width)))
    lines = [*head, bar(state.step / steps, width)]
    spark = sparkline(state.losses, _SPARK_COLUMNS)
    course = _course(state, lang)
    if course and spark:
        course[0] += f" {spark}"
    for group in (course, _pace(state, lang), _keeping(state, lang)):
        lines += flow(group, width)
    return Group(*lines)


def bar(share: float, width: int) -> Text:
    """How much is done, as wide as it may be."""
    room = max(4, min(width, 80) - 6)
    done = min(room, int(max(0.0, share) * room))
    line = Text(_DONE * done, Style(color="green"))
    line.append(_TO_DO * (room - done), _DIM)
    return line.append(f" {min(1.0, max(0.0, share)):4.0%}")


def sparkline(values: list[float], columns: int) -> str:
    """The course of the values in so many characters, from the lowest to the highest; nothing for fewer than two.

    >>> sparkline([4.0, 3.0, 2.0, 1.0], 4)
    '█▆▃▁'
    """
    if len(values) < 2:
        return ""
    columns = min(columns, len(values))
    mean = thin(np.arange(len(values), dtype=float), np.array(values), columns, (0, len(values) - 1)).mean
    low, high = mean.min(), mean.max()
    levels = (mean - low) / (high - low) * (len(_SPARKS) - 1) if high > low else np.zeros(columns)
    return "".join(_SPARKS[int(level)] for level in levels.round())


def _course(state: State, lang: Language) -> list[str]:
    """Losses."""
    pieces = []
    if state.losses:
        pieces.append(say("training-loss", lang, loss=loss_text(state.losses[-1])))
    if state.validated is not None:
        loss, best = loss_text(state.validated.loss), loss_text(state.validated.best)
        pieces.append(say("training-validation", lang, loss=loss, step=f"{state.validated.step:,}", best=best))
    return pieces


def _pace(state: State, lang: Language) -> list[str]:
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


def _keeping(state: State, lang: Language) -> list[str]:
    """The last checkpoint, and what was left out."""
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
