"""What is captured of one attention call: q and k of a fused operator, or the weights that the model computed itself.

The tensors are the model's own. Read them at once and do not keep them: the model may overwrite them.
"""

from typing import NamedTuple

from torch import Tensor

from regard.masks import Mask
from regard.records import Rest


class Output:
    """The output B H T Ev and LSE of a call that is not computed yet; the recording code may set them."""

    __slots__ = ("lse", "out")

    def __init__(self) -> None:
        self.out: Tensor | None = None
        self.lse: Tensor | None = None


class CapturedCall(NamedTuple):
    """The inputs of one attention, and what its kernel returns beside the output.

    q B H T E, k and v B G S ·. Scores are q kᵀ · scale, capped, + bias where `mask` allows. `lse` B H T, if known.
    `submodule` is the submodule that would have computed it, if a fused layer computed it instead. `output` is set if
    the model has not computed the output, and we may.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    scale: float
    mask: Mask | None = None
    bias: Tensor | None = None
    lse: Tensor | None = None
    softcap: float | None = None
    submodule: str = ""
    output: Output | None = None


class CapturedWeights(NamedTuple):
    """The weights of a model that computed its own softmax, before dropout. weights (…, T, S), lse (…, T).

    lse         None if several softmaxes or several heads were combined into one matrix
    v           (…, S, Ev), what the weights were multiplied with; as many axes as `factor`
    factor      the same weights as they entered that product
    rows_known  whether the product showed which axis counts queries; else the last but one is assumed
    rest        why rows may not sum to 1: what was done to them after the softmax
    visible     (…, S), the keys that some query sees, by the scores, if known; the others are padding
    sink        (…, T), the weight that went to no key, as to a learned sink; None if there is none

    q and k are not known, so what is not read from the weights now is lost. Nor is it known which of the axes before T
    count heads: the module determines that (`layouts.py`).
    """

    weights: Tensor
    lse: Tensor | None
    submodule: str = ""
    v: Tensor | None = None
    factor: Tensor | None = None
    rows_known: bool = True
    rest: Rest = ""
    visible: Tensor | None = None
    sink: Tensor | None = None
