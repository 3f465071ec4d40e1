"""Gemma 2 and 3: decoders with norms before and after each part, and a window in some of the layers."""

from dataclasses import replace
from typing import Any

from regard.checkpoints.families import llama
from regard.checkpoints.families.config_keys import (
    GATED,
    OTHER_HEADS,
    ConfigKeys,
    layer_kinds,
    layer_windows,
    rope_table,
    rotary,
    rotary_from,
    their_activation,
)
from regard.checkpoints.families.family import Family, Names
from regard.config import AttentionStyle, Biases, Embeddings, Norm, Rotary, TransformerConfig

_LAYER_TYPES = ("full_attention", "sliding_attention")


def _softcap(keys: ConfigKeys, name: str, default: float | None) -> float | None:
    """A bound; in Hugging Face an absent key means the default, and null none."""
    if keys.is_listed(name) and not keys.has(name):
        keys.take(name, None)
        return None
    return None if default is None and not keys.has(name) else keys.number(name, default)


def _windows(keys: ConfigKeys, period: int) -> tuple[int | None, ...] | None:
    """The window of each layer: from `layer_types`, else of all but the last of every `period` layers."""
    layers = keys.count("num_hidden_layers", 26)
    default = ["full_attention" if (i + 1) % period == 0 else "sliding_attention" for i in range(min(layers, 1025))]
    return layer_windows(keys, keys.take("layer_types", default), keys.count("sliding_window", 4096), layers)


def _config(
    keys: ConfigKeys,
    *,
    vocab_size: int,
    max_len: int,
    positions: Rotary,
    windows: tuple[int | None, ...] | None,
    softcaps: tuple[float | None, float | None],
    qk_norm: bool,
) -> TransformerConfig:
    """The config that both have in common. `softcaps` are those of the scores and of the logits."""
    keys.only("use_bidirectional_attention", False)
    keys.take("cache_implementation", None)  # of generation
    activation = keys.choice("hidden_activation", GATED, "gelu_pytorch_tanh")
    keys.take("hidden_act", None)  # old files have it beside hidden_activation; the model reads the latter
    bias = keys.flag("attention_bias", False)
    scores, logits = softcaps
    return TransformerConfig(
        vocab_size=keys.count("vocab_size", vocab_size),
        d_model=keys.count("hidden_size", 2304),
        n_heads=keys.count("num_attention_heads", 8),
        n_kv_heads=keys.count("num_key_value_heads", 4),
        d_head=keys.count("head_dim", 256),
        d_ff=keys.count("intermediate_size", 9216),
        n_decoder_layers=keys.count("num_hidden_layers", 26),
        max_len=keys.count("max_position_embeddings", max_len),
        activation=activation,
        positions=positions,
        norm=Norm(kind="rms", place="both", final=True, eps=keys.number("rms_norm_eps", 1e-6), plus_one=True),
        attention=AttentionStyle(
            scale=keys.number("query_pre_attn_scalar", 256) ** -0.5, softcap=scores, window=windows, qk_norm=qk_norm
        ),
        biases=Biases(attention=bias, attention_output=bias, feed_forward=False, norm=False),
        embeddings=Embeddings(scaled=True, rounded_scale=True),
        output=keys.output(keys.flag("tie_word_embeddings", True), softcap=logits),
    )


def _gemma2(keys: ConfigKeys) -> TransformerConfig:
    softcaps = _softcap(keys, "attn_logit_softcapping", 50.0), _softcap(keys, "final_logit_softcapping", 30.0)
    return _config(
        keys,
        vocab_size=256_000,
        max_len=8192,
        positions=rotary(keys),
        windows=_windows(keys, 2),
        softcaps=softcaps,
        qk_norm=False,
    )


def _gemma3_positions(keys: ConfigKeys) -> Rotary:
    """One kind of rotation for layers with a window, and one for the others."""
    table: dict[str, Any] = dict(keys.table("rope_parameters") or {})
    strange = sorted(table.keys() - set(_LAYER_TYPES))
    if strange:
        raise keys.invalid("rope_parameters", strange[0], ", ".join(_LAYER_TYPES))
    scaling = dict(keys.table("rope_scaling") or {})
    bases = keys.take("rope_theta", 1_000_000.0), keys.take("rope_local_base_freq", 10_000.0)
    wide, local = (
        rotary_from(keys, f"rope_parameters.{kind}", (table.get(kind) or {}) | more, {"rope_theta": base}, kinds=kinds)
        for kind, more, base, kinds in zip(
            _LAYER_TYPES, (scaling, {}), bases, (("default", "linear"), ("default",)), strict=True
        )
    )
    return Rotary(base=wide.base, scaling=wide.scaling, local_base=local.base)


def _gemma3(keys: ConfigKeys) -> TransformerConfig:
    keys.take("attn_logit_softcapping", None)  # its attention does not read it
    windows = _windows(keys, keys.count("sliding_window_pattern", 6, "_sliding_window_pattern"))
    return _config(
        keys,
        vocab_size=262_208,
        max_len=131_072,
        positions=_gemma3_positions(keys),
        windows=windows,
        softcaps=(None, _softcap(keys, "final_logit_softcapping", None)),
        qk_norm=True,
    )


def _settings(config: TransformerConfig) -> dict[str, Any]:
    found = llama.settings(config) | layer_kinds(config)
    del found["hidden_act"]
    gate = {"geglu_tanh": "gelu_pytorch_tanh"}.get(config.activation, their_activation(config))
    scale = config.head_width**-0.5 if config.attention.scale is None else config.attention.scale
    scalar = scale**-2
    return found | {
        "hidden_activation": gate,
        # The number in the file is usually whole.
        "query_pre_attn_scalar": round(scalar) if round(scalar) ** -0.5 == scale else scalar,
        "attention_bias": config.biases.attention,
        "attn_logit_softcapping": config.attention.softcap,
        "final_logit_softcapping": None if config.output is None else config.output.softcap,
    }


def _gemma3_settings(config: TransformerConfig) -> dict[str, Any]:
    found = _settings(config)
    if isinstance(config.positions, Rotary):
        tables = (replace(config.positions, local_base=None), config.positions.local)
        found["rope_parameters"] = dict(zip(_LAYER_TYPES, map(rope_table, tables), strict=True))
    return found


_NAMES: Names = {
    **llama.NAMES,
    "model.layers.#.post_attention_layernorm": "decoder.layers.#.self_attention_output_norm",
    "model.layers.#.pre_feedforward_layernorm": "decoder.layers.#.feed_forward_norm",
    "model.layers.#.post_feedforward_layernorm": "decoder.layers.#.feed_forward_output_norm",
}

GEMMA2 = Family(config=_gemma2, settings=_settings, names=_NAMES, prefix="model.", heads=OTHER_HEADS)
GEMMA3 = Family(config=_gemma3, settings=_gemma3_settings, names=_NAMES, prefix="model.", heads=OTHER_HEADS)
