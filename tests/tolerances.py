"""Tolerances of comparisons: one table, by operation and dtype, the same on all machines.

The expected values come from `regard.reference` on the same numbers in float64. For half precision the inputs are
rounded first, so that only the computation is measured, not the rounding of the inputs.
"""

from typing import Any, NamedTuple

import numpy as np

from regard.arrays import to_numpy


class Tolerance(NamedTuple):
    """|actual - expected| ≤ absolute + relative · |expected|."""

    absolute: float
    relative: float


# Operations: the output of attention, its weights, their statistics (map, LSE, entropy, received), gradients.
TOLERANCES: dict[str, dict[str, Tolerance]] = {
    "output": {
        "float64": Tolerance(1e-12, 1e-10),
        "float32": Tolerance(2e-6, 2e-5),
        "float16": Tolerance(2e-3, 2e-3),
        "bfloat16": Tolerance(1.6e-2, 1.6e-2),
    },
    # Half precision keeps scores and softmax in float32, so weights and statistics are compared as float32.
    "weights": {
        "float64": Tolerance(1e-12, 1e-10),
        "float32": Tolerance(1e-6, 1e-5),
        "float16": Tolerance(1e-6, 1e-5),
        "bfloat16": Tolerance(1e-6, 1e-5),
    },
    "statistic": {
        "float64": Tolerance(1e-11, 1e-10),
        "float32": Tolerance(5e-6, 1e-5),
        "float16": Tolerance(5e-6, 1e-5),
        "bfloat16": Tolerance(5e-6, 1e-5),
    },
    "gradient": {
        "float64": Tolerance(1e-11, 1e-9),
        "float32": Tolerance(1e-5, 1e-4),
        "float16": Tolerance(1e-2, 1e-2),
        "bfloat16": Tolerance(6e-2, 6e-2),
    },
    # Whole models: logits of the order of one, and the attention weights of any layer.
    # In float32, processors differ in the order of their sums, by up to 1.6e-5 after six sublayers.
    "logits": {"float64": Tolerance(1e-10, 0.0), "float32": Tolerance(3e-5, 0.0)},
    # Central differences with step 1e-6 in float64 have about eight digits.
    "finite difference": {"float64": Tolerance(1e-7, 1e-6)},
}


def tolerance(operation: str, dtype: Any) -> Tolerance:
    """The entry of the table; `dtype` is one of NumPy or torch, or its name."""
    if isinstance(dtype, str):
        name = dtype
    elif isinstance(dtype, np.dtype):
        name = dtype.name
    else:
        name = str(dtype).removeprefix("torch.")
    return TOLERANCES[operation][name]


def assert_close(actual: Any, expected: Any, operation: str = "output", dtype: Any = None) -> None:
    """Assert equal shapes, NaN and Inf at the same places, and values within the table; `dtype`: that of `actual`."""
    allowed = tolerance(operation, actual.dtype if dtype is None else dtype)
    actual, expected = to_numpy(actual), to_numpy(expected)
    assert actual.shape == expected.shape, f"{operation}: shape {actual.shape}, expected {expected.shape}"
    np.testing.assert_allclose(
        actual.astype(np.float64),
        expected.astype(np.float64),
        atol=allowed.absolute,
        rtol=allowed.relative,
        err_msg=operation,
    )


def assert_same_bits(actual: Any, expected: Any) -> None:
    """Assert equality to the last bit; NaN equals NaN, and 0 equals -0."""
    actual, expected = to_numpy(actual), to_numpy(expected)
    assert actual.dtype == expected.dtype, f"{actual.dtype}, expected {expected.dtype}"
    np.testing.assert_array_equal(actual, expected, strict=True)
