"""GPT-2: a decoder with learned positions and norms before each part; its matrices are stored transposed."""

from typing import Any

from regard.checkpoints.families.config_keys import ACTIVATIONS, OTHER_HEADS, ConfigKeys, their_activation
from regard.checkpoints.families.family import Family, to
from regard.config import AttentionStyle, Learned, Norm, TransformerConfig


def _config(keys: ConfigKeys) -> TransformerConfig:
    keys.only("scale_attn_by_inverse_layer_idx", False)
    keys.only("reorder_and_upcast_attn", False, True)  # softmax in float32: as ours always is
    for name in ("summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type"):
        keys.take(name, None)  # of heads for other tasks
    keys.take("summary_use_proj", None)
    keys.take("n_ctx", None)  # a copy of n_positions in old files
    d_model = keys.count("n_embd", 768, "hidden_size")
    return TransformerConfig(
        vocab_size=keys.count("vocab_size", 50_257),
        d_model=d_model,
        n_heads=keys.count("n_head", 12, "num_attention_heads"),
        d_ff=keys.count("n_inner", 4 * d_model),
        n_decoder_layers=keys.count("n_layer", 12, "num_hidden_layers"),
        max_len=keys.count("n_positions", 1024, "max_position_embeddings"),
        activation=keys.choice("activation_function", ACTIVATIONS, "gelu_new"),
        positions=Learned(),
        norm=Norm(place="pre", final=True, eps=keys.number("layer_norm_epsilon", 1e-5)),
        attention=AttentionStyle(scale=None if keys.flag("scale_attn_weights", True) else 1.0),
        output=keys.output(keys.flag("tie_word_embeddings", True)),
    )


def _settings(config: TransformerConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab_size,
        "n_embd": config.d_model,
        "n_head": config.n_heads,
        "n_inner": config.d_ff,
        "n_layer": config.n_decoder_layers,
        "n_positions": config.max_len,
        "activation_function": their_activation(config),
        "layer_norm_epsilon": config.norm.eps,
        "scale_attn_weights": config.attention.scale is None,
        "tie_word_embeddings": config.output is not None and config.output.tied,
    }


FAMILY = Family(
    config=_config,
    settings=_settings,
    prefix="transformer.",
    heads=OTHER_HEADS,
    names={
        "transformer.wte": "embedding",
        "transformer.wpe": "decoder.positions.table",
        "transformer.h.#.ln_1": "decoder.layers.#.self_attention_norm",
        "transformer.h.#.attn.c_attn": to(
            *(f"decoder.layers.#.self_attention.{part}_proj" for part in "qkv"), transposed=True
        ),
        "transformer.h.#.attn.c_proj": to("decoder.layers.#.self_attention.o_proj", transposed=True),
        "transformer.h.#.attn.bias": None,  # the causal mask, in old files
        "transformer.h.#.attn.masked_bias": None,
        "transformer.h.#.ln_2": "decoder.layers.#.feed_forward_norm",
        "transformer.h.#.mlp.c_fc": to("decoder.layers.#.feed_forward.up", transposed=True),
        "transformer.h.#.mlp.c_proj": to("decoder.layers.#.feed_forward.down", transposed=True),
        "transformer.ln_f": "decoder.norm",
        "lm_head": "output",
    },
)
