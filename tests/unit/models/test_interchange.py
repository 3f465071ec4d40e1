"""Conversion to PyTorch's modules and back keeps weights and settings, or raises an error with the reason.

That both compute the same is in tests/parity/test_torch_modules.py.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from tolerances import assert_close, assert_same_bits
from torch import nn
from torch.nn import functional

from regard.config import AttentionStyle, Biases, Learned, Norm, Rotary, TransformerConfig
from regard.errors import ArgumentError
from regard.layers import MultiHeadAttention
from regard.models import Block, Transformer, from_torch, to_torch

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

D, H, F = 12, 2, 16
CONFIG = {"vocab_size": None, "output": None, "positions": None, "d_model": D, "n_heads": H, "d_ff": F}


def config(**changes: Any) -> TransformerConfig:
    return TransformerConfig(**(CONFIG | {"n_encoder_layers": 2, "n_decoder_layers": 1} | changes))


OURS: dict[str, Callable[[], Any]] = {
    "attention": lambda: MultiHeadAttention(D, H, dropout=0.3),
    "attention without bias": lambda: MultiHeadAttention(D, H, bias=False),
    "encoder block": lambda: Block(config(dropout=0.1), kind="encoder"),
    "decoder block": lambda: Block(config(norm=Norm(place="pre", eps=1e-3), activation="gelu"), cross=True),
    "tanh": lambda: Block(config(activation="gelu_tanh", attention=AttentionStyle(dropout=0.2))),
    "no bias": lambda: Block(config(activation="silu", biases=Biases.none()), cross=True),
    "transformer": lambda: Transformer(config(norm=Norm(place="pre", final=True))),
    "the paper's, without a last norm": lambda: Transformer(config(n_decoder_layers=3)),
}


@pytest.mark.parametrize("make", OURS.values(), ids=OURS)
def test_the_round_trip_is_bit_identical(make: Callable[[], Any]) -> None:
    ours = make()
    for weight in ours.parameters():
        nn.init.normal_(weight)
    again = from_torch(to_torch(ours))
    assert type(again) is type(ours)
    assert [name for name, _ in again.named_parameters()] == [name for name, _ in ours.named_parameters()]
    for (name, weight), other in zip(ours.named_parameters(), again.parameters(), strict=True):
        assert_same_bits(other.detach(), weight.detach())
        assert other.data_ptr() != weight.data_ptr(), name
    assert getattr(again, "config", None) == getattr(ours, "config", None)
    settings = ("p", "dropout", "eps", "n_heads", "place", "activation")
    for part, other in zip(ours.modules(), again.modules(), strict=True):
        for name in settings:
            if not isinstance(value := getattr(part, name, None), nn.Module):
                assert getattr(other, name, None) == value, (type(part), name)


@pytest.mark.parametrize("make", OURS.values(), ids=OURS)
def test_dtype_device_and_mode_are_kept(make: Callable[[], Any]) -> None:
    ours = make().eval().bfloat16()
    frozen = ours.o_proj if isinstance(ours, MultiHeadAttention) else next(ours.children()).requires_grad_(False)
    frozen.requires_grad_(False).float()
    theirs = to_torch(ours)
    assert not any(part.training for part in theirs.modules())
    assert {weight.dtype for weight in theirs.parameters()} == {torch.float32, torch.bfloat16}
    again = from_torch(theirs)
    assert not any(part.training for part in again.modules())
    for weight, other in zip(ours.parameters(), again.parameters(), strict=True):
        assert (other.dtype, other.requires_grad, other.device) == (weight.dtype, weight.requires_grad, weight.device)
    with torch.no_grad():
        assert any(weight.requires_grad for weight in from_torch(theirs).parameters())
    on_meta = from_torch(to_torch(ours.to("meta").train()))
    assert {weight.device.type for weight in on_meta.parameters()} == {"meta"}
    assert all(part.training for part in on_meta.modules())


def test_to_torch_gives_their_classes_with_batch_first() -> None:
    theirs = to_torch(OURS["transformer"]())
    assert theirs.batch_first
    assert all(part.batch_first for part in theirs.modules() if isinstance(part, nn.MultiheadAttention))
    assert [len(stack.layers) for stack in (theirs.encoder, theirs.decoder)] == [2, 1]
    assert not [part for part in theirs.modules() if type(part).__module__.startswith("regard")]
    assert type(to_torch(OURS["encoder block"]())) is nn.TransformerEncoderLayer
    assert type(to_torch(OURS["decoder block"]())) is nn.TransformerDecoderLayer


def test_kinds_and_names_of_records() -> None:
    theirs = nn.Transformer(D, H, 1, 1, F)
    found = [(part.name, part.kind) for part in from_torch(theirs).modules() if isinstance(part, MultiHeadAttention)]
    assert found == [
        ("encoder.layers.0.self_attention", "encoder"),
        ("decoder.layers.0.self_attention", "decoder"),
        ("decoder.layers.0.cross_attention", "cross"),
    ]


def test_random_state_and_the_input_module_are_unchanged() -> None:
    theirs = nn.Transformer(D, H, 1, 1, F)
    before, state = deepcopy(theirs.state_dict()), torch.get_rng_state()
    ours = from_torch(theirs)
    to_torch(ours)
    assert torch.equal(torch.get_rng_state(), state)
    nn.init.zeros_(ours.get_parameter("encoder.layers.0.self_attention.q_proj.weight"))
    for name, weight in theirs.state_dict().items():
        assert_same_bits(weight, before[name])


def test_dropout_is_kept() -> None:
    """nn.Transformer has no dropout on its input; our stacks have it only with embeddings."""
    ours = from_torch(nn.Transformer(D, H, 1, 1, F, dropout=0.25))
    rates = {name: part.p for name, part in ours.named_modules() if isinstance(part, nn.Dropout)}
    assert {name for name, rate in rates.items() if rate == 0} == {"encoder.dropout", "decoder.dropout"}
    assert {rate for rate in rates.values() if rate} == {0.25}
    assert {part.dropout for part in ours.modules() if isinstance(part, MultiHeadAttention)} == {0.25}
    assert ours.config.dropout == ours.config.attention.dropout == 0.25


@torch.no_grad()
def test_their_fused_layer_does_not_replace_gelu_tanh() -> None:
    """nn.TransformerEncoderLayer with nn.GELU("tanh") computes the exact GELU without gradients."""
    ours = Block(config(activation="gelu_tanh")).eval()
    for weight in ours.parameters():
        nn.init.normal_(weight)
    x = torch.randn(2, 3, D, generator=torch.Generator().manual_seed(0))
    assert_close(to_torch(ours)(x), ours(x))


# --- errors -------------------------------------------------------------------------------------


def layer(**options: Any) -> Any:
    return nn.TransformerEncoderLayer(D, H, F, **options)


def with_part(module: Any, **parts: Any) -> Any:
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def tied(module: Any) -> Any:
    module.encoder.layers[1].linear1.weight = module.encoder.layers[0].linear1.weight
    return module


class OwnLayer(nn.TransformerEncoderLayer):
    """A subclass, which may compute something else."""


def _frozen_keys() -> Any:
    ours = MultiHeadAttention(D, H)
    ours.k_proj.weight.requires_grad_(False)
    return ours


def _without_last_norm() -> Any:
    theirs = nn.Transformer(D, H, 1, 1, F)
    theirs.decoder.norm = None
    return theirs


def _mixed_modes() -> Any:
    theirs = nn.Transformer(D, H, 1, 1, F)
    theirs.decoder.eval()
    return theirs


REFUSED_THEIRS: dict[str, tuple[Callable[[], Any], str]] = {
    "another class": (lambda: nn.Linear(2, 2), "TransformerDecoderLayer.*found Linear"),
    "a subclass": (lambda: OwnLayer(D, H, F), "but no subclasses; found OwnLayer"),
    "kdim": (lambda: nn.MultiheadAttention(D, H, kdim=5), "kdim=5: the target supports only 12"),
    "vdim": (lambda: nn.MultiheadAttention(D, H, vdim=6), "vdim=6"),
    "add_bias_kv": (lambda: nn.MultiheadAttention(D, H, add_bias_kv=True), "add_bias_kv=True.*only False"),
    "add_zero_attn": (
        lambda: with_part(layer(), self_attn=nn.MultiheadAttention(D, H, add_zero_attn=True)),
        "zero_attn",
    ),
    "tanh": (lambda: layer(activation=torch.tanh), "activation=tanh.*only relu, gelu, gelu_tanh, silu"),
    "Tanh": (lambda: layer(activation=nn.Tanh()), "activation=Tanh"),
    "a lambda": (lambda: layer(activation=lambda x: x), "activation=<lambda>"),
    "RMSNorm": (lambda: with_part(layer(bias=False), norm1=nn.RMSNorm(D)), "norm1 is a RMSNorm"),
    "no dropout": (lambda: with_part(layer(), dropout1=nn.Identity()), "dropout1 is a Identity"),
    "custom encoder": (lambda: nn.Transformer(D, H, custom_encoder=nn.Linear(D, D)), "encoder=Linear"),
    "several rates": (lambda: with_part(layer(), dropout2=nn.Dropout(0.5)), r"values of dropout \(0.1, 0.5\)"),
    "several eps": (lambda: with_part(layer(), norm2=nn.LayerNorm(D, 1e-3)), r"layer_norm_eps \(1e-05, 0.001\)"),
    "several head counts": (
        lambda: with_part(nn.TransformerDecoderLayer(D, H, F, 0.0), multihead_attn=nn.MultiheadAttention(D, 3)),
        r"num_heads \(2, 3\)",
    ),
    "several modes": (_mixed_modes, r"training \(True, False\)"),
    "activations that a copy forgot": (lambda: nn.Transformer(D, H, 1, 1, F, activation=nn.GELU()), r"\(gelu, relu\)"),
    "tied": (lambda: tied(nn.Transformer(D, H, 2, 1, F)), "layers.1.linear1.weight share one weight"),
    "a bias missing": (lambda: with_part(layer(), linear2=nn.Linear(F, D, bias=False)), "1 weights.*down.bias"),
    "a last norm missing": (_without_last_norm, "2 weights.*decoder.norm.bias"),
    "no layers": (lambda: nn.Transformer(D, H, 0, 0, F), "num_encoder_layers"),
}


@pytest.mark.parametrize(("make", "sentence"), REFUSED_THEIRS.values(), ids=REFUSED_THEIRS)
def test_unsupported_torch_modules_are_refused(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        from_torch(make())


def ours_with(**changes: Any) -> Callable[[], Any]:
    return lambda: Transformer(config(**changes))


VOCABULARY = {"vocab_size": 9, "output": TransformerConfig.gpt2().output}
REFUSED_OURS: dict[str, tuple[Callable[[], Any], str]] = {
    "theirs already": (lambda: nn.MultiheadAttention(D, H), "to_torch takes MultiHeadAttention, Block, Transformer"),
    "embeddings": (ours_with(**VOCABULARY), "Transformer with vocab_size=9: the target supports only None"),
    "positions": (ours_with(positions=Rotary()), r"positions=Rotary\(.*only None"),
    "a table of positions": (ours_with(positions=Learned(), max_len=9), r"positions=Learned\(\)"),
    "one stack": (ours_with(n_encoder_layers=None), "kind=decoder: the target supports only encoder-decoder"),
    "window": (ours_with(attention=AttentionStyle(window=3)), "window=3"),
    "grouped heads": (lambda: MultiHeadAttention(D, 4, n_kv_heads=2), "n_kv_heads=2: the target supports only 4"),
    "d_head": (lambda: MultiHeadAttention(D, H, d_head=5), r"n_heads \* d_head=10: the target supports only 12"),
    "a width that heads do not divide": (lambda: MultiHeadAttention(D, 5, d_head=2), r"d_head=10.*only 12"),
    "qk_norm": (lambda: MultiHeadAttention(D, H, norm=nn.LayerNorm), "qk_norm=True"),
    "softcap": (lambda: MultiHeadAttention(D, H, softcap=2.0), "softcap=2.0"),
    "scale": (lambda: Block(config(attention=AttentionStyle(scale=1.0))), "scale=1.0"),
    "RMSNorm": (lambda: Block(config(norm=Norm(kind="rms"))), "self_attention_norm is a RMSNorm"),
    "gate": (lambda: Block(config(activation="swiglu")), r"gate=Linear\(.*only None"),
    "biases here and there": (lambda: Block(config(biases=Biases(attention=False))), "in_proj_bias"),
    "norms without bias": (lambda: Block(config(biases=Biases(norm=False))), "2 weights.*norm1.bias, norm2.bias"),
    "keys frozen, queries not": (_frozen_keys, r"k_proj.weight.*requires_grad \(True, False\)"),
    "another activation": (lambda: _with_other_activation(Block(config())), "activation=tanh"),
}


def _with_other_activation(block: Block) -> Block:
    block.feed_forward.activation = torch.tanh
    return block


@pytest.mark.parametrize(("make", "sentence"), REFUSED_OURS.values(), ids=REFUSED_OURS)
def test_unsupported_modules_of_ours_are_refused(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        to_torch(make())


@pytest.mark.parametrize(
    "activation", ["relu", functional.relu, torch.relu, nn.ReLU()], ids=["name", "F", "torch", "module"]
)
def test_an_activation_may_be_a_name_function_or_module(activation: Any) -> None:
    assert from_torch(layer(activation=activation)).feed_forward.activation(torch.tensor([-1.0, 2.0])).tolist() == [
        0,
        2,
    ]
