"""Measures over records and traces: what heads look at, how widely, how far, and through all layers.

Each has its definition and reference in its docstring, and refuses what it cannot tell. Attention is not explanation:
a measure says where a model looked, not what it made of it.
"""

from regard.trace.measures.heads import Head, Heads, Score, find_heads
from regard.trace.measures.per_head import (
    distance_profile,
    mean_distance,
    mean_entropy,
    measured,
    sink_share,
    value_lengths,
    value_weighted,
)
from regard.trace.measures.rollout import attention_rollout

__all__ = [
    "Head",
    "Heads",
    "Score",
    "attention_rollout",
    "distance_profile",
    "find_heads",
    "mean_distance",
    "mean_entropy",
    "measured",
    "sink_share",
    "value_lengths",
    "value_weighted",
]
