"""Decoders with LayerNorm and biases: GPT-2, OPT and GPT-NeoX.

GPT-2 has learned positions, and its matrices are stored transposed. OPT has ReLU, and positions that count from 2. In
GPT-NeoX, which Pythia uses, attention and feed-forward read the same vectors, and heads are partly rotated.
"""

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
from regard.config import AttentionStyle, Biases, Learned, Norm, Rotary, TransformerConfig


def _gpt2_config(keys: ConfigKeys) -> TransformerConfig:
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


def _gpt2_settings(config: TransformerConfig) -> dict[str, Any]:
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


GPT2 = Family(
    config=_gpt2_config,
    settings=_gpt2_settings,
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


UNUSED_POSITIONS = 2


def _opt_config(keys: ConfigKeys) -> TransformerConfig:
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


def _opt_settings(config: TransformerConfig) -> dict[str, Any]:
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


_OPT_LAYER = "model.decoder.layers.#"
OPT = Family(
    config=_opt_config,
    settings=_opt_settings,
    prefix="model.",
    heads=OTHER_HEADS,
    names={
        "model.decoder.embed_tokens": "embedding",
        "model.decoder.embed_positions": to("decoder.positions.table", skip=UNUSED_POSITIONS),
        f"{_OPT_LAYER}.self_attn_layer_norm": "decoder.layers.#.self_attention_norm",
        **{f"{_OPT_LAYER}.self_attn.{part}_proj": f"decoder.layers.#.self_attention.{part}_proj" for part in "qkv"},
        f"{_OPT_LAYER}.self_attn.out_proj": "decoder.layers.#.self_attention.o_proj",
        f"{_OPT_LAYER}.final_layer_norm": "decoder.layers.#.feed_forward_norm",
        f"{_OPT_LAYER}.fc1": "decoder.layers.#.feed_forward.up",
        f"{_OPT_LAYER}.fc2": "decoder.layers.#.feed_forward.down",
        "model.decoder.final_layer_norm": "decoder.norm",
        "lm_head": "output",
    },
)


def _gpt_neox_config(keys: ConfigKeys) -> TransformerConfig:
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


def _gpt_neox_settings(config: TransformerConfig) -> dict[str, Any]:
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


_GPT_NEOX_LAYER = "gpt_neox.layers.#"
GPT_NEOX = Family(
    config=_gpt_neox_config,
    settings=_gpt_neox_settings,
    prefix="gpt_neox.",
    heads=OTHER_HEADS,
    names={
        "gpt_neox.embed_in": "embedding",
        f"{_GPT_NEOX_LAYER}.input_layernorm": "decoder.layers.#.self_attention_norm",
        f"{_GPT_NEOX_LAYER}.attention.query_key_value": to(
            *(f"decoder.layers.#.self_attention.{part}_proj" for part in "qkv"), per_head=True
        ),
        f"{_GPT_NEOX_LAYER}.attention.dense": "decoder.layers.#.self_attention.o_proj",
        f"{_GPT_NEOX_LAYER}.attention.bias": None,  # the causal mask, in old files
        f"{_GPT_NEOX_LAYER}.attention.masked_bias": None,
        f"{_GPT_NEOX_LAYER}.attention.rotary_emb.inv_freq": None,
        f"{_GPT_NEOX_LAYER}.post_attention_layernorm": "decoder.layers.#.feed_forward_norm",
        f"{_GPT_NEOX_LAYER}.mlp.dense_h_to_4h": "decoder.layers.#.feed_forward.up",
        f"{_GPT_NEOX_LAYER}.mlp.dense_4h_to_h": "decoder.layers.#.feed_forward.down",
        "gpt_neox.final_layer_norm": "decoder.norm",
        "embed_out": "output",
        "lm_head": "output",
    },
)
