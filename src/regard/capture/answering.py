"""Our own attention in place of a fused operator of PyTorch's, where `See(fused=True)` allows it.

What comes back is shaped and laid out as the operator's own results: code that was compiled around it counts on that.
"""

import sys
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from regard.capture.caught import Output
from regard.dispatch.observing import is_little
from regard.dispatch.torch_backends import wants_gradient
from regard.kernels.triton.refusal import refusal

_APPLY = torch.autograd.Function.apply.__func__.__code__  # type: ignore[attr-defined]


def may_answer(given: dict[str, Any]) -> bool:
    """Whether this call of `scaled_dot_product_attention` is one for our kernels, as far as its mask lets it."""
    q, k, v = given["query"], given["key"], given["value"]
    added = given.get("attn_mask", given.get("attn_bias"))
    if given["dropout_p"] or wants_gradient(*(x for x in (q, k, v, added) if x is not None)):
        return False
    if q.dim() != 4 or q.shape[2] == 1 or is_little(q, k) or _is_watched_by_others() or _is_inside_a_function():
        return False
    return refusal(q, k, v) is None


def _is_watched_by_others() -> bool:
    """Whether another mode is to see the operator: it would not, if we answered."""
    return bool(torch._C._len_torch_dispatch_stack())


def _is_inside_a_function() -> bool:
    """Whether an autograd Function is running, which has gradients off and will ask for them all the same.

    Code that was compiled for training does, and what is to be computed again when the gradients are.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _APPLY:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def results_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Output) -> tuple[Any, ...]:
    """Everything that the operator would have given: our output and LSE, and random states that nobody reads."""
    assert output.out is not None
    shapes = func(*_without_memory(args), **_without_memory(kwargs))
    device = output.out.device
    rest = [torch.empty_like(x, device=device) if isinstance(x, Tensor) else x for x in shapes[2:]]
    return (_laid_out(output.out, shapes[0]), _fitted(output.lse, shapes[1], device), *rest)


def _without_memory(x: Any) -> Any:
    """The same tensors on the device that computes nothing but shapes and strides."""
    return tree_map_only(Tensor, lambda one: one.to("meta"), x)


def _laid_out(out: Tensor, like: Tensor) -> Tensor:
    if out.stride() == like.stride():
        return out
    return torch.empty_strided(like.shape, like.stride(), dtype=out.dtype, device=out.device).copy_(out)


def _fitted(lse: Tensor | None, like: Tensor | None, device: torch.device) -> Tensor | None:
    """The LSE in a shape that may have one more axis, or more rows than there are."""
    if lse is None or like is None:
        return None
    fitted = torch.full_like(like, torch.inf, device=device)
    if like.numel():
        fitted.view(*like.shape[:2], -1)[..., : lse.shape[-1]] = lse
    return fitted
