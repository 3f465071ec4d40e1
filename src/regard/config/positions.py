"""Settings of the five kinds of positions, and of the scalings of rotary ones, checked but not computed.

Added to the input: Sinusoidal, Learned. Rotation of q and k: Rotary. Added to the scores: Alibi, Relative.
"""

from dataclasses import dataclass, replace
from typing import get_args

from regard.arrays import check_counts, is_number
from regard.errors import ArgumentError
from regard.layer_rules import Pairing, buckets_per_side, check_base, check_pairing
from regard.messages import Listed


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
