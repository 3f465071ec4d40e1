"""BART and Marian: an encoder and a decoder with norms after each part, as in the 2017 paper."""

from typing import Any

from regard.checkpoints.families.config_keys import ACTIVATIONS, ConfigKeys, their_activation
from regard.checkpoints.families.family import Family, Names, Target, to
from regard.config import Biases, Embeddings, Learned, Output, Positions, Sinusoidal, TransformerConfig

UNUSED_POSITIONS = 2


def _config(keys: ConfigKeys, positions: Positions, vocab_size: int, *, norm: bool, shared: bool) -> TransformerConfig:
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
    return _config(keys, Learned(), 50_265, norm=True, shared=True)


def _marian(keys: ConfigKeys) -> TransformerConfig:
    for name in ("normalize_before", "add_final_layer_norm", "normalize_embedding"):
        keys.only(name, False)
    keys.only("static_position_embeddings", True)
    for name in ("add_bias_logits", "classif_dropout"):
        keys.take(name, None)
    shared = keys.flag("share_encoder_decoder_embeddings", True)
    if shared:
        keys.take("decoder_vocab_size", None)
    return _config(keys, Sinusoidal(pairing="halves"), 58_101, norm=False, shared=shared)


def _settings(config: TransformerConfig) -> dict[str, Any]:
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
        return _settings(config) | {"share_encoder_decoder_embeddings": True}
    words = {"vocab_size": own, "decoder_vocab_size": config.vocab_size}
    return _settings(config) | words | {"share_encoder_decoder_embeddings": False}


def _stack(side: str, positions: Target | None) -> Names:
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


_OUTPUT: Names = {
    "model.shared": to("embedding", written_if=lambda config: config.embeddings.source_vocab_size is None),
    "lm_head": "output",
    "final_logits_bias": to("output.bias", first_row=True),
}

BART = Family(
    config=_bart,
    settings=_settings,
    prefix="model.",
    heads=("classification_head", "qa_outputs"),
    names=_stack("encoder", to("encoder.positions.table", skip=UNUSED_POSITIONS))
    | _stack("decoder", to("decoder.positions.table", skip=UNUSED_POSITIONS))
    | _OUTPUT,
)
MARIAN = Family(
    config=_marian,
    settings=_marian_settings,
    prefix="model.",
    names=_stack("encoder", None) | _stack("decoder", None) | _OUTPUT,
)
