"""Calls of a module over texts that were written step by step: which go on from which, and who has read a text.

Told by the records alone, by where their queries stand and whose text each sample goes on with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import ArgumentError
from regard.records import Record

Ends = Sequence[tuple[int, int]]
"""For each text, the call that read it last, and the sample of that call."""


@dataclass(slots=True, eq=False)
class Run:
    """The calls of one module over one text. `number` is the place of the first among all records.

    samples   how many sources there are: the beams of each stand beside each other at first, and so do its results
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
        """How many rows there are once a call has been made."""
        return end_of(self.calls[at]) - start_of(self.calls[0])

    def ends(self, texts: np.ndarray) -> Ends:
        """For each text, the last call that read a beginning of it, and the sample that did."""
        N = len(texts)
        return [self._end(text, n * self.samples // N) for n, text in enumerate(texts)]

    def _end(self, text: np.ndarray, source: int) -> tuple[int, int]:
        for at in range(len(self.calls) - 1, -1, -1):
            for row in range(self.calls[at].shape[0]):
                if self._has_read(at, row, text) and self._source(at, row) == source:
                    return at, row
        raise ArgumentError("stitch-text", name=self.calls[0].name)

    def _source(self, at: int, row: int) -> int:
        """That of the sample of the first call which it goes on from: some beams may have ended since."""
        for call in self.calls[at::-1]:
            row = parent_of(call, row)
        return row * self.samples // self.calls[0].shape[0]

    def _has_read(self, at: int, row: int, text: np.ndarray) -> bool:
        """Whether the text of a sample, call by call back to its first, is how this one begins."""
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


def runs_of(records: Iterable[Record]) -> list[Run]:
    latest: dict[str, Run] = {}
    runs: list[Run] = []
    samples = 1
    for number, record in enumerate(records):
        if record.kind == "encoder":
            samples = record.shape[0]
        module = record.module
        if record.step is None or not record.step.parents or module not in latest:
            latest[module] = Run([record], number, samples)
            runs.append(latest[module])
        else:
            _check_parents(latest[module].calls[-1], record, record.step.parents)
            latest[module].calls.append(record)
    return runs


def was_lost(run: Run, runs: Sequence[Run]) -> bool:
    """Whether it seems to go on from a text that is there, but was not the module's last: two are written in turn."""
    step = run.calls[0].step
    if step is None or step.parents:
        return False
    before = [one for one in runs if one.module == run.module and one.number < run.number]
    return any(end_of(one.calls[-1]) == step.start for one in before[:-1])


def asked_for(runs: Sequence[Run], texts: np.ndarray) -> list[tuple[Run, Ends | None]]:
    """Of each module the run that read most of these texts, the latest of equals; of encoders those that it looks at.

    Without a cache every step reads the text from its beginning; the last of them is all there is to know.
    """
    found: dict[str, tuple[int, Run, Ends]] = {}
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
    chosen: dict[int, tuple[Run, Ends | None]] = {run.number: (run, ends) for _, run, ends in found.values()}
    for start in list(chosen):
        before = {run.module: run for run in runs if run.is_encoder and run.number < start}
        chosen |= {run.number: (run, None) for run in before.values()}
    return [chosen[number] for number in sorted(chosen)]


def _check_parents(before: Record, call: Record, parents: tuple[int, ...]) -> None:
    """ArgumentError where it does not go on from that call: one between them was left out, or a file says nonsense."""
    count, most = call.shape[0], before.shape[0]
    if len(parents) != count or not all(0 <= parent < most for parent in parents):
        raise ArgumentError("stitch-parents", name=call.name, parents=list(parents), count=count, before=most)


def parent_of(call: Record, row: int) -> int:
    """The sample of the call before that a sample goes on from."""
    return row if call.step is None or not call.step.parents else call.step.parents[row]


def start_of(call: Record) -> int:
    return 0 if call.step is None else call.step.start


def end_of(call: Record) -> int:
    return start_of(call) + call.shape[2]
