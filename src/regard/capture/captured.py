"""What is captured of one attention call: q and k of a fused operator, or the weights of the model; and what cannot be.

The tensors are the model's own. Read them at once and do not keep them: the model may overwrite them. Tensors without
data, subclasses of Tensor, and our own errors leave an attention unobserved: the model runs as without `watch`, and one
warning names the modules.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from torch import Tensor

from regard.capture.torch_internals import is_functorch_wrapped_tensor
from regard.errors import in_one_line
from regard.masks import Mask
from regard.messages import Listed, say
from regard.records import Rest


class CapturedOutput:
    """The output B H T Ev and LSE of a call that is not computed yet; the recording code may set them."""

    __slots__ = ("lse", "out")

    def __init__(self) -> None:
        self.out: Tensor | None = None
        self.lse: Tensor | None = None


class CapturedCall(NamedTuple):
    """The inputs of one attention, and what its kernel returns.

    q B H T E, k and v B G S ·. Scores are q kᵀ · scale, capped, + bias where `mask` allows. `lse` B H T and `out`
    B H T Ev, if known. `submodule` is the submodule that would have computed it, if a fused layer computed it instead.
    `output` is set if the model has not computed the output, and we may.
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
    output: CapturedOutput | None = None
    out: Tensor | None = None


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


class Unobserved:
    """The modules whose attention was skipped, each with the first reason."""

    def __init__(self, running_module: Callable[[bool], str | None] | None = None) -> None:
        self._running_module = running_module or (lambda likely: "")
        self.reasons: dict[str, str] = {}
        self.errors: list[Exception] = []

    def add(self, reason: str, likely: bool = True) -> None:
        """Note that the running module computed attention, or what may be; `likely` as in `SoftmaxTracker`."""
        name = self._running_module(likely)
        if name is not None:
            self.reasons.setdefault(name, reason)

    def add_error(self, error: Exception, names: Iterable[str] | None = None) -> None:
        """Note that observing the modules of these names raised `error`; without names, the running module."""
        self.errors.append(error.with_traceback(None))  # a traceback would keep the model's tensors alive
        if names is None:
            self.add(in_one_line(error))
        for name in names or ():
            self.reasons.setdefault(name, in_one_line(error))


def why_unobservable(args: tuple[Any, ...], types: Any) -> str | None:
    """Why the data of an operator's arguments cannot be read; None if it can.

    types   the subclasses of Tensor among them that handle operators themselves, as PyTorch passes them to a mode

    >>> import torch
    >>> why_unobservable((torch.ones(2),), ()) is None, why_unobservable((torch.ones(2, device="meta"),), ()) is None
    (True, False)
    """
    if types:
        return say("watch-unseen-type", found=Listed.few(sorted({one.__name__ for one in types}), 3))
    for x in args:
        if isinstance(x, Tensor):
            if x.is_meta:
                return say("watch-unseen-meta")
            if is_functorch_wrapped_tensor(x):
                return say("watch-unseen-type", found="functorch")
    return None


def is_readable(tensor: Tensor) -> bool:
    """Whether the data of a tensor on the Python stack can be read: not if functorch or a mode made it."""
    return type(tensor).__torch_dispatch__ is _PLAIN and why_unobservable((tensor,), ()) is None


_PLAIN = Tensor.__torch_dispatch__
