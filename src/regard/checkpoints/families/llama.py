"""Llama, and the families that differ from it in a bias, a window or a norm: Mistral, Qwen2, Qwen3."""

from dataclasses import replace
from typing import Any

from regard.checkpoints.families.config_keys import (
    GATED,
    OTHER_HEADS,
    ConfigKeys,
    layer_kinds,
    layer_windows,
    rope_table,
    rotary,
    their_activation,
)
from regard.checkpoints.families.family import Family, Names
from regard.config import AttentionStyle, Biases, Norm, Rotary, TransformerConfig


def decoder(
    keys: ConfigKeys,
    *,
    biases: Biases | None = None,
    attention: AttentionStyle | None = None,
    positions: Rotary | None = None,
    defaults: dict[str, Any] | None = None,
) -> TransformerConfig:
    """The config of a decoder with rotary positions, RMSNorm and a gated feed-forward.

    defaults   values of Hugging Face for absent keys, where they are not those of Llama
    """
    default = {"heads": 32, "layers": 32, "width": 4096, "vocab": 32_000, "max_len": 2048, "d_ff": 11_008}
    default |= {"eps": 1e-6, "kv_heads": None, "head_dim": None} | (defaults or {})
    heads = keys.count("num_attention_heads", default["heads"])
    width = keys.count("hidden_size", default["width"])
    head_dim = keys.take("head_dim", default["head_dim"])
    return TransformerConfig(
        vocab_size=keys.count("vocab_size", default["vocab"]),
        d_model=width,
        n_heads=heads,
        n_kv_heads=keys.count("num_key_value_heads", default["kv_heads"] or heads),
        d_head=None if head_dim is None else keys.count("head_dim", head_dim),
        d_ff=keys.count("intermediate_size", default["d_ff"]),
        n_decoder_layers=keys.count("num_hidden_layers", default["layers"]),
        max_len=keys.count("max_position_embeddings", default["max_len"]),
        activation=keys.choice("hidden_act", GATED, "silu"),
        positions=rotary(keys) if positions is None else positions,
        norm=Norm(kind="rms", place="pre", final=True, eps=keys.number("rms_norm_eps", default["eps"])),
        attention=AttentionStyle() if attention is None else attention,
        biases=Biases.none() if biases is None else biases,
        output=keys.output(keys.flag("tie_word_embeddings", False)),
    )


def settings(config: TransformerConfig) -> dict[str, Any]:
    """The inverse of `decoder`."""
    found = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.key_value_heads,
        "head_dim": config.head_width,
        "intermediate_size": config.d_ff,
        "num_hidden_layers": config.n_decoder_layers,
        "max_position_embeddings": config.max_len,
        "hidden_act": their_activation(config),
        "rms_norm_eps": config.norm.eps,
        "tie_word_embeddings": config.output is not None and config.output.tied,
    }
    return found | ({"rope_parameters": rope_table(config.positions)} if isinstance(config.positions, Rotary) else {})


def _llama_settings(config: TransformerConfig) -> dict[str, Any]:
    return settings(config) | {"attention_bias": config.biases.attention, "mlp_bias": config.biases.feed_forward}


def _mistral_settings(config: TransformerConfig) -> dict[str, Any]:
    return settings(config) | {"sliding_window": config.attention.window_of(0)}


def _qwen_settings(config: TransformerConfig) -> dict[str, Any]:
    kinds = layer_kinds(config)
    found = settings(config) | {"use_sliding_window": kinds["sliding_window"] is not None} | kinds
    return found | ({"attention_bias": config.biases.attention} if config.attention.qk_norm else {})


def _llama(keys: ConfigKeys) -> TransformerConfig:
    keys.take("pretraining_tp", None)  # the same product in slices
    bias = keys.flag("attention_bias", False)
    feed_forward = keys.flag("mlp_bias", False)
    return decoder(keys, biases=Biases(attention=bias, attention_output=bias, feed_forward=feed_forward, norm=False))


def _mistral(keys: ConfigKeys) -> TransformerConfig:
    # In Hugging Face an absent key means 4096, and null means none.
    has_window = keys.has("sliding_window") or not keys.is_listed("sliding_window")
    window = keys.count("sliding_window", 4096) if has_window else None
    keys.take("sliding_window", None)
    defaults = {"max_len": 131_072, "d_ff": 14_336, "kv_heads": 8}
    return decoder(keys, attention=AttentionStyle(window=window), defaults=defaults)


def _qwen_windows(keys: ConfigKeys) -> tuple[int | None, ...] | None:
    """The window of each layer: from `layer_types`, else of the layers from `max_window_layers` on."""
    layers = keys.count("num_hidden_layers", 32)
    in_use = keys.flag("use_sliding_window", False)
    window = keys.count("sliding_window", 4096) if in_use else None
    first = keys.count("max_window_layers", 28, least=0)
    kinds = keys.take("layer_types", None)
    keys.take("sliding_window", None)
    if kinds is None:
        kinds = ["sliding_attention" if window and i >= first else "full_attention" for i in range(layers)]
    return layer_windows(keys, kinds, window, layers)


def _qwen2(keys: ConfigKeys) -> TransformerConfig:
    return decoder(
        keys,
        attention=AttentionStyle(window=_qwen_windows(keys)),
        biases=replace(Biases.none(), attention=True),
        defaults={"max_len": 32_768, "d_ff": 22_016, "vocab": 151_936, "kv_heads": 32},
    )


def _qwen3(keys: ConfigKeys) -> TransformerConfig:
    bias = keys.flag("attention_bias", False)
    return decoder(
        keys,
        attention=AttentionStyle(window=_qwen_windows(keys), qk_norm=True),
        biases=replace(Biases.none(), attention=bias, attention_output=bias),
        defaults={"max_len": 32_768, "d_ff": 22_016, "vocab": 151_936, "kv_heads": 32, "head_dim": 128},
    )


NAMES: Names = {
    "model.embed_tokens": "embedding",
    "model.layers.#.input_layernorm": "decoder.layers.#.self_attention_norm",
    **{
        f"model.layers.#.self_attn.{part}": f"decoder.layers.#.self_attention.{part}"
        for part in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")
    },
    "model.layers.#.self_attn.rotary_emb.inv_freq": None,
    "model.rotary_emb.inv_freq": None,
    "model.layers.#.post_attention_layernorm": "decoder.layers.#.feed_forward_norm",
    **{f"model.layers.#.mlp.{part}_proj": f"decoder.layers.#.feed_forward.{part}" for part in ("gate", "up", "down")},
    "model.norm": "decoder.norm",
    "lm_head": "output",
}

LLAMA = Family(config=_llama, settings=_llama_settings, names=NAMES, prefix="model.", heads=OTHER_HEADS)
MISTRAL = Family(config=_mistral, settings=_mistral_settings, names=NAMES, prefix="model.", heads=OTHER_HEADS)
QWEN2 = Family(config=_qwen2, settings=_qwen_settings, names=NAMES, prefix="model.", heads=OTHER_HEADS)
QWEN3 = Family(config=_qwen3, settings=_qwen_settings, names=NAMES, prefix="model.", heads=OTHER_HEADS)
