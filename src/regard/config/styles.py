"""Settings in which model families differ: positions, norm, attention, biases, embeddings and output layer.

Checked but not computed. Positions added to the input: Sinusoidal, Learned. Rotation of q and k: Rotary. Added to the
scores: Alibi, Relative.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from regard.arrays import check_counts, is_number
from regard.errors import ArgumentError
from regard.layer_checks import Pairing, buckets_per_side, check_base, check_pairing
from regard.messages import Listed

Window = int | None | tuple[int | None, ...]
NormPlace = Literal["pre", "post", "both", "parallel"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Norm:
    """The kind of norms, and their place beside the residual connections.

    kind       "layer" (mean and variance) or "rms" (root mean square)
    place      "pre": x + f(norm(x)), as most current models; "post": norm(x + f(x)), the 2017 paper and BERT;
               "both": x + norm(f(norm(x))), as Gemma 2; "parallel": x + f(norm(x)) + g(norm(x)), as GPT-NeoX
    final      one more norm after the last layer; needed unless place is "post": nothing else bounds the output
    plus_one   RMSNorm multiplies by 1 + weight instead of weight, as Gemma
    """

    kind: Literal["layer", "rms"] = "layer"
    place: NormPlace = "post"
    eps: float = 1e-5
    final: bool = False
    plus_one: bool = False

    def __post_init__(self) -> None:
        _check_choice("norm.kind", self.kind, ("layer", "rms"))
        _check_choice("norm.place", self.place, get_args(NormPlace))
        if not (is_number(self.eps) and self.eps >= 0):
            raise ArgumentError("eps-value", value=self.eps)
        _check_bools(self, "final", "plus_one")
        if self.plus_one and self.kind != "rms":
            raise ArgumentError("norm-plus-one", found=self.kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionStyle:
    """Variations of scaled dot-product attention.

    scale     the factor of q · k; None for 1/√d_head, 1.0 in T5
    softcap   scores bounded to ± this value; None for no bound
    window    a token sees itself and the window − 1 before it (in an encoder also after it); None for no bound.
              A tuple is repeated over the layers: (4096, None) is local, global, local, …
    qk_norm   norm the queries and keys of each head
    dropout   of the attention weights, in training
    """

    scale: float | None = None
    softcap: float | None = None
    window: Window = None
    qk_norm: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.scale is not None and not is_number(self.scale):
            raise ArgumentError("scale-value", value=self.scale)
        _check_softcap(self.softcap)
        if self.window == ():
            raise ArgumentError("count-wanted", name="window", value=self.window, least=1)
        for window in self.window if isinstance(self.window, tuple) else (self.window,):
            if window is not None:
                check_counts(window=(window, 1))
        check_dropout(self.dropout)
        _check_bools(self, "qk_norm")

    def window_of(self, layer: int) -> int | None:
        """The window of that layer."""
        return self.window[layer % len(self.window)] if isinstance(self.window, tuple) else self.window


@dataclass(frozen=True, kw_only=True, slots=True)
class Biases:
    """Which parts have a bias. `attention` is for W_q, W_k and W_v, `attention_output` for W_o."""

    attention: bool = True
    attention_output: bool = True
    feed_forward: bool = True
    norm: bool = True
    output: bool = False

    def __post_init__(self) -> None:
        _check_bools(self, "attention", "attention_output", "feed_forward", "norm", "output")

    @classmethod
    def none(cls) -> "Biases":
        """No bias anywhere, as in Llama and T5."""
        return cls(attention=False, attention_output=False, feed_forward=False, norm=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Embeddings:
    """From ids to vectors.

    scaled              × √d_model, so that the vectors are not small beside the positions added to them
    rounded_scale       √d_model is rounded to the dtype of the weights first, as Gemma
    norm                norm after positions are added, as BERT
    n_segments          the number of segments, each with a learned vector, 2 in BERT; None for none
    source_vocab_size   the size of the encoder's own vocabulary; None for a shared vocabulary
    """

    scaled: bool = False
    norm: bool = False
    n_segments: int | None = None
    source_vocab_size: int | None = None
    rounded_scale: bool = False

    def __post_init__(self) -> None:
        for name in ("n_segments", "source_vocab_size"):
            value = getattr(self, name)
            if value is not None:
                check_counts(**{name: (value, 1)})
        _check_bools(self, "scaled", "norm", "rounded_scale")


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """From vectors to logits.

    tied        the output layer uses the embedding's weight
    scaled      vectors × 1/√d_model first, as T5 with tied weights
    transform   linear, activation and norm first, as BERT's masked-language head
    softcap     logits bounded to ± this value by tanh, as Gemma 2; None for no bound
    """

    tied: bool = True
    scaled: bool = False
    transform: bool = False
    softcap: float | None = None

    def __post_init__(self) -> None:
        _check_bools(self, "tied", "scaled", "transform")
        _check_softcap(self.softcap)


def check_dropout(value: float) -> None:
    """Raise ArgumentError unless 0 ≤ value < 1."""
    if not (is_number(value) and 0 <= value < 1):
        raise ArgumentError("dropout-value", value=value)


def _check_softcap(value: float | None) -> None:
    if value is not None and not (is_number(value) and value > 0):
        raise ArgumentError("softcap-value", value=value)


def _check_bools(style: object, *names: str) -> None:
    """Raise ArgumentError unless each is a bool: the string "no" would count as True."""
    for name in names:
        if not isinstance(getattr(style, name), bool):
            where = f"{type(style).__name__}.{name}"
            raise ArgumentError("unknown-choice", name=where, value=getattr(style, name), choices="True, False")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError("unknown-choice", name=name, value=value, choices=Listed(choices))


@dataclass(frozen=True, kw_only=True, slots=True)
class Sinusoidal:
    """Sines and cosines of decreasing frequency, added to the embeddings (Vaswani et al. 2017, section 3.5).

    pairing   "pairs" interleaves sines and cosines, as the paper; "halves" puts all sines first, as Marian
    """

    base: float = 10_000.0
    pairing: Pairing = "pairs"

    def __post_init__(self) -> None:
        check_base(self.base)
        check_pairing(self.pairing)


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """A learned row for each of `max_len` positions, added to the embeddings, as in BERT and GPT-2."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearScaling:
    """Positions divided by `factor` (Chen et al. 2023)."""

    factor: float

    def __post_init__(self) -> None:
        _check_positive(factor=self.factor)


@dataclass(frozen=True, kw_only=True, slots=True)
class NtkScaling:
    """A larger base: the lowest frequency is divided by `factor`, the highest is unchanged."""

    factor: float

    def __post_init__(self) -> None:
        _check_positive(factor=self.factor)


@dataclass(frozen=True, kw_only=True, slots=True)
class YarnScaling:
    """Low frequencies divided by `factor`, high ones unchanged, a ramp between; softmax sharpened (Peng et al. 2023).

    original_len   the length the model was trained for
    fast, slow     more than `fast` rotations in that length: unchanged; fewer than `slow`: divided
    sharpness      the factor of cosines and sines; None for the paper's 0.1 ln(factor) + 1
    """

    factor: float
    original_len: int
    fast: float = 32.0
    slow: float = 1.0
    sharpness: float | None = None

    def __post_init__(self) -> None:
        check_counts(original_len=(self.original_len, 1))
        _check_positive(factor=self.factor, fast=self.fast, slow=self.slow)
        if self.sharpness is not None:
            _check_positive(sharpness=self.sharpness)
        _check_order(self.slow, self.fast)


@dataclass(frozen=True, kw_only=True, slots=True)
class Llama3Scaling:
    """As in Llama 3.1: wavelengths above original_len / slow are multiplied by `factor`, those below
    original_len / fast are unchanged, with interpolation between."""

    factor: float
    original_len: int
    fast: float = 4.0
    slow: float = 1.0

    def __post_init__(self) -> None:
        check_counts(original_len=(self.original_len, 1))
        _check_positive(factor=self.factor, fast=self.fast, slow=self.slow)
        _check_order(self.slow, self.fast)


@dataclass(frozen=True, kw_only=True, slots=True)
class FactorScaling:
    """The frequency of each pair divided by a factor of its own, as LongRoPE finds them (Ding et al. 2024).

    sharpness   the factor of cosines and sines
    """

    factors: tuple[float, ...]
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        _check_positive(sharpness=self.sharpness)
        for number, factor in enumerate(self.factors):
            _check_positive(**{f"factors[{number}]": factor})


Scaling = LinearScaling | NtkScaling | YarnScaling | Llama3Scaling | FactorScaling


@dataclass(frozen=True, kw_only=True, slots=True)
class Rotary:
    """q and k rotated by an angle proportional to the position (Su et al. 2021).

    pairing      which numbers form a pair: "halves" i and i + E/2, as Llama; "pairs" neighbours, as GPT-J
    scaling      for texts longer than the model was trained for
    fraction     the share of a head's numbers that are rotated, the first ones, as GPT-NeoX
    local_base   the base, without scaling, in layers that have a window, as Gemma 3; None for the same in all layers
    """

    base: float = 10_000.0
    pairing: Pairing = "halves"
    scaling: Scaling | None = None
    fraction: float = 1.0
    local_base: float | None = None

    def __post_init__(self) -> None:
        check_base(self.base)
        if self.local_base is not None:
            check_base(self.local_base)
        check_pairing(self.pairing)
        if not (is_number(self.fraction) and 0 < self.fraction <= 1):
            raise ArgumentError("rotary-fraction", value=self.fraction)
        if self.scaling is not None and not isinstance(self.scaling, Scaling):
            raise ArgumentError(
                "config-kind",
                name="scaling",
                found=type(self.scaling).__name__,
                choices=Listed([*(kind.__name__ for kind in get_args(Scaling)), None]),
            )
        if isinstance(self.scaling, YarnScaling) and self.base <= 1:
            raise ArgumentError("yarn-base", value=self.base)

    def width(self, d_head: int) -> int:
        """How many numbers of a head are rotated.

        >>> Rotary(fraction=0.25).width(64)
        16
        """
        return int(d_head * self.fraction)

    @property
    def local(self) -> "Rotary":
        """The positions of layers that have a window."""
        return self if self.local_base is None else replace(self, base=self.local_base, scaling=None, local_base=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Alibi:
    """Scores lowered in proportion to the distance, with a slope per head (Press et al. 2021)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Relative:
    """A learned number per head and bucket of distances, added to the scores (T5, Raffel et al. 2020)."""

    n_buckets: int = 32
    max_distance: int = 128

    def __post_init__(self) -> None:
        buckets_per_side(self.n_buckets, self.max_distance, bidirectional=True)


Positions = Sinusoidal | Learned | Rotary | Alibi | Relative


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        if not (is_number(value) and value > 0):
            raise ArgumentError("config-positive", name=name, value=value)


def _check_order(slow: float, fast: float) -> None:
    if slow >= fast:
        raise ArgumentError("scaling-order", slow=slow, fast=fast)
