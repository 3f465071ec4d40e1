"""Fresh numbers for the exercises: inputs, and parameters by the names under which they are handed in.

Two decimals, so that a learner can read them; small enough for a softmax that does not saturate.
"""

import numpy as np

State = dict[str, np.ndarray]


def numbers(rng: np.random.Generator, *shape: int, spread: float = 1.0) -> np.ndarray:
    """Normal numbers with two decimals.

    >>> numbers(np.random.default_rng(0), 3).tolist()
    [0.13, -0.13, 0.64]
    """
    return np.round(rng.normal(0.0, spread, shape), 2) + 0.0  # + 0.0: a learner should not meet -0.0


def linear(rng: np.random.Generator, name: str, d_in: int, d_out: int) -> State:
    """What an nn.Linear keeps: the weight is d_out × d_in, and the bias is not zero."""
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
    """What an nn.LayerNorm keeps, away from ones and zeros."""
    return {f"{name}.weight": 1 + numbers(rng, d_model, spread=0.4), f"{name}.bias": numbers(rng, d_model, spread=0.4)}


def visible(rng: np.random.Generator, B: int, T: int) -> np.ndarray:
    """A boolean mask B T T, True = may look, another for each sample: two keys in each row, two queries in each column.

    So neither a mask turned round nor a softmax over queries meets a row with nothing in it, which would be NaN.

    >>> visible(np.random.default_rng(0), 1, 3).astype(int).tolist()
    [[[1, 0, 1], [1, 1, 0], [0, 1, 1]]]
    """
    distance = np.arange(T) - np.arange(T)[:, None]  # of a key from a query
    shift = rng.integers(T) + np.arange(B)
    return (distance - shift[:, None, None]) % T < 2


def towering(rng: np.random.Generator, T: int, S: int) -> tuple[np.ndarray, np.ndarray]:
    """Queries T 4 and keys S 4 whose scores, divided by √4, are 1000 give or take a little, -1000 in every other row.

    All are small whole numbers and 40 · 50, so float32 holds every score exactly: only overflow is tried.

    >>> q, k = towering(np.random.default_rng(0), 2, 3)
    >>> (q @ k.T / 2).tolist()
    [[999.5, 999.5, 999.5], [-1001.0, -1001.0, -1000.5]]
    """
    q, k = rng.integers(-1, 2, (T, 4)).astype(float), rng.integers(-1, 2, (S, 4)).astype(float)
    q[:, 0], k[:, 0] = 40 * (-1.0) ** np.arange(T), 50
    return q, k
