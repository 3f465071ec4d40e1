"""TransformerConfig: presets with their published sizes, derived sizes, and every error with its values."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from math import prod
from typing import Any

import numpy as np
import pytest

from regard.config import (
    GATES,
    Alibi,
    AttentionStyle,
    Biases,
    Embeddings,
    Learned,
    LinearScaling,
    Llama3Scaling,
    Norm,
    Output,
    Relative,
    Rotary,
    Sinusoidal,
    TransformerConfig,
    YarnScaling,
)
from regard.config.transformer import SIZES
from regard.config.weights import weight_shapes
from regard.errors import ArgumentError, IndivisibleError, RegardError, ShapeError, UnknownNameError

PRESETS = ("paper_2017", "bert", "gpt2", "llama")
SMALL: dict[str, Any] = {"vocab_size": 11, "d_model": 12, "n_heads": 3, "d_ff": 8, "n_decoder_layers": 2}


def small(**changes: Any) -> TransformerConfig:
    return TransformerConfig(**(SMALL | changes))


# --- presets ---------------------------------------------------------------------------------------------

# GPT-2, BERT with its masked-language head, SmolLM2 and Llama: as in their published checkpoints. The paper: table 3
# says 65 and 213 million; its sizes and a vocabulary of 37,000 give these numbers.
PARAMETERS = {
    ("paper_2017", "base"): 63_082_496,
    ("paper_2017", "big"): 214_245_376,
    ("bert", "base"): 109_514_298,
    ("bert", "large"): 335_174_458,
    ("gpt2", "124M"): 124_439_808,
    ("gpt2", "355M"): 354_823_168,
    ("gpt2", "774M"): 774_030_080,
    ("gpt2", "1558M"): 1_557_611_200,
    ("llama", "135M"): 134_515_008,
    ("llama", "1B"): 1_235_814_400,
    ("llama", "7B"): 6_738_415_616,
    ("llama", "8B"): 8_030_261_248,
}


def test_every_size_is_listed() -> None:
    assert PARAMETERS.keys() == {(name, size) for name, sizes in SIZES.items() for size in sizes}


@pytest.mark.parametrize(("name", "size"), PARAMETERS)
def test_presets_have_the_published_number_of_parameters(name: str, size: str) -> None:
    shapes = weight_shapes(getattr(TransformerConfig, name)(size))
    assert sum(map(prod, shapes.values())) == PARAMETERS[name, size]


def test_the_paper_by_hand() -> None:
    D, F, W = 512, 2048, 37_000
    attention, feed_forward, norm = 4 * (D * D + D), 2 * D * F + F + D, 2 * D
    encoder = 6 * (attention + feed_forward + 2 * norm)
    decoder = 6 * (2 * attention + feed_forward + 3 * norm)
    assert PARAMETERS["paper_2017", "base"] == W * D + encoder + decoder
    untied = weight_shapes(TransformerConfig.paper_2017(tied=False))
    assert sum(map(prod, untied.values())) == 2 * W * D + encoder + decoder


@pytest.mark.parametrize(
    ("name", "kind", "place", "positions", "activation"),
    [
        ("paper_2017", "encoder-decoder", "post", Sinusoidal, "relu"),
        ("bert", "encoder", "post", Learned, "gelu"),
        ("gpt2", "decoder", "pre", Learned, "gelu_tanh"),
        ("llama", "decoder", "pre", Rotary, "swiglu"),
    ],
)
def test_how_the_families_differ(name: str, kind: str, place: str, positions: type, activation: str) -> None:
    config = getattr(TransformerConfig, name)()
    assert (config.kind, config.norm.place, config.activation) == (kind, place, activation)
    assert isinstance(config.positions, positions)
    assert config.norm.final == (place == "pre")
    assert (config.activation in GATES) == (name == "llama")


def test_n_layers_sets_every_stack() -> None:
    paper = TransformerConfig.paper_2017(n_layers=2)
    assert (paper.n_encoder_layers, paper.n_decoder_layers) == (2, 2)
    gpt2 = TransformerConfig.gpt2(n_layers=3)
    assert (gpt2.n_encoder_layers, gpt2.n_decoder_layers) == (None, 3)
    assert TransformerConfig.paper_2017(n_layers=2, n_decoder_layers=5).n_decoder_layers == 5


def test_changes_override_a_preset() -> None:
    config = TransformerConfig.llama("135M", d_model=64, n_heads=4, n_kv_heads=None, output=Output(tied=False))
    assert (config.d_model, config.head_width, config.key_value_heads) == (64, 16, 4)
    assert not config.output.tied  # type: ignore[union-attr]
    assert config.biases == Biases.none()
    assert not TransformerConfig.paper_2017(tied=False).output.tied  # type: ignore[union-attr]


@pytest.mark.parametrize("name", PRESETS)
def test_an_unknown_size_or_field_is_refused(name: str) -> None:
    preset = getattr(TransformerConfig, name)
    with pytest.raises(ArgumentError, match=f"there is no size='tiny'; choose one of: {', '.join(SIZES[name])}"):
        preset("tiny")
    with pytest.raises(UnknownNameError, match="no field 'n_head'; the nearest is 'n_heads'"):
        preset(n_head=4)
    with pytest.raises(UnknownNameError, match="no field 'layers'; the nearest is 'n_layers'"):
        preset(layers=4)


# --- the dataclass ---------------------------------------------------------------------------------------------


def test_it_is_frozen_hashable_and_keyword_only() -> None:
    config = small()
    with pytest.raises(FrozenInstanceError):
        config.d_model = 24  # type: ignore[misc]
    with pytest.raises(TypeError):
        TransformerConfig(11, 12, 3, 8)  # type: ignore[call-arg]
    assert {config: 1}[small()] == 1
    assert small(d_ff=9) != config
    assert hash(small(d_model=np.int64(12))) == hash(config)
    assert len(fields(config)) <= 17


def test_replace_checks_again_and_updates_derived_sizes() -> None:
    config = replace(small(), d_model=24)
    assert (config.head_width, config.key_value_heads) == (8, 3)
    config = replace(config, n_heads=6)
    assert (config.head_width, config.key_value_heads) == (4, 6)
    config = replace(config, d_head=5, n_kv_heads=2, n_encoder_layers=1)
    assert (config.head_width, config.key_value_heads, config.kind) == (5, 2, "encoder-decoder")
    with pytest.raises(IndivisibleError):
        replace(small(), n_heads=5)


def test_d_head_need_not_divide_d_model() -> None:
    assert small(n_heads=5, d_head=7).head_width == 7


def test_windows_repeat_over_the_layers() -> None:
    assert [AttentionStyle().window_of(i) for i in range(3)] == [None, None, None]
    assert [AttentionStyle(window=5).window_of(i) for i in range(3)] == [5, 5, 5]
    assert [AttentionStyle(window=(4, None, 2)).window_of(i) for i in range(5)] == [4, None, 2, 4, None]


# --- errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, "12", True, [3]])
@pytest.mark.parametrize(
    "name",
    [
        "vocab_size",
        "d_model",
        "n_heads",
        "d_ff",
        "n_encoder_layers",
        "n_decoder_layers",
        "max_len",
        "n_kv_heads",
        "d_head",
    ],
)
def test_sizes_are_positive_integers(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        small(**{name: value})
    assert caught.value.key == "count-wanted"
    assert caught.value.values == {"name": name, "value": value, "least": 1}


@pytest.mark.parametrize("name", ["d_model", "n_heads", "d_ff"])
def test_some_sizes_are_required(name: str) -> None:
    with pytest.raises(ArgumentError):
        small(**{name: None})


Case = tuple[Callable[[], Any], type[RegardError], str]
REFUSED: dict[str, Case] = {
    "heads": (
        lambda: TransformerConfig.gpt2(d_model=770),
        IndivisibleError,
        "n_heads=12 must divide d_model=770; nearest widths are 768 and 780, nearest numbers of heads 10, 11, 14; "
        "did you swap layers and heads?",
    ),
    "groups": (
        lambda: TransformerConfig.llama(n_kv_heads=5),
        ShapeError,
        "n_kv_heads=5 must divide n_heads=32, so that each serves the same number of query heads; possible: 1, 2, 4, "
        "8, 16, 32",
    ),
    "odd rotary heads": (lambda: small(positions=Rotary(), d_head=7), ShapeError, "found 7; nearest are 6 and 8"),
    "no stack": (
        lambda: small(n_decoder_layers=None),
        ArgumentError,
        "set n_encoder_layers, n_decoder_layers, or both",
    ),
    "a table without a length": (lambda: small(positions=Learned()), ArgumentError, "set max_len, for example"),
    "scores without a vocabulary": (lambda: small(vocab_size=None), ArgumentError, "set output=None"),
    "embeddings without a vocabulary": (
        lambda: small(vocab_size=None, output=None, embeddings=Embeddings(scaled=True)),
        ArgumentError,
        "leave embeddings at its default",
    ),
    "a source without an encoder": (
        lambda: small(embeddings=Embeddings(source_vocab_size=9)),
        ArgumentError,
        "source_vocab_size is for a model with encoder and decoder; this one has kind 'decoder'",
    ),
    "positions": (
        lambda: small(positions="rotary"),
        ArgumentError,
        r"positions must be Sinusoidal, Learned, Rotary, Alibi, Relative, None \(from regard.config\); found str",
    ),
    "a class for a value": (lambda: small(positions=Rotary), ArgumentError, "found type"),
    "norm": (lambda: small(norm="rms"), ArgumentError, r"norm must be Norm \(from regard.config\); found str"),
    "no norm": (lambda: small(norm=None), ArgumentError, "found NoneType"),
    "attention": (lambda: small(attention={}), ArgumentError, "attention must be AttentionStyle .*; found dict"),
    "biases": (lambda: small(biases=False), ArgumentError, "biases must be Biases .*; found bool"),
    "embeddings": (lambda: small(embeddings=5), ArgumentError, "embeddings must be Embeddings .*; found int"),
    "output": (lambda: small(output=True), ArgumentError, "output must be Output, None .*; found bool"),
    "activation": (
        lambda: small(activation="mish"),
        ArgumentError,
        "no activation='mish'; choose one of: relu, gelu, gelu_tanh, silu, swiglu, geglu, geglu_tanh",
    ),
    "no activation": (lambda: small(activation=None), ArgumentError, "no activation=None"),
    "dropout of all": (lambda: small(dropout=1.0), ArgumentError, "at least 0 and below 1; found 1.0"),
    "less than no dropout": (lambda: small(dropout=-0.1), ArgumentError, "found -0.1"),
    "NaN dropped": (lambda: small(dropout=float("nan")), ArgumentError, "found nan"),
    "norm kind": (lambda: Norm(kind="batch"), ArgumentError, "no norm.kind='batch'; choose one of: layer, rms"),  # type: ignore[arg-type]
    "norm place": (
        lambda: Norm(place="mid"),  # type: ignore[arg-type]
        ArgumentError,
        "no norm.place='mid'; choose one of: pre, post, both, parallel",
    ),
    "LayerNorm plus one": (lambda: Norm(plus_one=True), ArgumentError, "it needs norm.kind='rms'; found 'layer'"),
    "logits bounded to 0": (lambda: Output(softcap=0.0), ArgumentError, "softcap must be .*; found 0.0"),
    "nothing rotated": (lambda: Rotary(fraction=0.0), ArgumentError, "at most 1; found 0.0"),
    "more than all rotated": (lambda: Rotary(fraction=1.5), ArgumentError, "at most 1; found 1.5"),
    "local base": (lambda: Rotary(local_base=-1.0), ArgumentError, "found -1.0"),
    "an odd share rotated": (
        lambda: small(positions=Rotary(fraction=0.6), d_head=6),
        ShapeError,
        "fraction=0.6 of a head of width 6 is 3 numbers; it must be an even number, at least 2",
    ),
    "no pair rotated": (lambda: small(positions=Rotary(fraction=0.1), d_head=6), ShapeError, "is 0 numbers"),
    "eps below 0": (lambda: Norm(eps=-1e-5), ArgumentError, "at least 0; found -1e-05"),
    "eps NaN": (lambda: Norm(eps=float("nan")), ArgumentError, "found nan"),
    "eps as text": (lambda: Norm(eps="1e-5"), ArgumentError, "found '1e-5'"),  # type: ignore[arg-type]
    "scale": (lambda: AttentionStyle(scale=float("inf")), ArgumentError, "inf"),
    "softcap": (lambda: AttentionStyle(softcap=0.0), ArgumentError, "0.0"),
    "attention dropout": (lambda: AttentionStyle(dropout=1), ArgumentError, "found 1"),
    "window of 0": (lambda: AttentionStyle(window=0), ArgumentError, "window must be .* at least 1; found 0"),
    "window of 0 in a tuple": (lambda: AttentionStyle(window=(4, 0)), ArgumentError, "found 0"),
    "no windows": (lambda: AttentionStyle(window=()), ArgumentError, r"found \(\)"),
    "a list of windows": (lambda: AttentionStyle(window=[4]), ArgumentError, r"found \[4\]"),  # type: ignore[arg-type]
    "no segments": (lambda: Embeddings(n_segments=0), ArgumentError, "n_segments must be .* at least 1; found 0"),
    "no source": (lambda: Embeddings(source_vocab_size=0), ArgumentError, "source_vocab_size must be"),
    "base": (lambda: Sinusoidal(base=0.0), ArgumentError, "found 0.0; the papers use 10000"),
    "rotary base": (lambda: Rotary(base=float("inf")), ArgumentError, "found inf"),
    "pairing": (lambda: Rotary(pairing="both"), ArgumentError, "no pairing='both'; choose one of: halves, pairs"),  # type: ignore[arg-type]
    "scaling": (lambda: Rotary(scaling=4.0), ArgumentError, "LinearScaling, NtkScaling, .*; found float"),  # type: ignore[arg-type]
    "factor": (lambda: LinearScaling(factor=0.0), ArgumentError, "factor must be a number greater than 0; found 0.0"),
    "original length": (lambda: Llama3Scaling(factor=2.0, original_len=0), ArgumentError, "original_len must be"),
    "slow and fast": (
        lambda: YarnScaling(factor=2.0, original_len=8, fast=1.0, slow=2.0),
        ArgumentError,
        "slow=2.0 must be less than fast=1.0",
    ),
    "sharpness": (lambda: YarnScaling(factor=2.0, original_len=8, sharpness=0.0), ArgumentError, "sharpness must be"),
    "odd buckets": (lambda: Relative(n_buckets=7), ArgumentError, "found 7; nearest are 6 and 8"),
    "buckets too near": (lambda: Relative(n_buckets=8, max_distance=2), ArgumentError, "max_distance=2 must be larger"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_values_are_refused_with_the_value(name: str) -> None:
    build, error, message = REFUSED[name]
    with pytest.raises(error, match=message) as caught:
        build()
    assert caught.value.text("zh")


def test_unusual_but_valid_values_are_accepted() -> None:
    small(d_model=9)  # an odd width, sines and cosines
    small(dropout=0, attention=AttentionStyle(dropout=0.5, scale=0.0, softcap=30))
    small(vocab_size=None, output=None, positions=None)
    small(positions=Alibi(), n_encoder_layers=1, embeddings=Embeddings(source_vocab_size=1))
    small(n_kv_heads=1, norm=Norm(eps=0))
