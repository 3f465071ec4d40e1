"""Calls of a module during generation, grouped into runs: which call continues which, and which run read a text.

Only the records are used: the positions of their queries, and the sample that each sample continues.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import ArgumentError
from regard.records import Record

Ends = Sequence[tuple[int, int]]
"""For each text, the last call that read it, and the sample of that call."""


@dataclass(slots=True, eq=False)
class DecodeRun:
    """The calls of one module over one text. `number` is the index of the first one among all records.

    samples   the number of sources; the beams of a source are adjacent at first, and so are its results
    """

    calls: list[Record]
    number: int
    samples: int

    @property
    def module(self) -> str:
        return self.calls[0].module

    @property
    def is_encoder(self) -> bool:
        return self.calls[0].kind == "encoder"

    def rows_until(self, at: int) -> int:
        """The number of rows after a call."""
        return end_of(self.calls[at]) - start_of(self.calls[0])

    def ends(self, texts: np.ndarray) -> Ends:
        """For each text, the last call that read a prefix of it, and the sample that did."""
        N = len(texts)
        return [self._end(text, n * self.samples // N) for n, text in enumerate(texts)]

    def _end(self, text: np.ndarray, source: int) -> tuple[int, int]:
        for at in range(len(self.calls) - 1, -1, -1):
            for row in range(self.calls[at].shape[0]):
                if self._has_read(at, row, text) and self._source(at, row) == source:
                    return at, row
        raise ArgumentError("stitch-text", name=self.calls[0].name)

    def _source(self, at: int, row: int) -> int:
        """The source of the first call's sample from which this one continues: some beams may have ended since."""
        for call in self.calls[at::-1]:
            row = parent_of(call, row)
        return row * self.samples // self.calls[0].shape[0]

    def _has_read(self, at: int, row: int, text: np.ndarray) -> bool:
        """Whether the text of a sample, from this call back to the first, is a prefix of `text`."""
        end = end_of(self.calls[at])
        if end > len(text):
            return False
        for call in self.calls[at::-1]:
            start = start_of(call)
            if start < end:
                if call.ids is None:
                    raise ArgumentError("stitch-no-ids", name=call.name)
                if not np.array_equal(call.ids[row, : end - start], text[start:end]):
                    return False
                end = start
            row = parent_of(call, row)
        return True


def runs_of(records: Iterable[Record]) -> list[DecodeRun]:
    latest: dict[str, DecodeRun] = {}
    runs: list[DecodeRun] = []
    samples = 1
    for number, record in enumerate(records):
        if record.kind == "encoder":
            samples = record.shape[0]
        module = record.module
        if record.step is None or not record.step.parents or module not in latest:
            latest[module] = DecodeRun([record], number, samples)
            runs.append(latest[module])
        else:
            _check_parents(latest[module].calls[-1], record, record.step.parents)
            latest[module].calls.append(record)
    return runs


def is_interleaved(run: DecodeRun, runs: Sequence[DecodeRun]) -> bool:
    """Whether the run seems to continue a recorded text that was not the module's last: two texts alternate."""
    step = run.calls[0].step
    if step is None or step.parents:
        return False
    before = [one for one in runs if one.module == run.module and one.number < run.number]
    return any(end_of(one.calls[-1]) == step.start for one in before[:-1])


def runs_for_texts(runs: Sequence[DecodeRun], texts: np.ndarray) -> list[tuple[DecodeRun, Ends | None]]:
    """For each module the run that read most of these texts, the latest if several did; and the encoder runs before it.

    Without a cache every step reads the text from its beginning, and the last step contains all others.
    """
    found: dict[str, tuple[int, DecodeRun, Ends]] = {}
    unread: dict[str, ArgumentError] = {}
    for run in runs:
        if run.is_encoder:
            continue
        try:
            ends = run.ends(texts)
        except ArgumentError as error:
            unread.setdefault(run.module, error)
            continue
        rows = sum(run.rows_until(at) for at, _ in ends)
        if run.module not in found or rows >= found[run.module][0]:
            found[run.module] = rows, run, ends
    for module, why in unread.items():
        if module not in found:
            raise why
    if not found:
        return [(run, None) for run in runs]
    chosen: dict[int, tuple[DecodeRun, Ends | None]] = {run.number: (run, ends) for _, run, ends in found.values()}
    for start in list(chosen):
        before = {run.module: run for run in runs if run.is_encoder and run.number < start}
        chosen |= {run.number: (run, None) for run in before.values()}
    return [chosen[number] for number in sorted(chosen)]


def _check_parents(before: Record, call: Record, parents: tuple[int, ...]) -> None:
    """Raise ArgumentError where `call` cannot continue `before`: a call is missing, or the file is invalid."""
    count, most = call.shape[0], before.shape[0]
    if len(parents) != count or not all(0 <= parent < most for parent in parents):
        raise ArgumentError("stitch-parents", name=call.name, parents=list(parents), count=count, before=most)


def parent_of(call: Record, row: int) -> int:
    """The sample of the previous call that a sample continues."""
    return row if call.step is None or not call.step.parents else call.step.parents[row]


def start_of(call: Record) -> int:
    return 0 if call.step is None else call.step.start


def end_of(call: Record) -> int:
    return start_of(call) + call.shape[2]
