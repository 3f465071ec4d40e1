"""What a run tells while it goes on: frozen values, handed to listeners in the order in which things happen.

Who listens (a screen, a file, a test) is not known here. A listener is called in the middle of training, so it should
keep what it needs and return at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Reason = Literal["steps", "patience", "already", "signal"]
"""Why a run ended: all steps done; nothing better for too long; it had ended before; it was asked to stop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """Training begins after `step` of `steps`.

    resumed_from  the step of the checkpoint it goes on from; None for a new run
    skipped       a sentence for each newer checkpoint that could not be used
    """

    step: int
    steps: int
    ranks: int = 1
    device: str = "cpu"
    parameters: int = 0
    resumed_from: int | None = None
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Stepped:
    """One optimizer update is done, or was left out because its loss was not finite.

    loss         None where the step was skipped
    norm         of the gradient, before clipping
    share        of the measured peak of the device, 0 to 1; None where no peak was measured
    eta_seconds  until the last step; None as long as nobody can tell
    """

    step: int
    loss: float | None
    lr: float
    norm: float | None = None
    tokens_per_second: float | None = None
    share: float | None = None
    eta_seconds: float | None = None
    skipped: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Validated:
    """The validation set was looked at; `best` is the lowest loss so far, this one included."""

    step: int
    loss: float
    best: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """A checkpoint is in place."""

    step: int
    path: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """The run ended; `figures` are what it is remembered by."""

    step: int
    reason: Reason
    figures: Mapping[str, Any] = field(default_factory=dict)


Event = Started | Stepped | Validated | Saved | Finished
Listener = Callable[[Event], None]
