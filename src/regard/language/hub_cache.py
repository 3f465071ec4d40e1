"""Hugging Face's cache of models: `pull` downloads into it, `cached` finds what is there and never downloads.

The names of variables and folders are those of the package `huggingface_hub`; reading the cache does not import it.
"""

import os
import re
from pathlib import Path

from regard.errors import ArgumentError, FileError
from regard.files.output import reason_of
from regard.packages import require_package

ID = re.compile(r"(?!.*\.\.)[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)
REVISION = re.compile(r"(?!.*\.\.)[A-Za-z0-9][\w./-]{0,200}", re.ASCII)
FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "*.spm", "*.jinja")
"""Weights, settings and tokenizers; no pickles and no code."""
LEFT_OUT = ("onnx/*", "openvino/*", "original/*", "consolidated*", "*.msgpack", "runs/*", "*/checkpoint-*")
"""The same weights in other formats."""


def cache_folder() -> Path:
    """The folder of the cache, as `huggingface_hub` chooses it."""
    if given := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(given).expanduser()
    home = os.environ.get("HF_HOME")
    if home is None:
        home = os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home).expanduser() / "hub"


def cached(name: str) -> Path | None:
    """The folder of a model in the cache, the revision that was pulled last as "main"; None if it is not there."""
    if not ID.fullmatch(name):
        return None
    model = cache_folder() / f"models--{name.replace('/', '--')}"
    try:
        commit = (model / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        commits = sorted(model.glob("snapshots/*"), key=lambda one: one.stat().st_mtime)
        return commits[-1] if commits else None
    folder = model / "snapshots" / commit
    return folder if re.fullmatch(r"[\w-]{1,80}", commit) and folder.is_dir() else None


def pull(name: str, revision: str = "main", *, quiet: bool = False) -> Path:
    """Download a model from the hub into the cache, or what is missing of it, and return its folder.

    Raises ArgumentError for an invalid name, FileError where it cannot be downloaded.
    """
    if not ID.fullmatch(name):
        raise ArgumentError("pull-name", found=name[:100])
    if not REVISION.fullmatch(revision):
        raise ArgumentError("pull-revision", found=revision[:100])
    require_package("huggingface_hub", "regard pull")
    import huggingface_hub
    from huggingface_hub import errors
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if quiet:
        disable_progress_bars()
    try:
        found = huggingface_hub.snapshot_download(
            name, revision=revision, allow_patterns=list(FILES), ignore_patterns=list(LEFT_OUT)
        )
    except errors.GatedRepoError as error:
        raise FileError("pull-gated", name=name) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise FileError("pull-absent", name=name, revision=revision, endpoint=_endpoint()) from error
    except (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError) as error:
        key = "pull-offline" if huggingface_hub.constants.HF_HUB_OFFLINE else "pull-unreachable"
        raise FileError(key, name=name, endpoint=_endpoint(), reason=reason_of(error)) from error
    except Exception as error:  # of the package, and of those that it downloads with
        raise FileError("pull-unreachable", name=name, endpoint=_endpoint(), reason=reason_of(error)) from error
    return Path(found)


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
