"""GPT-NeoX and Pythia: a decoder whose attention and feed-forward read the same vectors, with partly rotated heads."""

from typing import Any

from regard.checkpoints.families.config_keys import (
    ACTIVATIONS,
    OTHER_HEADS,
    ConfigKeys,
    rope_table,
    rotary,
    their_activation,
)
from regard.checkpoints.families.family import Family, to
from regard.config import Biases, Norm, Rotary, TransformerConfig


def _config(keys: ConfigKeys) -> TransformerConfig:
    parallel = keys.flag("use_parallel_residual", True)
    bias = keys.flag("attention_bias", True)
    width, heads = keys.count("hidden_size", 6144), keys.count("num_attention_heads", 64)
    keys.only("head_dim", width // heads)
    positions = rotary(keys, base=("rotary_emb_base", 10_000.0), fraction=("rotary_pct", 0.25))
    return TransformerConfig(
        vocab_size=keys.count("vocab_size", 50_432),
        d_model=width,
        n_heads=heads,
        d_ff=keys.count("intermediate_size", 24_576),
        n_decoder_layers=keys.count("num_hidden_layers", 44),
        max_len=keys.count("max_position_embeddings", 2048),
        activation=keys.choice("hidden_act", ACTIVATIONS, "gelu"),
        positions=positions,
        norm=Norm(place="parallel" if parallel else "pre", final=True, eps=keys.number("layer_norm_eps", 1e-5)),
        biases=Biases(attention=bias, attention_output=bias),
        output=keys.output(keys.flag("tie_word_embeddings", False)),
    )


def _settings(config: TransformerConfig) -> dict[str, Any]:
    table = rope_table(config.positions) if isinstance(config.positions, Rotary) else {}
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.d_ff,
        "num_hidden_layers": config.n_decoder_layers,
        "max_position_embeddings": config.max_len,
        "hidden_act": their_activation(config),
        "rope_parameters": {"partial_rotary_factor": 1.0} | table,
        "use_parallel_residual": config.norm.place == "parallel",
        "layer_norm_eps": config.norm.eps,
        "attention_bias": config.biases.attention,
        "tie_word_embeddings": config.output is not None and config.output.tied,
    }


_LAYER = "gpt_neox.layers.#"
FAMILY = Family(
    config=_config,
    settings=_settings,
    prefix="gpt_neox.",
    heads=OTHER_HEADS,
    names={
        "gpt_neox.embed_in": "embedding",
        f"{_LAYER}.input_layernorm": "decoder.layers.#.self_attention_norm",
        f"{_LAYER}.attention.query_key_value": to(
            *(f"decoder.layers.#.self_attention.{part}_proj" for part in "qkv"), per_head=True
        ),
        f"{_LAYER}.attention.dense": "decoder.layers.#.self_attention.o_proj",
        f"{_LAYER}.attention.bias": None,  # the causal mask, in old files
        f"{_LAYER}.attention.masked_bias": None,
        f"{_LAYER}.attention.rotary_emb.inv_freq": None,
        f"{_LAYER}.post_attention_layernorm": "decoder.layers.#.feed_forward_norm",
        f"{_LAYER}.mlp.dense_h_to_4h": "decoder.layers.#.feed_forward.up",
        f"{_LAYER}.mlp.dense_4h_to_h": "decoder.layers.#.feed_forward.down",
        "gpt_neox.final_layer_norm": "decoder.norm",
        "embed_out": "output",
        "lm_head": "output",
    },
)
