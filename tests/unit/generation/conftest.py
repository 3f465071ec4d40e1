"""A toy model for generation: the logits are a row of a table, chosen by all ids read and their positions."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from regard.masks import Mask

STATES = 97


@dataclass
class ToyDecoding:
    """The same code for NumPy and torch: `xp` is either. A mistake in order, padding or cropping changes the state."""

    toy: "Toy"
    start: Any  # what the source adds to the state, B or 0
    ids: Any = None  # B T
    keep: Any = None
    steps: list[tuple[int, ...]] = field(default_factory=list)
    selected: list[list[int]] = field(default_factory=list)

    @property
    def vocab_size(self) -> int:
        return self.toy.table.shape[1]

    @property
    def max_len(self) -> int | None:
        return self.toy.max_len

    @property
    def length(self) -> int:
        return 0 if self.ids is None else self.ids.shape[1]

    def step(self, ids: Any, keep: Any = None) -> Any:
        xp = self.toy.xp
        ids = xp.asarray(ids)
        padded = keep is not None
        keep = xp.asarray(keep) if padded else xp.ones_like(ids, dtype=bool)
        assert ids.ndim == 2
        assert ids.shape == keep.shape
        self.ids = ids if self.ids is None else xp.concatenate([self.ids, ids], 1)
        self.keep = keep if self.keep is None else xp.concatenate([self.keep, keep], 1)
        assert not (padded and (self.keep[:, :-1] & ~self.keep[:, 1:]).any())  # no padding after the start of a text
        self.steps.append(tuple(ids.shape))
        places = self.keep.cumsum(-1) * self.keep  # 1, 2, … for ids, 0 for padding
        state = self.start + (places * places * (self.ids + 1)).sum(-1)
        return self.toy.rows(state % STATES)

    def step_each(self, ids: Any) -> Any:
        """The logits after each id, in one step."""
        before = len(self.steps)
        each = [self.step(ids[:, at : at + 1]) for at in range(ids.shape[1])]
        self.steps[before:] = [tuple(ids.shape)]
        return self.toy.xp.stack(each, 1)

    def select(self, rows: list[int]) -> None:
        self.selected.append(rows)
        self.ids, self.keep = self.ids[rows], self.keep[rows]
        self.start = self.start[rows] if self.toy.encodes else self.start

    def crop(self, length: int) -> None:
        assert 0 <= length <= self.length
        if self.ids is not None:
            self.ids, self.keep = self.ids[:, :length], self.keep[:, :length]


class Toy:
    """A model of `vocab_size` ids; `begun` holds its decodings, for tests that count."""

    def __init__(
        self,
        xp: Any = np,
        vocab_size: int = 7,
        seed: int = 0,
        max_len: int | None = None,
        encodes: bool = False,
        table: np.ndarray | None = None,
    ) -> None:
        random = np.random.default_rng(seed).normal(size=(STATES, vocab_size)).astype(np.float32) * 2
        self.xp, self.max_len, self.encodes = xp, max_len, encodes
        self.table = xp.asarray(random if table is None else table)
        self.begun: list[ToyDecoding] = []
        self.cache = ""  # the last option given to `begin`

    def rows(self, state: Any) -> Any:
        return self.table[state]

    def begin(self, source: Any = None, *, source_mask: Mask | None = None, cache: str = "growing") -> ToyDecoding:
        assert (source is not None) == self.encodes
        start: Any = 0
        if source is not None:
            source = self.xp.asarray(source)
            S = source.shape[1]
            keep = 1 if source_mask is None else source_mask.dense(1, S, like=source)[:, 0, 0]  # B S
            start = ((source + 1) * keep * self.xp.arange(1, S + 1)).sum(-1)
        self.cache = cache
        self.begun.append(ToyDecoding(self, start))
        return self.begun[-1]

    def after(self, ids: list[int], source: list[int] | None = None) -> np.ndarray:
        """The logits after one text, from the definition."""
        start = sum(i * (id + 1) for i, id in enumerate(source or [], 1))
        state = start + sum(i * i * (id + 1) for i, id in enumerate(ids, 1))
        return np.asarray(self.table)[state % STATES]

    def greedy(self, prompt: list[int], n: int, source: list[int] | None = None) -> list[int]:
        """The n ids of greedy decoding, from the definition."""
        text = list(prompt)
        for _ in range(n):
            text.append(int(self.after(text, source).argmax()))
        return text[len(prompt) :]


@pytest.fixture(params=[np, torch], ids=["numpy", "torch"])
def xp(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="session")
def toy() -> type[Toy]:
    """The class: `toy(xp, vocab_size=5, …)` is a model."""
    return Toy
