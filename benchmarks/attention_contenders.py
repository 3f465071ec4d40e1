"""The implementations of attention timed by `benchmarks.gpu_attention`: PyTorch's kernels, and ours.

    FlashAttention-2     SDPA with this backend; its backward adds in a varying order
    cuDNN                SDPA with this backend
    plain                our forward without statistics
    map … everything     our forward with statistics; second passes compute what it cannot
    cuDNN + map          cuDNN's output and LSE, and the map from q, k and that LSE
    received pass        received attention, from q, k and the LSE
    search pass          the top keys, from q, k, the LSE and the thresholds of our forward
    attend               `regard.attend` with the same map, with the backend it chooses
    eager                all weights, as Hugging Face's eager attention computes them

The inputs are drawn from a normal distribution: no head has preferred keys, and no tile can be skipped.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.attention_settings import TOP, Setting
from benchmarks.measure import Contender
from regard import Mask, attend
from regard.attention_call import AttentionCall
from regard.kernels.division import Bins
from regard.kernels.triton.attention import attention
from regard.kernels.triton.forward import forward
from regard.kernels.triton.key_sums import sum_over_queries
from regard.kernels.triton.support import ForwardRequest, bands_of
from regard.kernels.triton.top_keys import query_statistics

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
"""Those that compile our kernels."""
ALL_WEIGHTS = 16_384
"""The length at which all weights are computed: longer ones do not fit into memory."""


def contenders(setting: Setting, device: torch.device) -> dict[str, Contender]:
    """All implementations timed at this setting, by name."""
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
    bins, call = Bins.of(setting.n, setting.n, setting.see()), AttentionCall(q, k, v, setting.E**-0.5, bound=mask)

    def one_pass(name: str) -> Contender:
        request = setting.request(name)
        return lambda: forward(call, bands_of(mask), request)

    def all_passes(**options: Any) -> Contender:
        observed = replace(call, see=setting.see(**options))
        return lambda: attention(observed)

    def cudnn_and_map() -> object:
        out, lse = cudnn_with_lse(q, k, v, setting.causal)
        return out, sum_over_queries(call, lse, bands_of(mask), bins=bins, received=False)

    @cache
    def first_forward() -> Any:
        """The forward's result for the second passes, computed when first needed."""
        return forward(call, bands_of(mask), ForwardRequest(lse=True, top=TOP))

    def search() -> object:
        return query_statistics(call, first_forward().lse, top=TOP, threshold=first_forward().threshold)

    return {
        "plain": one_pass("plain"),
        "map": one_pass("map"),
        "entropy": one_pass("entropy"),
        "received": all_passes(received=True),
        "top-8": all_passes(top=TOP),
        "everything": all_passes(entropy=True, received=True, top=TOP),
        "cuDNN + map": cudnn_and_map,
        "received pass": lambda: sum_over_queries(call, first_forward().lse, bands_of(mask), received=True),
        "search pass": search,
    }


def backwards(setting: Setting, device: torch.device) -> dict[str, Contender]:
    """Backward passes alone: each keeps the result of its forward, computed at its first run."""
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
        return attention_with_gradient(AttentionCall(q, k, v, setting.E**-0.5, bound=mask), ForwardRequest()).out

    return {"FlashAttention-2 backward": backward("flash", flash), "backward": backward("own", own)}


def agreement(contenders: dict[str, Contender]) -> dict[str, float]:
    """Differences between results that should be equal: outputs, maps, cuDNN with and without LSE."""
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
    """PyTorch's attention with one of its kernels."""
    with sdpa_kernel(backend):
        return scaled_dot_product_attention(q, k, v, is_causal=causal)


def cudnn_with_lse(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """Output, and the LSE B H T that cuDNN returns if gradients are needed."""
    out, lse, *_ = torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal)
    return out, lse.reshape(q.shape[:3])


def eager(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Output and weights, the softmax in float32; `hidden` is added to the scores."""
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if hidden is not None:
        scores = scores + hidden
    weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
    return weights @ v, weights
