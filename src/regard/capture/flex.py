"""`flex_attention` called as it is: its scores are made again by PyTorch's own definition, as it has made them too.

Its score and mask functions are anybody's, so they are asked about the whole matrix, as PyTorch asks them. Compiled,
it is a kernel of its own that no operator shows: a watch then says to run the model uncompiled, or with SDPA.
"""

from typing import Any

import torch
from torch._higher_order_ops.flex_attention import _math_attention_inner

from regard.capture.caught import CaughtWeights
from regard.masks.padding import seen_in


def read_flex(given: dict[str, Any], result: Any) -> CaughtWeights:
    """(query, key, value, score_mod, block_mask, scale, …); fewer heads and samples of keys are repeated."""
    query, key, value, *rest = given.values()
    key, v = (x.repeat_interleave(query.shape[1] // x.shape[1], 1).expand(len(query), -1, -1, -1) for x in (key, value))
    _, scores = _math_attention_inner(query, key, value, *rest)
    weights = torch._safe_softmax(scores, -1)
    return CaughtWeights(weights, scores.logsumexp(-1), v=v, taken=weights, seen=seen_in(scores))
