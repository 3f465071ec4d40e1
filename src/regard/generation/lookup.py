"""Prompt lookup decoding: greedy generation that reads several ids in one step where a text repeats itself.

A step of decoding reads every weight for one id, and takes little longer for several. What followed the last ids when
they were there before is read in advance; it is kept as far as the model picks the same ids, and forgotten from the
first difference on. So the ids are those of greedy generation (Leviathan et al. 2023; prompt lookup: Saxena 2023).
"""

from collections.abc import Iterator

import numpy as np

from regard.arrays import check_counts, to_numpy
from regard.errors import ArgumentError
from regard.generation.prompts import PromptRows, Reader
from regard.generation.sampling import check_logits

LONGEST_MATCH, SHORTEST_MATCH = 3, 2
"""The numbers of last ids that are searched for. What followed a single id before rarely follows it again."""


def check_lookup(lookup: int, rows: PromptRows, *, is_greedy: bool) -> None:
    """ArgumentError unless the most likely ids of one prompt are generated."""
    check_counts(lookup=(lookup, 1))
    if not is_greedy:
        raise ArgumentError("lookup-greedy")
    if len(rows.ids) != 1:
        raise ArgumentError("lookup-one", found=len(rows.ids))


def greedy_by_lookup(
    reader: Reader, rows: PromptRows, max_new: int, eos: tuple[int, ...], chunk: int | None, most: int
) -> Iterator[int]:
    """The ids of greedy generation, up to and with an `eos`; each step reads at most `most` of them."""
    logits = reader.read(rows.ids, chunk)
    check_logits(logits)
    known = np.empty(len(rows.ids[0]) + max_new, np.int64)
    known[: len(rows.ids[0])] = rows.ids[0]
    length, last = len(rows.ids[0]), len(known)
    new = [int(to_numpy(logits).argmax(-1)[0])]
    while True:
        for id in new:
            known[length] = id
            length += 1
            yield id
            if length == last or id in eos:
                return
        drafted = continuation(known[:length], min(most, last - length) - 1)
        each = reader.step_each(np.array([[new[-1], *drafted]]))
        check_logits(each[0])
        picked = to_numpy(each[0]).argmax(-1).tolist()
        same = next((at for at, id in enumerate(drafted) if picked[at] != id), len(drafted))
        if same < len(drafted):
            reader.drop(len(drafted) - same)
        new = picked[: same + 1]


def continuation(ids: np.ndarray, count: int) -> list[int]:
    """What followed the last ids where they were last before, at most `count` ids; [] where they are new.

    >>> continuation(np.array([5, 1, 2, 3, 4, 9, 1, 2]), 2), continuation(np.array([1, 2, 3]), 2)
    ([3, 4], [])
    """
    for n in range(min(LONGEST_MATCH, len(ids) - 1), SHORTEST_MATCH - 1, -1) if count > 0 else ():
        windows = np.lib.stride_tricks.sliding_window_view(ids[:-1], n)
        found = np.flatnonzero((windows == ids[-n:]).all(1))
        if len(found):
            start = int(found[-1]) + n
            return [int(id) for id in ids[start : start + count]]
    return []
