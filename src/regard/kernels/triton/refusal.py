"""What the kernels of this room cannot do, said beforehand, as a key of `words.reasons`. No Triton here."""

import os
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from regard.kernels.triton.blocks import WIDEST
from regard.kernels.triton.sight import for_text, is_known
from regard.masks import BoundMask
from regard.padding import Padding
from regard.records import See

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
MOST = 32
"""So many strongest keys of each query at most: a program keeps them in registers."""
OLDEST = (8, 0)
"""The compute capability from which on Triton compiles all of these dtypes."""

Reason = tuple[str, dict[str, Any]]


def refusal(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: BoundMask | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    see: See | None = None,
    padding: Padding | None = None,
) -> Reason | None:
    """Why not, with what the sentence needs to know; None where nothing is against it.

    >>> x = torch.zeros(1, 1, 4, 32, dtype=torch.float64, device="meta")
    >>> refusal(x, x, x)[0]
    'triton-device'
    """
    if torch.compiler.is_compiling():
        return "triton-tracing", {"backend": "eager"}
    here = _of_this_machine(q)
    if here is not None:
        return here
    width = max(q.shape[-1], v.shape[-1])
    if dropout:
        return "no-dropout", {"backend": "eager"}
    if q.dtype not in DTYPES:
        return "triton-dtype", {"dtype": str(q.dtype).removeprefix("torch."), "backend": "chunked"}
    if width > WIDEST:
        return "triton-width", {"width": width, "most": WIDEST, "backend": "chunked"}
    if bias is not None:
        return "triton-bias", {"backend": "chunked"}
    if not is_known(mask):
        return "triton-mask", {"backend": "chunked"}
    if see is not None and see.differentiable and not is_known(_for_statistics(mask, padding, k.shape[2])):
        return "triton-padding", {"backend": "eager"}
    if see is not None and see.top is not None and see.top > MOST:
        return "triton-top", {"top": see.top, "most": MOST, "backend": "chunked"}
    return None


def _for_statistics(mask: BoundMask | None, padding: Padding | None, S: int) -> BoundMask | None:
    """The mask of a forward in which queries that are padding see nothing."""
    return mask if padding is None or padding.queries is None else for_text(mask, padding.queries, S)


def _of_this_machine(q: Tensor) -> Reason | None:
    """What there is to say of the device and of Triton.

    Interpreted, kernels run on the CPU: for our tests, not for whoever has TRITON_INTERPRET=1 set, since Triton's
    interpreter multiplies bfloat16 wrongly, and everything slowly.
    """
    interpreted = os.environ.get("TRITON_INTERPRET") == os.environ.get("REGARD_INTERPRET") == "1"
    if torch.version.hip or not (q.is_cuda or (q.device.type == "cpu" and interpreted)):
        return "triton-device", {"device": q.device}
    if find_spec("triton") is None:
        return "triton-missing", {}
    found = torch.cuda.get_device_capability(q.device) if q.is_cuda else OLDEST
    if found < OLDEST:
        return "triton-old-gpu", {"found": _spelt(found), "oldest": _spelt(OLDEST), "backend": "chunked"}
    return None


def _spelt(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))
