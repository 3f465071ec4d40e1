"""What can run here: the facts behind `regard doctor`, as plain values. Nothing is shown or changed.

A package is looked up before it is imported; of the optional ones only torch and matplotlib are imported.
"""

import os
import platform
import sys
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from regard.memory import available_bytes
from regard.messages import language

# package -> the extra that brings it; None is the core
PACKAGES: dict[str, str | None] = {
    "numpy": None,
    "rich": None,
    "safetensors": None,
    "threadpoolctl": None,
    "tokenizers": None,
    "typer": None,
    "torch": "torch",
    "matplotlib": "plot",
}
LANGUAGE_VARIABLES = ("REGARD_LANG", "LC_ALL", "LC_MESSAGES", "LANG")


def inspect() -> dict[str, Any]:
    """Everything, ready for JSON."""
    from regard import __version__
    from regard.kernels.tiles import cores

    return {
        "regard": __version__,
        "python": {"version": platform.python_version(), "platform": platform.platform()},
        "machine": {"cores": cores(), "memory_free": available_bytes()},
        "language": _language(),
        "terminal": _terminal(),
        "packages": [{"name": name, "version": _version(name), "extra": extra} for name, extra in PACKAGES.items()],
        "blas": _blas(),
        "torch": _torch(),
        "cjk_font": _cjk_font(),
        "backends": {"numpy": _numpy_backends(), "torch": _torch_backends()},
    }


def _language() -> dict[str, str | None]:
    """Which one, and who said so: `--lang`, a variable of the environment, or nobody (then it is English)."""
    spoken = language()
    for name in LANGUAGE_VARIABLES:
        value = os.environ.get(name)
        if value:
            agrees = value.lower().startswith("zh") == (spoken == "zh")
            return {"spoken": spoken, "because": f"{name}={value}" if agrees else "--lang"}
    return {"spoken": spoken, "because": None if spoken == "en" else "--lang"}


def _terminal() -> dict[str, Any]:
    from rich.console import Console

    console = Console()
    return {
        "is_terminal": console.is_terminal,
        "colors": console.color_system if not console.no_color else None,
        "no_color": bool(os.environ.get("NO_COLOR")),
        "columns": console.width,
        "encoding": sys.stdout.encoding,
    }


def _version(name: str) -> str | None:
    """The installed version; None where there is none, "?" where it does not tell (Triton's nightly builds)."""
    if not find_spec(name):
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "?"


def _blas() -> str | None:
    """The library that multiplies NumPy's matrices."""
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas.get('name')} {blas.get('version')}" if blas.get("name") else None


def _torch() -> dict[str, Any] | None:
    """None where it is not installed; `broken` where it is, and cannot be imported."""
    if not find_spec("torch"):
        return None
    try:
        import torch
    except Exception as error:
        return {"broken": f"{type(error).__name__}: {error}".splitlines()[0]}
    cuda = torch.cuda.is_available()
    return {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "cuda": [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())] if cuda else [],
        "triton": _version("triton"),
    }


def _cjk_font() -> dict[str, str | None] | None:
    """None where matplotlib is not installed; else the font it would draw Chinese with, if there is one."""
    if not find_spec("matplotlib"):
        return None
    from regard.views.fonts import families

    first, *others = families()
    return {"name": first if others else None}  # matplotlib's own, which has no Chinese, comes last


def _numpy_backends() -> dict[str, str]:
    import numpy as np

    from regard.dispatch import backends

    x = np.ones((1, 2, 4, 8), dtype=np.float32)
    return dict(backends(x, x, x))


def _torch_backends() -> dict[str, str] | None:
    found = _torch()
    if found is None or "broken" in found:
        return None
    import torch

    from regard.dispatch import backends

    x = torch.ones(1, 2, 4, 8)
    return dict(backends(x, x, x))
