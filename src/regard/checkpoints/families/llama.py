"""Llama, and the decoders that differ little from it: Mistral, Qwen2, Qwen3, Phi-3, and Gemma 2 and 3.

They differ in a bias, a window or a norm. Phi-3 has one matrix for q, k and v, and one for the gate and what it
multiplies; with LongRoPE it is computed up to the length of its first training, 4096 tokens. Gemma has norms before and
after each part, and a window in some of its layers.
"""

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
    rotary_from,
    their_activation,
)
from regard.checkpoints.families.family import Family, Names, to
from regard.config import AttentionStyle, Biases, Embeddings, FactorScaling, Norm, Rotary, TransformerConfig


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


LLAMA_NAMES: Names = {
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

LLAMA = Family(config=_llama, settings=_llama_settings, names=LLAMA_NAMES, prefix="model.", heads=OTHER_HEADS)
MISTRAL = Family(config=_mistral, settings=_mistral_settings, names=LLAMA_NAMES, prefix="model.", heads=OTHER_HEADS)
QWEN2 = Family(config=_qwen2, settings=_qwen_settings, names=LLAMA_NAMES, prefix="model.", heads=OTHER_HEADS)
QWEN3 = Family(config=_qwen3, settings=_qwen_settings, names=LLAMA_NAMES, prefix="model.", heads=OTHER_HEADS)


def _phi3_config(keys: ConfigKeys) -> TransformerConfig:
    keys.only("attention_bias", False)
    positions = rotary(keys, fraction=("partial_rotary_factor", 1.0), kinds=("default", "longrope", "su", "yarn"))
    window = keys.count("sliding_window", 1) if keys.has("sliding_window") else None
    keys.take("sliding_window", None)
    defaults = {"vocab": 32_064, "width": 3072, "d_ff": 8192, "max_len": 4096, "eps": 1e-5}
    found = decoder(keys, attention=AttentionStyle(window=window), positions=positions, defaults=defaults)
    # Longer texts rotate by other factors from their first token on; the cache of a shorter one would not fit.
    is_scaled = isinstance(positions.scaling, FactorScaling)
    return replace(found, max_len=int(keys.numbers["original_max_position_embeddings"])) if is_scaled else found


def _phi3_settings(config: TransformerConfig) -> dict[str, Any]:
    found = settings(config) | {"sliding_window": config.attention.window_of(0)}
    if isinstance(config.positions, Rotary) and isinstance(config.positions.scaling, FactorScaling):
        found["rope_parameters"]["original_max_position_embeddings"] = config.max_len
    return found


_ATTENTION, _FEED_FORWARD = "decoder.layers.#.self_attention", "decoder.layers.#.feed_forward"
PHI3 = Family(
    config=_phi3_config,
    settings=_phi3_settings,
    prefix="model.",
    heads=OTHER_HEADS,
    names={
        **LLAMA_NAMES,
        "model.layers.#.self_attn.qkv_proj": to(*(f"{_ATTENTION}.{part}_proj" for part in "qkv")),
        "model.layers.#.mlp.gate_up_proj": to(f"{_FEED_FORWARD}.gate", f"{_FEED_FORWARD}.up"),
    },
)


_LAYER_TYPES = ("full_attention", "sliding_attention")


def _softcap(keys: ConfigKeys, name: str, default: float | None) -> float | None:
    """A bound; in Hugging Face an absent key means the default, and null none."""
    if keys.is_listed(name) and not keys.has(name):
        keys.take(name, None)
        return None
    return None if default is None and not keys.has(name) else keys.number(name, default)


def _alternating_windows(keys: ConfigKeys, period: int) -> tuple[int | None, ...] | None:
    """The window of each layer: from `layer_types`, else of all but the last of every `period` layers."""
    layers = keys.count("num_hidden_layers", 26)
    default = ["full_attention" if (i + 1) % period == 0 else "sliding_attention" for i in range(min(layers, 1025))]
    return layer_windows(keys, keys.take("layer_types", default), keys.count("sliding_window", 4096), layers)


def _gemma_config(
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
    return _gemma_config(
        keys,
        vocab_size=256_000,
        max_len=8192,
        positions=rotary(keys),
        windows=_alternating_windows(keys, 2),
        softcaps=softcaps,
        qk_norm=False,
    )


def _gemma3_positions(keys: ConfigKeys) -> Rotary:
    """One kind of rotation for layers with a window, and one for the others."""
    table: dict[str, Any] = dict(keys.table("rope_parameters") or {})
    strange = sorted(table.keys() - set(_LAYER_TYPES))
    if strange:
        raise keys.invalid("rope_parameters", strange[0], ", ".join(_LAYER_TYPES))
    for kind, value in table.items():
        if not isinstance(value, dict | None):
            raise keys.invalid(f"rope_parameters.{kind}", value, "{…}")
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
    windows = _alternating_windows(keys, keys.count("sliding_window_pattern", 6, "_sliding_window_pattern"))
    return _gemma_config(
        keys,
        vocab_size=262_208,
        max_len=131_072,
        positions=_gemma3_positions(keys),
        windows=windows,
        softcaps=(None, _softcap(keys, "final_logit_softcapping", None)),
        qk_norm=True,
    )


def _gemma_settings(config: TransformerConfig) -> dict[str, Any]:
    found = settings(config) | layer_kinds(config)
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
    found = _gemma_settings(config)
    if isinstance(config.positions, Rotary):
        tables = (replace(config.positions, local_base=None), config.positions.local)
        found["rope_parameters"] = dict(zip(_LAYER_TYPES, map(rope_table, tables), strict=True))
    return found


GEMMA_NAMES: Names = {
    **LLAMA_NAMES,
    "model.layers.#.post_attention_layernorm": "decoder.layers.#.self_attention_output_norm",
    "model.layers.#.pre_feedforward_layernorm": "decoder.layers.#.feed_forward_norm",
    "model.layers.#.post_feedforward_layernorm": "decoder.layers.#.feed_forward_output_norm",
}

GEMMA2 = Family(config=_gemma2, settings=_gemma_settings, names=GEMMA_NAMES, prefix="model.", heads=OTHER_HEADS)
GEMMA3 = Family(config=_gemma3, settings=_gemma3_settings, names=GEMMA_NAMES, prefix="model.", heads=OTHER_HEADS)
