"""The machine and the versions of a measurement."""

import platform
import sys
from importlib import metadata


def machine() -> dict[str, str]:
    """Processor, cores, and relevant versions; nothing that identifies a person or a host."""
    from regard.kernels.division import cores

    return {
        "processor": _processor(),
        "cores": str(cores()),
        **_device(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numpy", "torch", "transformers", "regard")},
        "system": f"{platform.system()} {platform.machine()}",
    }


def _device() -> dict[str, str]:
    try:
        import torch
    except ImportError:
        return {}
    return {"device": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    if sys.platform == "linux":
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
