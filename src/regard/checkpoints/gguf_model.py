"""GGUF models as Hugging Face's layout has them: the keys of config.json, and tensors under its names.

The names come from the package `gguf`, and the tables of `families` do the rest. A file stores some tensors in another
order than Hugging Face; `GgufTensors` undoes that.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from regard.axes import Shape
from regard.checkpoints.families import FAMILIES
from regard.checkpoints.gguf_file import GgufFile
from regard.config import Llama3Scaling
from regard.errors import FileError
from regard.messages import Listed
from regard.reference import rotary_frequencies

Layout = Literal["plain", "rotated q", "rotated k", "minus one", "transposed", "by head"]
Keys = dict[str, Any]


class GgufFamily(NamedTuple):
    """One architecture of GGUF.

    family   Hugging Face's `model_type` of the same models
    config   its keys of config.json, from the values of the file
    layouts  how tensors differ from Hugging Face's, by the end of the name of their module
    """

    family: str
    config: Callable[["GgufValues"], Keys]
    layouts: Mapping[str, Layout] = {}


class GgufValues:
    """The metadata of one architecture, each value checked when it is taken."""

    def __init__(self, file: GgufFile, name: str) -> None:
        self.file, self._name = file, name

    def __getitem__(self, key: str) -> Any:
        if (found := self.get(key)) is None:
            raise FileError("gguf-key", path=str(self.file.path), name=f"{self._name}.{key}")
        return found

    def get(self, key: str, default: Any = None) -> Any:
        """A value; a list of equal numbers, one for each layer, counts as that number."""
        found = self.file.metadata.get(f"{self._name}.{key}")
        if isinstance(found, np.ndarray):
            if found.size == 0 or (found != found[0]).any():
                raise self.refused(key, "[…]")
            found = found[0].item()
        # Files hold float32: 1e-05 reads as 9.9999997e-06.
        return float(str(np.float32(found))) if isinstance(found, float) else default if found is None else found

    def has(self, tensor: str) -> bool:
        """Whether the file has this tensor."""
        return tensor in self.file

    def rows(self, tensor: str) -> int:
        """The first size of a tensor; 0 where it is missing."""
        return self.file.shapes[tensor][0] if tensor in self.file else 0

    def refused(self, key: str, value: Any) -> FileError:
        """The error for a value that is not computed."""
        return FileError("gguf-value", path=str(self.file.path), name=f"{self._name}.{key}", value=repr(value)[:80])


# --- config ----------------------------------------------------------------------------------------------


def _sizes(values: GgufValues) -> Keys:
    """The keys that most families share."""
    return {
        "vocab_size": values.rows("token_embd.weight"),
        "hidden_size": values["embedding_length"],
        "num_hidden_layers": values["block_count"],
        "num_attention_heads": values["attention.head_count"],
        "intermediate_size": values["feed_forward_length"],
        "max_position_embeddings": values["context_length"],
        "tie_word_embeddings": not values.has("output.weight"),
    }


def _rotary(values: GgufValues) -> Keys:
    """The base and the scaling of rotary positions."""
    table: Keys = {"rope_type": "default", "rope_theta": values.get("rope.freq_base", 10_000.0)}
    kind = values.get("rope.scaling.type", "none")
    factor = values.get("rope.scaling.factor")
    if kind == "linear" and factor != 1:
        table |= {"rope_type": "linear", "factor": factor}
    elif kind == "yarn":
        table |= {"rope_type": "yarn", "factor": factor}
        table["original_max_position_embeddings"] = values["rope.scaling.original_context_length"]
    elif kind not in ("none", "linear", "longrope"):
        raise values.refused("rope.scaling.type", kind)
    if values.has("rope_freqs.weight"):
        table |= _llama3_scaling(values, float(table["rope_theta"]))
    return table


def _llama3_scaling(values: GgufValues, base: float) -> Keys:
    """Llama 3's scaling, which files have as factors of the frequencies; it is found again by its largest factor."""
    given = values.file["rope_freqs.weight"].ravel()
    table: Keys = {"rope_type": "llama3", "factor": float(given.max()), "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaling = Llama3Scaling(factor=table["factor"], original_len=8192)
    plain, scaled = (rotary_frequencies(2 * len(given), base, one) for one in (None, scaling))
    if not np.allclose(plain / scaled, given, rtol=1e-3):
        raise values.refused("rope_freqs.weight", given[:4].tolist())
    return table | {"original_max_position_embeddings": 8192}


def _decoder(values: GgufValues) -> Keys:
    heads = values["attention.head_count"]
    width = values.get("attention.key_length") or values.get("rope.dimension_count")
    if values.get("attention.value_length", width) != width:
        raise values.refused("attention.value_length", values["attention.value_length"])
    return _sizes(values) | {
        "num_key_value_heads": values.get("attention.head_count_kv", heads),
        "rms_norm_eps": values["attention.layer_norm_rms_epsilon"],
        "rope_parameters": _rotary(values),
        **({} if width is None else {"head_dim": width}),
    }


def _llama(values: GgufValues) -> Keys:
    if values.get("expert_count"):
        raise values.refused("expert_count", values["expert_count"])
    biases = values.has("blk.0.attn_q.bias"), values.has("blk.0.ffn_up.bias")
    if (window := values.get("attention.sliding_window")) and not any(biases):
        return _decoder(values) | {"model_type": "mistral", "sliding_window": window}
    return _decoder(values) | {"attention_bias": biases[0], "mlp_bias": biases[1]}


def _gemma(values: GgufValues, largest: int, softcaps: bool) -> Keys:
    found = _decoder(values)
    # llama.cpp scales by the width of a head, and in the largest model by the width of a head of d_model.
    is_largest = found["num_hidden_layers"] == largest
    scale = found["hidden_size"] // found["num_attention_heads"] if is_largest else found["head_dim"]
    found |= {"query_pre_attn_scalar": scale, "sliding_window": values["attention.sliding_window"]}
    if softcaps:
        for key, name in (("attn_logit_softcapping", 50.0), ("final_logit_softcapping", 30.0)):
            found[key] = values.get(key, name)
    return found


def _gemma3(values: GgufValues) -> Keys:
    found = _gemma(values, 62, softcaps=False)
    wide = found["rope_parameters"] | {"rope_theta": values.get("rope.freq_base", 1e6)}
    local = {"rope_type": "default", "rope_theta": values.get("rope.freq_base_swa", 10_000.0)}
    return found | {"rope_parameters": {"full_attention": wide, "sliding_attention": local}}


def _phi3(values: GgufValues) -> Keys:
    found = _decoder(values)
    window = values.get("attention.sliding_window") or None
    width = found["hidden_size"] // max(1, found["num_attention_heads"])
    found["rope_parameters"]["partial_rotary_factor"] = values.get("rope.dimension_count", width) / max(1, width)
    if values.has("rope_factors_short.weight"):
        factors = {side: values.file[f"rope_factors_{side}.weight"].ravel().tolist() for side in ("short", "long")}
        found["rope_parameters"] |= {"rope_type": "longrope"} | {f"{k}_factor": one for k, one in factors.items()}
        found["original_max_position_embeddings"] = values["rope.scaling.original_context_length"]
    return found | {"sliding_window": window}


def _gpt2(values: GgufValues) -> Keys:
    return {
        "vocab_size": values.rows("token_embd.weight"),
        "n_embd": values["embedding_length"],
        "n_layer": values["block_count"],
        "n_head": values["attention.head_count"],
        "n_inner": values["feed_forward_length"],
        "n_positions": values["context_length"],
        "layer_norm_epsilon": values["attention.layer_norm_epsilon"],
        "tie_word_embeddings": not values.has("output.weight"),
    }


def _gpt_neox(values: GgufValues) -> Keys:
    found = _sizes(values)
    width = found["hidden_size"] // max(1, found["num_attention_heads"])
    return found | {
        "layer_norm_eps": values["attention.layer_norm_epsilon"],
        "use_parallel_residual": values.get("use_parallel_residual", True),
        "rope_parameters": _rotary(values) | {"partial_rotary_factor": values["rope.dimension_count"] / max(1, width)},
    }


def _bert(values: GgufValues) -> Keys:
    return _sizes(values) | {
        "type_vocab_size": values.rows("token_types.weight"),
        "layer_norm_eps": values["attention.layer_norm_epsilon"],
        "tie_word_embeddings": True,
    }


def _t5(values: GgufValues) -> Keys:
    gated = values.has("enc.blk.0.ffn_gate.weight")
    layers = values["block_count"]
    return {
        "vocab_size": values.rows("token_embd.weight"),
        "d_model": values["embedding_length"],
        "num_heads": values["attention.head_count"],
        "d_kv": values["attention.key_length"],
        "d_ff": values["feed_forward_length"],
        "num_layers": layers,
        "num_decoder_layers": values.get("decoder_block_count", layers),
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "relative_attention_num_buckets": values["attention.relative_buckets_count"],
        "layer_norm_epsilon": values.get("attention.layer_norm_rms_epsilon") or values["attention.layer_norm_epsilon"],
        "decoder_start_token_id": values.get("decoder_start_token_id", 0),
        "is_encoder_decoder": True,
        "tie_word_embeddings": not values.has("output.weight"),
    }


_PLUS_ONE: dict[str, Layout] = dict.fromkeys(("_norm", "_layernorm", "model.norm"), "minus one")
ARCHITECTURES: dict[str, GgufFamily] = {
    "bert": GgufFamily("bert", _bert),
    "gemma2": GgufFamily("gemma2", lambda values: _gemma(values, 46, softcaps=True), _PLUS_ONE),
    "gemma3": GgufFamily("gemma3_text", _gemma3, _PLUS_ONE),
    "gpt2": GgufFamily("gpt2", _gpt2, dict.fromkeys(("c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"), "transposed")),
    "gptneox": GgufFamily("gpt_neox", _gpt_neox, {"query_key_value": "by head"}),
    "llama": GgufFamily("llama", _llama, {"q_proj": "rotated q", "k_proj": "rotated k"}),
    "phi3": GgufFamily("phi3", _phi3),
    "qwen2": GgufFamily("qwen2", _decoder),
    "qwen3": GgufFamily("qwen3", _decoder),
    "t5": GgufFamily("t5", _t5),
}
"""By the name in `general.architecture`; Mistral's files call themselves llama."""


def gguf_config(file: GgufFile) -> Keys:
    """The keys of config.json that describe the model of a file. FileError if none of our families computes it."""
    name = file.metadata.get("general.architecture")
    if name not in ARCHITECTURES:
        raise FileError(
            "gguf-architecture", path=str(file.path), found=str(name)[:80], names=Listed(sorted(ARCHITECTURES))
        )
    if (parts := file.metadata.get("split.count", 1)) not in (0, 1):
        raise FileError("gguf-split", path=str(file.path), count=parts)
    architecture, values = ARCHITECTURES[name], GgufValues(file, name)
    found = {"model_type": architecture.family} | architecture.config(values)
    for key in ("bos", "eos", "padding"):
        number = file.metadata.get(f"tokenizer.ggml.{key}_token_id")
        if number is not None and number < found["vocab_size"]:
            found[f"{key.replace('padding', 'pad')}_token_id"] = number
    return found


# --- tensors ---------------------------------------------------------------------------------------------

_UNUSED = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


class GgufTensors(Mapping[str, np.ndarray]):
    """The tensors of a file under the names of Hugging Face and in its layout, each read on access."""

    def __init__(self, file: GgufFile, config: Mapping[str, Any]) -> None:
        self.path, self._file = file.path, file
        architecture = ARCHITECTURES[file.metadata["general.architecture"]]
        self._layouts = architecture.layouts
        heads = config.get("num_attention_heads", 1)
        self._heads: dict[Layout, int] = {"rotated q": heads, "rotated k": config.get("num_key_value_heads", heads)}
        self._heads["by head"] = heads
        gated = str(config.get("feed_forward_proj", "gated")).startswith("gated")
        self._where = _their_names(file, config["model_type"], gated)

    def __getitem__(self, name: str) -> np.ndarray:
        found, layout = self._file[self._where[name]], self._layout(name)
        match layout:
            case "minus one":
                return found - found.dtype.type(1)
            case "transposed":
                return found.T
            case "rotated q" | "rotated k":
                return _unrotated(found, self._heads[layout])
            case "by head":
                parts = found.reshape(3, self._heads[layout], -1, *found.shape[1:])
                return parts.swapaxes(0, 1).reshape(found.shape)
            case _:
                return found

    def raw(self, name: str) -> np.ndarray:
        """The same as by item: a quantised tensor is not kept as it is stored."""
        return self[name]

    def release(self, name: str) -> None:
        """Free the memory that reading a tensor took; it is read again on access."""
        self._file.release(self._where[name])

    def _layout(self, name: str) -> Layout:
        module = name.rpartition(".")[0]
        return next((layout for end, layout in self._layouts.items() if module.endswith(end)), "plain")

    def __contains__(self, name: object) -> bool:
        return name in self._where  # Mapping would read the tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    @property
    def shapes(self) -> dict[str, Shape]:
        """From the header; no data is read."""
        found = self._file.shapes
        return {
            name: tuple(reversed(found[theirs])) if self._layout(name) == "transposed" else found[theirs]
            for name, theirs in self._where.items()
        }

    @property
    def dtypes(self) -> dict[str, str]:
        """The dtype that holds each tensor without loss."""
        found = self._file.dtypes
        return {name: found[theirs] for name, theirs in self._where.items()}


def _unrotated(found: np.ndarray, heads: int) -> np.ndarray:
    """Rows of q or k with the pairs of a rotation i and i + E/2; files of Llama have them as neighbours."""
    pairs = found.reshape(heads, -1, 2, *found.shape[1:])
    return pairs.swapaxes(1, 2).reshape(found.shape)


def _their_names(file: GgufFile, family: str, gated: bool) -> dict[str, str]:
    """The name of each tensor in the file by its name in Hugging Face's layout; an unknown one keeps its own."""
    table = _module_names(file.metadata["general.architecture"], family, gated)
    found = {}
    for tensor in file:
        if tensor in _UNUSED:
            continue
        module, _, leaf = tensor.rpartition(".")
        number = next((part for part in module.split(".") if part.isdigit()), None)
        theirs = table.get(module if number is None else module.replace(f".{number}.", ".#.", 1))
        found[tensor if theirs is None else f"{theirs.replace('#', number or '')}.{leaf}"] = tensor
    return found


@cache
def _module_names(architecture: str, family: str, gated: bool) -> dict[str, str]:
    """The name of each module in Hugging Face's layout by its name in the file; # stands for the number of a layer."""
    import gguf

    known = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
    modules = gguf.get_tensor_name_map(known[architecture], 1)
    table: dict[str, str] = {}
    for pattern, target in FAMILIES[family].names.items():
        module = pattern.replace("#", "0")
        name = modules.get_name(module) or modules.get_name(module.removeprefix(FAMILIES[family].prefix))
        if name is not None and target is not None and (gated or not pattern.endswith(".wi_1")):
            table[name.replace(".0.", ".#.") if "#" in pattern else name] = pattern
    return table


def read_gguf(path: Path) -> tuple[GgufFile, Keys, GgufTensors]:
    """A file, the keys of config.json that describe it, and its tensors under the names of that layout."""
    file = GgufFile(path)
    config = gguf_config(file)
    return file, config, GgufTensors(file, config)
