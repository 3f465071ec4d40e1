"""BERT: an encoder with learned positions, segments and norms after each part; with or without its word predictions."""

from dataclasses import replace
from typing import Any

from regard.checkpoints.families.config_keys import ACTIVATIONS, ConfigKeys, their_activation
from regard.checkpoints.families.family import Family, Names, to
from regard.config import Biases, Embeddings, Learned, Norm, Output, TransformerConfig


def encoder(keys: ConfigKeys, *, vocab_size: int, n_segments: int, max_len: int) -> TransformerConfig:
    """The config without an output layer. The numbers are for absent keys; `max_len` counts the positions in use."""
    keys.only("position_embedding_type", "absolute")
    return TransformerConfig(
        vocab_size=keys.count("vocab_size", vocab_size),
        d_model=keys.count("hidden_size", 768),
        n_heads=keys.count("num_attention_heads", 12),
        d_ff=keys.count("intermediate_size", 3072),
        n_encoder_layers=keys.count("num_hidden_layers", 12),
        max_len=max_len,
        activation=keys.choice("hidden_act", ACTIVATIONS, "gelu"),
        positions=Learned(),
        norm=Norm(eps=keys.number("layer_norm_eps", 1e-12)),
        embeddings=Embeddings(norm=True, n_segments=keys.count("type_vocab_size", n_segments)),
        output=None,
    )


def _config(keys: ConfigKeys) -> TransformerConfig:
    predicts = any(name.startswith("cls.predictions.") for name in keys.tensors)
    tied = keys.flag("tie_word_embeddings", True)
    max_len = keys.count("max_position_embeddings", 512)
    found = encoder(keys, vocab_size=30_522, n_segments=2, max_len=max_len)
    output = Output(tied=tied, transform=True) if predicts else None
    return replace(found, biases=Biases(output=predicts), output=output)


def settings(config: TransformerConfig) -> dict[str, Any]:
    """The inverse of `encoder`."""
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.d_ff,
        "num_hidden_layers": config.n_encoder_layers,
        "max_position_embeddings": config.max_len,
        "hidden_act": their_activation(config),
        "layer_norm_eps": config.norm.eps,
        "type_vocab_size": config.embeddings.n_segments,
        "tie_word_embeddings": config.output is None or config.output.tied,
    }


STACK: Names = {
    "bert.embeddings.word_embeddings": "embedding",
    "bert.embeddings.position_embeddings": "encoder.positions.table",
    "bert.embeddings.token_type_embeddings": "segment_embedding",
    "bert.embeddings.LayerNorm": "encoder.input_norm",
    "bert.embeddings.position_ids": None,
    "bert.encoder.layer.#.attention.self.query": "encoder.layers.#.self_attention.q_proj",
    "bert.encoder.layer.#.attention.self.key": "encoder.layers.#.self_attention.k_proj",
    "bert.encoder.layer.#.attention.self.value": "encoder.layers.#.self_attention.v_proj",
    "bert.encoder.layer.#.attention.output.dense": "encoder.layers.#.self_attention.o_proj",
    "bert.encoder.layer.#.attention.output.LayerNorm": "encoder.layers.#.self_attention_norm",
    "bert.encoder.layer.#.intermediate.dense": "encoder.layers.#.feed_forward.up",
    "bert.encoder.layer.#.output.dense": "encoder.layers.#.feed_forward.down",
    "bert.encoder.layer.#.output.LayerNorm": "encoder.layers.#.feed_forward_norm",
    "bert.pooler.dense": None,  # of sentence pairs
}
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}

FAMILY = Family(
    config=_config,
    settings=settings,
    prefix="bert.",
    heads=("classifier", "qa_outputs"),
    renamed=OLD_NAMES,
    names={
        **STACK,
        "cls.seq_relationship": None,
        "cls.predictions.transform.dense": "output.transform",
        "cls.predictions.transform.LayerNorm": "output.transform_norm",
        "cls.predictions.decoder": "output",
        "cls.predictions.bias": to("output.bias", is_copy=True),
    },
)
