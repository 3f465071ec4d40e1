"""Projections: the weights of multi-head attention, named as in the paper, for NumPy and torch."""

from typing import NamedTuple

from regard.arrays import Array


class Projections(NamedTuple):
    """Used as `x @ W + b`. Columns h·E … (h+1)·E of W_q, W_k and W_v belong to head h, and so do these rows of W_o.

    W_q is D × H·E, W_k is D × G·E, W_v is D × G·Ev, W_o is H·Ev × D; biases may be None.
    """

    W_q: Array
    W_k: Array
    W_v: Array
    W_o: Array
    b_q: Array | None = None
    b_k: Array | None = None
    b_v: Array | None = None
    b_o: Array | None = None
