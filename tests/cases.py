"""Named cases of attention calls: one shared list with readable ids, for parity, gradient and GPU tests.

`strategies.calls` generates random calls; these are the known edge cases. Each is a `Call` in float64, created by
`make_case(name)`; use `@pytest.mark.parametrize("name", CASES)`.
"""

import numpy as np
from strategies import Call

from regard.axes import attention_sizes
from regard.masks import Mask

Shape = tuple[int, ...]

# name -> q, k, v shapes, and the mask. Odd and prime sizes; both sides of a block of 64 and of 128.
CASES: dict[str, tuple[Shape, Shape, Shape, Mask | None]] = {
    "two axes": ((5, 4), (7, 4), (7, 3), None),
    "three axes": ((3, 5, 4), (3, 7, 4), (3, 7, 3), None),
    "five axes": ((2, 3, 4, 5, 8), (2, 3, 4, 7, 8), (2, 3, 4, 7, 5), None),
    "one query": ((2, 3, 1, 8), (2, 3, 7, 8), (2, 3, 7, 8), Mask.causal()),
    "one key": ((2, 3, 7, 8), (2, 3, 1, 8), (2, 3, 1, 8), None),
    "one of everything": ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), Mask.causal()),
    "causal": ((2, 3, 7, 8), (2, 3, 7, 8), (2, 3, 7, 8), Mask.causal()),
    "causal, more keys": ((2, 3, 3, 8), (2, 3, 7, 8), (2, 3, 7, 8), Mask.causal()),
    "causal, more queries": ((2, 3, 7, 8), (2, 3, 3, 8), (2, 3, 3, 8), Mask.causal()),
    "63 keys": ((1, 2, 63, 16), (1, 2, 63, 16), (1, 2, 63, 16), Mask.causal()),
    "127 keys": ((1, 2, 65, 16), (1, 2, 127, 16), (1, 2, 127, 16), Mask.window(31, 2)),
    "window": ((2, 3, 7, 8), (2, 3, 7, 8), (2, 3, 7, 8), Mask.window(2, 1)),
    "causal window": ((2, 3, 7, 8), (2, 3, 9, 8), (2, 3, 9, 8), Mask.causal() & Mask.window(2, None)),
    "prefix": ((2, 3, 7, 8), (2, 3, 7, 8), (2, 3, 7, 8), Mask.causal() | Mask.prefix(3)),
    "padding": ((2, 3, 5, 8), (2, 3, 4, 8), (2, 3, 4, 8), Mask.padding(np.array([[1, 1, 0, 0], [1, 1, 1, 0]]))),
    "causal and padding": (
        (2, 3, 4, 8),
        (2, 3, 4, 8),
        (2, 3, 4, 8),
        Mask.causal() & Mask.padding(np.array([[0, 0, 1, 1], [0, 1, 1, 1]])),
    ),
    "a sample of padding": (
        (2, 3, 4, 8),
        (2, 3, 4, 8),
        (2, 3, 4, 8),
        Mask.padding(np.array([[0, 0, 0, 0], [1, 1, 1, 0]])),
    ),
    "segments": ((1, 2, 6, 8), (1, 2, 6, 8), (1, 2, 6, 8), Mask.segments(np.array([1, 1, 2, 2, 2, 3]))),
    "everything masked": ((2, 3, 4, 8), (2, 3, 4, 8), (2, 3, 4, 8), Mask.prefix(0)),
    "grouped": ((2, 6, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4), Mask.causal()),
    "one key/value head": ((2, 4, 5, 8), (2, 1, 7, 8), (2, 1, 7, 8), None),
    "a mask per head": (
        (1, 2, 3, 4),
        (1, 2, 3, 4),
        (1, 2, 3, 4),
        Mask.of(np.stack([np.eye(3, dtype=bool), np.tri(3, k=-1, dtype=bool)])[None]),
    ),
    "no queries": ((2, 3, 0, 8), (2, 3, 4, 8), (2, 3, 4, 8), Mask.causal()),
    "no keys": ((2, 3, 4, 8), (2, 3, 0, 8), (2, 3, 0, 8), Mask.causal()),
    "no samples": ((0, 3, 4, 8), (0, 3, 4, 8), (0, 3, 4, 8), Mask.causal()),
}


def make_case(name: str, dtype: str = "float64", seed: int = 0) -> Call:
    """The case of that name with random numbers."""
    q_shape, k_shape, v_shape, mask = CASES[name]
    rng = np.random.default_rng(seed)
    sizes = attention_sizes(q_shape, k_shape, v_shape)
    allowed = np.ones((sizes.T, sizes.S), bool) if mask is None else mask.dense(sizes.T, sizes.S)
    q, k, v = (rng.standard_normal(shape).astype(dtype) for shape in (q_shape, k_shape, v_shape))
    return Call(sizes=sizes, q=q, k=k, v=v, mask=mask, allowed=np.broadcast_to(allowed, sizes.scores))
