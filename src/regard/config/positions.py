"""How a model is told where a token stands, as values: nothing is computed here, only described and checked.

Added to the input: Sinusoidal, Learned. Turned into q and k: Rotary. Added to the scores: Alibi, Relative.
"""

from dataclasses import dataclass
from typing import get_args

from regard.errors import ArgumentError
from regard.messages import Listed
from regard.position_rules import Pairing, buckets_per_side, check_base, check_counts, check_pairing, is_number


@dataclass(frozen=True, kw_only=True, slots=True)
class Sinusoidal:
    """Sines and cosines of falling frequency, added to the embeddings (Vaswani et al. 2017, section 3.5).

    pairing   "pairs" puts sine and cosine side by side, as the paper; "halves" all sines first, as Marian
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
    """A larger base, so that the slowest wave is `factor` times as long and the fastest stays as it is."""

    factor: float

    def __post_init__(self) -> None:
        _check_positive(factor=self.factor)


@dataclass(frozen=True, kw_only=True, slots=True)
class YarnScaling:
    """Slow waves divided by `factor`, fast ones kept, a ramp between; q · k sharpened (Peng et al. 2023).

    original_len   the length the model was trained for
    fast, slow     waves that turn more often than `fast` times in that length are kept; less than `slow`, divided
    sharpness      what cosines and sines are multiplied by; None for the paper's 0.1 ln(factor) + 1
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
    """As Llama 3.1 does it: waves longer than original_len / slow divided by `factor`, shorter than
    original_len / fast kept, between them a mixture."""

    factor: float
    original_len: int
    fast: float = 4.0
    slow: float = 1.0

    def __post_init__(self) -> None:
        check_counts(original_len=(self.original_len, 1))
        _check_positive(factor=self.factor, fast=self.fast, slow=self.slow)
        _check_order(self.slow, self.fast)


Scaling = LinearScaling | NtkScaling | YarnScaling | Llama3Scaling


@dataclass(frozen=True, kw_only=True, slots=True)
class Rotary:
    """q and k turned by an angle that grows with the position (Su et al. 2021).

    pairing   which numbers are turned together: "halves" i and i + E/2, as Llama; "pairs" neighbours, as GPT-J
    scaling   for texts longer than the model was trained for
    """

    base: float = 10_000.0
    pairing: Pairing = "halves"
    scaling: Scaling | None = None

    def __post_init__(self) -> None:
        check_base(self.base)
        check_pairing(self.pairing)
        if self.scaling is not None and not isinstance(self.scaling, Scaling):
            raise ArgumentError(
                "config-kind",
                name="scaling",
                found=type(self.scaling).__name__,
                choices=Listed([*(kind.__name__ for kind in get_args(Scaling)), None]),
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Alibi:
    """Scores lowered in proportion to the distance, a slope per head (Press et al. 2021)."""


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
