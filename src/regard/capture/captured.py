"""What was caught of one attention, whichever road the model took: q and k, or the weights that it made itself.

Tensors are the model's own, to be read now and not kept: it may write over them.
"""

from typing import NamedTuple

from torch import Tensor

from regard.masks import Mask
from regard.records import Rest


class Output:
    """The output B H T Ev of a call that nobody has computed yet, and its LSE: who records it may put them here."""

    __slots__ = ("lse", "out")

    def __init__(self) -> None:
        self.out: Tensor | None = None
        self.lse: Tensor | None = None


class Caught(NamedTuple):
    """What went into one attention, and what its kernel let out beside the output.

    q B H T E, k and v B G S ·. Scores are q kᵀ · scale, capped, + bias where `mask` allows. `lse` B H T, where it is
    known. `part` is the submodule that would have computed it, where a fused layer did so in its place. `output` is for
    who may compute it, where the model has not.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    scale: float
    mask: Mask | None = None
    bias: Tensor | None = None
    lse: Tensor | None = None
    softcap: float | None = None
    part: str = ""
    output: Output | None = None


class CaughtWeights(NamedTuple):
    """The weights of a model that made its own softmax, before dropout. weights (…, T, S), lse (…, T).

    There is no LSE where several softmaxes, or several heads, went into one matrix. v (…, S, Ev) is what they were
    multiplied with, with as many axes as `taken` has: the same weights as they came into that product.

    `seen`, (…, S), where it is known: the keys that a query sees, by the scores. What is seen by none is padding.

    `sink`, (…, T), is what went to no key, as to a learned sink; None where all goes to keys.

    `rows_told`: the product has told which axis counts queries. Else it is the last but one because that is usual.

    `rest`: why rows may not sum to 1, by what was done to them after the softmax.

    q and k are not known, so what is not read off the weights now is lost. Nor is it known which of the axes before T
    count heads: a module knows (`heads.py`).
    """

    weights: Tensor
    lse: Tensor | None
    part: str = ""
    v: Tensor | None = None
    taken: Tensor | None = None
    rows_told: bool = True
    rest: Rest = ""
    seen: Tensor | None = None
    sink: Tensor | None = None
