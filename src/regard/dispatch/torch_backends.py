"""The backends for torch tensors: sdpa (fused), chunked (fused with statistics), eager (the whole matrix)."""

from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.dispatch.backend import YES, Answer, Backend
from regard.dispatch.call import Call
from regard.functional.attention import attention_scores, attention_weights, autocast_is_on, weighted_sum
from regard.functional.exponentials import computing_dtype, log_sum_exp
from regard.functional.fused import sdpa
from regard.functional.statistics import statistics_of
from regard.kernels import chunked
from regard.masks import Mask
from regard.masks.rules import Dense
from regard.memory import require
from regard.records import Statistics


def autocast(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The three as autocast would have them, where it is on: PyTorch's own rule, applied before any backend."""
    if not autocast_is_on(q):
        return q, k, v
    dtype = torch.get_autocast_dtype(q.device.type)
    q, k, v = (x.to(dtype) if x.is_floating_point() and x.dtype != torch.float64 else x for x in (q, k, v))
    return q, k, v


def _sdpa_answer(call: Call) -> Answer:
    if call.see is not None:
        return Answer(False, "no-statistics", {"backend": "chunked"})
    if call.softcap is not None:
        return Answer(False, "no-softcap", {"backend": "chunked"})
    if call.dropout:
        return Answer(True, "whole-matrix-dropout")
    if call.bias is not None and call.bias.requires_grad:
        return Answer(True, "whole-matrix-bias")
    return YES


def _sdpa(call: Call) -> tuple[Tensor, Statistics]:
    if _sdpa_answer(call) is not YES and not torch.compiler.is_compiling():
        _require_room(call, "matrix-too-large")
    out = sdpa(call.q, call.k, call.v, mask=call.bound, bias=call.bias, scale=call.scale, dropout=call.dropout)
    return out, Statistics()


def _chunked_answer(call: Call) -> Answer:
    if call.dropout:
        return Answer(False, "no-dropout", {"backend": "eager"})
    if call.bias is not None and call.bias.requires_grad:
        return Answer(False, "no-bias-gradient", {"backend": "eager"})
    if torch.compiler.is_compiling():
        return Answer(False, "no-tracing", {"backend": "eager"})
    return YES


def _chunked(call: Call) -> tuple[Tensor, Statistics]:
    return chunked.attention(call.q, call.k, call.v, see=call.see, **call.options)


def _eager(call: Call) -> tuple[Tensor, Statistics]:
    sizes = call.sizes
    shape = (sizes.B, sizes.H, sizes.T, sizes.S)
    if not torch.compiler.is_compiling():
        _require_room(call, "weights-too-large")
    mask = None
    if call.bound is not None:
        seen = call.bound.block(slice(0, sizes.T), slice(0, sizes.S))
        if isinstance(seen, bool):
            seen = torch.full((), seen, device=call.q.device)
        mask = Mask(Dense(seen.expand(shape)), "eager")
    scores = attention_scores(call.q, call.k, mask, call.bias, call.scale, call.softcap)
    weights = attention_weights(scores)
    found = Statistics()
    if call.see is not None:
        found = statistics_of(weights.detach(), log_sum_exp(scores.detach()), call.see)
    if call.dropout:
        weights = F.dropout(weights, call.dropout)
    return weighted_sum(weights, call.q, call.v, mask), found


def _require_room(call: Call, key: str) -> None:
    """Scores, weights and a mask's matrix live at once."""
    shape = (call.sizes.B, call.sizes.H, call.sizes.T, call.sizes.S)
    free = torch.cuda.mem_get_info(call.q.device)[0] if call.q.device.type == "cuda" else None
    require(3 * computing_dtype(call.q).itemsize * prod(shape), key=key, shape=shape, free=free)


def rectangle(call: Call, lse: Tensor, rows: slice, cols: slice) -> Tensor:
    """Exact weights of rows × cols."""
    return chunked.rectangle(call.q, call.k, lse, rows, cols, **call.options)


BACKENDS = (
    Backend("sdpa", _sdpa_answer, _sdpa),
    Backend("chunked", _chunked_answer, _chunked),
    Backend("eager", lambda _: Answer(True, "whole-matrix"), _eager),
)
