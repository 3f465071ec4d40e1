"""Conversion of Hugging Face configs and weight names to ours.

Tables of names, one per family, and differences of layout (GPT-2 stores W transposed, and W_q, W_k, W_v in one).
Transformers need not be installed: a config is any object with its attributes; tensors are NumPy arrays or torch's.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from regard.config import (
    AttentionStyle,
    Biases,
    Embeddings,
    Learned,
    LinearScaling,
    Llama3Scaling,
    Norm,
    Output,
    Relative,
    Rotary,
    Scaling,
    Sinusoidal,
    TransformerConfig,
    YarnScaling,
)

ACTIVATIONS: dict[str, Any] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
GATED: dict[str, Any] = {"silu": "swiglu", "gelu": "geglu", "gelu_tanh": "geglu_tanh"}

Names = dict[str, str | tuple[str, ...] | None]
"""Their names to ours, for weight and bias; # is the number of a layer, a tuple splits the rows, None is skipped."""


class Family(NamedTuple):
    """The conversion of a config, and the table of weight names."""

    config: Callable[[Any], TransformerConfig]
    names: Names


def config_of(theirs: Any) -> TransformerConfig:
    """Our config for theirs."""
    return FAMILIES[theirs.model_type].config(theirs)


def weights_of(tensors: Mapping[str, Any], theirs: Any) -> dict[str, Any]:
    """Their tensors (weights, or gradients of them) under our names and in our layout; KeyError for an unknown name.

    Shared weights are listed twice in a state_dict; both must be equal.
    """
    config, names = config_of(theirs), FAMILIES[theirs.model_type].names
    shared = {}
    if config.output is not None and config.output.tied:
        shared["output.weight"] = "embedding.weight"
    if config.embeddings.source_vocab_size is None:
        shared["source_embedding.weight"] = "embedding.weight"
    ours: dict[str, Any] = {}
    for name, tensor in tensors.items():
        for target, part in _renamed(name, tensor, names).items():
            target = shared.get(target, target)
            assert target not in ours or (ours[target] == part).all(), f"{name} is not {target}"
            ours[target] = part
    return ours


def _renamed(name: str, tensor: Any, names: Names) -> dict[str, Any]:
    number = re.search(r"\d+", name)
    module, _, leaf = re.sub(r"\d+", "#", name, count=1).rpartition(".")
    targets = names[module]
    if targets is None:
        return {}
    if ".c_" in name:  # GPT-2's Conv1D, x W instead of x Wᵀ; the transpose of a bias is the bias
        tensor = tensor.T if tensor.ndim == 2 else tensor
    if name == "final_logits_bias":  # 1 W
        tensor = tensor[0]
    targets = targets if isinstance(targets, tuple) else (targets,)
    rows = len(tensor) // len(targets)
    found = {}
    for i, target in enumerate(targets):
        target = target.replace("#", number[0] if number else "")
        whole = target.endswith((".table", ".bias"))  # a parameter in our model, a module's weight in theirs
        found[target if whole else f"{target}.{leaf}"] = tensor[i * rows : (i + 1) * rows]
    return found


# --- decoders ---------------------------------------------------------------------------------------------


def _gpt2(theirs: Any) -> TransformerConfig:
    return TransformerConfig(
        vocab_size=theirs.vocab_size,
        d_model=theirs.n_embd,
        n_heads=theirs.n_head,
        d_ff=theirs.n_inner or 4 * theirs.n_embd,
        n_decoder_layers=theirs.n_layer,
        max_len=theirs.n_positions,
        activation=ACTIVATIONS[theirs.activation_function],
        positions=Learned(),
        norm=Norm(place="pre", final=True, eps=theirs.layer_norm_epsilon),
        attention=AttentionStyle(scale=None if theirs.scale_attn_weights else 1.0),
        output=Output(tied=theirs.tie_word_embeddings),
    )


def _llama(theirs: Any) -> TransformerConfig:
    """Llama, and models that differ only in a bias, a window or a norm: Mistral, Qwen2, Qwen3."""
    window = getattr(theirs, "sliding_window", None)
    kinds = getattr(theirs, "layer_types", None) or ["sliding_attention"] * theirs.num_hidden_layers
    bias = getattr(theirs, "attention_bias", False)
    return TransformerConfig(
        vocab_size=theirs.vocab_size,
        d_model=theirs.hidden_size,
        n_heads=theirs.num_attention_heads,
        n_kv_heads=theirs.num_key_value_heads,
        d_head=getattr(theirs, "head_dim", None),
        d_ff=theirs.intermediate_size,
        n_decoder_layers=theirs.num_hidden_layers,
        max_len=theirs.max_position_embeddings,
        activation=GATED[ACTIVATIONS[theirs.hidden_act]],
        positions=Rotary(base=theirs.rope_parameters["rope_theta"], scaling=_scaling(theirs.rope_parameters)),
        norm=Norm(kind="rms", place="pre", final=True, eps=theirs.rms_norm_eps),
        attention=AttentionStyle(
            window=tuple(window if kind == "sliding_attention" else None for kind in kinds),
            qk_norm=theirs.model_type == "qwen3",
        ),
        biases=Biases(
            attention=bias or theirs.model_type == "qwen2",
            attention_output=bias,
            feed_forward=getattr(theirs, "mlp_bias", False),
            norm=False,
        ),
        output=Output(tied=theirs.tie_word_embeddings),
    )


def _scaling(rope: Mapping[str, Any]) -> Scaling | None:
    match rope["rope_type"]:
        case "linear":
            return LinearScaling(factor=rope["factor"])
        case "llama3":
            return Llama3Scaling(
                factor=rope["factor"],
                original_len=rope["original_max_position_embeddings"],
                fast=rope["high_freq_factor"],
                slow=rope["low_freq_factor"],
            )
        case "yarn":
            return YarnScaling(
                factor=rope["factor"],
                original_len=rope["original_max_position_embeddings"],
                fast=rope.get("beta_fast") or 32.0,
                slow=rope.get("beta_slow") or 1.0,
                sharpness=rope.get("attention_factor"),
            )
    assert rope["rope_type"] == "default"
    return None


_GPT2: Names = {
    "transformer.wte": "embedding",
    "transformer.wpe": "decoder.positions.table",
    "transformer.h.#.ln_1": "decoder.layers.#.self_attention_norm",
    "transformer.h.#.attn.c_attn": tuple(f"decoder.layers.#.self_attention.{part}_proj" for part in "qkv"),
    "transformer.h.#.attn.c_proj": "decoder.layers.#.self_attention.o_proj",
    "transformer.h.#.ln_2": "decoder.layers.#.feed_forward_norm",
    "transformer.h.#.mlp.c_fc": "decoder.layers.#.feed_forward.up",
    "transformer.h.#.mlp.c_proj": "decoder.layers.#.feed_forward.down",
    "transformer.ln_f": "decoder.norm",
    "lm_head": "output",
}

_LLAMA: Names = {
    "model.embed_tokens": "embedding",
    "model.layers.#.input_layernorm": "decoder.layers.#.self_attention_norm",
    **{
        f"model.layers.#.self_attn.{part}": f"decoder.layers.#.self_attention.{part}"
        for part in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")
    },
    "model.layers.#.post_attention_layernorm": "decoder.layers.#.feed_forward_norm",
    **{f"model.layers.#.mlp.{part}_proj": f"decoder.layers.#.feed_forward.{part}" for part in ("gate", "up", "down")},
    "model.norm": "decoder.norm",
    "lm_head": "output",
}


# --- an encoder -------------------------------------------------------------------------------------------


def _bert(theirs: Any) -> TransformerConfig:
    return TransformerConfig(
        vocab_size=theirs.vocab_size,
        d_model=theirs.hidden_size,
        n_heads=theirs.num_attention_heads,
        d_ff=theirs.intermediate_size,
        n_encoder_layers=theirs.num_hidden_layers,
        max_len=theirs.max_position_embeddings,
        activation=ACTIVATIONS[theirs.hidden_act],
        positions=Learned(),
        norm=Norm(eps=theirs.layer_norm_eps),
        biases=Biases(output=True),
        embeddings=Embeddings(norm=True, n_segments=theirs.type_vocab_size),
        output=Output(tied=theirs.tie_word_embeddings, transform=True),
    )


_BERT: Names = {
    "bert.embeddings.word_embeddings": "embedding",
    "bert.embeddings.position_embeddings": "encoder.positions.table",
    "bert.embeddings.token_type_embeddings": "segment_embedding",
    "bert.embeddings.LayerNorm": "encoder.input_norm",
    "bert.encoder.layer.#.attention.self.query": "encoder.layers.#.self_attention.q_proj",
    "bert.encoder.layer.#.attention.self.key": "encoder.layers.#.self_attention.k_proj",
    "bert.encoder.layer.#.attention.self.value": "encoder.layers.#.self_attention.v_proj",
    "bert.encoder.layer.#.attention.output.dense": "encoder.layers.#.self_attention.o_proj",
    "bert.encoder.layer.#.attention.output.LayerNorm": "encoder.layers.#.self_attention_norm",
    "bert.encoder.layer.#.intermediate.dense": "encoder.layers.#.feed_forward.up",
    "bert.encoder.layer.#.output.dense": "encoder.layers.#.feed_forward.down",
    "bert.encoder.layer.#.output.LayerNorm": "encoder.layers.#.feed_forward_norm",
    "cls.predictions.transform.dense": "output.transform",
    "cls.predictions.transform.LayerNorm": "output.transform_norm",
    "cls.predictions.decoder": "output",
    "cls.predictions": None,  # a copy of the decoder's bias, or an unused one
}


# --- translators ------------------------------------------------------------------------------------------


def _t5(theirs: Any) -> TransformerConfig:
    activation = ACTIVATIONS[theirs.dense_act_fn]
    return TransformerConfig(
        vocab_size=theirs.vocab_size,
        d_model=theirs.d_model,
        n_heads=theirs.num_heads,
        d_head=theirs.d_kv,
        d_ff=theirs.d_ff,
        n_encoder_layers=theirs.num_layers,
        n_decoder_layers=theirs.num_decoder_layers,
        activation=GATED[activation] if theirs.is_gated_act else activation,
        positions=Relative(
            n_buckets=theirs.relative_attention_num_buckets, max_distance=theirs.relative_attention_max_distance
        ),
        norm=Norm(kind="rms", place="pre", final=True, eps=theirs.layer_norm_epsilon),
        attention=AttentionStyle(scale=1.0),
        biases=Biases.none(),
        # Version 1.1 has its own output layer, without scaling, although the config says it is tied.
        output=Output(tied=theirs.scale_decoder_outputs, scaled=theirs.scale_decoder_outputs),
    )


def _marian(theirs: Any) -> TransformerConfig:
    shared = theirs.share_encoder_decoder_embeddings
    return TransformerConfig(
        vocab_size=theirs.vocab_size if shared else theirs.decoder_vocab_size,
        d_model=theirs.d_model,
        n_heads=theirs.encoder_attention_heads,
        d_ff=theirs.encoder_ffn_dim,
        n_encoder_layers=theirs.encoder_layers,
        n_decoder_layers=theirs.decoder_layers,
        max_len=theirs.max_position_embeddings,
        activation=ACTIVATIONS[theirs.activation_function],
        positions=Sinusoidal(pairing="halves"),
        biases=Biases(output=True),
        embeddings=Embeddings(scaled=theirs.scale_embedding, source_vocab_size=None if shared else theirs.vocab_size),
        output=Output(tied=theirs.tie_word_embeddings),
    )


def _t5_stack(side: str, last: int) -> Names:
    """`last` is the index of the feed-forward in a block's sub-layers."""
    attentions = (("SelfAttention", "self_attention"), ("EncDecAttention", "cross_attention"))
    names: Names = {
        f"{side}.embed_tokens": "embedding" if side == "decoder" else "source_embedding",
        f"{side}.block.#.layer.0.SelfAttention.relative_attention_bias": f"{side}.positions.table",
        f"{side}.block.#.layer.{last}.layer_norm": f"{side}.layers.#.feed_forward_norm",
        f"{side}.final_layer_norm": f"{side}.norm",
    }
    for their, our in (("wi", "up"), ("wi_0", "gate"), ("wi_1", "up"), ("wo", "down")):
        names[f"{side}.block.#.layer.{last}.DenseReluDense.{their}"] = f"{side}.layers.#.feed_forward.{our}"
    for i, (theirs, ours) in enumerate(attentions[:last]):
        names[f"{side}.block.#.layer.{i}.layer_norm"] = f"{side}.layers.#.{ours}_norm"
        for part in "qkvo":
            names[f"{side}.block.#.layer.{i}.{theirs}.{part}"] = f"{side}.layers.#.{ours}.{part}_proj"
    return names


def _marian_stack(side: str) -> Names:
    names: Names = {
        f"model.{side}.embed_tokens": "embedding" if side == "decoder" else "source_embedding",
        f"model.{side}.embed_positions": None,
        f"model.{side}.layers.#.fc1": f"{side}.layers.#.feed_forward.up",
        f"model.{side}.layers.#.fc2": f"{side}.layers.#.feed_forward.down",
        f"model.{side}.layers.#.final_layer_norm": f"{side}.layers.#.feed_forward_norm",
    }
    for theirs, ours in (("self_attn", "self_attention"), ("encoder_attn", "cross_attention")):
        names[f"model.{side}.layers.#.{theirs}_layer_norm"] = f"{side}.layers.#.{ours}_norm"
        names[f"model.{side}.layers.#.{theirs}.out_proj"] = f"{side}.layers.#.{ours}.o_proj"
        for part in "qkv":
            names[f"model.{side}.layers.#.{theirs}.{part}_proj"] = f"{side}.layers.#.{ours}.{part}_proj"
    return names


_T5: Names = {"shared": "embedding", **_t5_stack("encoder", 1), **_t5_stack("decoder", 2), "lm_head": "output"}

_MARIAN: Names = {
    "model.shared": "embedding",
    **_marian_stack("encoder"),
    **_marian_stack("decoder"),
    "lm_head": "output",
    "": "output.bias",  # final_logits_bias, which belongs to no module
}

FAMILIES: dict[str, Family] = {
    "gpt2": Family(_gpt2, _GPT2),
    "llama": Family(_llama, _LLAMA),
    "mistral": Family(_llama, _LLAMA),
    "qwen2": Family(_llama, _LLAMA),
    "qwen3": Family(_llama, _LLAMA),
    "bert": Family(_bert, _BERT),
    "t5": Family(_t5, _T5),
    "marian": Family(_marian, _MARIAN),
}
"""By Hugging Face's `model_type`."""
