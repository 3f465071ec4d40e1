"""Which part a config means: from its values to the modules of `layers`."""

from functools import partial

from regard.config import Alibi, Learned, Relative, Rotary, Sinusoidal, TransformerConfig
from regard.config.transformer import bent_by
from regard.functional.activations import activation_called
from regard.layers import (
    AlibiPositions,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    MultiHeadAttention,
    NoPositions,
    OutputLayer,
    RelativePositions,
    RMSNorm,
    RotaryPositions,
    SinusoidalPositions,
)
from regard.records import Kind


def attention_of(config: TransformerConfig, name: str, kind: Kind) -> MultiHeadAttention:
    """Self- or cross-attention."""
    style = config.attention
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        n_kv_heads=config.n_kv_heads,
        d_head=config.d_head,
        bias=config.biases.attention,
        output_bias=config.biases.attention_output,
        norm=partial(norm_of, config) if style.qk_norm else None,
        scale=style.scale,
        softcap=style.softcap,
        dropout=style.dropout,
        name=name,
        kind=kind,
    )


def feed_forward_of(config: TransformerConfig) -> FeedForward:
    """Plain or gated."""
    return FeedForward(
        config.d_model,
        config.d_ff,
        activation=config.activation,
        bias=config.biases.feed_forward,
        dropout=config.dropout,
    )


def norm_of(config: TransformerConfig, width: int | None = None) -> LayerNorm | RMSNorm:
    """LayerNorm or RMSNorm, over the model's width unless told another."""
    width, eps = config.d_model if width is None else width, config.norm.eps
    return RMSNorm(width, eps) if config.norm.kind == "rms" else LayerNorm(width, eps, config.biases.norm)


def positions_of(config: TransformerConfig, *, bidirectional: bool) -> NoPositions:
    """For an encoder, which looks both ways, or a decoder."""
    match config.positions:
        case Sinusoidal(base=base, pairing=pairing):
            return SinusoidalPositions(config.d_model, base, pairing)
        case Learned():
            assert config.max_len is not None  # the config sees to it
            return LearnedPositions(config.max_len, config.d_model)
        case Rotary(base=base, pairing=pairing, scaling=scaling):
            return RotaryPositions(config.head_width, base, pairing, scaling)
        case Alibi():
            return AlibiPositions(config.n_heads)
        case Relative(n_buckets=n_buckets, max_distance=max_distance):
            return RelativePositions(config.n_heads, n_buckets, max_distance, bidirectional)
    return NoPositions()


def output_of(config: TransformerConfig) -> OutputLayer | None:
    """The layer that scores the vocabulary; None where vectors are what comes out."""
    if config.output is None or config.vocab_size is None:
        return None
    activation = activation_called(bent_by(config.activation))
    return OutputLayer(
        config.vocab_size,
        config.d_model,
        tied=config.output.tied,
        scaled=config.output.scaled,
        bias=config.biases.output,
        transform=(activation, norm_of(config)) if config.output.transform else None,
    )
