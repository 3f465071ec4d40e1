"""The kernel as PyTorch's autograd sees it."""

from typing import Any

import torch
from torch import Tensor

from regard.errors import BackendError
from regard.kernels.chunked.backward import backward
from regard.kernels.chunked.forward import forward
from regard.masks import BoundMask
from regard.padding import Padding
from regard.records import See, Statistics


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: BoundMask | None = None,
    bias: Tensor | None = None,
    scale: float,
    softcap: float | None = None,
    see: See | None = None,
    padding: Padding | None = None,
) -> tuple[Tensor, Statistics]:
    """Output B H T Ev, differentiable in q, k and v, and the statistics that `see` asks for, which are not."""
    found: list[Statistics] = []
    out = _Attention.apply(
        q, k, v, found, (see, padding), {"mask": mask, "bias": bias, "scale": scale, "softcap": softcap}
    )
    return out, found[0]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        found: list[Statistics],
        asked: tuple[See | None, Padding | None],
        options: dict[str, Any],
    ) -> Tensor:
        out, lse, statistics = forward(q, k, v, see=asked[0], padding=asked[1], **options)
        found.append(statistics)
        # The Record gets the LSE itself, and whoever changes it there must not change it here.
        ctx.save_for_backward(q, k, v, out, lse.clone())
        ctx.options = options
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # as it is only under create_graph=True
            raise BackendError("no-second-gradients")
        return (*backward(grad, *ctx.saved_tensors, **ctx.options), None, None, None)
