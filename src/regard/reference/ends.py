"""Both ends of a Transformer: from ids to vectors, and from vectors to one score per token of the vocabulary."""

import math

import numpy as np

from regard.reference.blocks import Run


def embed(run: Run, ids: np.ndarray, segments: np.ndarray | None = None, source: bool = False) -> np.ndarray:
    """A row of the vocabulary's table for each id, (B, T, D); vectors stay what they are."""
    config, weights = run.config, run.weights
    own = source and config.embeddings.source_vocab_size is not None
    if config.vocab_size is None:
        x = ids.astype(next(iter(weights.values())).dtype)
    else:
        x = weights["source_embedding.weight" if own else "embedding.weight"][ids]
    if config.embeddings.scaled:
        x = x * math.sqrt(config.d_model)  # Python's float: NumPy's own would turn float32 into float64
    if config.embeddings.n_segments is not None:
        x = x + weights["segment_embedding.weight"][0 if segments is None else segments]
    return run.told("source_embedding" if source else "embedding", x)


def logits_of(run: Run, x: np.ndarray) -> np.ndarray:
    """x (B, T, D) compared with each token's vector, (B, T, W); x itself where the config has no output."""
    output, weights = run.config.output, run.weights
    if output is None:
        return x
    if output.transform:
        x = run.norm("output.transform_norm", run.bend(run.linear("output.transform", x)))
    if output.scaled:
        x = x / math.sqrt(run.config.d_model)
    rows = x.reshape(-1, x.shape[-1]) @ weights["embedding.weight" if output.tied else "output.weight"].T
    if run.config.biases.output:
        rows = rows + weights["output.bias"]
    return run.told("logits", rows.reshape(*x.shape[:-1], rows.shape[-1]))
