"""A text written token by token: bytes of a character are held back until it is whole, a stop text until it is sure."""

from collections.abc import Iterable, Iterator, Sequence

from regard.errors import ArgumentError
from regard.text.id_tokenizer import AnyTokenizer, IdTokenizer

BROKEN = "\ufffd"
CONTEXT = 8
"""Tokens that are decoded before new ones, since some decoders drop the first space of a text."""
LONGEST_CHARACTER = 4
"""Tokens of one character: its bytes. Longer runs that end in no character hold bytes that are none."""


def stop_texts(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """The texts that end an output. Raises ArgumentError for anything but texts."""
    found = () if stop is None else (stop,) if isinstance(stop, str) else tuple(stop)
    if not all(isinstance(one, str) and one for one in found):
        raise ArgumentError("stop-kind", found=repr(stop)[:80])
    return found


def text_pieces(
    tokenizer: AnyTokenizer, ids: Iterable[int], before: Sequence[int] = (), stop: Sequence[str] = ()
) -> Iterator[str]:
    """The text that ids add, piece by piece; the pieces together are the whole text before the first of `stop`.

    before   the ids before them: a space between words may belong to the second
    """
    held = ""
    for piece in _whole_characters(tokenizer, ids, before):
        held += piece
        ends = [at for one in stop if (at := held.find(one)) >= 0]
        if ends:
            if before_stop := held[: min(ends)]:
                yield before_stop
            return
        keep = max((_overlap(held, one) for one in stop), default=0)
        if ready := held[: len(held) - keep]:
            yield ready
        held = held[len(held) - keep :]
    if held:
        yield held


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text may begin `stop`."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)


def _whole_characters(tokenizer: AnyTokenizer, ids: Iterable[int], before: Sequence[int]) -> Iterator[str]:
    if isinstance(tokenizer, IdTokenizer):
        for number, one in enumerate(ids):
            yield f"{' ' if before or number else ''}{one}"
        return
    context, new = list(before[-CONTEXT:]), list[int]()

    def text_of(count: int) -> str:
        return tokenizer.decode([*context, *new[:count]])[len(tokenizer.decode(context)) :]

    for one in ids:
        new.append(one)
        count = len(new)
        if text_of(count).endswith(BROKEN):
            if len(new) < LONGEST_CHARACTER:
                continue
            count = next((n for n in range(count - 1, 0, -1) if not text_of(n).endswith(BROKEN)), 1)
        if piece := text_of(count):
            yield piece
        context, new = [*context, *new[:count]][-CONTEXT:], new[count:]
    if new and (piece := text_of(len(new))):
        yield piece
