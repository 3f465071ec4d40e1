"""The PyTorch classes of the documents. Every attention `forward` returns `(out, weights)`, weights per head.

    notes      000, 001: scaled dot-product and multi-head attention, positions, feed-forward; mask 1 = masked
    lesson     002: SelfAttention; mask 0 = masked
    chapter    004: one head in three ways, and many heads; mask 0 = masked

Without torch, the import raises MissingPackageError with the package to install.
"""

from regard.errors import MissingPackageError

try:
    from deep_learning.nn.chapter import (
        MultiHeadSelfAttention,
        SingleHeadSelfAttention,
        SingleHeadSelfAttention_Manual,
        SingleHeadSelfAttentionWithMask,
    )
    from deep_learning.nn.lesson import SelfAttention
    from deep_learning.nn.notes import (
        FeedForward,
        MultiHeadAttention,
        PositionalEncoding,
        ScaledDotProductAttention,
    )
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise MissingPackageError("missing-package", what="deep_learning.nn", package="torch", extra="torch") from error

__all__ = [
    "FeedForward",
    "MultiHeadAttention",
    "MultiHeadSelfAttention",
    "PositionalEncoding",
    "ScaledDotProductAttention",
    "SelfAttention",
    "SingleHeadSelfAttention",
    "SingleHeadSelfAttentionWithMask",
    "SingleHeadSelfAttention_Manual",
]
