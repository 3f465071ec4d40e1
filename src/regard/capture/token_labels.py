"""The tokens that a model read, their names by a tokenizer, and texts that grow call by call in a model with a cache.

Tokens are the ids that the input embedding looked up. An encoder and a decoder read different texts, and may share one
embedding: ids wait for an attention of their length, and then belong to its side.

Which call continues which text is found by comparing keys. A cache that was continued contains the keys of the previous
call, sample by sample; a beam search that reordered its samples reordered their keys too. Values serve as well: a cache
treats them like keys, and they are all that is visible of a model that computes its own softmax.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.capture.model_facts import ModelFacts
from regard.capture.operators import is_readable
from regard.errors import ArgumentError
from regard.records import DecodeStep
from regard.text import Tokenizer
from regard.text.segmentation import byte_level_bytes, text_or_hex

TokenNames = Callable[[Sequence[int]], list[str]]
"""Converts ids to one string each."""

_OTHER_ARGUMENTS = re.compile(r"mask|type|pos|seg|label|target", re.I)
_OTHER_TABLES = re.compile(r"pos|wpe|type|seg|relative|time|patch|class", re.I)


def token_names_function(tokenizer: Any) -> TokenNames | None:
    """A function that converts ids to tokens with this tokenizer; None for None. ArgumentError if it is no tokenizer.

    >>> token_names_function(lambda ids: [str(i) for i in ids])([7, 8])
    ['7', '8']
    """
    if tokenizer is None:
        return None
    token_names = (
        tokenizer.pieces if isinstance(tokenizer, Tokenizer) else getattr(tokenizer, "convert_ids_to_tokens", None)
    )
    token_names = token_names or getattr(
        getattr(tokenizer, "tokenizer", None), "convert_ids_to_tokens", None
    )  # a processor's
    if token_names is None and (isinstance(tokenizer, type) or not callable(tokenizer)):
        raise ArgumentError("watch-tokenizer", found=type(tokenizer).__name__)
    convert = token_names or tokenizer
    as_text = _text_of_bytes(tokenizer) if token_names is not None and not isinstance(tokenizer, Tokenizer) else None

    def checked(ids: Sequence[int]) -> list[str]:
        found = convert(list(ids))
        if not isinstance(found, Sequence) or isinstance(found, str) or len(found) != len(ids):
            count = len(found) if isinstance(found, Sequence) and not isinstance(found, str) else type(found).__name__
            raise ArgumentError("watch-tokens", found=count, wanted=len(ids))
        # An id that the tokenizer does not know has no name: vocabularies are padded to round sizes.
        named = [str(i) if piece is None else str(piece) for i, piece in zip(ids, found, strict=True)]
        return named if as_text is None else [as_text(piece) for piece in named]

    return checked


def _text_of_bytes(tokenizer: Any) -> Callable[[str], str] | None:
    """A function from a byte-level token to its text: "Ġcat" to " cat", a part of a character to its bytes.

    None for any other vocabulary. Added tokens are written in plain letters, and stay unchanged.
    """
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)  # a processor's
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    state = b"" if decoder is None else decoder.__getstate__()
    if b'"ByteLevel"' not in state and not hasattr(tokenizer, "byte_decoder"):
        return None
    added = {str(token) for token in getattr(tokenizer, "added_tokens_decoder", {}).values()}

    def text(token: str) -> str:
        raw = None if token in added else byte_level_bytes(token)
        return token if raw is None else text_or_hex(raw)

    return text


class GuardedTokenizer:
    """A tokenizer that is called during a model's forward: its errors must not stop the model.

    error   the first error; after it there are no tokens
    """

    def __init__(self, tokenizer: Any) -> None:
        self._token_names = token_names_function(tokenizer)
        self.error: str | None = None

    @property
    def available(self) -> bool:
        """Whether tokens can be spelled."""
        return self._token_names is not None and self.error is None

    def tokens_of_rows(self, rows: Sequence[Sequence[int]]) -> list[list[str]] | None:
        """The tokens of several texts; None without a tokenizer, or after it failed."""
        if self._token_names is None or self.error is not None:
            return None
        try:
            return [self._token_names(row) for row in rows]
        except Exception as error:  # the tokenizer may be any function of the user
            self.error = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return None

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The tokens of some ids; "" for each if the tokenizer fails."""
        rows = self.tokens_of_rows([ids])
        return [""] * len(ids) if rows is None else rows[0]


def token_tables(
    model: nn.Module, modules: Sequence[nn.Module] | None = None, facts: ModelFacts | None = None
) -> set[int]:
    """The addresses of the weights that embed token ids; not those of positions and the like."""
    several = list(model.modules()) if modules is None else modules
    facts = facts or ModelFacts({})
    by_class = facts.once("embedding owners", lambda: [at for at, one in enumerate(several) if _has_embeddings(one)])
    # The user may have added the method since, as our warning says.
    by_attribute = [at for at, one in enumerate(several) if "get_input_embeddings" in one.__dict__]
    embeddings = []
    for at in {*by_class, *by_attribute}:
        try:
            embeddings.append(several[at].get_input_embeddings().weight)  # type: ignore[operator]
        except (AttributeError, NotImplementedError, TypeError):
            continue
    tables = [weight for weight in embeddings if isinstance(weight, Tensor)]
    if not tables:
        named = model.named_parameters(remove_duplicate=False)
        tables = [weight for name, weight in named if weight.dim() == 2 and not _OTHER_TABLES.search(name)]
    return {weight.data_ptr() for weight in tables if is_readable(weight)}


def _has_embeddings(module: nn.Module) -> bool:
    return hasattr(type(module), "get_input_embeddings")


@dataclass(slots=True, eq=False)
class _PendingIds:
    """Pending ids, the table that they were looked up in, and the modules that took other ids of their size instead.

    copied   when the ids of a GPU are there
    """

    ids: Tensor
    table: int
    copied: torch.cuda.Event | None = None
    skipped_by: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, ids: Tensor, table: int) -> "_PendingIds":
        """A copy in the CPU's memory, which begins now: reading them later waits for nothing that follows."""
        ids = ids.detach()
        if not ids.is_cuda or torch.cuda.is_current_stream_capturing():
            return cls(ids.clone(), table)
        on_host = torch.empty(ids.shape, dtype=ids.dtype, device="cpu", pin_memory=True)
        on_host.copy_(ids, non_blocking=True)
        copied = torch.cuda.Event()
        copied.record(torch.cuda.current_stream(ids.device))
        return cls(on_host, table, copied)

    def in_batch(self, B: int, T: int, positions_first: bool) -> np.ndarray | None:
        """The ids as (B, T), if their shape fits; else None."""
        found = as_batch(self.ids, B, T, positions_first)
        if found is not None and self.copied is not None:
            self.copied.synchronize()
        return None if found is None else found.cpu().numpy()


class TokenIds:
    """The ids that were read and are not yet assigned to an attention."""

    def __init__(self, model: nn.Module, tables: set[int] | None = None) -> None:
        self._tables = token_tables(model) if tables is None else tables
        self._pending: list[_PendingIds] = []
        self.has_seen_any = False
        self.guessed = False
        """Whether the ids of several tables once fitted an attention, and its tokens were ambiguous."""

    def add(self, table: Tensor, ids: Tensor) -> bool:
        """Add ids that an embedding looked up. Returns whether they are token ids."""
        if ids.dim() not in (1, 2) or table.data_ptr() not in self._tables:
            return False
        self.has_seen_any = True
        # Ids left over from an earlier run do not belong to the next attention.
        self._pending = [*self._pending[-3:], _PendingIds.of(ids, table.data_ptr())]
        return True

    def take(
        self,
        B: int,
        T: int,
        *,
        positions_first: bool = False,
        by: str = "",
        given: Callable[[], Iterable[tuple[str, Tensor]]] = tuple,
    ) -> np.ndarray | None:
        """The oldest pending ids (B, T) of this size; of several, those that the model was called with.

        by      the module that asks. It does not take ids that it once skipped: another table may be read with the same
                number of ids.
        given   what the model was called with
        """
        fitting: list[tuple[_PendingIds, np.ndarray]] = []
        for one in self._pending:
            found = one.in_batch(B, T, positions_first)
            if found is not None:
                fitting.append((one, found))
        chosen = self._chosen(fitting, by, given, positions_first) if fitting else None
        for one, _ in fitting:
            one.skipped_by.add(by)
        if chosen is None:
            return None
        self._pending.remove(chosen[0])
        return chosen[1]

    def _chosen(
        self,
        fitting: list[tuple[_PendingIds, np.ndarray]],
        by: str,
        given: Callable[[], Iterable[tuple[str, Tensor]]],
        positions_first: bool,
    ) -> tuple[_PendingIds, np.ndarray] | None:
        fresh = [pair for pair in fitting if by not in pair[0].skipped_by]
        if len(fitting) == len(fresh) == 1:
            return fresh[0]
        B, T = fitting[0][1].shape
        known = [ids.cpu().numpy() for ids in _ids_among(given(), B, T, positions_first)]
        matching = [pair for pair in fitting if any(np.array_equal(pair[1], ids) for ids in known)]
        if not matching and len({one.table for one, _ in fresh}) > 1:
            self.guessed = True
        likeliest = [pair for pair in matching if by not in pair[0].skipped_by] or fresh or matching
        return likeliest[0] if likeliest else None

    def guess(self, given: Iterable[tuple[str, Tensor]], B: int, T: int) -> np.ndarray | None:
        """Ids of this size among the arguments of a model: a compiled model shows no embedding."""
        for ids in _ids_among(given, B, T):
            return ids.cpu().numpy()
        return None


def _ids_among(given: Iterable[tuple[str, Tensor]], B: int, T: int, positions_first: bool = False) -> Iterator[Tensor]:
    """Arguments of a model that may be ids of this size."""
    for name, tensor in given:
        if tensor.dtype in (torch.int64, torch.int32) and not _OTHER_ARGUMENTS.search(name):
            found = as_batch(tensor, B, T, positions_first) if tensor.dim() in (1, 2) else None
            if found is not None:
                yield found


def as_batch(ids: Tensor, B: int, T: int, positions_first: bool = False) -> Tensor | None:
    """Ids as (B, T), if their shape fits; else None."""
    if ids.dim() == 1:
        return ids[None] if B == 1 and len(ids) == T else None
    if positions_first and tuple(ids.shape) == (T, B):
        return ids.T
    if ids.shape[1] == T and ids.shape[0] in (1, B):  # one text for all samples
        return ids.expand(B, T)
    return ids.T if tuple(ids.shape) == (T, B) else None


TokenRows = tuple[tuple[str, ...], ...]


class Text:
    """What one side of a model has read so far: `total` tokens. `T`, `step` and `ids` belong to the last call."""

    def __init__(self, leader: str, tokenizer: GuardedTokenizer) -> None:
        self.leader = leader
        """The module whose calls are counted: the first that was seen."""
        self.B = self.T = self.total = 0
        self.step: DecodeStep | None = None
        self.ids: np.ndarray | None = None
        self.is_text: np.ndarray | None = None
        """Which of the ids are not padding, B T; None for all."""
        self.ended = np.zeros(0, bool)
        """Which samples had ended after the last call, B."""
        self._tokenizer = tokenizer
        self._fingerprints: Tensor | None = None
        self._rows: list[list[str]] | None = None
        self._windows: dict[tuple[int, int], TokenRows] = {}

    def advance(
        self,
        keys: Tensor | None,
        B: int,
        T: int,
        S: int,
        ids: np.ndarray | None,
        reordered: tuple[int, ...] | None = None,
    ) -> None:
        """Add a call of the leader with T new tokens, which continue the text or start a new one. keys B G S E.

        `reordered` is the order in which samples of some cache were just selected: used if the keys agree with it.
        """
        fingerprints = None if keys is None else _fingerprints(keys)
        if ids is None and (self.B, self.T, self.total) == (B, T, S) and self.step is None:
            ids = self.ids  # several layers share one module: they read the same
        self.step = (
            None
            if self.total == 0 or T >= S
            else self._continuation(fingerprints, B, T, S, reordered or tuple(range(B)))
        )
        start = 0 if self.step is None else self.step.start
        self.B, self.T, self.total, self._fingerprints = B, T, start + T, fingerprints
        self._read(ids, start)

    def continues_after(self, unobserved: int) -> None:
        """Mark the text that just started as continued: `unobserved` tokens were read before the watch."""
        self.step, self.total = DecodeStep(unobserved, ()), unobserved + self.T
        if self._rows is not None:
            self._rows = [[""] * unobserved + row for row in self._rows]

    def tokens(self, count: int, start: int | None = None) -> TokenRows | None:
        """`count` tokens: the last ones, or those from `start` on; unused cache positions are ""."""
        if self._rows is None:
            return None
        first = max(0, self.total - count) if start is None else start
        found = self._windows.get((first, count))
        if found is None:
            cut = [row[first : first + count] for row in self._rows]
            found = tuple((*row, *[""] * (count - len(row))) for row in cut)
            self._windows[first, count] = found
        return found

    def _continuation(
        self, fingerprints: Tensor | None, B: int, T: int, S: int, reordered: tuple[int, ...]
    ) -> DecodeStep | None:
        """The position of this call's tokens and the parent of each sample; None if a new text starts."""
        if fingerprints is None or self._fingerprints is None:  # only sizes are known
            return DecodeStep(self.total, reordered) if (self.B, self.total + T) == (B, S) else None
        old = self._fingerprints[:, : self.total]  # without the unused positions of a cache
        length = old.shape[1]
        now = fingerprints[:, : min(S - T, length)]
        for end in _ends(old, now):
            parents = _parents(old[:, end - now.shape[1] : end], now, reordered)
            if parents is not None:
                return DecodeStep(self.total - length + end, parents)
        return None

    def _read(self, ids: np.ndarray | None, start: int) -> None:
        self.ids, self._windows = ids, {}
        old, step = self._rows, self.step
        new = None
        if ids is not None and (step is None or old is not None):
            new = self._tokenizer.tokens_of_rows(ids.tolist())
        if new is not None and step is not None and old is not None:
            new = [old[parent][:start] + row for parent, row in zip(step.parents, new, strict=True)]
        self._rows = new


def _ends(old: Tensor, now: Tensor) -> Iterator[int]:
    """The possible ends of the n current fingerprints within the old ones, B L 2, latest first.

    The end of the old ones if the text only grew, even if the cache dropped the oldest. An earlier end if the text was
    cut back.
    """
    length, n = old.shape[1], now.shape[1]
    yield length
    if n < length:
        like_the_last = (old[:, n - 1 : -1] == now[:1, -1:]).all(-1).any(0)
        yield from (like_the_last.nonzero().flatten().flip(0) + n).tolist()


def _fingerprints(keys: Tensor) -> Tensor:
    """Two numbers of each key, B S 2: enough to distinguish the keys of two texts."""
    return keys[:, 0, :, :: max(1, keys.shape[-1] - 1)].detach().clone()


def _parents(before: Tensor, now: Tensor, reordered: tuple[int, ...]) -> tuple[int, ...] | None:
    """The parent of each sample, by its keys; `reordered` if that fits. None if a sample has no parent.

    Keys may fit several parents, because those that a cache dropped are unknown.
    """
    if max(reordered) < len(before):
        is_same_order = reordered == tuple(range(len(before)))  # an index would be copied to a GPU
        if torch.equal(before if is_same_order else before[list(reordered)], now):
            return reordered
    found = []
    for sample, likely in zip(now, reordered, strict=True):
        same = (before == sample).flatten(1).all(1).tolist()
        if True not in same:
            return None
        found.append(likely if likely < len(same) and same[likely] else same.index(True))
    return tuple(found)


class KeyHistory:
    """The keys of one module over the calls of one text. Each call adds only its own, so memory is linear."""

    def __init__(self) -> None:
        self._pieces: list[tuple[DecodeStep, Tensor]] = []
        self._whole: Tensor | None = None
        self.only_appended = True
        """Whether no token was removed, and each sample continued its own text."""

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def total(self) -> int:
        return self._pieces[-1][0].start + self._pieces[-1][1].shape[2] if self._pieces else 0

    def add(self, step: DecodeStep, keys: Tensor) -> None:
        """Add the new keys of a call, B G n E, and their step."""
        self.only_appended &= keeps_order(step.parents) and (not self._pieces or step.start == self.total)
        self._pieces.append((step, keys))
        self._whole = None

    def until(self, count: int) -> Tensor:
        """All keys of the text as they were after `count` calls, B G total E."""
        last_step, last = self._pieces[count - 1]
        end = last_step.start + last.shape[2]
        if self.only_appended:
            if self._whole is None:
                self._whole = _concatenated([keys for _, keys in self._pieces])
            return self._whole[:, :, :end]
        parts: list[Tensor] = []
        rows: Sequence[int] = range(last.shape[0])
        for step, keys in reversed(self._pieces[:count]):
            if step.start < end:
                parts.append(keys[list(rows), :, : end - step.start])
                end = step.start
            rows = [step.parents[row] for row in rows]
        return _concatenated(parts[::-1])

    def parts(self, count: int) -> list[Tensor]:
        """The same as two parts, if keys were only appended: the first call's keys, uncopied, and all others."""
        first, *others = [keys for _, keys in self._pieces[:count]]
        return [first, _concatenated(others)] if others else [first]


def keeps_order(parents: Sequence[int]) -> bool:
    """Whether each sample continues its own text."""
    return all(place == parent for place, parent in enumerate(parents))


def _concatenated(parts: Sequence[Tensor]) -> Tensor:
    """Concatenate keys. Keys that heads share may be repeated in one call and not in another."""
    G = max(keys.shape[1] for keys in parts)
    return torch.cat([k if k.shape[1] == G else k.repeat_interleave(G // k.shape[1], 1) for k in parts], 2)
