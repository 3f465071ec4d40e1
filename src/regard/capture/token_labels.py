"""The tokens that a model read: the ids that its input embedding looked up, and their names by a tokenizer.

An encoder and a decoder read different texts, and may share one embedding: ids wait for an attention of their length,
and then belong to its side. This module handles ids only and does not read attention.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.capture.unobserved import is_readable
from regard.errors import ArgumentError
from regard.text import Tokenizer
from regard.text.token_text import byte_level_bytes, text_or_hex

Spell = Callable[[Sequence[int]], list[str]]
"""Converts ids to one string each."""

_OTHER_ARGUMENTS = re.compile(r"mask|type|pos|seg|label|target", re.I)
_OTHER_TABLES = re.compile(r"pos|wpe|type|seg|relative|time|patch|class", re.I)


def speller(tokenizer: Any) -> Spell | None:
    """A function that converts ids to tokens with this tokenizer; None for None. ArgumentError if it is no tokenizer.

    >>> speller(lambda ids: [str(i) for i in ids])([7, 8])
    ['7', '8']
    """
    if tokenizer is None:
        return None
    spell = tokenizer.pieces if isinstance(tokenizer, Tokenizer) else getattr(tokenizer, "convert_ids_to_tokens", None)
    spell = spell or getattr(getattr(tokenizer, "tokenizer", None), "convert_ids_to_tokens", None)  # a processor's
    if spell is None and (isinstance(tokenizer, type) or not callable(tokenizer)):
        raise ArgumentError("watch-tokenizer", found=type(tokenizer).__name__)
    convert = spell or tokenizer
    as_text = _text_of_bytes(tokenizer) if spell is not None and not isinstance(tokenizer, Tokenizer) else None

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


class TokenSpeller:
    """A tokenizer that is called during a model's forward: its errors must not stop the model.

    error   the first error; after it there are no tokens
    """

    def __init__(self, tokenizer: Any) -> None:
        self._spell = speller(tokenizer)
        self.error: str | None = None

    @property
    def available(self) -> bool:
        """Whether tokens can be spelled."""
        return self._spell is not None and self.error is None

    def tokens_of_rows(self, rows: Sequence[Sequence[int]]) -> list[list[str]] | None:
        """The tokens of several texts; None without a tokenizer, or after it failed."""
        if self._spell is None or self.error is not None:
            return None
        try:
            return [self._spell(row) for row in rows]
        except Exception as error:  # the tokenizer may be any function of the user
            self.error = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return None

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The tokens of some ids; "" for each if the tokenizer fails."""
        rows = self.tokens_of_rows([ids])
        return [""] * len(ids) if rows is None else rows[0]


def token_tables(model: nn.Module, modules: Iterable[nn.Module] | None = None) -> set[int]:
    """The addresses of the weights that embed token ids; not those of positions and the like."""
    embeddings = []
    for module in model.modules() if modules is None else modules:
        if hasattr(type(module), "get_input_embeddings") or "get_input_embeddings" in vars(module):
            try:
                embeddings.append(module.get_input_embeddings().weight)  # type: ignore[operator]
            except (AttributeError, NotImplementedError, TypeError):
                continue
    tables = [weight for weight in embeddings if isinstance(weight, Tensor)]
    if not tables:
        named = model.named_parameters(remove_duplicate=False)
        tables = [weight for name, weight in named if weight.dim() == 2 and not _OTHER_TABLES.search(name)]
    return {weight.data_ptr() for weight in tables if is_readable(weight)}


@dataclass(slots=True, eq=False)
class _PendingIds:
    """Pending ids, the table that they were looked up in, and the modules that took other ids of their size instead."""

    ids: Tensor
    table: int
    skipped_by: set[str] = field(default_factory=set)


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
        self._pending = [*self._pending[-3:], _PendingIds(ids.detach().clone(), table.data_ptr())]
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
            found = as_batch(one.ids, B, T, positions_first)
            if found is not None:
                fitting.append((one, found.cpu().numpy()))
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
