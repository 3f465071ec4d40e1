"""What a run leaves behind in words and numbers: metrics.jsonl, one line a step, and events for whoever listens."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.files import refusal
from regard.training.durable import Digest, replace_file
from regard.training.events import Event, Listener, Stepped, Validated
from regard.training.json_line import json_bytes
from regard.training.metrics import MetricsFile
from regard.training.reports import Pace, Report

METRICS = "metrics.jsonl"
WRITE_SECONDS = 0.5
"""Lines are written together: one at a time, a step of few milliseconds would feel it. A checkpoint waits for them."""


class Journal:
    """Of the process that writes; the others have one that is silent.

    share_per_rate   what a token per second is, as a share of the device's measured peak; None where nobody knows
    """

    def __init__(self, folder: Path, steps: int, listeners: Sequence[Listener], *, silent: bool) -> None:
        self.folder, self.steps, self.listeners, self.silent = folder, steps, listeners, silent
        self.metrics = MetricsFile(folder / METRICS)
        self.pace = Pace()
        self.share_per_rate: float | None = None
        self._lines: list[dict[str, Any]] = []  # not written yet; a validation may still be added to the last
        self._wrote = time.monotonic()

    def begin(self, step: int, known: Digest | None = None) -> None:
        """Go on after `step`: what was written down after it happened in a course that is forgotten.

        known   the metrics as they were at `step`: nothing of them may have changed
        """
        if self.silent:
            return
        if known is None:
            self.metrics.cut(step)
        else:
            self.metrics.go_back(step, known)

    def tell(self, event: Event) -> None:
        """Let everybody know."""
        if not self.silent:
            for listener in self.listeners:
                listener(event)

    def step(self, report: Report) -> None:
        """Write down and tell one step; of one that was left out, also which examples were in it."""
        self.pace.add(report.n_tokens)
        if self.silent:
            return
        if time.monotonic() - self._wrote > WRITE_SECONDS:
            self._write()
        rate, seconds = self.pace.tokens_per_second, self.pace.seconds_per_step
        is_bad = report.loss is None
        line = {"step": report.step, "loss": report.loss, "lr": report.lr, "norm": report.norm}
        line |= {"tokens": report.n_tokens, "tokens_per_second": rate and round(rate, 1)}
        if is_bad:
            line["skipped"] = True
            self._keep_bad(report)
        self._lines.append(line)
        share = None if self.share_per_rate is None or rate is None else self.share_per_rate * rate
        eta = None if seconds is None else seconds * (self.steps - report.step)
        self.tell(
            Stepped(
                step=report.step,
                loss=report.loss,
                lr=report.lr,
                norm=report.norm,
                tokens_per_second=rate,
                share=share,
                eta_seconds=eta,
                skipped=is_bad,
            )
        )

    def validated(self, step: int, loss: float, best: float) -> None:
        """Write the validation into the line of its step, and tell it."""
        if self._lines:
            self._lines[-1]["valid_loss"] = loss
        self.tell(Validated(step=step, loss=loss, best=best))

    def settle(self) -> None:
        """Everything told so far is in the file, and the file is on the disk."""
        if not self.silent:
            self._write()
            self.metrics.sync()

    def _write(self) -> None:
        if self._lines:
            self.metrics.append(self._lines)
        self._lines, self._wrote = [], time.monotonic()

    def _keep_bad(self, report: Report) -> None:
        path = self.folder / "bad" / f"step-{report.step:08d}.json"
        content = json_bytes("examples", {"step": report.step, "examples": list(report.examples)}) + b"\n"
        try:
            path.parent.mkdir(exist_ok=True)
            replace_file(path, content)
        except OSError as error:
            raise refusal(error, path, len(content)) from error
