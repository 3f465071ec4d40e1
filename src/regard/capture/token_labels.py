"""Which tokens a model read: the ids that its input embedding was asked for, and what a tokenizer calls them.

An encoder and a decoder read different texts, and may have one embedding between them: ids wait until an attention of
their length comes along, and then belong to its side. What is said of tokens is said in ids here; attention is not
looked at.
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
from regard.text.token_text import sign_bytes, spelled

Spell = Callable[[Sequence[int]], list[str]]
"""From ids to what a reader sees of each."""

_OTHER_ARGUMENTS = re.compile(r"mask|type|pos|seg|label|target", re.I)
_OTHER_TABLES = re.compile(r"pos|wpe|type|seg|relative|time|patch|class", re.I)


def speller(tokenizer: Any) -> Spell | None:
    """How this tokenizer spells ids; None for none. ArgumentError for what is no tokenizer.

    >>> speller(lambda ids: [str(i) for i in ids])([7, 8])
    ['7', '8']
    """
    if tokenizer is None:
        return None
    spell = tokenizer.pieces if isinstance(tokenizer, Tokenizer) else getattr(tokenizer, "convert_ids_to_tokens", None)
    spell = spell or getattr(getattr(tokenizer, "tokenizer", None), "convert_ids_to_tokens", None)  # a processor's
    if spell is None and (isinstance(tokenizer, type) or not callable(tokenizer)):
        raise ArgumentError("watch-tokenizer", found=type(tokenizer).__name__)
    asked = spell or tokenizer
    as_text = _text_of_bytes(tokenizer) if spell is not None and not isinstance(tokenizer, Tokenizer) else None

    def checked(ids: Sequence[int]) -> list[str]:
        found = asked(list(ids))
        if not isinstance(found, Sequence) or isinstance(found, str) or len(found) != len(ids):
            count = len(found) if isinstance(found, Sequence) and not isinstance(found, str) else type(found).__name__
            raise ArgumentError("watch-tokens", found=count, wanted=len(ids))
        # An id that the tokenizer does not know has no name: vocabularies are padded to round sizes.
        named = [str(i) if piece is None else str(piece) for i, piece in zip(ids, found, strict=True)]
        return named if as_text is None else [as_text(piece) for piece in named]

    return checked


def _text_of_bytes(tokenizer: Any) -> Callable[[str], str] | None:
    """Of a byte-level vocabulary, from a token to its text: "Ġcat" to " cat", a part of a character to its bytes.

    None for any other vocabulary. Tokens that were added by hand are written in plain letters, and stay as they are.
    """
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)  # a processor's
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    state = b"" if decoder is None else decoder.__getstate__()
    if b'"ByteLevel"' not in state and not hasattr(tokenizer, "byte_decoder"):
        return None
    added = {str(token) for token in getattr(tokenizer, "added_tokens_decoder", {}).values()}

    def text(token: str) -> str:
        raw = None if token in added else sign_bytes(token)
        return token if raw is None else spelled(raw)

    return text


class Spelling:
    """A tokenizer as a watched model asks it, in the middle of its forward: what fails there must not stop the model.

    failed  what went wrong the first time; from then on there are no words
    """

    def __init__(self, tokenizer: Any) -> None:
        self._spell = speller(tokenizer)
        self.failed: str | None = None

    @property
    def speaks(self) -> bool:
        """Whether there are words at all."""
        return self._spell is not None and self.failed is None

    def words(self, rows: Sequence[Sequence[int]]) -> list[list[str]] | None:
        """Of some texts; None where there is no tokenizer, or where it has failed."""
        if self._spell is None or self.failed is not None:
            return None
        try:
            return [self._spell(row) for row in rows]
        except Exception as error:  # a function of the user's: anything
            self.failed = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return None

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Of some ids; "" for each where the tokenizer fails."""
        words = self.words([ids])
        return [""] * len(ids) if words is None else words[0]


def token_tables(model: nn.Module) -> set[int]:
    """Where the weights lie that turn the ids of tokens into vectors; not those of positions and the like."""
    told = []
    for module in model.modules():
        if hasattr(type(module), "get_input_embeddings") or "get_input_embeddings" in vars(module):
            try:
                told.append(module.get_input_embeddings().weight)  # type: ignore[operator]
            except (AttributeError, NotImplementedError, TypeError):
                continue
    tables = [weight for weight in told if isinstance(weight, Tensor)]
    if not tables:
        named = model.named_parameters(remove_duplicate=False)
        tables = [weight for name, weight in named if weight.dim() == 2 and not _OTHER_TABLES.search(name)]
    return {weight.data_ptr() for weight in tables if is_readable(weight)}


@dataclass(slots=True, eq=False)
class _Ids:
    """Ids that wait, the table that they were looked up in, and the modules that took others of their size instead."""

    ids: Tensor
    table: int
    passed_by: set[str] = field(default_factory=set)


class Reading:
    """The ids that were read and wait for their attention; asked for by batch and length."""

    def __init__(self, model: nn.Module) -> None:
        self._tables = token_tables(model)
        self._waiting: list[_Ids] = []
        self.has_seen_any = False
        self.guessed = False
        """Whether ids of several tables fitted an attention once, and nothing told which of them are its tokens."""

    def see(self, table: Tensor, ids: Tensor) -> bool:
        """An embedding was asked for ids; whether they are those of tokens."""
        if ids.dim() not in (1, 2) or table.data_ptr() not in self._tables:
            return False
        self.has_seen_any = True
        # What nobody took of an earlier run is not what the next attention is about.
        self._waiting = [*self._waiting[-3:], _Ids(ids.detach().clone(), table.data_ptr())]
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
        """The ids (B, T) that have waited longest of those of this size; of several, those that the model was given.

        by      the module that asks. What it once left for others is not what it reads the next time: a table that
                counts something else is asked for as many ids.
        given   what the model was called with
        """
        fitting: list[tuple[_Ids, np.ndarray]] = []
        for one in self._waiting:
            found = laid_out(one.ids, B, T, positions_first)
            if found is not None:
                fitting.append((one, found.cpu().numpy()))
        chosen = self._chosen(fitting, by, given, positions_first) if fitting else None
        for one, _ in fitting:
            one.passed_by.add(by)
        if chosen is None:
            return None
        self._waiting.remove(chosen[0])
        return chosen[1]

    def _chosen(
        self,
        fitting: list[tuple[_Ids, np.ndarray]],
        by: str,
        given: Callable[[], Iterable[tuple[str, Tensor]]],
        positions_first: bool,
    ) -> tuple[_Ids, np.ndarray] | None:
        fresh = [pair for pair in fitting if by not in pair[0].passed_by]
        if len(fitting) == len(fresh) == 1:
            return fresh[0]
        B, T = fitting[0][1].shape
        known = [ids.cpu().numpy() for ids in _ids_among(given(), B, T, positions_first)]
        told = [pair for pair in fitting if any(np.array_equal(pair[1], ids) for ids in known)]
        if not told and len({one.table for one, _ in fresh}) > 1:
            self.guessed = True
        likeliest = [pair for pair in told if by not in pair[0].passed_by] or fresh or told
        return likeliest[0] if likeliest else None

    def guess(self, given: Iterable[tuple[str, Tensor]], B: int, T: int) -> np.ndarray | None:
        """Ids of this size among what a model was called with: compiled, it shows no embedding."""
        for ids in _ids_among(given, B, T):
            return ids.cpu().numpy()
        return None


def _ids_among(given: Iterable[tuple[str, Tensor]], B: int, T: int, positions_first: bool = False) -> Iterator[Tensor]:
    """What may be ids of this size among the arguments of a model."""
    for name, tensor in given:
        if tensor.dtype in (torch.int64, torch.int32) and not _OTHER_ARGUMENTS.search(name):
            found = laid_out(tensor, B, T, positions_first) if tensor.dim() in (1, 2) else None
            if found is not None:
                yield found


def laid_out(ids: Tensor, B: int, T: int, positions_first: bool = False) -> Tensor | None:
    """Ids as (B, T), where they may be so many; None where not."""
    if ids.dim() == 1:
        return ids[None] if B == 1 and len(ids) == T else None
    if positions_first and tuple(ids.shape) == (T, B):
        return ids.T
    if ids.shape[1] == T and ids.shape[0] in (1, B):  # one text for all samples
        return ids.expand(B, T)
    return ids.T if tuple(ids.shape) == (T, B) else None
