"""BART, Marian and T5: an encoder and a decoder, as in the 2017 paper; T5 also as an encoder alone.

BART and Marian have norms after each part. T5 has relative positions, no biases and unscaled scores; version 1.1 has
gates.
"""

from typing import Any

from regard.checkpoints.families.config_keys import ACTIVATIONS, GATED, ConfigKeys, their_activation
from regard.checkpoints.families.family import Family, Names, Target, to
from regard.config import (
    GATES,
    AttentionStyle,
    Biases,
    Embeddings,
    Learned,
    Norm,
    Output,
    Positions,
    Relative,
    Sinusoidal,
    TransformerConfig,
)

UNUSED_POSITIONS = 2


def _bart_config(
    keys: ConfigKeys, positions: Positions, vocab_size: int, *, norm: bool, shared: bool
) -> TransformerConfig:
    """`shared`: one vocabulary for both sides; else the decoder has `decoder_vocab_size`."""
    keys.only("is_encoder_decoder", True)
    keys.only("tie_word_embeddings", True)  # else encoder, decoder and output have one table each
    keys.take("num_hidden_layers", None)  # a copy of encoder_layers
    heads = keys.same("decoder_attention_heads", "encoder_attention_heads", 16)
    d_ff = keys.same("decoder_ffn_dim", "encoder_ffn_dim", 4096)
    words = keys.count("vocab_size", vocab_size)
    return TransformerConfig(
        vocab_size=words if shared else keys.count("decoder_vocab_size", words),
        d_model=keys.count("d_model", 1024, "hidden_size"),
        n_heads=keys.count("encoder_attention_heads", heads, "num_attention_heads"),
        d_ff=d_ff,
        n_encoder_layers=keys.count("encoder_layers", 12),
        n_decoder_layers=keys.count("decoder_layers", 12),
        max_len=keys.count("max_position_embeddings", 1024),
        activation=keys.choice("activation_function", ACTIVATIONS, "gelu"),
        positions=positions,
        biases=Biases(output=not keys.tensors or "final_logits_bias" in keys.tensors),
        embeddings=Embeddings(
            scaled=keys.flag("scale_embedding", False), norm=norm, source_vocab_size=None if shared else words
        ),
        output=Output(),
    )


def _bart(keys: ConfigKeys) -> TransformerConfig:
    keys.only("normalize_before", False)
    keys.only("add_final_layer_norm", False)
    keys.only("normalize_embedding", True)
    for name in ("add_bias_logits", "classif_dropout", "force_bos_token_to_be_generated", "static_position_embeddings"):
        keys.only(name, False) if name == "static_position_embeddings" else keys.take(name, None)
    return _bart_config(keys, Learned(), 50_265, norm=True, shared=True)


def _marian(keys: ConfigKeys) -> TransformerConfig:
    for name in ("normalize_before", "add_final_layer_norm", "normalize_embedding"):
        keys.only(name, False)
    keys.only("static_position_embeddings", True)
    for name in ("add_bias_logits", "classif_dropout"):
        keys.take(name, None)
    shared = keys.flag("share_encoder_decoder_embeddings", True)
    if shared:
        keys.take("decoder_vocab_size", None)
    return _bart_config(keys, Sinusoidal(pairing="halves"), 58_101, norm=False, shared=shared)


def _bart_settings(config: TransformerConfig) -> dict[str, Any]:
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("attention_heads", config.n_heads), ("ffn_dim", config.d_ff))
    }
    return sides | {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.n_encoder_layers,
        "decoder_layers": config.n_decoder_layers,
        "max_position_embeddings": config.max_len,
        "activation_function": their_activation(config),
        "scale_embedding": config.embeddings.scaled,
        "is_encoder_decoder": True,
        "tie_word_embeddings": True,
    }


def _marian_settings(config: TransformerConfig) -> dict[str, Any]:
    own = config.embeddings.source_vocab_size
    if own is None:
        return _bart_settings(config) | {"share_encoder_decoder_embeddings": True}
    words = {"vocab_size": own, "decoder_vocab_size": config.vocab_size}
    return _bart_settings(config) | words | {"share_encoder_decoder_embeddings": False}


def _bart_stack(side: str, positions: Target | None) -> Names:
    layer = f"model.{side}.layers.#"
    names: Names = {
        f"model.{side}.embed_tokens": "embedding" if side == "decoder" else "source_embedding",
        f"model.{side}.embed_positions": positions,
        f"model.{side}.layernorm_embedding": f"{side}.input_norm",
        f"{layer}.fc1": f"{side}.layers.#.feed_forward.up",
        f"{layer}.fc2": f"{side}.layers.#.feed_forward.down",
        f"{layer}.final_layer_norm": f"{side}.layers.#.feed_forward_norm",
    }
    for theirs, ours in (("self_attn", "self_attention"), ("encoder_attn", "cross_attention")):
        names[f"{layer}.{theirs}_layer_norm"] = f"{side}.layers.#.{ours}_norm"
        names[f"{layer}.{theirs}.out_proj"] = f"{side}.layers.#.{ours}.o_proj"
        for part in "qkv":
            names[f"{layer}.{theirs}.{part}_proj"] = f"{side}.layers.#.{ours}.{part}_proj"
    return names


_BART_OUTPUT: Names = {
    "model.shared": to("embedding", written_if=lambda config: config.embeddings.source_vocab_size is None),
    "lm_head": "output",
    "final_logits_bias": to("output.bias", first_row=True),
}

BART = Family(
    config=_bart,
    settings=_bart_settings,
    prefix="model.",
    heads=("classification_head", "qa_outputs"),
    names=_bart_stack("encoder", to("encoder.positions.table", skip=UNUSED_POSITIONS))
    | _bart_stack("decoder", to("decoder.positions.table", skip=UNUSED_POSITIONS))
    | _BART_OUTPUT,
)
MARIAN = Family(
    config=_marian,
    settings=_marian_settings,
    prefix="model.",
    names=_bart_stack("encoder", None) | _bart_stack("decoder", None) | _BART_OUTPUT,
)


def _t5_config(keys: ConfigKeys) -> TransformerConfig:
    has_decoder = not keys.tensors or any(name.startswith("decoder.") for name in keys.tensors)
    keys.only("is_encoder_decoder", *([True] if has_decoder else [True, False]))  # T5EncoderModel writes either
    keys.take("n_positions", None)  # the length of its training texts, no limit
    projection = keys.take("feed_forward_proj", "relu")
    gate, _, name = str(projection).rpartition("-")
    # Hugging Face's "gated-gelu" is the approximation by tanh.
    name = "gelu_new" if projection == "gated-gelu" else name
    table = GATED if gate == "gated" else ACTIVATIONS
    if gate not in ("", "gated") or name not in table:
        wanted = [*ACTIVATIONS, *(f"gated-{one}" for one in GATED)]
        raise keys.invalid("feed_forward_proj", projection, ", ".join(wanted))
    for copy, value in (("dense_act_fn", name), ("is_gated_act", gate == "gated")):
        if keys.take(copy, value) != value:
            raise keys.different({"feed_forward_proj": projection, copy: keys.take(copy, value)})
    layers = keys.count("num_layers", 6, "num_hidden_layers")
    # Version 1.1 does not scale the vectors before the output layer. It has a table of its own there, if the file does.
    scaled = keys.flag("scale_decoder_outputs", keys.flag("tie_word_embeddings", True))
    tied = scaled or (bool(keys.tensors) and "lm_head.weight" not in keys.tensors)
    decoder_layers = keys.count("num_decoder_layers", layers)
    return TransformerConfig(
        vocab_size=keys.count("vocab_size", 32_128),
        d_model=keys.count("d_model", 512, "hidden_size"),
        n_heads=keys.count("num_heads", 8, "num_attention_heads"),
        d_head=keys.count("d_kv", 64, "head_dim"),
        d_ff=keys.count("d_ff", 2048),
        n_encoder_layers=layers,
        n_decoder_layers=decoder_layers if has_decoder else None,
        activation=table[name],
        positions=Relative(
            n_buckets=keys.count("relative_attention_num_buckets", 32),
            max_distance=keys.count("relative_attention_max_distance", 128),
        ),
        norm=Norm(kind="rms", place="pre", final=True, eps=keys.number("layer_norm_epsilon", 1e-6)),
        attention=AttentionStyle(scale=1.0),
        biases=Biases.none(),
        output=Output(tied=tied, scaled=scaled) if has_decoder else None,
    )


def _t5_settings(config: TransformerConfig) -> dict[str, Any]:
    relative = config.positions if isinstance(config.positions, Relative) else Relative()
    name = their_activation(config)
    gate = "gelu" if config.activation == "geglu_tanh" else name
    return {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "num_heads": config.n_heads,
        "d_kv": config.head_width,
        "d_ff": config.d_ff,
        "num_layers": config.n_encoder_layers,
        "num_decoder_layers": config.n_decoder_layers or config.n_encoder_layers,
        "feed_forward_proj": f"gated-{gate}" if config.activation in GATED.values() else name,
        "relative_attention_num_buckets": relative.n_buckets,
        "relative_attention_max_distance": relative.max_distance,
        "layer_norm_epsilon": config.norm.eps,
        "tie_word_embeddings": config.output is None or config.output.scaled,
        "is_encoder_decoder": config.kind == "encoder-decoder",
    }


def _is_gated(config: TransformerConfig) -> bool:
    return config.activation in GATES


def _is_plain(config: TransformerConfig) -> bool:
    return not _is_gated(config)


def _t5_stack(side: str, last: int) -> Names:
    """`last` is the index of the feed-forward among the parts of a block."""
    block = f"{side}.block.#.layer"
    names: Names = {
        f"{side}.embed_tokens": "embedding" if side == "decoder" else "source_embedding",
        f"{block}.0.SelfAttention.relative_attention_bias": f"{side}.positions.table",
        f"{block}.{last}.layer_norm": f"{side}.layers.#.feed_forward_norm",
        f"{side}.final_layer_norm": f"{side}.norm",
    }
    parts = (("wi", "up", _is_plain), ("wi_0", "gate", _is_gated), ("wi_1", "up", _is_gated), ("wo", "down", None))
    for theirs, ours, written_if in parts:
        target = to(f"{side}.layers.#.feed_forward.{ours}", written_if=written_if)
        names[f"{block}.{last}.DenseReluDense.{theirs}"] = target
    attentions = (("SelfAttention", "self_attention"), ("EncDecAttention", "cross_attention"))
    for i, (theirs, ours) in enumerate(attentions[:last]):
        names[f"{block}.{i}.layer_norm"] = f"{side}.layers.#.{ours}_norm"
        for part in "qkvo":
            names[f"{block}.{i}.{theirs}.{part}"] = f"{side}.layers.#.{ours}.{part}_proj"
    return names


T5 = Family(
    config=_t5_config,
    settings=_t5_settings,
    names={**_t5_stack("encoder", 1), **_t5_stack("decoder", 2), "shared": "embedding", "lm_head": "output"},
)
