"""RoBERTa: BERT whose positions count from 2, with other names for its word predictions."""

from dataclasses import replace
from typing import Any

from regard.checkpoints.families import bert
from regard.checkpoints.families.config_keys import ConfigKeys
from regard.checkpoints.families.family import Family, to
from regard.config import Biases, Output, TransformerConfig

UNUSED_POSITIONS = 2
"""The rows of its table before that of the first token: position = padding id + 1 + place, and the padding id is 1."""


def _config(keys: ConfigKeys) -> TransformerConfig:
    keys.only("pad_token_id", 1)
    rows = keys.count("max_position_embeddings", 512, least=UNUSED_POSITIONS + 1)
    predicts = any(name.startswith("lm_head.") for name in keys.tensors)
    if predicts:
        keys.only("hidden_act", "gelu")  # its word predictions use GELU whatever the layers use
    encoder = bert.encoder(keys, vocab_size=50_265, n_segments=2, max_len=rows - UNUSED_POSITIONS)
    tied = keys.flag("tie_word_embeddings", True)
    output = Output(tied=tied, transform=True) if predicts else None
    return replace(encoder, biases=Biases(output=predicts), output=output)


def _settings(config: TransformerConfig) -> dict[str, Any]:
    rows = None if config.max_len is None else config.max_len + UNUSED_POSITIONS
    return bert.settings(config) | {"max_position_embeddings": rows, "pad_token_id": UNUSED_POSITIONS - 1}


_STACK = {name.replace("bert.", "roberta.", 1): ours for name, ours in bert.STACK.items()}

FAMILY = Family(
    config=_config,
    settings=_settings,
    prefix="roberta.",
    heads=("classifier", "qa_outputs"),
    renamed=bert.OLD_NAMES,
    names={
        **_STACK,
        "roberta.embeddings.position_embeddings": to("encoder.positions.table", skip=UNUSED_POSITIONS),
        "lm_head.dense": "output.transform",
        "lm_head.layer_norm": "output.transform_norm",
        "lm_head.decoder": "output",
        "lm_head.bias": to("output.bias", is_copy=True),
    },
)
