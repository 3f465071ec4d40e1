"""Reader: reads one text with a model and gives the Trace of that run, with what exact weights are computed from.

Our own models in NumPy are run with a Recorder, PyTorch modules inside `watch`.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from regard.arrays import to_numpy
from regard.errors import ArgumentError
from regard.language import LanguageModel, load
from regard.language.seeing import labels, run_model
from regard.records import See
from regard.trace import Trace
from regard.trace.recorder import Recorder

SEE = See(map=None, sink=False, qk=True)
_SAMPLE = 64
"""Numbers of each weight that identify a model."""


class ReadText(NamedTuple):
    """The Trace of one text; `was_cut`: the text was longer than the model reads."""

    trace: Trace
    was_cut: bool


class Reader(ABC):
    """A model that reads texts."""

    name: str

    @abstractmethod
    def read(self, text: str) -> ReadText:
        """The Trace of one text. Raises RegardError where the model cannot read it."""

    @property
    def fingerprint(self) -> str:
        """A hash of the names and shapes of all weights and of some of their numbers."""
        found = hashlib.sha256()
        for name, weight in self._weights():
            flat = weight.reshape(-1)
            step = max(1, len(flat) // _SAMPLE)
            sample = np.ascontiguousarray(np.asarray(to_numpy(flat[::step][:_SAMPLE]), np.float32))
            found.update(f"{name} {tuple(weight.shape)} ".encode() + sample.tobytes())
        return found.hexdigest()

    @abstractmethod
    def _weights(self) -> Iterable[tuple[str, Any]]: ...


def reader_of(model: Any, tokenizer: Any) -> Reader:
    """The reader for a language model, its name or folder, or a PyTorch module with a tokenizer."""
    if isinstance(model, str | os.PathLike):
        model = load(model)
    if isinstance(model, LanguageModel):
        return _LanguageReader(model)
    if not hasattr(model, "named_parameters"):
        raise ArgumentError("survey-model", found=type(model).__name__)
    if not callable(getattr(tokenizer, "encode", None)):
        raise ArgumentError("survey-tokenizer", found=type(tokenizer).__name__)
    return _ModuleReader(model, tokenizer)


class _LanguageReader(Reader):
    """A model that `regard.load` gave."""

    def __init__(self, model: LanguageModel) -> None:
        self.model, self.name = model, model.name

    def read(self, text: str) -> ReadText:
        model = self.model
        whole = self._ids(text)
        cut = [one[: model.longest] for one in whole]
        was_cut = any(len(one) > model.longest for one in whole)
        if model.backend.name == "numpy":
            recorder = Recorder(SEE)
            run_model(model, recorder, *cut)
            tokens, *source = (labels(model, one) for one in cut)
            return ReadText(recorder.label(tokens, *source), was_cut)
        return ReadText(self._watched(cut), was_cut)

    def _ids(self, text: str) -> tuple[list[int], ...]:
        """The text as the model reads it: for a translator the target, then the source."""
        model, encode, task = self.model, self.model.tokenizer.encode, self.model.settings.task
        if task == "translation":
            source, _, target = text.partition("\t")
            start = [] if model.special.start is None else [model.special.start]
            written = target or model.translate(source)
            return [*start, *encode(written)], model.special.around(encode(source))
        ids = encode(text)
        return ([*model.special.before_prompt, *ids] if task == "text" else model.special.around(ids),)

    def _watched(self, texts: list[list[int]]) -> Trace:
        import torch

        from regard.capture import watch

        module = self.model.model
        ids, *source = (torch.tensor([one], device=next(module.parameters()).device) for one in texts)
        with torch.no_grad(), watch(module, self._spell, see=SEE) as trace:
            if self.model.backend.name == "torch":
                module(ids, *source)
            elif source:
                module(input_ids=source[0], decoder_input_ids=ids)
            else:
                module(input_ids=ids)
        return trace

    def _spell(self, ids: list[int]) -> list[str]:
        return labels(self.model, ids)

    def _weights(self) -> Iterable[tuple[str, Any]]:
        module = self.model.model
        return module.weights.items() if self.model.backend.name == "numpy" else _parameters(module)


class _ModuleReader(Reader):
    """A PyTorch module that is called with ids, B T."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer, self.name = model, tokenizer, type(model).__name__
        self._spell = getattr(tokenizer, "pieces", tokenizer)
        config = getattr(model, "config", None)
        self.longest = getattr(config, "max_position_embeddings", None)

    def read(self, text: str) -> ReadText:
        import torch

        from regard.capture import watch

        ids = list(self.tokenizer.encode(text))
        if not ids:
            raise ArgumentError("translate-empty")
        given = torch.tensor([ids[: self.longest]], device=next(self.model.parameters()).device)
        with torch.no_grad(), watch(self.model, self._spell, see=SEE) as trace:
            self.model(given)
        return ReadText(trace, self.longest is not None and len(ids) > self.longest)

    def _weights(self) -> Iterable[tuple[str, Any]]:
        return _parameters(self.model)


def _parameters(module: Any) -> Iterator[tuple[str, Any]]:
    for name, weight in module.named_parameters():
        yield name, weight.detach()
