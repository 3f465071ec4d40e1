"""The models that are compared: each RNN as wide as it must be to have the parameters of its Transformer."""

from dataclasses import replace
from math import prod
from typing import Any

from regard.config import RecurrentConfig, TransformerConfig
from regard.config.recurrent import Cell, RecurrentAttention
from regard.config.weights import ModelConfig, weight_shapes
from regard.recipes.recipe import Recipe, config_of

WIDEST = 4096
FORGET_BIAS = 1.0
"""Of every LSTM that is trained, as is usual (Jozefowicz et al. 2015)."""
CLOSE = 0.05
"""The largest difference in parameters, relative to the Transformer's."""


def n_parameters(config: ModelConfig) -> int:
    """The number of weights of a model.

    >>> n_parameters(RecurrentConfig(cell="elman", vocab_size=3, d_model=2, d_state=2))
    29
    """
    return sum(map(prod, weight_shapes(config).values()))


def recurrent_like(
    transformer: TransformerConfig, cell: Cell, attention: RecurrentAttention | None = None, n_layers: int = 1
) -> RecurrentConfig:
    """The recurrent model nearest in parameters: same vocabulary, width of embeddings and kind; d_state is searched."""
    assert transformer.vocab_size is not None
    fixed: dict[str, Any] = {
        "cell": cell,
        "vocab_size": transformer.vocab_size,
        "d_model": transformer.d_model,
        "n_decoder_layers": n_layers,
        "n_encoder_layers": None if transformer.n_encoder_layers is None else n_layers,
        "attention": attention,
        "max_len": transformer.max_len,
        "dropout": transformer.dropout,
        "forget_bias": FORGET_BIAS if cell == "lstm" else None,
    }
    wanted = n_parameters(transformer)
    low, high = 1, WIDEST // 2
    while low < high:  # the first even width with at least as many parameters
        middle = (low + high) // 2
        enough = n_parameters(RecurrentConfig(d_state=2 * middle, **fixed)) >= wanted
        low, high = (low, middle) if enough else (middle + 1, high)
    both = [RecurrentConfig(d_state=2 * max(1, half), **fixed) for half in (low - 1, low)]
    return min(both, key=lambda config: abs(n_parameters(config) - wanted))


def translators(transformer: TransformerConfig) -> dict[str, ModelConfig]:
    """An encoder-decoder Transformer, and the recurrent models with its parameters."""
    return {
        "Transformer": transformer,
        "LSTM + Bahdanau": recurrent_like(transformer, "lstm", "bahdanau"),
        "LSTM + Luong": recurrent_like(transformer, "lstm", "luong"),
        "LSTM": recurrent_like(transformer, "lstm"),
        "Elman": recurrent_like(transformer, "elman"),
    }


def recipes_like(base: Recipe, vocab_size: int) -> dict[str, Recipe]:
    """A recipe of a Transformer that translates, and the same recipe for each recurrent model with its parameters."""
    transformer = config_of(base, vocab_size)
    assert isinstance(transformer, TransformerConfig)
    return {
        name: replace(base, model=model_table(config)) if isinstance(config, RecurrentConfig) else base
        for name, config in translators(transformer).items()
    }


def language_models(d_model: int = 128, n_layers: int = 2, vocab_size: int = 64) -> dict[str, ModelConfig]:
    """A decoder-only Transformer, and the recurrent language models with its parameters."""
    transformer = TransformerConfig.gpt2(
        vocab_size=vocab_size,
        d_model=d_model,
        n_heads=d_model // 32,
        d_ff=4 * d_model,
        n_layers=n_layers,
        max_len=1 << 17,
        positions=None,
        dropout=0.0,
    )
    cells: tuple[Cell, ...] = ("lstm", "elman")
    found: dict[str, ModelConfig] = {"Transformer": transformer}
    return found | {
        "LSTM" if cell == "lstm" else "Elman": recurrent_like(transformer, cell, n_layers=n_layers) for cell in cells
    }


def model_table(config: ModelConfig) -> dict[str, Any]:
    """The [model] of a recipe for a recurrent config."""
    assert isinstance(config, RecurrentConfig)
    table = {name: getattr(config, name) for name in ("d_model", "d_state", "n_decoder_layers", "dropout")}
    optional = {name: getattr(config, name) for name in ("n_encoder_layers", "attention", "forget_bias")}
    return {"kind": config.cell} | table | {name: value for name, value in optional.items() if value is not None}
