"""Setup of the tests of the Triton kernels: under Triton's interpreter, started by test_triton.py, or on a GPU.

TRITON_INTERPRET=1 pytest tests/unit/kernels/triton
"""

import os

import pytest
import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
os.environ["REGARD_INTERPRET"] = "1"

if not INTERPRETED and not torch.cuda.is_available():
    collect_ignore_glob = ["test_*.py"]


def pytest_configure(config: pytest.Config) -> None:
    """On a GPU the logarithm of 0 is -inf, which the kernels rely on; NumPy, used by the interpreter, also warns."""
    config.addinivalue_line("filterwarnings", "ignore:divide by zero encountered in log2:RuntimeWarning")
    if INTERPRETED:
        _multiply_bfloat16()


def _multiply_bfloat16() -> None:
    """The interpreter stores bfloat16 as integers, and multiplies them as such."""
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    product = InterpreterBuilder.create_dot

    def wide(x: TensorHandle) -> TensorHandle:
        if x.dtype.scalar != tl.bfloat16:
            return x
        return TensorHandle((x.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    def create_dot(self: InterpreterBuilder, a: TensorHandle, b: TensorHandle, *rest: object) -> TensorHandle:
        return product(self, wide(a), wide(b), *rest)

    InterpreterBuilder.create_dot = create_dot


@pytest.fixture
def device() -> str:
    return "cpu" if INTERPRETED else "cuda"
