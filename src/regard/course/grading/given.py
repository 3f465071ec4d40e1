"""What an answer may import of ours: `softmax`, because the tutorials' own answers do.

The learner's process sees neither regard nor the package deep_learning; it gets this text under the same name. An
exercise that asks for softmax itself does not give it away.
"""

from collections.abc import Iterable

MODULE = "deep_learning.activations"

SOFTMAX = """
import numpy as np


def softmax(x, axis=-1):
    array = np.asarray(x, dtype=float)
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"there is no axis {axis} in the shape {array.shape}")
    largest = array.max(axis=axis, keepdims=True, initial=-np.inf)
    powers = np.exp(array - np.where(np.isfinite(largest), largest, 0.0))
    total = powers.sum(axis=axis, keepdims=True)
    return powers / np.where(total == 0, 1.0, total)
"""
"""As `deep_learning.activations` has it: stable, and 0 where all is -inf."""


def given(targets: Iterable[str]) -> dict[str, str]:
    """The modules that a program may import, by name, for a task that asks for these functions.

    >>> list(given(["simple_attention"])), list(given(["softmax"]))
    (['deep_learning.activations'], [])
    """
    return {} if "softmax" in targets else {MODULE: SOFTMAX}
