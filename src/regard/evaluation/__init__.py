"""Evaluation of trained models with standard metrics.

Translations are scored with BLEU and chrF, language models by their loss on unseen text. Independent of recipes and
commands.
"""

from importlib.util import find_spec

from regard.errors import MissingPackageError

if find_spec("torch") is None:
    raise MissingPackageError("missing-package", what="regard.evaluation", package="torch", extra="train")

from regard.evaluation.scores import (
    Score,
    TextLoss,
    chrf,
    paper_bleu,
    sacre_bleu,
    text_loss,
    tokenizer_for,
    with_source_mask,
)
from regard.evaluation.translation import (
    Languages,
    PairSet,
    encode_sources,
    language_of,
    pair_set,
    split_set,
    translate,
    translate_lines,
)

__all__ = [
    "Languages",
    "PairSet",
    "Score",
    "TextLoss",
    "chrf",
    "encode_sources",
    "language_of",
    "pair_set",
    "paper_bleu",
    "sacre_bleu",
    "split_set",
    "text_loss",
    "tokenizer_for",
    "translate",
    "translate_lines",
    "with_source_mask",
]
