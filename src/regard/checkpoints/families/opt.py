"""OPT: a decoder as GPT-2's, with ReLU and positions that count from 2."""

from typing import Any

from regard.checkpoints.families.config_keys import ACTIVATIONS, OTHER_HEADS, ConfigKeys, their_activation
from regard.checkpoints.families.family import Family, to
from regard.config import Biases, Learned, Norm, TransformerConfig

UNUSED_POSITIONS = 2


def _config(keys: ConfigKeys) -> TransformerConfig:
    width = keys.same("word_embed_proj_dim", "hidden_size", 768)
    keys.only("_remove_final_layer_norm", False)
    keys.only("layer_norm_elementwise_affine", True)
    is_pre_norm, bias = keys.flag("do_layer_norm_before", True), keys.flag("enable_bias", True)
    return TransformerConfig(
        vocab_size=keys.count("vocab_size", 50_272),
        d_model=width,
        n_heads=keys.count("num_attention_heads", 12),
        d_ff=keys.count("ffn_dim", 3072),
        n_decoder_layers=keys.count("num_hidden_layers", 12),
        max_len=keys.count("max_position_embeddings", 2048),
        activation=keys.choice("activation_function", ACTIVATIONS, "relu"),
        positions=Learned(),
        norm=Norm(place="pre" if is_pre_norm else "post", final=is_pre_norm),
        biases=Biases(attention=bias, attention_output=bias, feed_forward=bias),
        output=keys.output(keys.flag("tie_word_embeddings", True)),
    )


def _settings(config: TransformerConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "word_embed_proj_dim": config.d_model,
        "num_attention_heads": config.n_heads,
        "ffn_dim": config.d_ff,
        "num_hidden_layers": config.n_decoder_layers,
        "max_position_embeddings": config.max_len,
        "activation_function": their_activation(config),
        "do_layer_norm_before": config.norm.place == "pre",
        "enable_bias": config.biases.attention,
        "tie_word_embeddings": config.output is not None and config.output.tied,
    }


_LAYER = "model.decoder.layers.#"
FAMILY = Family(
    config=_config,
    settings=_settings,
    prefix="model.",
    heads=OTHER_HEADS,
    names={
        "model.decoder.embed_tokens": "embedding",
        "model.decoder.embed_positions": to("decoder.positions.table", skip=UNUSED_POSITIONS),
        f"{_LAYER}.self_attn_layer_norm": "decoder.layers.#.self_attention_norm",
        **{f"{_LAYER}.self_attn.{part}_proj": f"decoder.layers.#.self_attention.{part}_proj" for part in "qkv"},
        f"{_LAYER}.self_attn.out_proj": "decoder.layers.#.self_attention.o_proj",
        f"{_LAYER}.final_layer_norm": "decoder.layers.#.feed_forward_norm",
        f"{_LAYER}.fc1": "decoder.layers.#.feed_forward.up",
        f"{_LAYER}.fc2": "decoder.layers.#.feed_forward.down",
        "model.decoder.final_layer_norm": "decoder.norm",
        "lm_head": "output",
    },
)
