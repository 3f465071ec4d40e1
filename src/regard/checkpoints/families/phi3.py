"""Phi-3: Llama with one matrix for q, k and v, and one for the gate and what it multiplies.

With LongRoPE it is computed up to the length of its first training, 4096 tokens.
"""

from dataclasses import replace
from typing import Any

from regard.checkpoints.families import llama
from regard.checkpoints.families.config_keys import OTHER_HEADS, ConfigKeys, rotary
from regard.checkpoints.families.family import Family, to
from regard.config import AttentionStyle, FactorScaling, Rotary, TransformerConfig


def _config(keys: ConfigKeys) -> TransformerConfig:
    keys.only("attention_bias", False)
    positions = rotary(keys, fraction=("partial_rotary_factor", 1.0), kinds=("default", "longrope", "su", "yarn"))
    window = keys.count("sliding_window", 1) if keys.has("sliding_window") else None
    keys.take("sliding_window", None)
    defaults = {"vocab": 32_064, "width": 3072, "d_ff": 8192, "max_len": 4096, "eps": 1e-5}
    found = llama.decoder(keys, attention=AttentionStyle(window=window), positions=positions, defaults=defaults)
    # Longer texts rotate by other factors from their first token on; the cache of a shorter one would not fit.
    is_scaled = isinstance(positions.scaling, FactorScaling)
    return replace(found, max_len=int(keys.numbers["original_max_position_embeddings"])) if is_scaled else found


def _settings(config: TransformerConfig) -> dict[str, Any]:
    found = llama.settings(config) | {"sliding_window": config.attention.window_of(0)}
    if isinstance(config.positions, Rotary) and isinstance(config.positions.scaling, FactorScaling):
        found["rope_parameters"]["original_max_position_embeddings"] = config.max_len
    return found


_ATTENTION, _FEED_FORWARD = "decoder.layers.#.self_attention", "decoder.layers.#.feed_forward"
FAMILY = Family(
    config=_config,
    settings=_settings,
    prefix="model.",
    heads=OTHER_HEADS,
    names={
        **llama.NAMES,
        "model.layers.#.self_attn.qkv_proj": to(*(f"{_ATTENTION}.{part}_proj" for part in "qkv")),
        "model.layers.#.mlp.gate_up_proj": to(f"{_FEED_FORWARD}.gate", f"{_FEED_FORWARD}.up"),
    },
)
