"""Small Transformer configs for tests: every family and edge cases, by name.

`CONFIGS[name]` with `random_weights(CONFIGS[name])` is a complete model, for NumPy and torch.
"""

from typing import Any

import numpy as np
import torch

from regard.config import (
    Alibi,
    AttentionStyle,
    Biases,
    Embeddings,
    Learned,
    LinearScaling,
    Norm,
    Output,
    Relative,
    Rotary,
    Sinusoidal,
    TransformerConfig,
    YarnScaling,
)
from regard.config.weights import weight_shapes
from regard.models import Transformer

_PAPER = TransformerConfig.paper_2017(vocab_size=23, d_model=16, n_heads=4, d_ff=24, n_layers=2)
_BERT = TransformerConfig.bert(vocab_size=29, d_model=12, n_heads=3, d_ff=20, n_layers=2, max_len=19)
_GPT2 = TransformerConfig.gpt2(vocab_size=31, d_model=16, n_heads=2, d_ff=40, n_layers=2, max_len=29)
_SMALL_LLAMA: dict[str, Any] = {
    "vocab_size": 37,
    "d_model": 16,
    "n_heads": 4,
    "n_kv_heads": 2,
    "d_ff": 28,
    "n_layers": 2,
}
_LLAMA = TransformerConfig.llama(**_SMALL_LLAMA)


def _llama(**changes: Any) -> TransformerConfig:
    return TransformerConfig.llama(**(_SMALL_LLAMA | changes))


CONFIGS: dict[str, TransformerConfig] = {
    "paper_2017": _PAPER,
    "bert": _BERT,
    "gpt2": _GPT2,
    "llama": _LLAMA,
    # Families that the presets do not name
    "t5": TransformerConfig(
        vocab_size=33,
        d_model=16,
        n_heads=4,
        d_head=6,
        d_ff=20,
        n_encoder_layers=2,
        n_decoder_layers=2,
        activation="geglu_tanh",
        positions=Relative(n_buckets=8, max_distance=12),
        norm=Norm(kind="rms", place="pre", eps=1e-6, final=True),
        attention=AttentionStyle(scale=1.0),
        biases=Biases.none(),
        output=Output(scaled=True),
    ),
    "marian": TransformerConfig(
        vocab_size=27,
        d_model=16,
        n_heads=2,
        d_ff=32,
        n_encoder_layers=1,
        n_decoder_layers=3,
        max_len=64,
        activation="silu",
        positions=Sinusoidal(pairing="halves"),
        biases=Biases(output=True),
        embeddings=Embeddings(scaled=True),
    ),
    "bloom": TransformerConfig(
        vocab_size=26,
        d_model=18,
        n_heads=3,
        d_ff=36,
        n_decoder_layers=2,
        activation="gelu_tanh",
        positions=Alibi(),
        norm=Norm(place="pre", final=True),
        embeddings=Embeddings(norm=True),
    ),
    "gemma": _llama(
        activation="geglu_tanh",
        d_head=6,
        n_kv_heads=1,
        n_layers=3,
        attention=AttentionStyle(softcap=5.0, window=(4, None), qk_norm=True, scale=0.3),
        embeddings=Embeddings(scaled=True),
        output=Output(tied=False),
    ),
    "gemma 2": _llama(
        activation="geglu_tanh",
        d_head=6,
        n_layers=3,
        norm=Norm(kind="rms", place="both", final=True, plus_one=True),
        attention=AttentionStyle(softcap=5.0, window=(4, None), scale=0.3),
        embeddings=Embeddings(scaled=True, rounded_scale=True),
        output=Output(softcap=3.0),
    ),
    "gemma 3": _llama(
        activation="geglu_tanh",
        d_head=6,
        n_layers=3,
        positions=Rotary(base=50.0, scaling=LinearScaling(factor=2.0), local_base=7.0),
        norm=Norm(kind="rms", place="both", final=True, plus_one=True),
        attention=AttentionStyle(window=(4, 4, None), qk_norm=True, scale=0.3),
        embeddings=Embeddings(scaled=True, rounded_scale=True),
        output=Output(tied=False),
    ),
    "gpt-neox": TransformerConfig(
        vocab_size=26,
        d_model=24,
        n_heads=3,
        d_ff=36,
        n_decoder_layers=2,
        max_len=64,
        activation="gelu",
        positions=Rotary(base=30.0, fraction=0.5),
        norm=Norm(place="parallel", final=True),
        output=Output(tied=False),
    ),
    # Edge cases
    "parallel translator": TransformerConfig.paper_2017(
        vocab_size=23,
        d_model=16,
        n_heads=2,
        d_ff=24,
        n_layers=2,
        positions=Rotary(fraction=0.3, pairing="pairs"),
        norm=Norm(place="parallel", final=True),
    ),
    "translator with norms before and after": TransformerConfig.paper_2017(
        vocab_size=23, d_model=16, n_heads=2, d_ff=24, n_layers=2, norm=Norm(place="both", final=True)
    ),
    "window": _llama(attention=AttentionStyle(window=3), max_len=64),
    "window of one": _llama(attention=AttentionStyle(window=(1, 5))),
    "rotary pairs": _llama(positions=Rotary(pairing="pairs", scaling=LinearScaling(factor=2.0))),
    "yarn": _llama(positions=Rotary(scaling=YarnScaling(factor=4.0, original_len=8))),
    "relative decoder": _llama(positions=Relative(n_buckets=6, max_distance=9), n_kv_heads=4),
    "no positions": _llama(positions=None, output=Output(tied=False)),
    "qk norm with bias": TransformerConfig.gpt2(
        vocab_size=20,
        d_model=12,
        n_heads=2,
        d_head=5,
        d_ff=16,
        n_layers=1,
        max_len=40,
        attention=AttentionStyle(qk_norm=True),
    ),
    "post-norm decoder": TransformerConfig(
        vocab_size=21,
        d_model=15,
        n_heads=3,
        d_ff=17,
        n_decoder_layers=2,
        activation="geglu",
        positions=Sinusoidal(base=100.0),
        norm=Norm(place="post", final=True),
        biases=Biases(attention=False, feed_forward=True, norm=False, output=True),
    ),
    "pre-norm translator": TransformerConfig.paper_2017(
        vocab_size=23,
        d_model=16,
        n_heads=4,
        n_kv_heads=2,
        d_ff=24,
        n_encoder_layers=3,
        n_decoder_layers=1,
        max_len=32,
        positions=Learned(),
        norm=Norm(place="pre", final=True),
        embeddings=Embeddings(norm=True, source_vocab_size=41),
        output=Output(tied=False),
    ),
    "rotary translator": TransformerConfig.paper_2017(
        vocab_size=23,
        d_model=16,
        n_heads=2,
        d_ff=24,
        n_layers=2,
        positions=Rotary(),
        attention=AttentionStyle(window=4),
    ),
    "encoder with window": TransformerConfig.bert(
        vocab_size=29,
        d_model=12,
        n_heads=2,
        d_ff=20,
        n_layers=2,
        positions=Alibi(),
        attention=AttentionStyle(window=(3, None)),
        embeddings=Embeddings(),
        output=None,
    ),
    "vectors": TransformerConfig(
        vocab_size=None, d_model=12, n_heads=3, d_ff=16, n_encoder_layers=2, n_decoder_layers=2, output=None
    ),
}
"""Every family and edge case by name; d_model ≤ 32, vocabularies ≤ 50."""

DECODERS = [name for name, config in CONFIGS.items() if config.kind != "encoder" and config.output is not None]
"""Names of the models that generate: a decoder, with or without an encoder, and logits."""


def random_weights(config: TransformerConfig, seed: int = 0, dtype: str = "float32") -> dict[str, np.ndarray]:
    """Weights with activations near 1 and attention far from uniform; the same numbers in every dtype."""
    rng = np.random.default_rng(seed)
    weights = {name: _random(rng, name, shape) for name, shape in weight_shapes(config).items()}
    if config.norm.plus_one:
        weights |= {name: weight - 1 for name, weight in weights.items() if name.endswith("norm.weight")}
    return {name: weight.astype(dtype) for name, weight in weights.items()}


def torch_model(config: TransformerConfig, weights: dict[str, np.ndarray]) -> Transformer:
    """The torch model with these weights, in their dtype, in evaluation mode."""
    with torch.device("meta"):
        model = Transformer(config)
    model.load_state_dict({name: torch.from_numpy(weight) for name, weight in weights.items()}, assign=True)
    return model.eval()


def random_ids(config: TransformerConfig, shape: tuple[int, int], seed: int = 0, source: bool = False) -> np.ndarray:
    """Random ids; vectors in float64 if the model has no vocabulary."""
    rng = np.random.default_rng(seed)
    if config.vocab_size is None:
        return rng.standard_normal((*shape, config.d_model))
    own = config.embeddings.source_vocab_size if source else None
    return rng.integers(0, own or config.vocab_size, shape)


def _random(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    numbers = rng.standard_normal(shape)
    if name.endswith("norm.weight"):
        return 1 + 0.2 * numbers
    if len(shape) == 1:
        return 0.2 * numbers
    if "embedding" in name or "table" in name:
        return 0.5 * numbers
    return numbers * (1.5 if "_proj" in name else 1.0) / np.sqrt(shape[1])
