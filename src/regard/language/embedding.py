"""`LanguageModel.embed`: texts to vectors, as the folder of a sentence-transformers model describes it.

modules.json lists the parts: the model, a pooling of its tokens' vectors, then dense layers and normalisation. Without
it, the mean of all tokens, normalised. The parts are those of a closed list, and none of the author's code runs. Each
text is pooled without its padding, which the model does not attend to. config_sentence_transformers.json has prompts.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.arrays import is_integer
from regard.checkpoints.gguf_file import GgufFile, is_gguf
from regard.checkpoints.model_folder import LARGEST_CONFIG, file_in_folder, read_json
from regard.checkpoints.tensor_file import TENSORS, TensorFile
from regard.errors import ArgumentError, FileError
from regard.language.hub_files import LARGEST_TOKENIZER_CONFIG, TOKENIZER_CONFIG
from regard.language.input_text import check_text
from regard.messages import Listed
from regard.reference.position_wise import get_activation

if TYPE_CHECKING:
    from regard.language.model import LanguageModel

LARGEST_BATCH, MOST_PADDING = 4096, 1.25
"""The tokens of a batch, and the longest text of a batch over its shortest: more padding costs more than it saves."""
MODULES, PART, PROMPTS = "modules.json", "config.json", "config_sentence_transformers.json"
LENGTHS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Names of the file with settings of the model, in order."""
OF_PACKAGE = "sentence_transformers."
KINDS = ("Transformer", "Pooling", "Normalize", "Dense", "Dropout")
PICKLE = "pytorch_model.bin"
Step = Callable[[np.ndarray], np.ndarray]


def _weighted_mean(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.asarray((x * at[:, None]).sum(0) / at.sum())


MODES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "cls": lambda x, at: x[0],
    "max": lambda x, at: x.max(0),
    "mean": lambda x, at: x.mean(0),
    "mean_sqrt_len_tokens": lambda x, at: x.sum(0) / np.sqrt(np.float32(len(x))),
    "weightedmean": _weighted_mean,
    "lasttoken": lambda x, at: x[-1],
}
"""From the vectors of the tokens (T, D) and their positions from 1, (T,), to one vector; several are concatenated."""
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""The flags of older files, in the order of concatenation."""
ACTIVATIONS: dict[str, Step] = {
    "Identity": lambda x: x,
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "ReLU": get_activation("relu").forward,
    "GELU": get_activation("gelu").forward,
    "SiLU": get_activation("silu").forward,
}
"""By the names of their classes in torch.nn."""
_GGUF_MODES = {1: "mean", 2: "cls", 3: "lasttoken"}


def normalised(x: np.ndarray, /) -> np.ndarray:
    """Rows (N, D) divided by their length."""
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12), x.dtype)


@dataclass(frozen=True)
class Dense:
    """A linear layer with an activation, and the input added to it where `residual` is not None."""

    weight: np.ndarray
    bias: np.ndarray | None
    activation: Step
    residual: np.ndarray | None = None
    adds_input: bool = False

    def __call__(self, x: np.ndarray, /) -> np.ndarray:
        """(N, in) to (N, out)."""
        y = x @ self.weight.T
        y = self.activation(y if self.bias is None else y + self.bias)
        if self.adds_input:
            y = y + (x if self.residual is None else x @ self.residual.T)
        return np.asarray(y, np.float32)


class Pooling(NamedTuple):
    """How the vectors of the tokens become one vector.

    modes            of MODES; several are concatenated
    steps            what follows: dense layers, normalisation
    longest          the most tokens that are read
    lower_case       whether texts are read in lower case
    includes_prompt  whether the tokens of a prompt are pooled, too
    prompts          the text before every text, by name
    default_prompt   the name of the one that is used where none is asked for
    """

    modes: tuple[str, ...] = ("mean",)
    steps: tuple[Step, ...] = (normalised,)
    longest: int | None = None
    lower_case: bool = False
    includes_prompt: bool = True
    prompts: Mapping[str, str] = {}
    default_prompt: str | None = None

    def prompt(self, name: str | None) -> str:
        """The text of a prompt. Raises ArgumentError for a name that there is not."""
        if name is None:
            return "" if self.default_prompt is None else self.prompts[self.default_prompt]
        if name not in self.prompts:
            raise ArgumentError("unknown-choice", name="prompt", value=name, choices=Listed(self.prompts or ("–",)))
        return self.prompts[name]

    def width(self, width: int) -> int:
        """The width of the result for vectors of that width."""
        last = next((step for step in reversed(self.steps) if isinstance(step, Dense)), None)
        return width * len(self.modes) if last is None else len(last.weight)


def embed(model: "LanguageModel", texts: str | Sequence[str], prompt: str | None = None) -> np.ndarray:
    """The implementation of `LanguageModel.embed`: (D,) for one text, (N, D) for several."""
    rows = [texts] if isinstance(texts, str) else list(texts)
    pooling = read_pooling(model.folder)
    if pooling is None:
        if model.settings.task != "encoding":
            raise ArgumentError("embed-task", name=model.name)
        pooling = Pooling()
    before = pooling.prompt(prompt)
    _check_widths(pooling, model)
    ids = [_ids(model, before, text, pooling) for text in rows]
    skipped = 0 if pooling.includes_prompt or not before else len(_ids(model, "", before, pooling, around=False))
    found = np.zeros((len(rows), pooling.width(model.width)), np.float32)
    for batch in batches([len(one) for one in ids]):
        vectors = model.token_vectors([ids[row] for row in batch])
        pooled = np.stack([_pooled(each, skipped, pooling) for each in vectors]).astype(np.float32)
        for step in pooling.steps:
            pooled = step(pooled)
        found[batch] = pooled
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


def padded(texts: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Ids (B, T), padded on the right, and which of them are of the text."""
    lengths = np.array([len(ids) for ids in texts])
    keep = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(keep.shape, np.int64)
    ids[keep] = np.concatenate(texts)
    return ids, keep


def _ids(model: "LanguageModel", prompt: str, text: str, pooling: Pooling, *, around: bool = True) -> list[int]:
    """The ids of a text with those around it, cut at the longest text that the model reads.

    around   False: only those before it
    """
    check_text(text)
    whole = prompt + text
    bare = model.tokenizer.encode(whole.lower() if pooling.lower_case else whole)
    most = min(n for n in (pooling.longest, model.limit, 2**20) if n is not None) - len(model.special.around([]))
    ids = model.special.around(bare[: max(0, most)]) if around else [*model.special.before, *bare]
    if not ids:
        raise ArgumentError("translate-empty")
    return ids


def _pooled(vectors: np.ndarray, skipped: int, pooling: Pooling) -> np.ndarray:
    """The vector of a text from those of its tokens (T, D), of which the first may be skipped."""
    at = np.arange(1, len(vectors) + 1, dtype=np.float32)
    # A prompt that fills all that the model reads leaves its last token.
    skipped = min(skipped, len(vectors) - 1)
    return np.concatenate([MODES[mode](vectors[skipped:], at[skipped:]) for mode in pooling.modes])


# --- files -----------------------------------------------------------------------------------------------


def read_pooling(folder: Path) -> Pooling | None:
    """The pooling of a folder or of a GGUF file, None where it says nothing. FileError for one that is not computed."""
    if is_gguf(folder):
        return _gguf_pooling(folder)
    if not os.path.lexists(folder / MODULES):
        return None
    modules = _modules(folder)
    kinds = [kind for kind, _ in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or {"Transformer", "Pooling"} & set(kinds[2:]):
        raise _not_computed(folder / MODULES, kinds)
    about = _object(folder, modules[1][1] + PART)
    longest, lower_case = _reading(folder)
    prompts, default = _prompts(folder)
    return Pooling(
        modes=_modes(folder / (modules[1][1] + PART), about),
        steps=tuple(_step(folder, kind, part) for kind, part in modules[2:] if kind != "Dropout"),
        longest=longest,
        lower_case=lower_case,
        includes_prompt=about.get("include_prompt") is not False,
        prompts=prompts,
        default_prompt=default,
    )


def module_files(folder: Path) -> tuple[str, ...]:
    """The files that describe the modules, each by its path in the folder, and the weights of dense layers."""
    if not os.path.lexists(folder / MODULES):
        return ()
    parts = [part for _, part in _modules(folder) if part]
    files = (MODULES, PROMPTS, *LENGTHS, *(part + name for part in parts for name in (PART, TENSORS)))
    return tuple(name for name in files if os.path.lexists(folder / name))


def _modules(folder: Path) -> list[tuple[str, str]]:
    """The class and the folder of each module, "" or with a slash at its end. FileError for a class of other code."""
    given = _json(folder, MODULES)
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise FileError("model-garbled", path=str(folder / MODULES), place="[…]")
    found = []
    for one in given:
        name, part = str(one.get("type", "")), one.get("path", "")
        kind = name.rpartition(".")[2]
        if not name.startswith(OF_PACKAGE) or kind not in KINDS:
            raise _not_computed(folder / MODULES, [name[:80]])
        if not isinstance(part, str) or Path(part).name != part:
            raise FileError("model-garbled", path=str(folder / MODULES), place=str(part)[:80])
        found.append((kind, f"{part}/" if part else ""))
    return found


def _step(folder: Path, kind: str, part: str) -> Step:
    has_settings = kind == "Dense" or os.path.lexists(folder / (part + PART))
    about = _object(folder, part + PART) if part and has_settings else {}
    for name in ("module_input_name", "module_output_name"):
        if about.get(name) not in (None, "sentence_embedding"):  # of single tokens, or beside the vector of the text
            raise _not_computed(folder / (part + PART), [f"{name} = {str(about[name])[:40]}"])
    if kind == "Normalize":
        return normalised
    return _dense(folder, part, about)


def _dense(folder: Path, part: str, about: Mapping[str, Any]) -> Dense:
    """A dense layer with its weights. FileError where they do not fit its config.json."""
    # The package, too, uses Tanh where no activation is named.
    name = str(about.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = ACTIVATIONS.get(name.rpartition(".")[2]) if name.startswith("torch.nn.") else None
    if activation is None:
        raise _not_computed(folder / (part + PART), [f"activation_function = {name[:60]}"])
    if not os.path.lexists(folder / (part + TENSORS)) and os.path.lexists(folder / (part + PICKLE)):
        raise FileError("weights-pickle", path=str(folder / part), found=PICKLE)
    weights = TensorFile(file_in_folder(folder, part + TENSORS))
    out, width = about.get("out_features"), about.get("in_features")
    has_bias, adds = about.get("bias", True) is True, about.get("use_residual", False) is True
    wanted: dict[str, tuple[Any, ...]] = {"linear.weight": (out, width)} | ({"linear.bias": (out,)} if has_bias else {})
    if adds and out != width:
        wanted["residual.weight"] = (out, width)
    if weights.shapes != wanted:
        path = str(folder / (part + TENSORS))
        raise FileError("embed-dense", path=path, found=_shapes(weights.shapes), wanted=_shapes(wanted))
    arrays = weights.arrays("float32")
    return Dense(arrays["linear.weight"], arrays.get("linear.bias"), activation, arrays.get("residual.weight"), adds)


def _shapes(shapes: Mapping[str, tuple[Any, ...]]) -> Listed:
    return Listed.few([f"{name[:40]} ({', '.join(str(one)[:12] for one in shape)})" for name, shape in shapes.items()])


def _check_widths(pooling: Pooling, model: "LanguageModel") -> None:
    """FileError where a dense layer does not read what the parts before it write."""
    width = model.width * len(pooling.modes)
    for step in pooling.steps:
        if isinstance(step, Dense):
            if step.weight.shape[1] != width:
                found = f"in_features = {step.weight.shape[1]} ≠ {width}"
                raise FileError("model-garbled", path=str(model.folder / MODULES), place=found)
            width = len(step.weight)


def _modes(path: Path, about: Mapping[str, Any]) -> tuple[str, ...]:
    """The modes of a pooling, from the name or names in `pooling_mode`, or from the flags of older files."""
    given = about.get("pooling_mode")
    if given is None:
        flags = [name for name, value in about.items() if name.startswith("pooling_mode_") and value is True]
        if strange := [name for name in flags if name not in _FLAGS]:
            raise _not_computed(path, strange)
        given = [mode for name, mode in _FLAGS.items() if name in flags] or ["mean"]
    names = given if isinstance(given, list) else [given]
    if not 1 <= len(names) <= len(MODES) or any(not isinstance(one, str) or one not in MODES for one in names):
        raise _not_computed(path, [f"pooling_mode = {str(given)[:60]}"])
    return tuple(names)


def _reading(folder: Path) -> tuple[int | None, bool]:
    """The most tokens that are read, and whether in lower case."""
    name = next((one for one in LENGTHS if os.path.lexists(folder / one)), None)
    about = {} if name is None else _object(folder, name)
    longest: Any = about.get("max_seq_length")
    if longest is None and os.path.lexists(folder / TOKENIZER_CONFIG):
        longest = _object(folder, TOKENIZER_CONFIG, LARGEST_TOKENIZER_CONFIG).get("model_max_length")
    is_limit = is_integer(longest) and 2 <= longest <= 2**20
    return int(longest) if is_limit else None, about.get("do_lower_case") is True


def _prompts(folder: Path) -> tuple[dict[str, str], str | None]:
    """The prompts by name, and the name of the default. FileError for a default that is not among them."""
    if not os.path.lexists(folder / PROMPTS):
        return {}, None
    about = _object(folder, PROMPTS)
    given, default = about.get("prompts") or {}, about.get("default_prompt_name")
    is_table = isinstance(given, dict) and all(isinstance(one, str | None) for one in given.values())
    if not is_table or not (default is None or (isinstance(default, str) and default in given)):
        place = "default_prompt_name" if is_table else "prompts"
        raise FileError("model-garbled", path=str(folder / PROMPTS), place=place)
    return {name: text or "" for name, text in given.items()}, default


def _gguf_pooling(path: Path) -> Pooling | None:
    metadata = GgufFile(path).metadata
    found = metadata.get(f"{metadata.get('general.architecture')}.pooling_type")
    if found is None:
        return None
    if found not in _GGUF_MODES:
        raise _not_computed(path, [f"pooling_type = {str(found)[:40]}"])
    return Pooling((_GGUF_MODES[found],))


def _json(folder: Path, name: str, most: int = LARGEST_CONFIG) -> Any:
    # Links of the hub's cache lead out of a module's own folder, so the whole folder is what must hold the file.
    return read_json(file_in_folder(folder, name), most)


def _object(folder: Path, name: str, most: int = LARGEST_CONFIG) -> dict[str, Any]:
    found = _json(folder, name, most)
    if not isinstance(found, dict):
        raise FileError("model-garbled", path=str(folder / name), place="{…}")
    return found


def _not_computed(path: Path, found: Sequence[str]) -> FileError:
    return FileError("embed-module", path=str(path), found=Listed.few(found or ["–"]))
