"""The layers that are built from a config."""

from typing import Any

import torch
from narrowing import present

from regard.config import (
    Alibi,
    AttentionStyle,
    Biases,
    Learned,
    Norm,
    Output,
    Relative,
    Rotary,
    Sinusoidal,
    TransformerConfig,
)
from regard.layers import (
    AlibiPositions,
    LayerNorm,
    LearnedPositions,
    NoPositions,
    RelativePositions,
    RMSNorm,
    RotaryPositions,
    SinusoidalPositions,
)
from regard.models.transformer import build_attention, build_feed_forward, build_norm, build_output, build_positions

D, H = 8, 2


def config(**changes: object) -> TransformerConfig:
    sizes = {"vocab_size": 9, "d_model": D, "n_heads": H, "d_ff": 12, "n_decoder_layers": 1, "max_len": 9}
    return TransformerConfig(**(sizes | changes))  # type: ignore[arg-type]


def test_positions() -> None:
    classes = {
        Sinusoidal(base=5.0): SinusoidalPositions,
        Learned(): LearnedPositions,
        Rotary(base=7.0): RotaryPositions,
        Alibi(): AlibiPositions,
        Relative(n_buckets=6): RelativePositions,
        None: NoPositions,
    }
    made: dict[Any, Any] = {
        type(given): build_positions(config(positions=given), bidirectional=False) for given in classes
    }
    for given, kind in classes.items():
        assert type(made[type(given)]) is kind
    assert made[Sinusoidal].base == 5.0
    assert (made[Rotary].base, made[Rotary].d_head) == (7.0, D // H)
    assert made[Learned].table.shape == (9, D)
    assert made[Relative].table.shape == (6, H)
    assert made[Relative].bidirectional is False


def test_norms() -> None:
    layer, rms = (build_norm(config(norm=Norm(kind=kind, eps=1e-3), biases=Biases.none())) for kind in ("layer", "rms"))
    assert (type(layer), layer.eps, layer.weight.shape) == (LayerNorm, 1e-3, (D,))
    assert layer.bias is None
    assert (type(rms), rms.eps, build_norm(config(), width=3).weight.shape) == (RMSNorm, 1e-3, (3,))


def test_attention() -> None:
    style = AttentionStyle(scale=0.3, softcap=4.0, qk_norm=True, dropout=0.2)
    part = build_attention(
        config(n_kv_heads=1, d_head=6, attention=style, biases=Biases(attention=False)), "a.b", "cross"
    )
    assert (part.name, part.kind, part.scale, part.softcap, part.dropout) == ("a.b", "cross", 0.3, 4.0, 0.2)
    assert (part.q_proj.weight.shape, part.k_proj.weight.shape) == ((12, D), (6, D))
    assert part.q_proj.bias is None
    assert (part.o_proj.bias.shape, present(part.q_norm).weight.shape) == ((D,), (6,))


def test_feed_forward() -> None:
    plain, gated = (build_feed_forward(config(activation=name, dropout=0.3)) for name in ("gelu", "swiglu"))
    assert (plain.gate, plain.up.weight.shape, plain.dropout.p) == (None, (12, D), 0.3)
    assert present(gated.gate).weight.shape == (12, D)


def test_output() -> None:
    assert build_output(config(output=None)) is None
    own = build_output(config(output=Output(tied=False, scaled=True, transform=True), biases=Biases(output=True)))
    assert own is not None
    assert own.transform is not None
    assert (present(own.weight).shape, present(own.bias).shape, own.transform.weight.shape) == ((9, D), (9,), (D, D))
    x = torch.ones(2, D)
    assert torch.equal(own(x, None), own(x, torch.zeros(9, D)))
    assert present(build_output(config())).weight is None
