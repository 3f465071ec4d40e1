"""GGUF files written from models of Hugging Face with llama.cpp's names, layouts and metadata, for tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf.quants import quantize

ARCHITECTURES = {
    "bert": "bert",
    "gemma2": "gemma2",
    "gemma3_text": "gemma3",
    "gpt2": "gpt2",
    "gpt_neox": "gptneox",
    "llama": "llama",
    "mistral": "llama",
    "phi3": "phi3",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "t5": "t5",
}
LEFT_OUT = ("cls.", "bert.pooler", "encoder.embed_tokens", "decoder.embed_tokens")


def stored(name: str, tensor: np.ndarray, settings: Any) -> np.ndarray:
    """A tensor in the layout of llama.cpp."""
    kind = settings.model_type
    if kind == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        return tensor.T
    if kind in ("gemma2", "gemma3_text") and name.endswith("norm.weight"):
        return tensor + 1
    if kind in ("llama", "mistral") and (".q_proj." in name or ".k_proj." in name):
        heads = settings.num_attention_heads if ".q_proj." in name else settings.num_key_value_heads
        return tensor.reshape(heads, 2, -1, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)
    if kind == "gpt_neox" and "query_key_value" in name:
        heads = settings.num_attention_heads
        parts = tensor.reshape(heads, 3, -1, *tensor.shape[1:])
        return np.concatenate([parts[:, i].reshape(-1, *tensor.shape[1:]) for i in range(3)])
    return tensor


def write_metadata(writer: gguf.GGUFWriter, settings: Any) -> None:
    """The numbers of a model."""
    get = settings.to_dict().get
    if settings.model_type == "t5":
        writer.add_context_length(512)
        writer.add_embedding_length(settings.d_model)
        writer.add_feed_forward_length(settings.d_ff)
        writer.add_block_count(settings.num_layers)
        writer.add_uint32("t5.decoder_block_count", settings.num_decoder_layers)
        writer.add_head_count(settings.num_heads)
        writer.add_key_length(settings.d_kv)
        writer.add_value_length(settings.d_kv)
        writer.add_relative_attn_buckets_count(settings.relative_attention_num_buckets)
        writer.add_layer_norm_rms_eps(settings.layer_norm_epsilon)
        writer.add_layer_norm_eps(settings.layer_norm_epsilon)
        writer.add_decoder_start_token_id(settings.decoder_start_token_id)
        return
    writer.add_context_length(settings.max_position_embeddings)
    writer.add_embedding_length(settings.hidden_size)
    writer.add_feed_forward_length(get("intermediate_size") or get("n_inner") or 4 * settings.hidden_size)
    writer.add_block_count(settings.num_hidden_layers)
    writer.add_head_count(settings.num_attention_heads)
    if (heads := get("num_key_value_heads")) is not None:
        writer.add_head_count_kv(heads)
    if (eps := get("rms_norm_eps")) is not None:
        writer.add_layer_norm_rms_eps(eps)
    else:
        writer.add_layer_norm_eps(get("layer_norm_eps") or get("layer_norm_epsilon"))
    width = get("head_dim") or settings.hidden_size // settings.num_attention_heads
    if settings.model_type not in ("bert", "gpt2", "gpt_neox"):
        writer.add_key_length(width)
        writer.add_value_length(width)
    if (window := get("sliding_window")) is not None:
        writer.add_sliding_window(window)
    for name, add in (
        ("attn_logit_softcapping", writer.add_attn_logit_softcapping),
        ("final_logit_softcapping", writer.add_final_logit_softcapping),
    ):
        if get(name) is not None:
            add(get(name))
    write_rope(writer, settings, width)


def write_rope(writer: gguf.GGUFWriter, settings: Any, width: int) -> None:
    """The numbers of rotary positions; Llama 3's scaling and LongRoPE's as tensors of factors."""
    rope = settings.to_dict().get("rope_parameters") or {}
    local = rope.get("sliding_attention")
    rope = rope.get("full_attention", rope)
    if not rope:
        return
    writer.add_rope_freq_base(rope["rope_theta"])
    if local is not None:
        writer.add_float32("gemma3.rope.freq_base_swa", local["rope_theta"])
    rotated = int(width * rope.get("partial_rotary_factor", 1.0))
    writer.add_rope_dimension_count(rotated)
    if settings.model_type == "gpt_neox":
        writer.add_parallel_residual(settings.use_parallel_residual)
    kind = rope["rope_type"]
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if kind == "llama3":
        rounds = 2 * np.pi * rope["rope_theta"] ** (np.arange(0, rotated, 2) / rotated)
        length, factor = rope["original_max_position_embeddings"], rope["factor"]
        share = ((length / rounds - 1) / 3).clip(0, 1)
        writer.add_tensor("rope_freqs.weight", (1 / (share + (1 - share) / factor)).astype(np.float32))
    if kind == "longrope":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        for side in ("short", "long"):
            writer.add_tensor(f"rope_factors_{side}.weight", np.array(rope[f"{side}_factor"], np.float32))


def write_model(
    path: Path, model: Any, kind: Kind = Kind.F32, metadata: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, np.ndarray]:
    """A GGUF file of a model; matrices in that type. Returns the tensors as they are stored, by their names there."""
    settings = model.config
    name = ARCHITECTURES[settings.model_type]
    writer = gguf.GGUFWriter(path, name)
    write_metadata(writer, settings)
    for key, value in (dict(metadata or {}) | more).items():
        add_value(writer, key.replace("__", "."), value)
    known = {one: number for number, one in gguf.MODEL_ARCH_NAMES.items()}
    layers = max(settings.num_hidden_layers, getattr(settings, "num_decoder_layers", 0))
    names = gguf.get_tensor_name_map(known[name], layers)
    written: dict[str, np.ndarray] = {}
    for theirs, weight in model.state_dict().items():
        if theirs.startswith(LEFT_OUT) or (theirs in ("lm_head.weight", "embed_out.weight") and is_tied(model)):
            continue
        ours = names.get_name(theirs, try_suffixes=(".weight", ".bias")) or names.get_name(
            theirs.removeprefix("bert."), try_suffixes=(".weight", ".bias")
        )
        assert ours is not None, theirs
        tensor = np.ascontiguousarray(stored(theirs, weight.float().numpy(), settings))
        written[ours] = tensor
        if tensor.ndim == 1 or kind == Kind.F32:
            writer.add_tensor(ours, tensor)
        elif kind == Kind.F16:
            writer.add_tensor(ours, tensor.astype(np.float16))
        else:
            writer.add_tensor(ours, quantize(tensor, kind), raw_dtype=kind)
    finish(writer)
    return written


def is_tied(model: Any) -> bool:
    return model.get_output_embeddings() is None or (
        model.get_output_embeddings().weight is model.get_input_embeddings().weight
    )


def add_value(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, list | np.ndarray):
        writer.add_array(key, list(value))
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    else:
        writer.add_float32(key, value)


def finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
