"""DistilBERT: BERT without segments, with its own names."""

from typing import Any

from regard.checkpoints.families.config_keys import ACTIVATIONS, ConfigKeys, their_activation
from regard.checkpoints.families.family import Family
from regard.config import Biases, Embeddings, Learned, Norm, Output, TransformerConfig


def _config(keys: ConfigKeys) -> TransformerConfig:
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


def _settings(config: TransformerConfig) -> dict[str, Any]:
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


_LAYER = "distilbert.transformer.layer.#"
FAMILY = Family(
    config=_config,
    settings=_settings,
    prefix="distilbert.",
    heads=("pre_classifier", "classifier", "qa_outputs"),
    names={
        "distilbert.embeddings.word_embeddings": "embedding",
        "distilbert.embeddings.position_embeddings": "encoder.positions.table",
        "distilbert.embeddings.LayerNorm": "encoder.input_norm",
        "distilbert.embeddings.position_ids": None,
        **{f"{_LAYER}.attention.{part}_lin": f"encoder.layers.#.self_attention.{part}_proj" for part in "qkv"},
        f"{_LAYER}.attention.out_lin": "encoder.layers.#.self_attention.o_proj",
        f"{_LAYER}.sa_layer_norm": "encoder.layers.#.self_attention_norm",
        f"{_LAYER}.ffn.lin1": "encoder.layers.#.feed_forward.up",
        f"{_LAYER}.ffn.lin2": "encoder.layers.#.feed_forward.down",
        f"{_LAYER}.output_layer_norm": "encoder.layers.#.feed_forward_norm",
        "vocab_transform": "output.transform",
        "vocab_layer_norm": "output.transform_norm",
        "vocab_projector": "output",
    },
)
