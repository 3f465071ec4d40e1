"""Random inputs for the exercises, and parameters by name.

Two decimals, so that a learner can read them; small enough that the softmax does not saturate.
"""

import numpy as np

State = dict[str, np.ndarray]


def numbers(rng: np.random.Generator, *shape: int, spread: float = 1.0) -> np.ndarray:
    """Normally distributed numbers with two decimals.

    >>> numbers(np.random.default_rng(0), 3).tolist()
    [0.13, -0.13, 0.64]
    """
    return np.round(rng.normal(0.0, spread, shape), 2) + 0.0  # + 0.0 turns -0.0 into 0.0


def linear(rng: np.random.Generator, name: str, d_in: int, d_out: int) -> State:
    """Parameters of an nn.Linear: weight d_out × d_in, and a nonzero bias."""
    weight = numbers(rng, d_out, d_in, spread=1.2 / d_in**0.5)
    return {f"{name}.weight": weight, f"{name}.bias": numbers(rng, d_out, spread=0.6)}


def projections(rng: np.random.Generator, d_model: int, prefix: str = "") -> State:
    """W_q, W_k, W_v and W_o as layers."""
    layers = [linear(rng, f"{prefix}{name}", d_model, d_model) for name in ("W_q", "W_k", "W_v", "W_o")]
    return {name: value for layer in layers for name, value in layer.items()}


def matrices(rng: np.random.Generator, d_model: int) -> State:
    """W_Q, b_Q, … as plain parameters, used as x @ W + b."""
    state: State = {}
    for letter in "QKVO":
        state[f"W_{letter}"] = numbers(rng, d_model, d_model, spread=1.2 / d_model**0.5)
        state[f"b_{letter}"] = numbers(rng, d_model, spread=0.6)
    return state


def norm(rng: np.random.Generator, name: str, d_model: int) -> State:
    """Parameters of an nn.LayerNorm, different from ones and zeros."""
    return {f"{name}.weight": 1 + numbers(rng, d_model, spread=0.4), f"{name}.bias": numbers(rng, d_model, spread=0.4)}


def visible(rng: np.random.Generator, B: int, T: int) -> np.ndarray:
    """A boolean mask B T T, True = visible, different for each sample: two keys per row, two queries per column.

    So neither an inverted mask nor a softmax over queries meets a fully masked row, which would be NaN.

    >>> visible(np.random.default_rng(0), 1, 3).astype(int).tolist()
    [[[1, 0, 1], [1, 1, 0], [0, 1, 1]]]
    """
    distance = np.arange(T) - np.arange(T)[:, None]  # of a key from a query
    shift = rng.integers(T) + np.arange(B)
    return (distance - shift[:, None, None]) % T < 2


def large_scores(rng: np.random.Generator, T: int, S: int) -> tuple[np.ndarray, np.ndarray]:
    """Queries T 4 and keys S 4 whose scores, divided by √4, are about 1000, or -1000 in every other row.

    All are small integers plus 40 · 50, so float32 represents every score exactly: only overflow is tested.

    >>> q, k = large_scores(np.random.default_rng(0), 2, 3)
    >>> (q @ k.T / 2).tolist()
    [[999.5, 999.5, 999.5], [-1001.0, -1001.0, -1000.5]]
    """
    q, k = rng.integers(-1, 2, (T, 4)).astype(float), rng.integers(-1, 2, (S, 4)).astype(float)
    q[:, 0], k[:, 0] = 40 * (-1.0) ** np.arange(T), 50
    return q, k
