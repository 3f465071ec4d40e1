"""`regard doctor`: what can run on this machine, and why not.

Nothing is changed. A package is looked up before it is imported; of the optional ones only torch and matplotlib are
imported.
"""

import os
import platform
import sys
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from regard.cli.streams import put, write_json
from regard.memory import available_bytes
from regard.messages import language, say


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    found = inspect()
    if as_json:
        write_json(found)
    else:
        put(report(found))


def report(found: dict[str, Any]) -> str:
    """The report as aligned lines."""
    blocks = [_environment(found), _packages(found)]
    for kind, answers in found["backends"].items():
        if answers is not None:
            blocks.append([(say(f"doctor-backends-{kind}"), ""), *((f"  {name}", a) for name, a in answers.items())])
    return "\n\n".join(_aligned(block) for block in blocks)


def _environment(found: dict[str, Any]) -> list[tuple[str, str]]:
    from regard.memory import format_bytes

    machine, terminal, spoken = found["machine"], found["terminal"], found["language"]
    memory = machine["memory_free"]
    free = say("doctor-memory-unknown") if memory is None else say("doctor-memory", free=format_bytes(memory))
    if terminal["colors"] is None:
        plain = "doctor-plain-terminal" if terminal["is_terminal"] else "doctor-no-colors"
        colors = say("doctor-no-color-asked" if terminal["no_color"] else plain)
    else:
        colors = say("doctor-colors", system=terminal["colors"])
    why = spoken["because"] or say("doctor-language-default")
    return [
        ("regard", found["regard"]),
        ("python", f"{found['python']['version']}, {found['python']['platform']}"),
        (say("doctor-machine"), say("doctor-cores", count=machine["cores"]) + free),
        (say("doctor-language"), say("doctor-speaks", why=why)),
        (
            say("doctor-terminal"),
            say(
                "doctor-terminal-is",
                colors=colors,
                columns=terminal["columns"],
                encoding=terminal["encoding"],
            ),
        ),
    ]


def _packages(found: dict[str, Any]) -> list[tuple[str, str]]:
    more = {
        "numpy": lambda: say("doctor-blas", name=found["blas"]) if found["blas"] else "",
        "torch": lambda: _torch_line(found["torch"]),
        "matplotlib": lambda: _font(found["cjk_font"]),
    }
    rows = []
    for package in found["packages"]:
        name, version, extra = package["name"], package["version"], package["extra"]
        if version is not None:
            rows.append((name, version + more.get(name, str)()))
        elif extra is None:
            rows.append((name, say("doctor-core-missing")))
        else:
            rows.append((name, say("doctor-missing", gives=say(f"extra-{extra}"), extra=extra)))
    return rows


def _torch_line(found: dict[str, Any]) -> str:
    if "broken" in found:
        return say("doctor-torch-broken", reason=found["broken"])
    cuda = ", ".join(found["cuda"]) or say("doctor-no-cuda")
    triton = found["triton"] or say("doctor-no-triton")
    return say("doctor-torch", cuda=cuda, triton=triton, threads=found["threads"])


def _font(found: dict[str, Any]) -> str:
    return say("doctor-font", name=found["name"]) if found["name"] else say("doctor-no-font")


def _aligned(rows: list[tuple[str, str]]) -> str:
    from rich.cells import cell_len

    first = max((cell_len(name) for name, text in rows if text), default=0) + 2
    return "\n".join((name + " " * max(0, first - cell_len(name)) + text).rstrip() for name, text in rows)


# --- the data ----------------------------------------------------------------------------------------------

# package -> the extra that installs it; None for the core
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
    """The whole report, ready for JSON."""
    from regard import __version__
    from regard.kernels.division import cores

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
    """The language and its source: `--lang`, an environment variable, or None for the default, English."""
    chosen = language()
    for name in LANGUAGE_VARIABLES:
        value = os.environ.get(name)
        if value:
            agrees = value.lower().startswith("zh") == (chosen == "zh")
            return {"spoken": chosen, "because": f"{name}={value}" if agrees else "--lang"}
    return {"spoken": chosen, "because": None if chosen == "en" else "--lang"}


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
    """The installed version; None where it is not installed, "?" where unknown (nightly builds of Triton)."""
    from importlib import metadata  # takes longer to import than most commands to start

    if not find_spec(name):
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "?"


def _blas() -> str | None:
    """The BLAS library of NumPy."""
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas.get('name')} {blas.get('version')}" if blas.get("name") else None


def _torch() -> dict[str, Any] | None:
    """Facts about torch; None where it is not installed, `broken` where it cannot be imported."""
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
    """The font for Chinese in plots, or None in it; None where matplotlib is not installed."""
    if not find_spec("matplotlib"):
        return None
    from regard.views.fonts import families

    first, *others = families()
    return {"name": first if others else None}  # the last is matplotlib's own, which has no Chinese


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
