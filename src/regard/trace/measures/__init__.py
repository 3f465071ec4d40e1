"""Measures of records and traces: patterns of heads, entropy, sink, distance, value-weighted attention and rollout.

Each docstring has the definition and the reference; a measure raises where it is not defined. Attention is not
explanation: a measure shows where a model looks, not how it uses that.
"""

from regard.trace.measures.heads import Head, Heads, Score, find_heads
from regard.trace.measures.per_head import (
    attention_rollout,
    distance_profile,
    mean_distance,
    mean_entropy,
    measure_heads,
    sink_share,
    value_norms,
    value_weighted,
)

__all__ = [
    "Head",
    "Heads",
    "Score",
    "attention_rollout",
    "distance_profile",
    "find_heads",
    "mean_distance",
    "mean_entropy",
    "measure_heads",
    "sink_share",
    "value_norms",
    "value_weighted",
]
