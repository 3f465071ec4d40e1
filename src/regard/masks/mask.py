"""The Mask class: named constructors, converters, the operators `&`, `|` and `~`, and a picture when printed.

A raw mask is accepted or refused by its dtype alone; a converter also checks the values, because a wrong convention
raises no error elsewhere: a 0/1 float mask added to scores masks nothing.
"""

import sys
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np

from regard.arrays import Array, is_integer, is_tensor, is_tracing
from regard.axes import Shape, plain_slice
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.masks import mask
from regard.masks.bound import And, BoundMask, Combined, Not, Or
from regard.masks.rules import Band, Dense, Frame, Keys, Prefix, Rule, Segments
from regard.memory import require_bytes

VISIBLE, MASKED = "■", "·"
LARGEST = 32
MOST_SAMPLES = 4


def draw(allowed: np.ndarray, T: int | None = None, S: int | None = None) -> str:
    """Draw (…, T, S): ■ visible, · masked, samples one below another; of a large mask the top left corner.

    A caller that has only the corner gives the full sizes as T and S.

    >>> print(draw(np.tri(2, 3, dtype=bool)))
    ■ · ·
    ■ ■ ·
    """
    T, S = T if T is not None else allowed.shape[-2], S if S is not None else allowed.shape[-1]
    *lead, rows, cols = (corner := allowed[..., :LARGEST, :LARGEST]).shape
    samples = corner.reshape(int(np.prod(lead)), rows, cols)
    lines = []
    for number, sample in enumerate(samples[:MOST_SAMPLES]):
        if len(samples) > 1:
            lines.append(f"[{number}]")
        lines += [
            " ".join(VISIBLE if visible else MASKED for visible in row) + (" …" if cols < S else "") for row in sample
        ]
        if rows < T or cols < S or not sample.size:
            lines.append(f"… ({T} × {S})")
    if len(samples) > MOST_SAMPLES:
        lines.append(f"… ({len(samples)})")
    return "\n".join(lines)


CHECK_MEMORY_FROM = 2**28
"""Number of booleans from which free memory is checked first."""


@dataclass(frozen=True, eq=False)
class Mask:
    """Which keys are visible to which queries. True means visible.

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

    # NumPy must pass `array & mask` to Mask instead of applying & element by element.
    __array_ufunc__ = None

    # --- by position -------------------------------------------------------------------------------------

    @classmethod
    def causal(cls, align: Literal["last", "first"] = "last") -> "Mask":
        """Each query sees itself and the keys before it. With T != S the last query is aligned with the last key.

        `align="first"` aligns the first query with the first key instead, as PyTorch's `is_causal` does.

        >>> Mask.causal(align="first").dense(2, 3).astype(int).tolist()
        [[1, 0, 0], [1, 1, 0]]
        """
        if align not in ("last", "first"):
            raise ArgumentError("unknown-choice", name="align", value=align, choices="last, first")
        first = align == "first"
        return cls(Band(None, 0, from_first=first), "Mask.causal(align='first')" if first else "Mask.causal()")

    @classmethod
    def window(cls, left: int | np.integer[Any] | None, right: int | np.integer[Any] | None = 0) -> "Mask":
        """Each query sees `left` keys before it, itself, and `right` keys after it; None means no limit.

        >>> Mask.window(1, 0).dense(3, 3).astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
        """
        for side, value in (("left", left), ("right", right)):
            if value is not None and not (is_integer(value) and value >= 0):
                raise ArgumentError("window-side", side=side, value=value)
        left, right = (None if side is None else int(side) for side in (left, right))
        return cls(Band(left, right), f"Mask.window({left}, {right})")

    @classmethod
    def prefix(cls, n: Any) -> "Mask":
        """Every query sees the first `n` keys and no other; one number, or one per sample.

        `Mask.causal() | Mask.prefix(n)` is the mask of a prefix language model.
        """
        if is_integer(n):
            if n < 0:
                raise ArgumentError("prefix-negative", value=int(n))
            return cls(Prefix(int(n)), f"Mask.prefix({n})")
        counts = mask.whole_numbers(n, "prefix")
        if not is_tracing() and (counts < 0).any():
            raise ArgumentError("prefix-negative", value=int(counts.min()))
        return cls(Prefix(counts), f"Mask.prefix({mask.shape_text(counts)})")

    # --- by ids of the keys ------------------------------------------------------------------------------

    @classmethod
    def padding(cls, ids: Array, pad: int = 0) -> "Mask":
        """Keys whose id is not `pad`. `ids` is (S,) or (B, S)."""
        if not is_integer(pad):
            raise ArgumentError("pad-value", value=pad)
        ids = mask.whole_numbers(ids, "padding")
        return cls(Keys(ids != pad), f"Mask.padding({mask.shape_text(ids)}, pad={pad})")

    @classmethod
    def segments(cls, ids: Array, queries: Array | None = None) -> "Mask":
        """A query sees the keys of its own segment. `ids` is (S,) or (B, S); `queries`, if given, (T,) or (B, T).

        Without `queries` the queries are the last T of the keys.
        """
        ids = mask.whole_numbers(ids, "segments")
        queries = None if queries is None else mask.whole_numbers(queries, "segments")
        return cls(Segments(ids, queries), f"Mask.segments({mask.shape_text(ids)})")

    # --- from other conventions --------------------------------------------------------------------------

    @classmethod
    def of(cls, allowed: "Mask | Array") -> "Mask":
        """A boolean array, True = visible, as a Mask; a Mask is returned unchanged.

        (T, S), or as many axes as the scores; the array is kept, not copied. Any other dtype raises a DtypeError that
        names the converter.
        """
        if isinstance(allowed, Mask):
            return allowed
        allowed = mask.two_axes(mask.booleans(allowed), "Mask.of")
        return cls(Dense(allowed), f"Mask.of({mask.shape_text(allowed)})")

    @classmethod
    def from_blocked(cls, blocked: Array, keys: bool = False) -> "Mask":
        """The opposite polarity, as in `nn.MultiheadAttention`: True or 1 = masked.

        `keys=True`: its `key_padding_mask`, (B, S) or (S,). Otherwise its `attn_mask`, (T, S).
        """
        blocked = mask.zero_or_one(blocked, "from_blocked")
        name = f"Mask.from_blocked({mask.shape_text(blocked)}{', keys=True' if keys else ''})"
        if keys:
            return cls(Keys(mask.one_row_per_sample(blocked == 0, "from_blocked")), name)
        if blocked.ndim == 3:
            raise ShapeError("from-blocked-3d", found=tuple(blocked.shape))
        return cls(Dense(mask.two_axes(blocked, "Mask.from_blocked") == 0), name)

    @classmethod
    def from_additive(cls, added: Array) -> "Mask":
        """A mask that is added to the scores: 0 = visible; -inf or the dtype's lowest number = masked."""
        added = mask.zero_or_lowest(added)
        return cls(Dense(added == 0), f"Mask.from_additive({mask.shape_text(added)})")

    @classmethod
    def from_keep(cls, keep: Array) -> "Mask":
        """1 = keep, 0 = padding, as Hugging Face's `attention_mask`: (B, S) or (S,); (B, T, S) is one per sample."""
        keep = mask.zero_or_one(keep, "from_keep") != 0
        name = f"Mask.from_keep({mask.shape_text(keep)})"
        if keep.ndim <= 2:
            return cls(Keys(keep), name)
        return cls(Dense(keep, per_sample=keep.ndim == 3), name)

    # --- combined ----------------------------------------------------------------------------------------

    def __and__(self, other: "Mask | Array") -> "Mask":
        other = _combined(other, "&")
        rules: list[Rule] = []
        for rule in (*_parts(self.rule, And), *_parts(other.rule, And)):
            # Two bands are one narrower band: causal & window stays on the fast paths.
            at = next((i for i, other_rule in enumerate(rules) if _same_band(other_rule, rule)), None)
            if at is None:
                rules.append(rule)
            else:
                rules[at] = rules[at] & rule  # type: ignore[operator]
        joined = rules[0] if len(rules) == 1 else And(tuple(rules))
        return Mask(joined, f"{_bracket(self.name, '|')} & {_bracket(other.name, '|')}")

    def __or__(self, other: "Mask | Array") -> "Mask":
        other = _combined(other, "|")
        rules = (*_parts(self.rule, Or), *_parts(other.rule, Or))
        return Mask(Or(rules), f"{_bracket(self.name, '&')} | {_bracket(other.name, '&')}")

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> "Mask":
        rule = self.rule.rule if isinstance(self.rule, Not) else Not(self.rule)
        name = self.name.removeprefix("~") if isinstance(self.rule, Not) else f"~{_bracket(self.name, '&|')}"
        return Mask(rule, name)

    def __bool__(self) -> bool:
        raise ArgumentError("mask-truth")

    # --- evaluated ---------------------------------------------------------------------------------------

    def bind(self, lead: Shape, T: int, S: int, like: Array | None = None) -> BoundMask:
        """Apply the mask to scores of shape (*lead, T, S); raises ShapeError where it does not fit."""
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
        """The boolean array, or its block at `rows` and `cols`, in the array type of `like`.

        (T, S); for a mask per sample, (B, 1, T, S), which broadcasts over heads.
        """
        lead = self._own_lead()
        rows, cols = plain_slice(rows, T), plain_slice(cols, S)
        shape = (*lead, rows.stop - rows.start, cols.stop - cols.start)
        if not is_tracing() and prod(shape) > CHECK_MEMORY_FROM:
            require_bytes(2 * prod(shape), key="mask-too-large", T=T, S=S)
        visible = False if 0 in shape else self.bind(lead, T, S, like).block(rows, cols)
        if like is not None and is_tensor(like):
            import torch

            if isinstance(visible, bool):
                return torch.full(shape, visible, device=like.device)
            return _axes_of(visible, lead).expand(shape).clone()
        if isinstance(visible, bool):
            return np.full(shape, visible)
        return np.broadcast_to(_axes_of(visible, lead), shape).copy()

    def _own_lead(self) -> Shape:
        """The leading axes of the mask's own arrays."""
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
        """The mask in characters: ■ visible, · masked. Unknown sizes default to six."""
        known_T, known_S = _known_sizes(self.rule)
        S = next((size for size in (S, known_S, T, known_T) if size is not None), 6)
        T = next((size for size in (T, known_T) if size is not None), S)
        corner = slice(0, LARGEST)
        return draw(self.dense(T, S, rows=corner, cols=corner), T, S)


def _known_sizes(rule: Rule) -> tuple[int | None, int | None]:
    """T and S where the arrays of the rule determine them."""
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
        case Combined(rules=rules):
            sizes = [_known_sizes(part) for part in rules]
            return next((t for t, _ in sizes if t), None), next((s for _, s in sizes if s), None)
    return None, None


def _same_band(one: Rule, other: Rule) -> bool:
    return isinstance(one, Band) and isinstance(other, Band) and one.from_first == other.from_first


def _parts(rule: Rule, kind: type[Combined]) -> tuple[Rule, ...]:
    return rule.rules if isinstance(rule, kind) else (rule,)


def _combined(other: Any, sign: str) -> Mask:
    if isinstance(other, Mask):
        return other
    if is_tensor(other) or isinstance(other, np.ndarray):
        return Mask.of(other)
    raise DtypeError("mask-combined", sign=sign, found=type(other).__name__)


def _bracket(name: str, signs: str) -> str:
    return f"({name})" if any(f" {sign} " in name for sign in signs) else name


def _axes_of(visible: Array, lead: Shape) -> Array:
    """A block of four axes (or two) with as many leading axes as `lead`."""
    if visible.ndim == 2 or len(lead) == 2:
        return visible
    if len(lead) == 1:
        return visible[:, 0]
    if not lead:
        return visible[0, 0]
    if visible.shape[0] == 1:
        return visible.reshape(*([1] * (len(lead) - 1)), *visible.shape[1:])
    return visible.reshape(*lead[:-1], *visible.shape[1:])


def booleans(x: Any) -> Array:
    """`x` if it is boolean; DtypeError naming the converter if it is not."""
    x = _array(x)
    kind = kind_of(x)
    if kind == "bool":
        return x
    key = {"float": "mask-dtype-float", "whole": "mask-dtype-whole"}.get(kind, "mask-dtype-other")
    raise DtypeError(key, dtype=x.dtype, shape=tuple(x.shape))


def whole_numbers(x: Any, what: str) -> Array:
    """Ids or counts: whole numbers with at least one axis."""
    x = _array(x)
    if kind_of(x) not in ("whole", "bool"):
        raise DtypeError("mask-ids-dtype", what=what, dtype=x.dtype)
    if x.ndim == 0:
        raise ShapeError("mask-ids-shape", what=what)
    # A copy in the one dtype that NumPy and torch can both compare: a Mask is a value, and its ids are small.
    return x.astype(np.int64) if isinstance(x, np.ndarray) else x.long().clone()


def two_axes(x: Array, what: str) -> Array:
    """`x`, if it has an axis for queries and one for keys."""
    if x.ndim < 2:
        raise ShapeError("mask-too-few-axes", what=what, found=tuple(x.shape))
    return x


def zero_or_one(x: Any, what: str) -> Array:
    """A mask of 0 and 1 in any dtype; any other value raises."""
    x = _array(x)
    if kind_of(x) == "other":
        raise DtypeError("mask-dtype-other", dtype=x.dtype, shape=tuple(x.shape))
    if x.ndim == 0:
        raise ShapeError("mask-ids-shape", what=f"Mask.{what}")
    if kind_of(x) != "bool" and not is_tracing():
        other = x[(x != 0) & (x != 1)]
        if other.shape[0]:
            raise ArgumentError("mask-not-zero-one", what=what, value=other[0].item())
    return x


def zero_or_lowest(x: Any) -> Array:
    """An additive mask: 0, and -inf or the dtype's lowest number; any other value raises."""
    x = _array(x)
    if kind_of(x) != "float":
        raise DtypeError("from-additive-dtype", dtype=x.dtype)
    two_axes(x, "Mask.from_additive")
    if is_tracing():
        return x
    other = x[(x != 0) & (x > lowest(x))]
    nans = x[x != x]
    if other.shape[0] or nans.shape[0]:
        value = (other if other.shape[0] else nans)[0].item()
        raise ArgumentError("from-additive-values", value=value, lowest=lowest(x), dtype=x.dtype)
    return x


def one_row_per_sample(x: Array, what: str) -> Array:
    if x.ndim not in (1, 2):
        raise ShapeError("mask-one-row", what=what, found=tuple(x.shape))
    return x


def shape_text(x: Array) -> str:
    """An array in the name of a mask: its shape."""
    return "[…]" if is_tracing() else f"[{'×'.join(str(size) for size in x.shape)}]"


def kind_of(x: Array) -> str:
    """bool, whole, float or other."""
    if is_tensor(x):
        if x.dtype.is_complex:
            return "other"
        name = str(x.dtype).removeprefix("torch.")
        if x.dtype.is_floating_point:
            return "other" if name.startswith("float8") else "float"
        return "bool" if name == "bool" else "whole"
    return {"b": "bool", "i": "whole", "u": "whole", "f": "float"}.get(x.dtype.kind, "other")


def lowest(x: Array) -> float:
    """The lowest finite number of the array's dtype."""
    if is_tensor(x):
        import torch

        return torch.finfo(x.dtype).min
    return float(np.finfo(x.dtype).min)


def _array(x: Any) -> Array:
    if is_tensor(x):
        return x
    if isinstance(x, np.ndarray):
        return sys.modules["torch"].as_tensor(x) if is_tracing() else x
    if isinstance(x, str | bool) or callable(x):
        raise DtypeError("mask-not-array", found=repr(x) if isinstance(x, str | bool) else type(x).__name__)
    try:
        array = np.asarray(x)
    except ValueError:  # a ragged list
        raise DtypeError("mask-not-array", found=type(x).__name__) from None
    if array.dtype == object:
        raise DtypeError("mask-not-array", found=type(x).__name__)
    return array
