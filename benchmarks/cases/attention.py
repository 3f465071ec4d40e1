"""Attention alone on the CPU, and the start-up time of the package."""

import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Measured, Ratio

if TYPE_CHECKING:
    import numpy as np


H, E = 12, 64


def attention_flops(n: int) -> float:
    """Multiplications and additions of the two products."""
    return 4.0 * H * n * n * E


# --- NumPy -----------------------------------------------------------------------------------------------

SQUARE = 2048


def numpy_call() -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    import numpy as np

    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, H, 2048, E), dtype=np.float32) for _ in range(3))
    return q, k, v


def numpy_attention() -> dict[str, Contender]:
    import numpy as np
    from threadpoolctl import threadpool_limits

    from regard import attend

    q, k, v = numpy_call()

    def formula() -> np.ndarray:
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(E))
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return (powers / powers.sum(axis=-1, keepdims=True)) @ v

    def formula_one_thread() -> np.ndarray:
        with threadpool_limits(1):
            return formula()

    return {
        "attend": lambda: attend(q, k, v),
        "formula, NumPy's threads": formula,
        "formula, one BLAS thread": formula_one_thread,
    }


def numpy_statistics() -> dict[str, Contender]:
    """Separate from the formula, whose effect on the memory of the process would slow down the others."""
    import numpy as np

    from regard import See, attend

    q, k, v = numpy_call()
    square = np.random.default_rng(0).standard_normal((SQUARE, SQUARE), dtype=np.float32)
    return {
        "attend": lambda: attend(q, k, v),
        "attend, map and received": lambda: attend(q, k, v, see=See(received=True)),
        "sgemm": lambda: square @ square,
    }


def numpy_memory(_: Measured) -> dict[str, float]:
    import numpy as np

    from regard import attend

    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, H, 4096, E), dtype=np.float32) for _ in range(3))
    attend(q[:, :, :64], k, v)
    tracemalloc.start()
    out = attend(q, k, v)
    peak = tracemalloc.get_traced_memory()[1] - out.nbytes
    tracemalloc.stop()
    return {"peak beside the output, n = 4096": peak / 2**20}


NUMPY = Case(
    name="numpy-attention",
    what="NumPy, H = 12, E = 64, float32, n = 2048, no mask",
    prepare=numpy_attention,
    pause=0.1,  # OpenBLAS threads spin for a while after a product that used several
    facts=numpy_memory,
    fact_bounds=(("peak beside the output, n = 4096", "MiB", 64.0),),
    ratios=(
        Ratio(
            label="speed over the formula, one BLAS thread",
            over="formula, one BLAS thread",
            under="attend",
            must=3.0,
            higher_is_better=True,
        ),
        Ratio(
            label="speed over the formula, NumPy's threads",
            over="formula, NumPy's threads",
            under="attend",
            must=2.2,
            higher_is_better=True,
        ),
    ),
)

STATISTICS = Case(
    name="numpy-statistics",
    what="NumPy, H = 12, E = 64, float32, n = 2048, no mask, the default map of 256 bins",
    prepare=numpy_statistics,
    pause=0.1,
    ratios=(
        Ratio(
            label="share of the sgemm rate",
            over="attend",
            under="sgemm",
            work=(attention_flops(2048), 2.0 * SQUARE**3),
            aim=0.65,
            must=0.55,
            higher_is_better=True,
        ),
        Ratio(
            label="map and received, time over plain",
            over="attend, map and received",
            under="attend",
            must=1.25,
        ),
    ),
)


# --- torch -----------------------------------------------------------------------------------------------


def torch_attend() -> dict[str, Contender]:
    import torch
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    from regard import Mask, attend

    torch.manual_seed(0)
    q, k, v = (torch.randn(1, H, 1024, E) for _ in range(3))
    return {
        "sdpa": lambda: sdpa(q, k, v),
        "attend": lambda: attend(q, k, v),
        "sdpa, is_causal": lambda: sdpa(q, k, v, is_causal=True),
        "attend, Mask.causal()": lambda: attend(q, k, v, mask=Mask.causal()),
    }


TORCH = Case(
    name="torch-attend",
    what="torch on the CPU, H = 12, E = 64, float32, n = 1024",
    prepare=torch_attend,
    rounds=100,
    ratios=(
        Ratio(label="no mask, time over SDPA", over="attend", under="sdpa", must=1.03),
        Ratio(label="causal, time over SDPA", over="attend, Mask.causal()", under="sdpa, is_causal", must=1.03),
    ),
)


def torch_see() -> dict[str, Contender]:
    import torch
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    from regard import Mask, See, attend

    torch.manual_seed(0)
    q, k, v = (torch.randn(1, H, 4096, E) for _ in range(3))
    causal, small, more = Mask.causal(), See(map=32), See(map=32, received=True, entropy=True)
    return {
        "sdpa": lambda: sdpa(q, k, v),
        "map": lambda: attend(q, k, v, see=small),
        "map, received, entropy": lambda: attend(q, k, v, see=more),
        "default map of 256": lambda: attend(q, k, v, see=See()),
        "sdpa, is_causal": lambda: sdpa(q, k, v, is_causal=True),
        "causal map": lambda: attend(q, k, v, mask=causal, see=small),
        "causal map, received, entropy": lambda: attend(q, k, v, mask=causal, see=more),
        "formula with weights": lambda: torch.softmax(q @ k.mT / E**0.5, -1) @ v,
    }


SEE = Case(
    name="torch-see",
    what="torch on the CPU, H = 12, E = 64, float32, n = 4096, 32 bins unless noted",
    prepare=torch_see,
    rounds=9,
    ratios=(
        Ratio(label="map, time over SDPA", over="map", under="sdpa", must=1.45, aim=1.25),
        Ratio(label="causal map, over SDPA causal", over="causal map", under="sdpa, is_causal", must=1.45, aim=1.25),
        Ratio(label="map, received, entropy", over="map, received, entropy", under="sdpa", must=2.2),
        Ratio(label="the same, causal", over="causal map, received, entropy", under="sdpa, is_causal", must=2.2),
        Ratio(label="default map of 256", over="default map of 256", under="sdpa"),
        Ratio(label="the formula, weights and all (for comparison)", over="formula with weights", under="sdpa"),
    ),
)


# --- start-up --------------------------------------------------------------------------------------------


def start_up() -> dict[str, Contender]:
    def fresh(*arguments: str) -> Contender:
        return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    return {
        "python": fresh("-c", "pass"),
        "import numpy": fresh("-c", "import numpy"),
        "import regard": fresh("-c", "import regard"),
        "import regard, every name": fresh("-c", "from regard import *"),
        "regard --help": fresh("-m", "regard", "--help"),
    }


def start_up_seconds(measured: Measured) -> dict[str, float]:
    python = measured.median("python")
    net = {name: measured.median(name) - python for name in measured.times}
    return {
        "import regard": net["import regard"],
        "import regard, every name": net["import regard, every name"],
        "import numpy": net["import numpy"],
        "import regard over import numpy": net["import regard"] / net["import numpy"],
        "every name over import numpy": net["import regard, every name"] / net["import numpy"],
        "regard --help, whole process": measured.median("regard --help"),
    }


START = Case(
    name="start-up",
    what="fresh processes; times without Python's own start unless noted",
    prepare=start_up,
    facts=start_up_seconds,
    fact_bounds=(
        ("import regard", "s", 0.15),
        ("import regard, every name", "s", 0.15),
        ("import numpy", "s", None),
        ("import regard over import numpy", "×", 2.0),
        ("every name over import numpy", "×", 2.0),
        ("regard --help, whole process", "s", 0.3),
    ),
    ratios=(),
    rounds=30,
)

CASES = (NUMPY, STATISTICS, TORCH, SEE, START)
