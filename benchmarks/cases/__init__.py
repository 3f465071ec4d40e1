"""The benchmark cases: operations, shapes and bounds. Baselines are imported, not rewritten."""

from benchmarks.cases import (
    attention,
    bundled,
    gpu,
    language,
    learning,
    loading,
    models,
    monitor,
    survey,
    training,
    watch,
)
from benchmarks.cases.case import Case

CASES = {
    case.name: case
    for case in (
        *attention.CASES,
        *models.CASES,
        *language.CASES,
        *loading.CASES,
        *bundled.CASES,
        *training.CASES,
        *watch.CASES,
        *monitor.CASES,
        *survey.CASES,
        *learning.CASES,
        *gpu.CASES,
    )
}

__all__ = ["CASES", "Case"]
