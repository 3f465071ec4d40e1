"""`LanguageModel.embed`: one vector for each text, from the vectors of its tokens, pooled as the model's folder says.

Folders of sentence-transformers describe the pooling in modules.json; without it, the mean of all tokens, normalised.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from regard.arrays import convert_like, to_numpy
from regard.checkpoints.gguf_file import GgufFile, is_gguf
from regard.checkpoints.model_folder import file_in_folder, read_json
from regard.errors import ArgumentError, FileError
from regard.language.input_text import check_text
from regard.messages import Listed

if TYPE_CHECKING:
    from regard.language.model import LanguageModel

MODULES, POOLING, LENGTH = "modules.json", "config.json", "sentence_bert_config.json"
Mode = Literal["mean", "cls", "max"]
_MODES: dict[str, Mode] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
}


class Pooling(NamedTuple):
    """How the vectors of the tokens become one vector, and the most tokens that are read."""

    mode: Mode = "mean"
    normalised: bool = True
    longest: int | None = None


def embed(model: "LanguageModel", texts: str | Sequence[str], pooling: Pooling) -> np.ndarray:
    """The implementation of `LanguageModel.embed`: (D,) for one text, (N, D) for several."""
    is_single = isinstance(texts, str)
    rows = [_one(model, text, pooling) for text in ([texts] if isinstance(texts, str) else texts)]
    found = np.stack(rows) if rows else np.zeros((0, model.config.d_model), np.float32)
    row: np.ndarray = found[0] if is_single else found
    return row


def _one(model: "LanguageModel", text: str, pooling: Pooling) -> np.ndarray:
    check_text(text)
    if model.settings.task != "encoding":
        raise ArgumentError("embed-task", name=model.name)
    bare, limit = model.tokenizer.encode(text), model.config.max_len
    most = min(size for size in (pooling.longest, limit, 2**20) if size is not None) - len(model.special.around([]))
    ids = model.special.around(bare[:most])
    if not ids:
        raise ArgumentError("translate-empty")
    parameters = getattr(model.model, "parameters", None)
    like = None if parameters is None else next(parameters())
    vectors = to_numpy(model.model.encode(convert_like(np.array([ids]), like)))[0]  # T D
    vector = {"mean": vectors.mean(0), "cls": vectors[0], "max": vectors.max(0)}[pooling.mode]
    if not pooling.normalised:
        return np.asarray(vector, np.float32)
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)


def read_pooling(folder: Path) -> Pooling:
    """The pooling of a folder, or of a GGUF file. Raises FileError for one that we do not compute."""
    if is_gguf(folder):
        return _gguf_pooling(folder)
    if not os.path.lexists(folder / MODULES):
        return Pooling()
    modules = read_json(file_in_folder(folder, MODULES))
    if not isinstance(modules, list) or not all(isinstance(one, dict) for one in modules):
        raise FileError("model-garbled", path=str(folder / MODULES), place="[…]")
    kinds = [str(one.get("type", "")).rpartition(".")[2] for one in modules]
    strange = [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
    if strange:
        raise FileError("embed-module", path=str(folder / MODULES), found=Listed.few(strange))
    mode: Mode = "mean"
    for kind, one in zip(kinds, modules, strict=True):
        if kind == "Pooling":
            mode = _mode(folder, str(one.get("path", "")))
    return Pooling(mode, "Normalize" in kinds, _longest(folder))


def _gguf_pooling(path: Path) -> Pooling:
    found = GgufFile(path).metadata.get("bert.pooling_type", 1)
    if found not in (1, 2):
        raise FileError("embed-module", path=str(path), found=f"bert.pooling_type = {found}")
    return Pooling("mean" if found == 1 else "cls")


def _mode(folder: Path, name: str) -> Mode:
    part = folder / name
    if Path(name).name != name or not name:
        raise FileError("model-garbled", path=str(folder / MODULES), place=name[:80])
    about: Any = read_json(file_in_folder(part, POOLING))
    chosen = [key for key, value in about.items() if key.startswith("pooling_mode_") and value is True]
    if len(chosen) != 1 or chosen[0] not in _MODES:
        raise FileError("embed-module", path=str(part / POOLING), found=Listed.few(chosen or ["–"]))
    return _MODES[chosen[0]]


def _longest(folder: Path) -> int | None:
    if not os.path.lexists(folder / LENGTH):
        return None
    about: Any = read_json(file_in_folder(folder, LENGTH))
    found = about.get("max_seq_length") if isinstance(about, dict) else None
    return found if isinstance(found, int) and 2 <= found <= 2**20 else None
