"""The definition of every part of the Transformer: plain NumPy, loops welcome, backward passes by hand.

The judge of everything else in regard. It knows nothing of speed, of torch, or of who calls it.
"""

from typing import TYPE_CHECKING, Any

from regard.projections import Projections
from regard.reference.attention import (
    Gradients,
    attention_scores,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from regard.reference.exponentials import log_sum_exp, softmax
from regard.reference.heads import (
    MultiHeadGradients,
    linear,
    merge_heads,
    multi_head_attention,
    multi_head_attention_backward,
    split_heads,
)
from regard.reference.norms import NormGradients, layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from regard.reference.position_wise import (
    FeedForwardGradients,
    GatedFeedForwardGradients,
    feed_forward,
    feed_forward_backward,
    gated_feed_forward,
    gated_feed_forward_backward,
    gelu,
    gelu_backward,
    relu,
    relu_backward,
    silu,
    silu_backward,
)
from regard.reference.positions import (
    Turns,
    alibi_bias,
    alibi_bias_at,
    alibi_slopes,
    learned_at,
    learned_positions,
    relative_bias,
    relative_bias_at,
    relative_position_buckets,
    rotary_angles,
    rotary_frequencies,
    rotary_turns,
    rotate,
    sinusoidal_at,
    sinusoidal_positions,
    turn,
)
from regard.reference.statistics import distance, entropy, pooled_map, received, sink, statistics_of, strongest

if TYPE_CHECKING:
    from regard.reference.transformer import Transformer

__all__ = [
    "FeedForwardGradients",
    "GatedFeedForwardGradients",
    "Gradients",
    "MultiHeadGradients",
    "NormGradients",
    "Projections",
    "Transformer",
    "Turns",
    "alibi_bias",
    "alibi_bias_at",
    "alibi_slopes",
    "attention_scores",
    "distance",
    "entropy",
    "feed_forward",
    "feed_forward_backward",
    "gated_feed_forward",
    "gated_feed_forward_backward",
    "gelu",
    "gelu_backward",
    "layer_norm",
    "layer_norm_backward",
    "learned_at",
    "learned_positions",
    "linear",
    "log_sum_exp",
    "merge_heads",
    "multi_head_attention",
    "multi_head_attention_backward",
    "pooled_map",
    "received",
    "relative_bias",
    "relative_bias_at",
    "relative_position_buckets",
    "relu",
    "relu_backward",
    "rms_norm",
    "rms_norm_backward",
    "rotary_angles",
    "rotary_frequencies",
    "rotary_turns",
    "rotate",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward",
    "silu",
    "silu_backward",
    "sink",
    "sinusoidal_at",
    "sinusoidal_positions",
    "softmax",
    "split_heads",
    "statistics_of",
    "strongest",
    "turn",
]


def __getattr__(name: str) -> Any:
    """The whole Transformer when it is asked for: `attend` needs softmax, and should not pay for more."""
    if name != "Transformer":
        raise AttributeError(f"module 'regard.reference' has no attribute {name!r}")
    from regard.reference.transformer import Transformer

    globals()[name] = Transformer
    return Transformer
