"""The definition of every part of the Transformer in plain NumPy, with backward passes by hand.

Every other implementation in regard is checked against it. Written for clarity, not speed; it does not import torch.
"""

from typing import TYPE_CHECKING, Any

from regard.layer_checks import Projections
from regard.reference.attention import (
    Gradients,
    MultiHeadGradients,
    attention_scores,
    linear,
    log_sum_exp,
    merge_heads,
    multi_head_attention,
    multi_head_attention_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    softmax,
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
    Rotations,
    alibi_bias,
    alibi_bias_at,
    alibi_slopes,
    apply_rotations,
    learned_at,
    learned_positions,
    relative_bias,
    relative_bias_at,
    relative_position_buckets,
    rotary_angles,
    rotary_frequencies,
    rotate,
    rotations_at,
    sinusoidal_at,
    sinusoidal_positions,
)
from regard.reference.recurrent import (
    AdditiveGradients,
    ElmanGradients,
    LSTMGradients,
    LSTMState,
    MultiplicativeGradients,
    additive_attention,
    additive_attention_backward,
    elman,
    elman_backward,
    elman_cell,
    elman_cell_backward,
    lstm,
    lstm_backward,
    lstm_cell,
    lstm_cell_backward,
    multiplicative_attention,
    multiplicative_attention_backward,
)
from regard.reference.statistics import (
    distance,
    entropy,
    max_score,
    pooled_map,
    received,
    sink,
    statistics_of,
    top_keys,
)

if TYPE_CHECKING:
    from regard.reference.transformer import Transformer

__all__ = [
    "AdditiveGradients",
    "ElmanGradients",
    "FeedForwardGradients",
    "GatedFeedForwardGradients",
    "Gradients",
    "LSTMGradients",
    "LSTMState",
    "MultiHeadGradients",
    "MultiplicativeGradients",
    "NormGradients",
    "Projections",
    "Rotations",
    "Transformer",
    "additive_attention",
    "additive_attention_backward",
    "alibi_bias",
    "alibi_bias_at",
    "alibi_slopes",
    "apply_rotations",
    "attention_scores",
    "distance",
    "elman",
    "elman_backward",
    "elman_cell",
    "elman_cell_backward",
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
    "lstm",
    "lstm_backward",
    "lstm_cell",
    "lstm_cell_backward",
    "max_score",
    "merge_heads",
    "multi_head_attention",
    "multi_head_attention_backward",
    "multiplicative_attention",
    "multiplicative_attention_backward",
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
    "rotate",
    "rotations_at",
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
    "top_keys",
]


def __getattr__(name: str) -> Any:
    """Import the whole Transformer on first access: `attend` needs only softmax."""
    if name != "Transformer":
        raise AttributeError(f"module 'regard.reference' has no attribute {name!r}")
    from regard.reference.transformer import Transformer

    globals()[name] = Transformer
    return Transformer
