"""The PyTorch versions of `reference`: the same names, arguments and edge cases, differentiable by autograd.

`sdpa` has no NumPy version: it calls PyTorch's fused kernel under the rules of the reference.
"""

from importlib.util import find_spec

from regard.errors import MissingPackageError

if find_spec("torch") is None:
    raise MissingPackageError("missing-package", what="regard.functional", package="torch", extra="torch")

from regard.functional.attention import (
    attention_scores,
    linear,
    log_sum_exp,
    merge_heads,
    multi_head_attention,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)
from regard.functional.fused import sdpa
from regard.functional.position_wise import feed_forward, gated_feed_forward, gelu, layer_norm, relu, rms_norm, silu
from regard.functional.positions import (
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
from regard.functional.recurrent import (
    LSTMState,
    additive_attention,
    elman,
    elman_cell,
    lstm,
    lstm_cell,
    multiplicative_attention,
)
from regard.functional.statistics import (
    distance,
    entropy,
    max_score,
    pooled_map,
    received,
    sink,
    statistics_of,
    top_keys,
)
from regard.layer_checks import Projections

__all__ = [
    "LSTMState",
    "Projections",
    "Rotations",
    "additive_attention",
    "alibi_bias",
    "alibi_bias_at",
    "alibi_slopes",
    "apply_rotations",
    "attention_scores",
    "distance",
    "elman",
    "elman_cell",
    "entropy",
    "feed_forward",
    "gated_feed_forward",
    "gelu",
    "layer_norm",
    "learned_at",
    "learned_positions",
    "linear",
    "log_sum_exp",
    "lstm",
    "lstm_cell",
    "max_score",
    "merge_heads",
    "multi_head_attention",
    "multiplicative_attention",
    "pooled_map",
    "received",
    "relative_bias",
    "relative_bias_at",
    "relative_position_buckets",
    "relu",
    "rms_norm",
    "rotary_angles",
    "rotary_frequencies",
    "rotate",
    "rotations_at",
    "scaled_dot_product_attention",
    "sdpa",
    "silu",
    "sink",
    "sinusoidal_at",
    "sinusoidal_positions",
    "softmax",
    "split_heads",
    "statistics_of",
    "top_keys",
]
