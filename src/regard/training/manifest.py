"""The manifest of a checkpoint: the size and hash of its files, written last and believed only when all of them agree.

    manifest.json   {"format": "regard-checkpoint", "version": 1, "step": 100, "files": {…: {"size": …, "sha256": …}}}

A checkpoint is these files and no others, by fixed names: nothing that a manifest says leads out of its folder, and
links are not followed. What the files hold is not known here.
"""

import json
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.checkpoints.strict_json import JsonError, parse
from regard.errors import FileError
from regard.files import reason_of
from regard.input_files import read_file
from regard.memory import spell
from regard.training import durable
from regard.training.durable import Digest
from regard.words import Listed

FORMAT, VERSION = "regard-checkpoint", 1
MANIFEST = "manifest.json"
MODEL, OPTIMIZER, STATE = FILES = "model.safetensors", "optimizer.safetensors", "state.json"
LARGEST_JSON = 2**24


def write_manifest(folder: Path, step: int, digests: Mapping[str, Digest]) -> None:
    """Declare a folder a checkpoint. Raises OSError."""
    files = {name: digests[name]._asdict() for name in FILES}
    about = {"format": FORMAT, "version": VERSION, "step": step, "files": files}
    durable.write_file(folder / MANIFEST, lambda writer: writer.write(json.dumps(about).encode()))


def verify(folder: Path, step: int, names: Iterable[str] = FILES) -> None:
    """Hold files against their manifest, every byte; FileError with the first thing that is wrong."""
    try:
        if folder.is_symlink() or not folder.is_dir():
            raise FileError("checkpoint-not-plain", path=str(folder))
        digests = _digests(folder / MANIFEST, step)
        for name in names:
            _verify_file(folder / name, digests[name])
    except OSError as error:
        raise FileError("model-unreadable", path=str(folder), reason=reason_of(error)) from error


def read_json(path: Path) -> Any:
    """The value in a small file of ours. Raises FileError and OSError."""
    size = _size(path)
    if size > LARGEST_JSON:
        raise FileError("checkpoint-size", path=str(path), found=spell(size), wanted=f"≤ {spell(LARGEST_JSON)}")
    try:
        return parse(read_file(path, most=LARGEST_JSON, within=path.parent))
    except JsonError as error:
        raise FileError("checkpoint-garbled", path=str(path), place=str(error)) from error


def _digests(path: Path, step: int) -> dict[str, Digest]:
    if not path.exists() and not path.is_symlink():
        raise FileError("checkpoint-unfinished", path=str(path.parent), manifest=MANIFEST)
    about = read_json(path)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError("checkpoint-garbled", path=str(path), place="format")
    version = about.get("version")
    if type(version) is not int or version < 1:
        raise FileError("checkpoint-garbled", path=str(path), place="version")
    if version > VERSION:
        raise FileError("checkpoint-newer", path=str(path), found=version, known=VERSION)
    match about:
        case {"format": _, "version": _, "step": int(found), "files": dict(files), **rest} if not rest:
            if found != step:
                raise FileError("checkpoint-step", path=str(path), found=found)
            if set(files) != set(FILES):
                names = ", ".join(sorted(files))[:200]
                raise FileError("checkpoint-files", path=str(path), found=names, wanted=Listed(FILES))
            return {name: _digest(path, name, file) for name, file in files.items()}
    raise FileError("checkpoint-garbled", path=str(path), place=", ".join(sorted(about))[:80])


def _digest(path: Path, name: str, about: Any) -> Digest:
    match about:
        case {"size": int(size), "sha256": str(sha256), **rest} if not rest:
            return Digest(size, sha256)
    raise FileError("checkpoint-garbled", path=str(path), place=name)


def _verify_file(path: Path, wanted: Digest) -> None:
    size = _size(path)
    if size != wanted.size:
        raise FileError("checkpoint-size", path=str(path), found=f"{size} B", wanted=f"{wanted.size} B")
    found = durable.sha256_of(path)
    if found != wanted.sha256:
        raise FileError("checkpoint-hash", path=str(path), found=found[:12], wanted=wanted.sha256[:12])


def _size(path: Path) -> int:
    """Of a plain file: looked at before it is opened, since opening a pipe would wait for ever."""
    try:
        about = path.lstat()
    except FileNotFoundError as error:
        raise FileError("file-absent", path=str(path)) from error
    if not stat.S_ISREG(about.st_mode):
        raise FileError("checkpoint-not-plain", path=str(path))
    return about.st_size
