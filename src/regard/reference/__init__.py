"""The definition of every part of the Transformer: plain NumPy, loops welcome, backward passes by hand.

The judge of everything else in regard. It knows nothing of speed, of torch, or of who calls it.
"""

from regard.reference.attention import (
    Gradients,
    attention_scores,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from regard.reference.heads import (
    MultiHeadGradients,
    linear,
    merge_heads,
    multi_head_attention,
    multi_head_attention_backward,
    split_heads,
)
from regard.reference.softmax import log_sum_exp, softmax
from regard.reference.statistics import entropy, pooled_map, received, statistics, strongest

__all__ = [
    "Gradients",
    "MultiHeadGradients",
    "attention_scores",
    "entropy",
    "linear",
    "log_sum_exp",
    "merge_heads",
    "multi_head_attention",
    "multi_head_attention_backward",
    "pooled_map",
    "received",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward",
    "softmax",
    "split_heads",
    "statistics",
    "strongest",
]
