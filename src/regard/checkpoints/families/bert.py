"""BERT, and the encoders that differ little from it: DistilBERT, without segments, and RoBERTa.

RoBERTa counts positions from 2, and has other names for its word predictions. All have learned positions, and norms
after each part; with or without word predictions.
"""

from dataclasses import replace
from typing import Any

from regard.checkpoints.families.config_keys import ACTIVATIONS, ConfigKeys, their_activation
from regard.checkpoints.families.family import Family, Names, to
from regard.config import Biases, Embeddings, Learned, Norm, Output, TransformerConfig


def bert_encoder(keys: ConfigKeys, *, vocab_size: int, n_segments: int, max_len: int) -> TransformerConfig:
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


def _bert_config(keys: ConfigKeys) -> TransformerConfig:
    predicts = any(name.startswith("cls.predictions.") for name in keys.tensors)
    tied = keys.flag("tie_word_embeddings", True)
    max_len = keys.count("max_position_embeddings", 512)
    found = bert_encoder(keys, vocab_size=30_522, n_segments=2, max_len=max_len)
    output = Output(tied=tied, transform=True) if predicts else None
    return replace(found, biases=Biases(output=predicts), output=output)


def bert_settings(config: TransformerConfig) -> dict[str, Any]:
    """The inverse of `bert_encoder`."""
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


BERT_NAMES: Names = {
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

BERT = Family(
    config=_bert_config,
    settings=bert_settings,
    prefix="bert.",
    heads=("classifier", "qa_outputs"),
    renamed=OLD_NAMES,
    names={
        **BERT_NAMES,
        "cls.seq_relationship": None,
        "cls.predictions.transform.dense": "output.transform",
        "cls.predictions.transform.LayerNorm": "output.transform_norm",
        "cls.predictions.decoder": "output",
        "cls.predictions.bias": to("output.bias", is_copy=True),
    },
)


def _distilbert_config(keys: ConfigKeys) -> TransformerConfig:
    for name in ("sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout"):
        keys.take(name, None)  # the table of positions is stored in either case
    tied = keys.flag("tie_word_embeddings", True)
    predicts = any(name.startswith("vocab_") for name in keys.tensors)
    return TransformerConfig(
        vocab_size=keys.count("vocab_size", 30_522),
        d_model=keys.count("dim", 768, "hidden_size"),
        n_heads=keys.count("n_heads", 12, "num_attention_heads"),
        d_ff=keys.count("hidden_dim", 3072),
        n_encoder_layers=keys.count("n_layers", 6, "num_hidden_layers"),
        max_len=keys.count("max_position_embeddings", 512),
        activation=keys.choice("activation", ACTIVATIONS, "gelu"),
        positions=Learned(),
        norm=Norm(eps=1e-12),
        biases=Biases(output=predicts),
        embeddings=Embeddings(norm=True),
        output=Output(tied=tied, transform=True) if predicts else None,
    )


def _distilbert_settings(config: TransformerConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab_size,
        "dim": config.d_model,
        "n_heads": config.n_heads,
        "hidden_dim": config.d_ff,
        "n_layers": config.n_encoder_layers,
        "max_position_embeddings": config.max_len,
        "activation": their_activation(config),
        "tie_word_embeddings": config.output is None or config.output.tied,
    }


_DISTILBERT_LAYER = "distilbert.transformer.layer.#"
DISTILBERT = Family(
    config=_distilbert_config,
    settings=_distilbert_settings,
    prefix="distilbert.",
    heads=("pre_classifier", "classifier", "qa_outputs"),
    names={
        "distilbert.embeddings.word_embeddings": "embedding",
        "distilbert.embeddings.position_embeddings": "encoder.positions.table",
        "distilbert.embeddings.LayerNorm": "encoder.input_norm",
        "distilbert.embeddings.position_ids": None,
        **{
            f"{_DISTILBERT_LAYER}.attention.{part}_lin": f"encoder.layers.#.self_attention.{part}_proj"
            for part in "qkv"
        },
        f"{_DISTILBERT_LAYER}.attention.out_lin": "encoder.layers.#.self_attention.o_proj",
        f"{_DISTILBERT_LAYER}.sa_layer_norm": "encoder.layers.#.self_attention_norm",
        f"{_DISTILBERT_LAYER}.ffn.lin1": "encoder.layers.#.feed_forward.up",
        f"{_DISTILBERT_LAYER}.ffn.lin2": "encoder.layers.#.feed_forward.down",
        f"{_DISTILBERT_LAYER}.output_layer_norm": "encoder.layers.#.feed_forward_norm",
        "vocab_transform": "output.transform",
        "vocab_layer_norm": "output.transform_norm",
        "vocab_projector": "output",
    },
)


UNUSED_POSITIONS = 2
"""The rows of its table before that of the first token: position = padding id + 1 + place, and the padding id is 1."""


def _roberta_config(keys: ConfigKeys) -> TransformerConfig:
    keys.only("pad_token_id", 1)
    rows = keys.count("max_position_embeddings", 512, least=UNUSED_POSITIONS + 1)
    predicts = any(name.startswith("lm_head.") for name in keys.tensors)
    if predicts:
        keys.only("hidden_act", "gelu")  # its word predictions use GELU whatever the layers use
    encoder = bert_encoder(keys, vocab_size=50_265, n_segments=2, max_len=rows - UNUSED_POSITIONS)
    tied = keys.flag("tie_word_embeddings", True)
    output = Output(tied=tied, transform=True) if predicts else None
    return replace(encoder, biases=Biases(output=predicts), output=output)


def _roberta_settings(config: TransformerConfig) -> dict[str, Any]:
    rows = None if config.max_len is None else config.max_len + UNUSED_POSITIONS
    return bert_settings(config) | {"max_position_embeddings": rows, "pad_token_id": UNUSED_POSITIONS - 1}


_ROBERTA_NAMES = {name.replace("bert.", "roberta.", 1): ours for name, ours in BERT_NAMES.items()}

ROBERTA = Family(
    config=_roberta_config,
    settings=_roberta_settings,
    prefix="roberta.",
    heads=("classifier", "qa_outputs"),
    renamed=OLD_NAMES,
    names={
        **_ROBERTA_NAMES,
        "roberta.embeddings.position_embeddings": to("encoder.positions.table", skip=UNUSED_POSITIONS),
        "lm_head.dense": "output.transform",
        "lm_head.layer_norm": "output.transform_norm",
        "lm_head.decoder": "output",
        "lm_head.bias": to("output.bias", is_copy=True),
    },
)
