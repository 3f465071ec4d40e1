"""TransformerConfig, its presets, and the sizes that are known by name; checked once and then frozen.

No computation; independent of NumPy and torch. `SIZES` has the named sizes of each preset.
"""

from dataclasses import dataclass, fields
from difflib import get_close_matches
from math import isqrt
from typing import Any, Literal, get_args

from regard.arrays import check_counts
from regard.axes import head_width
from regard.config.styles import (
    AttentionStyle,
    Biases,
    Embeddings,
    FactorScaling,
    Learned,
    Llama3Scaling,
    Norm,
    Output,
    Positions,
    Rotary,
    Sinusoidal,
    check_dropout,
)
from regard.errors import ArgumentError, IndivisibleError, ShapeError, UnknownNameError
from regard.layer_checks import factors_of
from regard.messages import Listed

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


Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu", "geglu_tanh"]
ActivationName = Literal["relu", "gelu", "gelu_tanh", "silu"]
GATES: dict[str, ActivationName] = {"swiglu": "silu", "geglu": "gelu", "geglu_tanh": "gelu_tanh"}
"""Gated feed-forwards, and the activation f of the gate: f(x W_gate) ∘ x W_up instead of f(x W_up)."""
Side = Literal["encoder", "decoder"]
OTHER_LIBRARY_NAMES = {
    "hidden_size": "d_model",
    "n_embd": "d_model",
    "embed_dim": "d_model",
    "num_attention_heads": "n_heads",
    "num_heads": "n_heads",
    "nhead": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "head_dim": "d_head",
    "intermediate_size": "d_ff",
    "dim_feedforward": "d_ff",
    "n_inner": "d_ff",
    "num_hidden_layers": "n_layers",
    "num_layers": "n_layers",
    "max_position_embeddings": "max_len",
    "n_positions": "max_len",
    "block_size": "max_len",
    "hidden_act": "activation",
    "rope_theta": "positions",
    "tie_word_embeddings": "output",
}
"""Field names of other libraries and ours, for the message about an unknown field."""


def inner_activation(activation: Activation) -> ActivationName:
    """The activation function; of a gated feed-forward, the one of the gate.

    >>> inner_activation("relu"), inner_activation("swiglu")
    ('relu', 'silu')
    """
    return GATES.get(activation, activation)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True, slots=True)
class TransformerConfig:
    """The stacks of a Transformer, their sizes, and the settings of their parts.

    A preset takes changes by name (`n_layers` changes every stack); all other fields keep the values of its `size`,
    also d_ff and n_kv_heads.

    vocab_size         None for a model without embeddings and output layer: vectors in, vectors out
    n_encoder_layers   None for no encoder; likewise n_decoder_layers. At least one is needed
    max_len            the number of positions; None for no limit (Learned positions need one)
    n_kv_heads         the number of key/value heads; None for n_heads
    d_head             the width of a head; None for d_model / n_heads
    positions          None for no positions
    output             None for vectors instead of logits
    dropout            of embeddings, of the feed-forward and of each sub-layer's output; in training only

    >>> TransformerConfig.gpt2(n_layers=2).kind, TransformerConfig.paper_2017().kind
    ('decoder', 'encoder-decoder')
    """

    vocab_size: int | None
    d_model: int
    n_heads: int
    d_ff: int
    n_encoder_layers: int | None = None
    n_decoder_layers: int | None = None
    max_len: int | None = None
    n_kv_heads: int | None = None
    d_head: int | None = None
    activation: Activation = "relu"
    positions: Positions | None = Sinusoidal()
    norm: Norm = Norm()
    attention: AttentionStyle = AttentionStyle()
    biases: Biases = Biases()
    embeddings: Embeddings = Embeddings()
    output: Output | None = Output()
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check_sizes(self)
        _check_heads(self)
        _check_parts(self)
        check_dropout(self.dropout)

    # --- derived sizes -----------------------------------------------------------------------------------

    @property
    def kind(self) -> Literal["encoder", "decoder", "encoder-decoder"]:
        """The stacks of the model."""
        if self.n_decoder_layers is None:
            return "encoder"
        return "decoder" if self.n_encoder_layers is None else "encoder-decoder"

    def layers_of(self, side: Side) -> int:
        """The number of layers of a stack; 0 if the model does not have it."""
        return (self.n_encoder_layers if side == "encoder" else self.n_decoder_layers) or 0

    @property
    def head_width(self) -> int:
        """E, the width of one head."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head

    @property
    def key_value_heads(self) -> int:
        """G, the number of key/value heads."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    # --- presets -----------------------------------------------------------------------------------------

    @classmethod
    def paper_2017(cls, size: str = "base", *, tied: bool = True, **changes: Any) -> "TransformerConfig":
        """Vaswani et al. 2017: encoder and decoder, post-norm, ReLU, sinusoidal positions, embeddings × √d_model.

        The output layer shares the embedding's weights, as in the paper; `tied=False` gives it its own.
        """
        if not tied and "output" in changes:
            raise ArgumentError("tied-twice")
        return _preset("paper_2017", size, changes, output=Output(tied=tied), embeddings=Embeddings(scaled=True))

    @classmethod
    def bert(cls, size: str = "base", **changes: Any) -> "TransformerConfig":
        """Devlin et al. 2018: an encoder, post-norm, GELU, learned positions, two segments."""
        return _preset(
            "bert",
            size,
            changes,
            activation="gelu",
            positions=Learned(),
            norm=Norm(eps=1e-12),
            embeddings=Embeddings(norm=True, n_segments=2),
            output=Output(transform=True),
            biases=Biases(output=True),
        )

    @classmethod
    def gpt2(cls, size: str = "124M", **changes: Any) -> "TransformerConfig":
        """Radford et al. 2019: a decoder, pre-norm, GELU with the tanh approximation, learned positions."""
        return _preset(
            "gpt2", size, changes, activation="gelu_tanh", positions=Learned(), norm=Norm(place="pre", final=True)
        )

    @classmethod
    def llama(cls, size: str = "1B", **changes: Any) -> "TransformerConfig":
        """Touvron et al. 2023: a decoder, pre-norm with RMSNorm, SwiGLU, rotary positions, no biases.

        Grouped heads and scaled positions as in the release of that size.
        """
        return _preset(
            "llama",
            size,
            changes,
            activation="swiglu",
            norm=Norm(kind="rms", place="pre", final=True),
            biases=Biases.none(),
        )


def _preset(preset: str, size: str, changes: dict[str, Any], **style: Any) -> TransformerConfig:
    """A preset's style and size, overridden by the caller's changes; `n_layers` sets every stack of the preset."""
    table = SIZES[preset]
    if not isinstance(size, str) or size not in table:
        raise ArgumentError("unknown-choice", name="size", value=size, choices=Listed(table))
    values = style | table[size]
    stacks = [stack for stack in ("n_encoder_layers", "n_decoder_layers") if stack in values]
    if "n_layers" in changes:
        changes = dict.fromkeys(stacks, changes["n_layers"]) | changes
        del changes["n_layers"]
    known = [field.name for field in fields(TransformerConfig)]
    for name in changes:
        if name not in known:
            nearest = OTHER_LIBRARY_NAMES.get(name) or get_close_matches(name, [*known, "n_layers"], n=1, cutoff=0.0)[0]
            raise UnknownNameError("config-unknown", asked=name, nearest=nearest)
    return TransformerConfig(**(values | changes))


def _check_kinds(config: TransformerConfig) -> None:
    """Raise unless each part has the right class: a string instead of a Norm would fail much later."""
    for name, kinds in (
        ("positions", (*get_args(Positions), type(None))),
        ("norm", (Norm,)),
        ("attention", (AttentionStyle,)),
        ("biases", (Biases,)),
        ("embeddings", (Embeddings,)),
        ("output", (Output, type(None))),
    ):
        found = getattr(config, name)
        if not isinstance(found, kinds):
            choices = Listed("None" if kind is type(None) else kind.__name__ for kind in kinds)
            raise ArgumentError("config-kind", name=name, found=type(found).__name__, choices=choices)
    if config.activation not in get_args(Activation):
        choices = Listed(get_args(Activation))
        raise ArgumentError("unknown-choice", name="activation", value=config.activation, choices=choices)


def _check_sizes(config: TransformerConfig) -> None:
    for name in ("vocab_size", "n_encoder_layers", "n_decoder_layers", "max_len", "n_kv_heads", "d_head"):
        if getattr(config, name) is not None:
            check_counts(**{name: (getattr(config, name), 1)})
    for name in ("d_model", "n_heads", "d_ff"):
        check_counts(**{name: (getattr(config, name), 1)})
    if config.n_encoder_layers is None and config.n_decoder_layers is None:
        raise ArgumentError("config-no-stack")


def _check_heads(config: TransformerConfig) -> None:
    if config.d_head is None:
        check_head_count(config.d_model, config.n_heads)
    check_groups(config.n_heads, config.key_value_heads)
    if isinstance(config.positions, Rotary):
        width, fraction = config.head_width, config.positions.fraction
        rotated = config.positions.width(width)
        if fraction != 1 and (rotated % 2 or not rotated):
            raise ShapeError("rotary-odd-share", E=width, fraction=fraction, found=rotated)
        if rotated % 2:
            raise ShapeError("rotary-odd-width", E=width, below=width - 1, above=width + 1)
        if isinstance(config.positions.scaling, FactorScaling):
            factors_of(config.positions.scaling.factors, rotated)


def _check_parts(config: TransformerConfig) -> None:
    if isinstance(config.positions, Learned) and config.max_len is None:
        raise ArgumentError("config-learned-length")
    if config.vocab_size is None and (config.output is not None or config.embeddings != Embeddings()):
        raise ArgumentError("config-vectors")
    if config.embeddings.source_vocab_size is not None and config.kind != "encoder-decoder":
        raise ArgumentError("config-source-vocabulary", kind=config.kind)


def check_head_count(d_model: int, n_heads: int) -> None:
    """Raise IndivisibleError, with the nearest widths and head counts, unless n_heads divides d_model.

    >>> check_head_count(1600, 25)
    """
    check_counts(d_model=(d_model, 1), n_heads=(n_heads, 1))
    try:
        head_width(d_model, n_heads)
    except IndivisibleError as error:
        small = [n for n in range(1, isqrt(d_model) + 1) if d_model % n == 0]
        dividing = {*small, *(d_model // n for n in small)}
        near = sorted(sorted(dividing, key=lambda n: (abs(n - n_heads), n))[:3])
        values = {name: error.values[name] for name in ("d_model", "n_heads", "below", "above")}
        raise IndivisibleError("heads-swapped", **values, counts=Listed(near)) from None


def check_groups(n_heads: int, n_kv_heads: int) -> None:
    """Raise ShapeError unless n_kv_heads divides n_heads."""
    check_counts(n_heads=(n_heads, 1), n_kv_heads=(n_kv_heads, 1))
    if n_heads % n_kv_heads:
        dividing = Listed(n for n in range(1, n_heads + 1) if n_heads % n == 0)
        raise ShapeError("config-groups", n_heads=n_heads, n_kv_heads=n_kv_heads, counts=dividing)
