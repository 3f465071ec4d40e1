"""Five kinds of positions with one interface, so that a stack works with any of them.

Positions are added to the input, rotate queries and keys, or bias the scores. Each kind does one of the three; the
other two methods do nothing. The formulas are in `functional`.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard import functional
from regard.arrays import check_counts
from regard.config import Scaling
from regard.functional.position_wise import floats
from regard.functional.positions import apply_expanded_rotations, expand_rotations
from regard.layer_checks import Pairing, buckets_per_side
from regard.layers.position_wise import initial_weight


class NoPositions(nn.Module):
    """No positions, and the interface: the three methods do nothing unless a subclass overrides them."""

    def add_to(self, x: Tensor, positions: Tensor) -> Tensor:
        """x (B, T, D) with positions (T,) or (B, T) added."""
        return x

    def rotation(self, positions: Tensor, like: Tensor) -> Callable[[Tensor], Tensor] | None:
        """The function that rotates queries and keys (B, H, T, E) at these positions; None for no rotation."""
        return None

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor | None:
        """The bias of the scores, (1 or B, H, T, S), for queries (T,) or (B, T) and keys; None for no bias."""
        return None


class SinusoidalPositions(NoPositions):
    """x plus sines and cosines of decreasing frequency (Vaswani et al. 2017, section 3.5). No weights, any length.

    >>> SinusoidalPositions(4)(torch.zeros(1, 2, 4))[0, 0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

    def __init__(self, d_model: int, base: float = 10_000.0, pairing: Pairing = "pairs") -> None:
        super().__init__()
        self.d_model, self.base, self.pairing = d_model, base, pairing

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        return self.add_to(x, _from_zero(x) if positions is None else positions)

    def add_to(self, x: Tensor, positions: Tensor) -> Tensor:
        """x (B, T, D) with positions (T,) or (B, T) added."""
        return x + functional.sinusoidal_at(positions, self.d_model, self.base, self.pairing, like=x)


class LearnedPositions(NoPositions):
    """x plus a learned vector for each of `max_len` positions, as in BERT and GPT-2."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        check_counts(max_len=(max_len, 1), d_model=(d_model, 1))
        self.table = initial_weight(max_len, d_model)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        return self.add_to(x, _from_zero(x) if positions is None else positions)

    def add_to(self, x: Tensor, positions: Tensor) -> Tensor:
        """x (B, T, D) with positions (T,) or (B, T) added."""
        return x + functional.learned_at(self.table, positions)


class RotaryPositions(NoPositions):
    """Queries and keys rotated by an angle proportional to the position (Su et al. 2021). No weights, any length.

    width   how many numbers of a head are rotated, the first ones; None for all

    >>> RotaryPositions(2)(torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]])).round(decimals=2)
    tensor([[[[1.0000, 0.0000],
              [0.5400, 0.8400]]]])
    """

    def __init__(
        self,
        d_head: int,
        base: float = 10_000.0,
        pairing: Pairing = "halves",
        scaling: Scaling | None = None,
        width: int | None = None,
    ) -> None:
        super().__init__()
        self.d_head, self.base, self.pairing, self.scaling = d_head, base, pairing, scaling
        self.width = d_head if width is None else width

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Queries or keys (B, H, T, E), rotated."""
        x = floats(x)
        return self.rotation(_from_zero(x) if positions is None else positions, like=x)(x)

    def rotation(self, positions: Tensor, like: Tensor) -> Callable[[Tensor], Tensor]:
        """The function that rotates queries and keys (B, H, T, E); cosines are computed once for all layers."""
        per_head = positions[:, None] if positions.ndim == 2 else positions  # B 1 T
        rotations = functional.rotations_at(per_head, self.width, self.base, self.scaling, like)
        expanded = expand_rotations(rotations, self.pairing)
        if self.width == self.d_head:
            return lambda x: apply_expanded_rotations(x, expanded, self.pairing)
        sizes = [self.width, self.d_head - self.width]

        def rotate_first(x: Tensor) -> Tensor:
            first, rest = x.split(sizes, -1)
            return torch.cat((apply_expanded_rotations(first, expanded, self.pairing), rest), -1)

        return rotate_first


class AlibiPositions(NoPositions):
    """Scores lowered in proportion to the distance, by a slope per head (Press et al. 2021). No weights, any length."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor:
        """The bias of the scores, (1 or B, H, T, S), for queries (T,) or (B, T) and keys."""
        return _four_axes(functional.alibi_bias_at(self.n_heads, queries, keys, like))


class RelativePositions(NoPositions):
    """A learned number per head and bucket of distances, added to the scores (T5, Raffel et al. 2020)."""

    def __init__(self, n_heads: int, n_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True) -> None:
        super().__init__()
        check_counts(n_heads=(n_heads, 1))
        buckets_per_side(n_buckets, max_distance, bidirectional)
        self.max_distance, self.bidirectional = max_distance, bidirectional
        self.table = initial_weight(n_buckets, n_heads)

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor:
        """The bias of the scores, (1 or B, H, T, S), for queries (T,) or (B, T) and keys."""
        return _four_axes(functional.relative_bias_at(self.table, queries, keys, self.max_distance, self.bidirectional))


def _four_axes(bias: Tensor) -> Tensor:
    return bias if bias.ndim == 4 else bias[None]


def _from_zero(x: Tensor) -> Tensor:
    return torch.arange(x.shape[-2], device=x.device)
