"""A Session: one text, read again with a new end each time as in a conversation; what is known is not read again.

It remembers which ids its Decoding has read; the model is not known here.
"""

from itertools import takewhile
from typing import Any

import numpy as np

from regard.errors import ArgumentError
from regard.generation.decoding import Decoding
from regard.generation.prompts import Rows, check_ids, check_room, rows_of
from regard.generation.reading import check_chunk, read
from regard.kinds import Array, is_tensor, to_numpy


class Session:
    """What a Decoding of one sample has read: `session = Session(model.begin())`, then `generate(session, ids, …)`."""

    def __init__(self, decoding: Decoding) -> None:
        self.decoding = decoding
        self._read: list[Array] = []  # as they came, so that reading on waits for no device

    @property
    def ids(self) -> list[int]:
        """The ids read so far."""
        return [int(id) for part in self._read for id in to_numpy(part).ravel()]

    def read(self, ids: Any, chunk: int | None = None) -> Array:
        """Read `ids` after forgetting what differs from them; the logits after the last one, (1, W).

        What was read before and is the same again is not read twice, except the last id: its logits are the answer.
        """
        rows = rows_of(ids, "ids")
        text = one_text(rows)
        check_chunk(chunk)
        check_ids(rows, self.decoding.vocab_size, "ids")
        check_room(self.decoding, len(text))
        shared = self._keep(text)
        return read(self.step, Rows([text[shared:]], rows.alone), chunk)

    def step(self, ids: Array, keep: Array | None = None) -> Array:
        """Read ids (1, T) after the others."""
        logits = self.decoding.step(ids, keep)
        self._read.append(ids if is_tensor(ids) else np.array(ids))  # a copy: callers may use their array again
        return logits

    def _keep(self, ids: list[int]) -> int:
        """Forget what differs from `ids`, and its last; how many are left."""
        known = self.ids
        pairs = zip(known, ids[:-1], strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self.decoding.crop(shared)
        self._read = [np.array(known[:shared], dtype=np.int64)]
        return shared


def one_text(rows: Rows) -> list[int]:
    """The only text there is, or an ArgumentError."""
    if len(rows.ids) != 1:
        raise ArgumentError("session-one", found=len(rows.ids))
    return rows.ids[0]
