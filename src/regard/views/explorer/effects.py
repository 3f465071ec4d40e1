"""What silencing a head or cutting an edge does to the next token, where a model is at hand.

A PyTorch model is edited by `regard.effect`; a LanguageModel runs its text again with another attention function.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from regard.arrays import to_numpy
from regard.errors import ArgumentError
from regard.records import Record
from regard.views.explorer.answers import Answer

MOST = 5
"""The number of tokens listed of each side."""


class Effects(Protocol):
    """A model that can run its input again with an edit."""

    def of(self, record: Record, head: int, edge: tuple[int, int] | None) -> "Moved":
        """What silencing the head does, or cutting one of its edges (query, key)."""


class Moved:
    """The probabilities of the next token before and after an edit, as log-probabilities (W,)."""

    def __init__(self, before: np.ndarray, after: np.ndarray, position: int | None, token_name: Any) -> None:
        self.before, self.after, self.position, self.token_name = before, after, position, token_name

    @property
    def kl(self) -> float:
        """How far the probabilities moved: Σ p log(p / p′)."""
        p = np.exp(self.before)
        terms = np.zeros_like(p)
        np.multiply(p, self.before - self.after, out=terms, where=p > 0)
        return float(terms.sum())

    def answer(self) -> Answer:
        """The likeliest tokens of both sides with their probabilities, and how far these moved."""
        p, q = np.exp(self.before), np.exp(self.after)
        ids = dict.fromkeys(int(i) for side in (p, q) for i in np.argsort(-side, kind="stable")[:MOST])
        names = {i: str(self.token_name(i)) for i in ids}
        listed = {
            side: [[names[i], float(found[i])] for i in sorted(ids, key=lambda i, found=found: -found[i])]  # type: ignore[misc]
            for side, found in (("before", p), ("after", q))
        }
        return Answer({**listed, "kl": self.kl, "position": self.position})


class TorchEffects:
    """A PyTorch model, with the inputs of its call."""

    def __init__(self, model: Any, inputs: Any, tokenizer: Any = None) -> None:
        self.model, self.inputs, self.tokenizer = model, inputs, tokenizer

    def of(self, record: Record, head: int, edge: tuple[int, int] | None) -> Moved:
        from regard.capture.effects import effect

        options: dict[str, Any] = {"tokenizer": self.tokenizer}
        if edge is None:
            options["silence"] = {record.module: [head]}
        else:
            options["cut"] = {record.module: [(head, *edge)]}
        found = effect(self.model, self.inputs, **options)
        position = None if found.position is None else int(found.position[0])
        before, after = (np.asarray(to_numpy(side[0]), np.float64) for side in (found.before, found.after))
        return Moved(before, after, position, found.token_name)


class LanguageEffects:
    """A LanguageModel, with what its `see` returned."""

    def __init__(self, model: Any, seen: Any) -> None:
        self.model, self.seen = model, seen

    def of(self, record: Record, head: int, edge: tuple[int, int] | None) -> Moved:
        before, after, position = self.model.moved(self.seen, record.name, head, edge)
        return Moved(before, after, position, lambda i: self.model.tokenizer.pieces([i])[0])


def effects_of(model: Any, inputs: Any, tokenizer: Any = None) -> Effects | None:
    """How to measure effects with this model and input; None without a model. Raises ArgumentError."""
    if model is None:
        if inputs is not None:
            raise ArgumentError("widget-model")
        return None
    if hasattr(model, "moved"):  # a LanguageModel: runs on NumPy too
        if isinstance(inputs, str):
            inputs = model.see(inputs)
        if not hasattr(inputs, "ids"):
            raise ArgumentError("widget-seen", found=type(inputs).__name__)
        return LanguageEffects(model, inputs)
    if inputs is None:
        raise ArgumentError("widget-inputs")
    return TorchEffects(model, inputs, tokenizer)


def edit_of(
    silence: Mapping[str, int] | None, cut: Mapping[str, int] | None
) -> tuple[int, int, tuple[int, int] | None]:
    """Layer, head and edge of a request. Raises ArgumentError where it names none or both."""
    if (silence is None) == (cut is None):
        raise ArgumentError("effect-request")
    names = ("layer", "head") if cut is None else ("layer", "head", "query", "key")
    given = silence if cut is None else cut
    assert given is not None
    if not set(names) <= set(given):
        raise ArgumentError("effect-request")
    layer, head, *edge = (given[name] for name in names)
    return layer, head, (edge[0], edge[1]) if edge else None
