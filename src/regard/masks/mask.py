"""The Mask value: made by name, combined with `&`, `|` and `~`, drawn when printed."""

from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np

from regard.arrays import Array, is_tensor, is_tracing, is_whole
from regard.axes import Shape, part_of
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.masks import convert
from regard.masks.bound import BoundMask
from regard.masks.combined import Both, Either, Joined, Not
from regard.masks.rules import Band, Dense, Frame, Keys, Prefix, Rule, Segments
from regard.memory import require

SEEN, HIDDEN = "■", "·"
LARGEST = 32
SHEETS = 4


def draw(allowed: np.ndarray, T: int | None = None, S: int | None = None) -> str:
    """Draw (…, T, S): ■ may look, · may not, samples one below another; of a larger mask its first corner.

    Whoever has only the corner gives the sizes of the whole as T and S.

    >>> print(draw(np.tri(2, 3, dtype=bool)))
    ■ · ·
    ■ ■ ·
    """
    T, S = T if T is not None else allowed.shape[-2], S if S is not None else allowed.shape[-1]
    *lead, rows, cols = (corner := allowed[..., :LARGEST, :LARGEST]).shape
    sheets = corner.reshape(int(np.prod(lead)), rows, cols)
    lines = []
    for number, sheet in enumerate(sheets[:SHEETS]):
        if len(sheets) > 1:
            lines.append(f"[{number}]")
        lines += [" ".join(SEEN if seen else HIDDEN for seen in row) + (" …" if cols < S else "") for row in sheet]
        if rows < T or cols < S or not sheet.size:
            lines.append(f"… ({T} × {S})")
    if len(sheets) > SHEETS:
        lines.append(f"… ({len(sheets)})")
    return "\n".join(lines)


WORTH_ASKING = 2**28
"""Booleans from which on one asks first whether there is room for them."""


@dataclass(frozen=True, eq=False)
class Mask:
    """Who may look where. True means "may look".

    >>> print(Mask.causal())
    Mask.causal()
    ■ · · · · ·
    ■ ■ · · · ·
    ■ ■ ■ · · ·
    ■ ■ ■ ■ · ·
    ■ ■ ■ ■ ■ ·
    ■ ■ ■ ■ ■ ■
    """

    rule: Rule
    name: str

    # NumPy must hand `array & mask` to us instead of trying it element by element.
    __array_ufunc__ = None

    # --- by position -------------------------------------------------------------------------------------

    @classmethod
    def causal(cls, align: Literal["last", "first"] = "last") -> "Mask":
        """Each query sees itself and what is before it. With T != S the last query sees the last key.

        `align="first"` puts the first query beside the first key instead, as PyTorch's `is_causal` does.

        >>> Mask.causal(align="first").dense(2, 3).astype(int).tolist()
        [[1, 0, 0], [1, 1, 0]]
        """
        if align not in ("last", "first"):
            raise ArgumentError("unknown-choice", name="align", value=align, choices="last, first")
        first = align == "first"
        return cls(Band(None, 0, from_first=first), "Mask.causal(align='first')" if first else "Mask.causal()")

    @classmethod
    def window(cls, left: int | None, right: int | None = 0) -> "Mask":
        """Each query sees `left` keys before it, itself, and `right` keys after it; None is without end.

        >>> Mask.window(1, 0).dense(3, 3).astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
        """
        for side, value in (("left", left), ("right", right)):
            if value is not None and not (is_whole(value) and value >= 0):
                raise ArgumentError("window-side", side=side, value=value)
        left, right = (None if side is None else int(side) for side in (left, right))
        return cls(Band(left, right), f"Mask.window({left}, {right})")

    @classmethod
    def prefix(cls, n: Any) -> "Mask":
        """Everyone sees the first `n` keys and no other; one number, or one per sample.

        `Mask.causal() | Mask.prefix(n)` is the mask of a prefix language model.
        """
        if is_whole(n):
            if n < 0:
                raise ArgumentError("prefix-negative", value=int(n))
            return cls(Prefix(int(n)), f"Mask.prefix({n})")
        counts = convert.whole_numbers(n, "prefix")
        if not is_tracing() and (counts < 0).any():
            raise ArgumentError("prefix-negative", value=int(counts.min()))
        return cls(Prefix(counts), f"Mask.prefix({convert.spell(counts)})")

    # --- by what the keys are ----------------------------------------------------------------------------

    @classmethod
    def padding(cls, ids: Array, pad: int = 0) -> "Mask":
        """Keys whose id is not `pad`. `ids` is (S,) or (B, S)."""
        if not is_whole(pad):
            raise ArgumentError("pad-value", value=pad)
        ids = convert.whole_numbers(ids, "padding")
        return cls(Keys(ids != pad), f"Mask.padding({convert.spell(ids)}, pad={pad})")

    @classmethod
    def segments(cls, ids: Array, queries: Array | None = None) -> "Mask":
        """A query sees the keys of its own segment. `ids` is (S,) or (B, S); `queries`, if given, (T,) or (B, T).

        Without `queries` the queries are the last T of the keys.
        """
        ids = convert.whole_numbers(ids, "segments")
        queries = None if queries is None else convert.whole_numbers(queries, "segments")
        return cls(Segments(ids, queries), f"Mask.segments({convert.spell(ids)})")

    # --- from other people's conventions -----------------------------------------------------------------

    @classmethod
    def of(cls, allowed: "Mask | Array") -> "Mask":
        """A boolean array, True = may look, as a Mask; a Mask stays as it is.

        (T, S), or as many axes as the scores; the array is kept, not copied. Any other dtype raises DtypeError,
        which names the converter.
        """
        if isinstance(allowed, Mask):
            return allowed
        allowed = convert.two_axes(convert.booleans(allowed), "Mask.of")
        return cls(Dense(allowed), f"Mask.of({convert.spell(allowed)})")

    @classmethod
    def from_blocked(cls, blocked: Array, keys: bool = False) -> "Mask":
        """The opposite polarity, as `nn.MultiheadAttention` has it: True or 1 = may not look.

        `keys=True`: its `key_padding_mask`, (B, S) or (S,). Otherwise its `attn_mask`, (T, S).
        """
        blocked = convert.zero_or_one(blocked, "from_blocked")
        name = f"Mask.from_blocked({convert.spell(blocked)}{', keys=True' if keys else ''})"
        if keys:
            return cls(Keys(convert.one_row_per_sample(blocked == 0, "from_blocked")), name)
        if blocked.ndim == 3:
            raise ShapeError("from-blocked-3d", found=tuple(blocked.shape))
        return cls(Dense(convert.two_axes(blocked, "Mask.from_blocked") == 0), name)

    @classmethod
    def from_additive(cls, added: Array) -> "Mask":
        """A mask made to be added to the scores: 0 = may look; -inf or the dtype's lowest number = may not."""
        added = convert.zero_or_lowest(added)
        return cls(Dense(added == 0), f"Mask.from_additive({convert.spell(added)})")

    @classmethod
    def from_keep(cls, keep: Array) -> "Mask":
        """1 = keep, 0 = padding, as Hugging Face's `attention_mask`: (B, S) or (S,); (B, T, S) is one per sample."""
        keep = convert.zero_or_one(keep, "from_keep") != 0
        name = f"Mask.from_keep({convert.spell(keep)})"
        if keep.ndim <= 2:
            return cls(Keys(keep), name)
        return cls(Dense(keep, per_sample=keep.ndim == 3), name)

    # --- together ----------------------------------------------------------------------------------------

    def __and__(self, other: "Mask | Array") -> "Mask":
        other = _combined(other, "&")
        rules: list[Rule] = []
        for rule in (*_parts(self.rule, Both), *_parts(other.rule, Both)):
            # Two bands are one narrower band: causal & window stays on the fast paths.
            at = next((i for i, other_rule in enumerate(rules) if _same_band(other_rule, rule)), None)
            if at is None:
                rules.append(rule)
            else:
                rules[at] = rules[at] & rule  # type: ignore[operator]
        joined = rules[0] if len(rules) == 1 else Both(tuple(rules))
        return Mask(joined, f"{_bracket(self.name, '|')} & {_bracket(other.name, '|')}")

    def __or__(self, other: "Mask | Array") -> "Mask":
        other = _combined(other, "|")
        rules = (*_parts(self.rule, Either), *_parts(other.rule, Either))
        return Mask(Either(rules), f"{_bracket(self.name, '&')} | {_bracket(other.name, '&')}")

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> "Mask":
        rule = self.rule.rule if isinstance(self.rule, Not) else Not(self.rule)
        name = self.name.removeprefix("~") if isinstance(self.rule, Not) else f"~{_bracket(self.name, '&|')}"
        return Mask(rule, name)

    def __bool__(self) -> bool:
        raise ArgumentError("mask-truth")

    # --- lowered -----------------------------------------------------------------------------------------

    def bind(self, lead: Shape, T: int, S: int, like: Array | None = None) -> BoundMask:
        """Lay the mask onto scores of shape (*lead, T, S); raises ShapeError where it does not fit."""
        frame = Frame(lead=tuple(lead), T=T, S=S, like=like)
        return BoundMask(self.rule.align(frame), frame)

    def dense(
        self,
        T: int,
        S: int,
        like: Array | None = None,
        *,
        rows: slice | None = None,
        cols: slice | None = None,
    ) -> Array:
        """The boolean array, or the block of it at `rows` and `cols`, as the kind of array `like` is.

        (T, S); with something per sample, (B, 1, T, S), ready to be used beside heads.
        """
        lead = self._own_lead()
        rows, cols = part_of(rows, T), part_of(cols, S)
        shape = (*lead, rows.stop - rows.start, cols.stop - cols.start)
        if not is_tracing() and prod(shape) > WORTH_ASKING:
            require(2 * prod(shape), key="mask-too-large", T=T, S=S)
        seen = False if 0 in shape else self.bind(lead, T, S, like).block(rows, cols)
        if like is not None and is_tensor(like):
            import torch

            if isinstance(seen, bool):
                return torch.full(shape, seen, device=like.device)
            return _axes_of(seen, lead).expand(shape).clone()
        if isinstance(seen, bool):
            return np.full(shape, seen)
        return np.broadcast_to(_axes_of(seen, lead), shape).copy()

    def _own_lead(self) -> Shape:
        """The leading axes its arrays bring along."""
        leads = list(self.rule.leads())
        if any(len(lead) == 1 for lead in leads):
            # Some array has no axis for heads, so the scores have none: (B, T, S).
            leads = [lead[:-1] if len(lead) > 1 and lead[-1] == 1 else lead for lead in leads]
        try:
            return tuple(np.broadcast_shapes(*leads))
        except ValueError:
            raise ShapeError("mask-parts", name=self.name, found=leads) from None

    def __str__(self) -> str:
        return f"{self.name}\n{self.picture()}"

    def __repr__(self) -> str:
        return self.name

    def picture(self, T: int | None = None, S: int | None = None) -> str:
        """The mask in characters: ■ may look, · may not. Sizes it does not know are taken as six."""
        known_T, known_S = _known_sizes(self.rule)
        S = next((size for size in (S, known_S, T, known_T) if size is not None), 6)
        T = next((size for size in (T, known_T) if size is not None), S)
        corner = slice(0, LARGEST)
        return draw(self.dense(T, S, rows=corner, cols=corner), T, S)


def _known_sizes(rule: Rule) -> tuple[int | None, int | None]:
    """T and S as far as the arrays inside tell."""
    match rule:
        case Keys(keep=keep):
            return None, keep.shape[-1]
        case Segments(keys=keys, queries=queries):
            return (None if queries is None else queries.shape[-1]), keys.shape[-1]
        case Dense(allowed=allowed):
            T, S = allowed.shape[-2:]
            return (None if T == 1 else T), (None if S == 1 else S)
        case Not(rule=inner):
            return _known_sizes(inner)
        case Joined(rules=rules):
            sizes = [_known_sizes(part) for part in rules]
            return next((t for t, _ in sizes if t), None), next((s for _, s in sizes if s), None)
    return None, None


def _same_band(one: Rule, other: Rule) -> bool:
    return isinstance(one, Band) and isinstance(other, Band) and one.from_first == other.from_first


def _parts(rule: Rule, kind: type[Joined]) -> tuple[Rule, ...]:
    return rule.rules if isinstance(rule, kind) else (rule,)


def _combined(other: Any, sign: str) -> Mask:
    if isinstance(other, Mask):
        return other
    if is_tensor(other) or isinstance(other, np.ndarray):
        return Mask.of(other)
    raise DtypeError("mask-combined", sign=sign, found=type(other).__name__)


def _bracket(name: str, signs: str) -> str:
    return f"({name})" if any(f" {sign} " in name for sign in signs) else name


def _axes_of(seen: Array, lead: Shape) -> Array:
    """A block of four axes (or two) with as many leading axes as `lead`."""
    if seen.ndim == 2 or len(lead) == 2:
        return seen
    if len(lead) == 1:
        return seen[:, 0]
    if not lead:
        return seen[0, 0]
    if seen.shape[0] == 1:
        return seen.reshape(*([1] * (len(lead) - 1)), *seen.shape[1:])
    return seen.reshape(*lead[:-1], *seen.shape[1:])
