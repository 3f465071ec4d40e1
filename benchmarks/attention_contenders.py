"""Who computes attention on a CUDA device in `benchmarks.gpu_attention`: PyTorch's own kernels, and ours.

    FlashAttention-2     SDPA pinned to it; its backward adds in an order that changes
    cuDNN                SDPA pinned to it
    plain                our forward, nothing asked
    map … everything     our forward that also tells; what it cannot tell follows in passes after it
    cuDNN + map          cuDNN's output and LSE, and the map from q, k and that LSE alone
    received pass        what keys receive, from q, k and the LSE alone
    search pass          the strongest keys, from q, k, the LSE and the thresholds that our forward leaves
    attend               `regard.attend` asked for the same map, whoever it chooses
    eager                every weight, as Hugging Face's eager attention makes them

The numbers are drawn from a normal distribution: no head has a favourite, and no tile can be left out.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.attention_settings import TOP, Setting
from benchmarks.measure import Contender
from regard import Mask, attend
from regard.kernels.tiles import Bins
from regard.kernels.triton.attention import attention
from regard.kernels.triton.forward_launch import forward
from regard.kernels.triton.key_sums import sums
from regard.kernels.triton.mask_bands import sight_of
from regard.kernels.triton.support import Asked
from regard.kernels.triton.top_keys import of_queries

OURS = (
    "plain",
    "map",
    "entropy",
    "received",
    "top-8",
    "everything",
    "cuDNN + map",
    "received pass",
    "search pass",
    "backward",
)
"""Those that compile kernels of ours."""
ALL_WEIGHTS = 16_384
"""The length at which all weights are made: beyond it they do not fit."""


def contenders(setting: Setting, device: torch.device) -> dict[str, Contender]:
    """All that are timed at this setting, by name."""
    q, k, v = setting.tensors(device)
    found = {**theirs(setting, q, k, v), **ours(setting, q, k, v), **backwards(setting, device)}
    if setting.n == ALL_WEIGHTS:
        mask, see = Mask.causal() if setting.causal else None, setting.see()
        found["attend"] = lambda: attend(q, k, v, mask=mask, see=see)
        hidden = q.new_full((setting.n, setting.n), torch.finfo(q.dtype).min).triu_(1) if setting.causal else None
        found["eager"] = lambda: eager(q, k, v, hidden)
    return found


def theirs(setting: Setting, q: Tensor, k: Tensor, v: Tensor) -> dict[str, Contender]:
    return {
        "FlashAttention-2": lambda: pinned(SDPBackend.FLASH_ATTENTION, q, k, v, setting.causal),
        "cuDNN": lambda: pinned(SDPBackend.CUDNN_ATTENTION, q, k, v, setting.causal),
    }


def ours(setting: Setting, q: Tensor, k: Tensor, v: Tensor) -> dict[str, Contender]:
    mask = Mask.causal().bind((1, setting.H), setting.n, setting.n, q) if setting.causal else None
    bins, scale = Bins.of(setting.n, setting.n, setting.see()), setting.E**-0.5

    def one_pass(name: str) -> Contender:
        asked = setting.asked(name)
        return lambda: forward(q, k, v, sight_of(mask), scale=scale, asked=asked)

    def all_passes(**asked: Any) -> Contender:
        see = setting.see(**asked)
        return lambda: attention(q, k, v, mask=mask, scale=scale, see=see)

    def cudnn_and_map() -> object:
        out, lse = cudnn_with_lse(q, k, v, setting.causal)
        return out, sums(q, k, lse, sight_of(mask), scale=scale, bins=bins, received=False)

    @cache
    def known() -> Any:
        """What a forward leaves to the passes after it, made when one of them first asks for it."""
        return forward(q, k, v, sight_of(mask), scale=scale, asked=Asked(lse=True, top=TOP))

    def search() -> object:
        return of_queries(q, k, known().lse, mask=mask, scale=scale, top=TOP, threshold=known().threshold)

    return {
        "plain": one_pass("plain"),
        "map": one_pass("map"),
        "entropy": one_pass("entropy"),
        "received": all_passes(received=True),
        "top-8": all_passes(top=TOP),
        "everything": all_passes(entropy=True, received=True, top=TOP),
        "cuDNN + map": cudnn_and_map,
        "received pass": lambda: sums(q, k, known().lse, sight_of(mask), scale=scale, received=True),
        "search pass": search,
    }


def backwards(setting: Setting, device: torch.device) -> dict[str, Contender]:
    """Backward passes alone: each keeps what its forward left, which is made when it first runs."""
    *leaves, upstream = setting.tensors(device, 4)
    leaves = [x.requires_grad_() for x in leaves]
    outputs: dict[str, Tensor] = {}

    def backward(name: str, make: Any) -> Contender:
        def run() -> object:
            if name not in outputs:
                outputs[name] = make(*leaves)
            return torch.autograd.grad(outputs[name], leaves, upstream, retain_graph=True)

        return run

    def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return pinned(SDPBackend.FLASH_ATTENTION, q, k, v, setting.causal)

    def own(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        from regard.kernels.triton.autograd import attention_with_gradient

        mask = Mask.causal().bind((1, setting.H), setting.n, setting.n, q) if setting.causal else None
        return attention_with_gradient(q, k, v, mask=mask, scale=setting.E**-0.5).out

    return {"FlashAttention-2 backward": backward("flash", flash), "backward": backward("own", own)}


def agreement(contenders: dict[str, Contender]) -> dict[str, float]:
    """How far apart those are that should say the same: outputs, maps from one pass and from two, cuDNN's with LSE."""
    one_pass: Any = contenders["map"]()
    two_passes: Any = contenders["cuDNN + map"]()
    alone: Any = contenders["cuDNN"]()
    out, found = two_passes
    return {
        "output beside cuDNN's": float((one_pass.out.float() - out.float()).abs().max()),
        "map in one pass beside two": float(((one_pass.sums - found.map).abs() / found.map.clamp(min=1e-6)).max()),
        "cuDNN with LSE beside without": float((out.float() - alone.float()).abs().max()),
    }


def pinned(backend: SDPBackend, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """PyTorch's own attention by one of its kernels."""
    with sdpa_kernel(backend):
        return scaled_dot_product_attention(q, k, v, is_causal=causal)


def cudnn_with_lse(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """Output, and the LSE B H T that cuDNN hands out where gradients will be asked for."""
    out, lse, *_ = torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal)
    return out, lse.reshape(q.shape[:3])


def eager(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Output and weights, the softmax in float32; `hidden` is added to the scores."""
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if hidden is not None:
        scores = scores + hidden
    weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
    return weights @ v, weights
