"""Phi-3: Llama with one matrix for q, k and v, and one for the gate and what it multiplies."""

from typing import Any

from regard.checkpoints.families import llama
from regard.checkpoints.families.config_keys import ConfigKeys
from regard.checkpoints.families.family import Family, to
from regard.checkpoints.families.shared_settings import rotary
from regard.config import AttentionStyle, TransformerConfig


def _config(keys: ConfigKeys) -> TransformerConfig:
    keys.only("attention_bias", False)
    # Its other kinds of scaling depend on the length of the text; here "yarn" is another name of one of them.
    positions = rotary(keys, fraction=("partial_rotary_factor", 1.0), kinds=("default",))
    window = keys.count("sliding_window", 1) if keys.has("sliding_window") else None
    keys.take("sliding_window", None)
    defaults = {"vocab": 32_064, "width": 3072, "d_ff": 8192, "max_len": 4096, "eps": 1e-5}
    return llama.decoder(keys, attention=AttentionStyle(window=window), positions=positions, defaults=defaults)


def _settings(config: TransformerConfig) -> dict[str, Any]:
    return llama.settings(config) | {"sliding_window": config.attention.window_of(0)}


_ATTENTION, _FEED_FORWARD = "decoder.layers.#.self_attention", "decoder.layers.#.feed_forward"
FAMILY = Family(
    config=_config,
    settings=_settings,
    prefix="model.",
    names={
        **llama.NAMES,
        "model.layers.#.self_attn.qkv_proj": to(*(f"{_ATTENTION}.{part}_proj" for part in "qkv")),
        "model.layers.#.mlp.gate_up_proj": to(f"{_FEED_FORWARD}.gate", f"{_FEED_FORWARD}.up"),
    },
)
