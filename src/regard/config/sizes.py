"""The sizes that people know by name, one row each. What the rows of a family share stands in its preset."""

from typing import Any

from regard.config.positions import Llama3Scaling, Rotary
from regard.config.styles import Output

Size = dict[str, Any]


def _paper(d_model: int, n_heads: int, d_ff: int, dropout: float) -> Size:
    """Vaswani et al. 2017, table 3; one vocabulary of word pieces for English and German."""
    return {
        "vocab_size": 37_000,
        "d_model": d_model,
        "n_heads": n_heads,
        "d_ff": d_ff,
        "n_encoder_layers": 6,
        "n_decoder_layers": 6,
        "dropout": dropout,
    }


def _bert(n_layers: int, d_model: int, n_heads: int) -> Size:
    return {
        "vocab_size": 30_522,
        "d_model": d_model,
        "n_heads": n_heads,
        "d_ff": 4 * d_model,
        "n_encoder_layers": n_layers,
        "max_len": 512,
        "dropout": 0.1,
    }


def _gpt2(n_layers: int, d_model: int, n_heads: int) -> Size:
    return {
        "vocab_size": 50_257,
        "d_model": d_model,
        "n_heads": n_heads,
        "d_ff": 4 * d_model,
        "n_decoder_layers": n_layers,
        "max_len": 1024,
        "dropout": 0.1,
    }


def _llama(
    vocab_size: int,
    n_layers: int,
    d_model: int,
    n_heads: int,
    n_kv_heads: int,
    d_ff: int,
    max_len: int,
    positions: Rotary,
    tied: bool = True,
) -> Size:
    return {
        "vocab_size": vocab_size,
        "d_model": d_model,
        "n_heads": n_heads,
        "n_kv_heads": n_kv_heads,
        "d_ff": d_ff,
        "n_decoder_layers": n_layers,
        "max_len": max_len,
        "positions": positions,
        "output": Output(tied=tied),
    }


_LLAMA_3_2 = Rotary(base=500_000.0, scaling=Llama3Scaling(factor=32.0, original_len=8192))
_LLAMA_3_1 = Rotary(base=500_000.0, scaling=Llama3Scaling(factor=8.0, original_len=8192))

SIZES: dict[str, dict[str, Size]] = {
    "paper_2017": {"base": _paper(512, 8, 2048, 0.1), "big": _paper(1024, 16, 4096, 0.3)},
    "bert": {"base": _bert(12, 768, 12), "large": _bert(24, 1024, 16)},
    "gpt2": {
        "124M": _gpt2(12, 768, 12),
        "355M": _gpt2(24, 1024, 16),
        "774M": _gpt2(36, 1280, 20),
        "1558M": _gpt2(48, 1600, 25),
    },
    "llama": {
        "135M": _llama(49_152, 30, 576, 9, 3, 1536, 8192, Rotary(base=100_000.0)),  # SmolLM2
        "1B": _llama(128_256, 16, 2048, 32, 8, 8192, 131_072, _LLAMA_3_2),  # Llama 3.2
        "7B": _llama(32_000, 32, 4096, 32, 32, 11_008, 4096, Rotary(), tied=False),  # Llama 2
        "8B": _llama(128_256, 32, 4096, 32, 8, 14_336, 131_072, _LLAMA_3_1, tied=False),  # Llama 3.1
    },
}
