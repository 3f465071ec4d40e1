"""Which lines fit into a model: those that are longer are named, or left out and counted."""

from collections.abc import Sequence
from dataclasses import replace

from regard.errors import ArgumentError, FileError
from regard.text.corpus import TOLD, Corpus

Encoded = tuple[list[list[int]], ...]


def fitting(
    corpus: Corpus, ids: Sequence[list[list[int]]], *, max_len: int, skip_bad: bool = False
) -> tuple[Corpus, Encoded]:
    """The corpus and its ids, column by column, where every line with its <bos> or <eos> has at most `max_len` tokens.

    FileError names the first longer line and counts the others; with `skip_bad` they are left out, their number added
    to `corpus.skipped`.
    """
    if any(len(column) != len(corpus) for column in ids):
        raise ArgumentError("fit-lengths", found=[len(column) for column in ids], lines=len(corpus))
    longest = [1 + max(map(len, row)) for row in zip(*ids, strict=True)]
    long = [i for i, length in enumerate(longest) if length > max_len]
    if not long:
        return corpus, tuple(ids)
    errors = [
        FileError("corpus-too-long", path=corpus.path(i), line=corpus.lines[i], found=longest[i], most=max_len)
        for i in long[:TOLD]
    ]
    if len(long) == len(corpus) or not skip_bad:
        raise errors[0] if len(long) == 1 else FileError("corpus-many", first=errors[0], more=len(long) - 1)
    kept = [i for i, length in enumerate(longest) if length <= max_len]
    problems = (*corpus.problems, *map(str, errors))[:TOLD]
    fit = replace(corpus.only(kept), skipped=corpus.skipped + len(long), problems=problems)
    return fit, tuple([column[i] for i in kept] for column in ids)
