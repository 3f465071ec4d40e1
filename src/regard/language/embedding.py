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
from regard.masks import Mask
from regard.messages import Listed

if TYPE_CHECKING:
    from regard.language.model import LanguageModel

LARGEST_BATCH, MOST_PADDING = 4096, 1.25
"""The tokens of a batch, and the longest text of a batch over its shortest: more padding costs more than it saves."""
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
    rows = [texts] if isinstance(texts, str) else list(texts)
    if model.settings.task != "encoding":
        raise ArgumentError("embed-task", name=model.name)
    ids = [_ids(model, text, pooling) for text in rows]
    found = np.zeros((len(rows), model.width), np.float32)
    for batch in batches([len(one) for one in ids]):
        vectors = model.token_vectors([ids[row] for row in batch])
        found[batch] = [_pooled(each, pooling) for each in vectors]
    row: np.ndarray = found[0] if isinstance(texts, str) else found
    return row


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Rows of similar length together, the shortest first; a batch has at most LARGEST_BATCH tokens, padding included.

    >>> batches([3, 4000, 2, 300, 3])
    [[2], [0, 4], [3], [1]]
    """
    found: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        size = lengths[row]
        fits = found and size * (len(found[-1]) + 1) <= LARGEST_BATCH
        if found and fits and size <= MOST_PADDING * lengths[found[-1][0]]:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def _ids(model: "LanguageModel", text: str, pooling: Pooling) -> list[int]:
    """The ids of a text with those around it, cut at the longest text that the model reads."""
    check_text(text)
    bare = model.tokenizer.encode(text)
    most = min(n for n in (pooling.longest, model.limit, 2**20) if n is not None) - len(model.special.around([]))
    ids = model.special.around(bare[:most])
    if not ids:
        raise ArgumentError("translate-empty")
    return ids


def padded(texts: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Ids (B, T), padded on the right, and which of them are of the text."""
    lengths = np.array([len(ids) for ids in texts])
    keep = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(keep.shape, np.int64)
    ids[keep] = np.concatenate(texts)
    return ids, keep


def token_vectors(model: "LanguageModel", texts: list[list[int]]) -> list[np.ndarray]:
    """The implementation of `LanguageModel.token_vectors` for our own Transformer."""
    parameters = getattr(model.model, "parameters", None)
    like = None if parameters is None else next(parameters())
    ids, keep = (convert_like(array, like) for array in padded(texts))
    vectors = to_numpy(model.model.encode(ids, mask=Mask.from_keep(keep)))  # B T D
    return [each[: len(one)] for each, one in zip(vectors, texts, strict=True)]


def _pooled(vectors: np.ndarray, pooling: Pooling) -> np.ndarray:
    """The vector (D,) of a text from those of its tokens (T, D)."""
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
