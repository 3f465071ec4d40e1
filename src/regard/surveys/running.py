"""`survey`: runs a model over texts and adds each to the sums. Its state is saved, so that a killed survey continues.

Texts are numbered; process r of w reads those whose number % w is r. Each process has a state file of its own: how many
of its texts are done, a hash of them, and their sums. The result merges all state files, in any number and order. A
Reader runs the model: our own models in NumPy with a Recorder, PyTorch modules inside `watch`.
"""

import hashlib
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.arrays import check_counts, to_numpy
from regard.errors import AbsentFileError, ArgumentError, FileError, RegardError, in_one_line
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.output import write_bytes, write_error
from regard.files.safe_open import open_file, read_file
from regard.language import LanguageModel, load
from regard.language.seeing import labels, run_model
from regard.records import See
from regard.surveys.result import FILE, LARGEST, Survey, json_bytes, read_skipped
from regard.surveys.sums import HeadSums, columns_of
from regard.trace import Trace
from regard.trace.recorder import Recorder

SEE = See(map=None, sink=False, qk=True)
_SAMPLE = 64
"""Numbers of each weight that identify a model."""


class ReadText(NamedTuple):
    """The Trace of one text; `was_cut`: the text was longer than the model reads."""

    trace: Trace
    was_cut: bool


class TextReader(ABC):
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


def reader_of(model: Any, tokenizer: Any) -> TextReader:
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


class _LanguageReader(TextReader):
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


class _ModuleReader(TextReader):
    """A PyTorch module that is called with ids, B T; an encoder-decoder with those of source and target."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        from regard.capture import watch

        watch(model)  # raises for a model without data
        if model.training:
            raise ArgumentError("survey-training")
        self.model, self.tokenizer, self.name = model, tokenizer, type(model).__name__
        self._spell = getattr(tokenizer, "pieces", tokenizer)
        self._config = getattr(model, "config", None)
        self._vocabulary = getattr(self._config, "vocab_size", None)
        self.longest = _usable_length(model, getattr(self._config, "max_position_embeddings", None))

    def read(self, text: str) -> ReadText:
        import torch

        from regard.capture import watch

        texts = self._ids(text)
        weight = next(self.model.parameters(), None)
        given = {name: torch.tensor([ids[: self.longest]]) for name, ids in texts.items()}
        if weight is not None:
            given = {name: ids.to(weight.device) for name, ids in given.items()}
        with torch.no_grad(), watch(self.model, self._spell, see=SEE) as trace:
            if len(given) == 1:
                self.model(*given.values())
            else:
                self.model(**given)
        was_cut = self.longest is not None and max(map(len, texts.values())) > self.longest
        return ReadText(trace, was_cut)

    def _ids(self, text: str) -> dict[str, list[int]]:
        """The ids of a text by argument; the target of an encoder-decoder begins with its start token."""
        source, tab, target = text.partition("\t")
        if not getattr(self._config, "is_encoder_decoder", False):
            return {"input_ids": self._encoded(text)}
        if not tab:
            raise ArgumentError("survey-target", name=self.name)
        start = getattr(self._config, "decoder_start_token_id", None)
        begun = [] if start is None else [start]
        return {"input_ids": self._encoded(source), "decoder_input_ids": [*begun, *self._encoded(target)]}

    def _encoded(self, text: str) -> list[int]:
        ids = list(self.tokenizer.encode(text))
        if not ids:
            raise ArgumentError("survey-no-ids")
        if isinstance(self._vocabulary, int) and max(ids) >= self._vocabulary:  # on a GPU it would end every later call
            raise ArgumentError("survey-id", id=max(ids), count=self._vocabulary)
        return ids

    def _weights(self) -> Iterable[tuple[str, Any]]:
        return _parameters(self.model)


def _usable_length(model: Any, positions: int | None) -> int | None:
    """The number of tokens that a model reads: RoBERTa's table has rows before the first position."""
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if positions and padding is not None and "position" in name and module.num_embeddings == positions:
            return int(positions - padding - 1)
    return positions


def _parameters(module: Any) -> Iterator[tuple[str, Any]]:
    for name, weight in module.named_parameters():
        yield name, weight.detach()


QUERIES = 64
"""Queries that are measured of each text."""
FIRST = 16
"""Texts after which a survey ends if the model could read none of them."""
SAVE_SECONDS = 10.0
LARGEST_TEXTS = 2**44
"""Bytes of a file of texts, which is read line by line."""
_STATE = re.compile(r"state-[0-9]{1,7}-of-[0-9]{1,7}\.json")
Progress = Callable[[int, int], None]
"""Called with the number of texts and of tokens that this process knows to be done."""


@dataclass
class SurveyState:
    """What one process has done: of the texts rank, rank + world, … the first `done`."""

    world: int
    rank: int
    settings: dict[str, Any]
    sums: HeadSums
    done: int = 0
    digest: str = "0"
    """The sum of the hashes of the texts that it has read, in base 16: it does not depend on their order."""
    skipped: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    """Why the model could not read the first text that it could not read; not saved."""

    def has(self, number: int) -> bool:
        """Whether the text of that number is done."""
        return number % self.world == self.rank and number // self.world < self.done

    def count(self, reason: str) -> None:
        """Count a text that is not measured, or not as a whole."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def save(self, folder: Path) -> None:
        """Write the state file, atomically."""
        found = {name: getattr(self, name) for name in ("world", "rank", "settings", "done", "digest", "skipped")}
        path = folder / f"state-{self.rank}-of-{self.world}.json"
        write_bytes(path, json_bytes({**found, "sums": self.sums.as_json()}))


def survey(
    model: Any,
    texts: Any,
    tokenizer: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    queries: int | None = QUERIES,
    passages: int = 3,
    most_texts: int | None = None,
    progress: Progress | None = None,
) -> Survey:
    """Measure what every head of `model` does over `texts`: patterns, entropy, sink and distance, with intervals.

    model       a model that `regard.load` returns, its name or folder, or a PyTorch module with `tokenizer`
    texts       strings, or the path of a file with a text on each line. A translator reads source, tab, target;
                without a target it translates first
    out         a folder for state and result: the same call continues an interrupted survey. `torchrun`, which splits
                the texts over processes, needs it
    queries     the queries of each text that are measured, evenly spread; None for all
    passages    texts to keep for each head and pattern
    most_texts  stop after this number of texts

    Texts that are too long are cut, empty ones are skipped, and so are those that the model cannot read; all are
    counted in `Survey.skipped`.
    """
    check_counts(passages=(passages, 1))
    check_counts(**{name: (n, 1) for name, n in (("queries", queries), ("most_texts", most_texts)) if n is not None})
    reader, columns = reader_of(model, tokenizer), columns_of()
    settings = {"model": reader.fingerprint, "queries": queries, "passages": passages, "columns": list(columns)}
    folder = None if out is None else _made_folder(Path(out))
    lines = islice(_texts(texts), most_texts)
    with _processes(folder) as (rank, world, wait):
        states = [] if folder is None else _read_states(folder, settings)
        own = next((one for one in states if (one.rank, one.world) == (rank, world)), None)
        if own is None:
            own = SurveyState(world, rank, settings, HeadSums(columns, passages))
            states.append(own)
        wait()  # all have read the states before one of them writes
        _run(reader, lines, states, own, folder, progress)
        wait()
        states = states if folder is None or world == 1 else _read_states(folder, settings)
        found = _merged(reader.name, states)
        if not found.texts:
            reason = f" ({own.reason})" if own.reason else ""
            raise ArgumentError("survey-no-texts", count=sum(found.skipped.values()), reason=reason)
        if folder is not None and rank == 0:
            write_bytes(folder / FILE, json_bytes(found.as_json()))
        wait()
        return found


def _run(
    reader: TextReader,
    lines: Iterable[str],
    states: list[SurveyState],
    own: SurveyState,
    folder: Path | None,
    progress: Any,
) -> None:
    """Read the texts of this process that are not done. FileError where texts that are done have changed."""
    before, same = 0, _Unchanged(states)
    saved = time.monotonic()
    try:
        for number, text in enumerate(lines):
            same.check(number, folder)
            if any(one.has(number) for one in states):
                same.add(number, text)
            elif number % own.world == own.rank:
                _read(reader, text, number, own)
                own.done, own.digest = number // own.world + 1, f"{int(own.digest, 16) + _hash(number, text):x}"
                if progress is not None:
                    progress(sum(one.sums.texts for one in states), sum(one.sums.tokens for one in states))
                if folder is not None and same.is_known and time.monotonic() - saved > SAVE_SECONDS:
                    own.save(folder)
                    before, saved = own.done, time.monotonic()
        same.check(None, folder)
    finally:
        if folder is not None and same.is_known and own.done > before:
            own.save(folder)


class _Unchanged:
    """Whether the texts that were done before are the same now: known once all of them have been passed."""

    def __init__(self, states: list[SurveyState]) -> None:
        self._last = max((one.rank + (one.done - 1) * one.world for one in states if one.done), default=-1)
        self._wanted = sum(int(one.digest, 16) for one in states)
        self._found = 0
        self.is_known = self._last < 0

    def add(self, number: int, text: str) -> None:
        if not self.is_known:
            self._found += _hash(number, text)

    def check(self, number: int | None, folder: Path | None) -> None:
        """Compare, if `number` is after all of them; None is the end of the texts."""
        if self.is_known or (number is not None and number <= self._last):
            return
        if self._found != self._wanted:
            raise FileError("survey-other-texts", path=str(folder))
        self.is_known = True


def _hash(number: int, text: str) -> int:
    return int(hashlib.sha256(f"{number} {text}".encode("utf-8", "surrogatepass")).hexdigest(), 16)


def _read(reader: TextReader, text: str, number: int, own: SurveyState) -> None:
    if not text.strip():
        own.count("empty")
        return
    try:
        found = reader.read(text)
    except Exception as error:  # also the errors of the caller's tokenizer and model
        own.count("unreadable")
        own.reason = own.reason or (str(error) if isinstance(error, RegardError) else in_one_line(error))
        if not own.sums.texts and own.skipped["unreadable"] >= FIRST:
            raise ArgumentError("survey-all-unreadable", count=FIRST, reason=own.reason) from error
        return
    if not len(found.trace):
        raise ArgumentError("survey-nothing", name=reader.name)
    if found.was_cut:
        own.count("cut")
    own.sums.add(found.trace, number, own.settings["queries"])


def _merged(name: str, states: list[SurveyState]) -> Survey:
    """The survey of all states, merged in a fixed order."""
    first, *others = sorted(states, key=lambda one: (one.world, one.rank))
    total = HeadSums(first.sums.columns, first.sums.best_of)
    skipped: dict[str, int] = {}
    for one in (first, *others):
        total.merge(one.sums)
        for reason, count in sorted(one.skipped.items()):
            skipped[reason] = skipped.get(reason, 0) + count
    return Survey(name, total, dict(sorted(skipped.items())))


# --- texts -----------------------------------------------------------------------------------------------


def _texts(texts: Any) -> Iterator[str]:
    """The texts one by one: the lines of a file, or strings. Raises ArgumentError for anything else."""
    if isinstance(texts, str) and not os.path.exists(texts):
        raise AbsentFileError("survey-no-file", path=texts, text=texts)
    if isinstance(texts, str | os.PathLike):
        return _lines(Path(texts))
    try:
        return _checked(iter(texts))
    except TypeError:
        raise ArgumentError("survey-texts", found=type(texts).__name__) from None


def _lines(path: Path) -> Iterator[str]:
    with open_file(path, most=LARGEST_TEXTS) as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise FileError("survey-not-utf8", path=str(path), line=number) from error


def _checked(texts: Iterator[Any]) -> Iterator[str]:
    for text in texts:
        if not isinstance(text, str):
            raise ArgumentError("survey-texts", found=type(text).__name__)
        yield text


# --- the folder, and processes ---------------------------------------------------------------------------


def _made_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(error, folder, 0) from error
    return folder


def _read_states(folder: Path, settings: dict[str, Any]) -> list[SurveyState]:
    """The state files of a folder. FileError where one is damaged, or belongs to another survey."""
    states = []
    for path in sorted(folder.iterdir()):
        if not _STATE.fullmatch(path.name):
            continue
        try:
            found = parse_json(read_file(path, most=LARGEST, within=folder))
            found["sums"], found["skipped"] = HeadSums.from_json(found["sums"]), read_skipped(found["skipped"])
            state = SurveyState(**found)
            numbers = state.world, state.rank, state.done, int(state.digest, 16)
        except (JsonError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise FileError("survey-garbled", path=str(path)) from error
        if not all(type(one) is int and one >= 0 for one in numbers) or state.rank >= state.world:
            raise FileError("survey-garbled", path=str(path))
        if state.settings != settings:
            raise FileError("survey-other", path=str(folder))
        states.append(state)
    return states


@contextmanager
def _processes(folder: Path | None) -> Iterator[tuple[int, int, Callable[[], None]]]:
    """(rank, number of processes, a function that waits for all), as `torchrun` starts them."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield 0, 1, lambda: None
        return
    if folder is None:
        raise ArgumentError("survey-needs-out")
    from regard.training.processes import joined

    with joined("cpu") as ranks:
        yield ranks.rank, ranks.world, ranks.wait
