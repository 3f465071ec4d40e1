"""What is kept of a text that is written step by step, so that its rows can be put together afterwards.

Of each call its queries, and the keys that it brought; the keys of a step are those of all calls before it. Keeping
each step's whole cache would grow with the square of the text.
"""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor

from regard.axes import attention_sizes
from regard.capture.caught import Caught
from regard.capture.following import Keys
from regard.dispatch.call import Call
from regard.dispatch.torch_backends import rectangle
from regard.records import Record, Rectangle, Step


class Steps:
    """The keys of each module, over the calls of the text that is being written."""

    def __init__(self) -> None:
        self._keys: dict[str, Keys] = {}

    def begin(self, name: str) -> None:
        """What the module computes next is another text."""
        self._keys.pop(name, None)

    def remembered(self, name: str, caught: Caught, record: Record, step: Step | None) -> Record:
        """The record, with exact weights from its queries and the keys of all calls before it."""
        keys = self._keys.setdefault(name, Keys())
        B, _, T, S = record.shape
        start, parents = step or (0, tuple(range(B)))
        if not len(keys) or start > keys.total:  # what came before was not kept, but is still in the cache
            keys = self._keys[name] = Keys()
            first = max(0, start + T - S)
            whole = record.kept.get("k", caught.k)[:, :, : start + T - first]
            keys.add(Step(first, tuple(range(B))), whole if "k" in record.kept else _copy(whole))
        else:
            end = min(start + T, S)
            keys.add(Step(start, parents), _copy(caught.k[:, :, end - T : end]))
        return record if _has_weights(record) else replace(record, rectangle=_rectangle(caught, record, keys))

    def across(self, name: str, caught: Caught, record: Record) -> Record:
        """The same where the keys stay what they are, as those of a source do while its translation is written."""
        keys = self._keys.get(name)
        if keys is None or not torch.equal(keys.until(1), caught.k):
            keys = self._keys[name] = Keys()
            keys.add(Step(0, tuple(range(record.shape[0]))), _copy(caught.k))
        return record if _has_weights(record) else replace(record, rectangle=_rectangle(caught, record, keys))


def _has_weights(record: Record) -> bool:
    """Whether the map is fine enough to be the weights, or they can be had in some other way."""
    return record.rectangle is not None or (
        record.map is not None and tuple(record.map.shape[-2:]) == record.shape[-2:]
    )


def _rectangle(caught: Caught, record: Record, keys: Keys) -> Rectangle:
    """Exact weights of one call, from copies of what it had that others have not."""
    count, S, lse = len(keys), record.shape[-1], record.lse
    assert lse is not None
    sizes = attention_sizes(caught.q.shape, caught.k.shape, caught.v.shape)
    mask = deepcopy(caught.mask)
    call = Call(
        q=_copy(caught.q),
        k=caught.k[:, :, :0],
        v=caught.v[:, :, :0, :0],
        sizes=sizes,
        scale=caught.scale,
        mask=mask,
        bound=None if mask is None else mask.bind(sizes.lead, sizes.T, sizes.S, caught.q),
        bias=None if caught.bias is None else _copy(caught.bias),
        softcap=caught.softcap,
    )

    def weights(rows: slice, cols: slice) -> Tensor:
        known = keys.until(count)
        known = known[:, :, max(0, known.shape[2] - S) :]  # a cache may forget the oldest
        room = S - known.shape[2]  # and may have places that nobody has written to
        known = torch.nn.functional.pad(known, (0, 0, 0, room)) if room else known
        return rectangle(replace(call, k=known, v=known[..., :0]), lse, rows, cols)

    return weights


def _copy(x: Tensor) -> Tensor:
    return x.detach().clone()
