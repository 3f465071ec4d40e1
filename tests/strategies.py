"""Hypothesis strategies for attention calls: shapes, masks, dtypes and memory layouts.

`calls()` yields a `Call`: q, k, v, a mask of any type that users may pass, and `allowed`, the same mask computed by
brute force and broadcast to the scores. Import it as `from strategies import calls` (pyproject.toml puts `tests` on the
path). This module is independent of backends; `Call.as_torch` returns the same numbers as tensors.

Numbers come from a drawn seed, not from Hypothesis itself: the edge cases are in shapes, masks and layouts, and drawing
every float would make the examples slower and find no more.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from regard.arrays import to_numpy
from regard.axes import Sizes
from regard.masks import Mask
from regard.masks.padding import Padding
from regard.records import Record

LENGTHS = (0, 1, 2, 3, 5, 7, 8, 13, 17)
WIDTHS = (1, 2, 3, 4, 7, 8, 16)
HEADS = ((1, 1), (2, 2), (3, 3), (2, 1), (4, 2), (6, 3), (6, 1))  # (H, G)
LAYOUTS = ("contiguous", "transposed", "heads_last", "sliced", "reversed", "expanded", "read_only")
NUMPY_DTYPES = ("float64", "float32", "float16")
TORCH_DTYPES = (*NUMPY_DTYPES, "bfloat16")
GARBAGE = (np.nan, np.inf, -np.inf, 1e38, -1e38)


class MaskCase(NamedTuple):
    """A mask as a caller passes it, and which keys are visible, (*lead, T, S), by brute force."""

    mask: Any
    allowed: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Call:
    """One call of attention: `attend(call.q, call.k, call.v, **call.options)`."""

    sizes: Sizes
    q: Any
    k: Any
    v: Any
    allowed: np.ndarray
    """Which keys are visible: boolean, always NumPy, in the shape of the scores."""
    mask: Any = None
    """A Mask, a raw boolean array, or None."""
    bias: Any = None
    scale: float | None = None
    softcap: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments after q, k and v."""
        return {"mask": self.mask, "bias": self.bias, "scale": self.scale, "softcap": self.softcap}

    def as_torch(self, dtype: str | None = None, device: str = "cpu") -> "Call":
        """The same call with tensors, with the same strides where torch supports them; a Mask stays a Mask."""
        q, k, v = (as_tensor(x, dtype, device) for x in (self.q, self.k, self.v))
        mask = as_tensor(self.mask, device=device) if isinstance(self.mask, np.ndarray) else self.mask
        bias = None if self.bias is None else as_tensor(self.bias, dtype, device)
        return replace(self, q=q, k=k, v=v, mask=mask, bias=bias)

    def as_dtype(self, dtype: str) -> "Call":
        """The same call as NumPy arrays of another dtype."""
        q, k, v = (x.astype(dtype) for x in (self.q, self.k, self.v))
        return replace(self, q=q, k=k, v=v, bias=None if self.bias is None else self.bias.astype(dtype))

    @property
    def unseen(self) -> np.ndarray:
        """Keys that are masked for all queries, in the axes of k: (*samples, G, S), or (*lead, S) without heads."""
        visible = np.logical_or.reduce(self.allowed, axis=-2)
        if self.sizes.has_heads:
            G, each = self.sizes.G, self.sizes.H // max(1, self.sizes.G)
            visible = visible.reshape(*visible.shape[:-2], G, each, visible.shape[-1]).any(-2)
        return ~visible

    def with_garbage(self, where: np.ndarray, seed: int = 0) -> tuple["Call", "Call"]:
        """The call itself, and the call with NaN, Inf or huge keys and values at `where` (axes as `unseen`).

        Both are contiguous: BLAS rounds differently for different layouts, and the test compares bits.
        """
        rng = np.random.default_rng(seed)
        pair = []
        for x in (self.k, self.v):
            with np.errstate(over="ignore"):
                garbage = rng.choice(GARBAGE, x.shape).astype(x.dtype)
            pair.append((np.ascontiguousarray(x), np.where(where[..., None], garbage, x)))
        (k, bad_k), (v, bad_v) = pair
        return replace(self, k=k, v=v), replace(self, k=bad_k, v=bad_v)

    def __repr__(self) -> str:
        mask = self.mask if self.mask is None or isinstance(self.mask, Mask) else f"bool{self.mask.shape}"
        bias = None if self.bias is None else tuple(self.bias.shape)
        return (
            f"Call(q={tuple(self.q.shape)}, k={tuple(self.k.shape)}, v={tuple(self.v.shape)}, {self.q.dtype}, "
            f"strides q={_strides(self.q)} k={_strides(self.k)} v={_strides(self.v)}, "
            f"mask={mask!r}, bias={bias}, scale={self.scale}, softcap={self.softcap})"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What Hypothesis prints; the numbers are omitted, because the seed reproduces them."""
        printer.text(repr(self))


def padding_in(record: Record) -> Padding:
    """The padding of a record as NumPy arrays; tests/unit/test_padding.py tests that it is correct."""
    found = record.padding or Padding()
    return Padding(*(None if x is None else to_numpy(x) for x in found))


# --- sizes -----------------------------------------------------------------------------------------------


@st.composite
def call_sizes(
    draw: st.DrawFn, axes: tuple[int, ...] = (2, 3, 4, 5), lengths: tuple[int, ...] = LENGTHS, grouped: bool = True
) -> Sizes:
    """The sizes of a call with one of these numbers of axes; heads may be grouped from four axes up."""
    number = draw(st.sampled_from(axes))
    H, G = (1, 1)
    samples: tuple[int, ...] = ()
    if number > 2:
        count = st.sampled_from((1, 2, 3) if 0 not in lengths else (2, 1, 3, 0))
        samples = tuple(draw(count) for _ in range(number - 2 if number == 3 else number - 3))
    if number > 3:
        H, G = draw(st.sampled_from(HEADS if grouped else [(h, g) for h, g in HEADS if h == g]))
    lead = (*samples, H) if number > 3 else samples
    T, S = draw(st.sampled_from(lengths)), draw(st.sampled_from(lengths))
    E, Ev = draw(st.sampled_from(WIDTHS)), draw(st.sampled_from(WIDTHS))
    return Sizes(lead=lead, B=int(np.prod(samples, dtype=int)), H=H, G=G, T=T, S=S, E=E, Ev=Ev)


def samples_of(sizes: Sizes) -> tuple[int, ...]:
    """The axes that count samples: all leading axes except the axis of heads."""
    return sizes.lead[:-1] if sizes.has_heads else sizes.lead


@st.composite
def broadcastable_shapes(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to `shape`, with as many axes."""
    return tuple(draw(st.sampled_from((size, 1))) for size in shape)


@st.composite
def sample_shapes(draw: st.DrawFn, sizes: Sizes) -> tuple[int, ...]:
    """Sample axes of an array: none, the last few or all of them; some of size one.

    Scores of two axes have one sample, so an array may be (1, S) as well as (S,).
    """
    samples = samples_of(sizes) or (1,)
    dropped = draw(st.integers(0, len(samples)))
    return draw(broadcastable_shapes(samples[dropped:]))


# --- masks, each with its meaning by brute force ---------------------------------------------------------


def _positions(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """The key positions of the queries (the last query is aligned with the last key), and of the keys."""
    return np.arange(sizes.T)[:, None] + (sizes.S - sizes.T), np.arange(sizes.S)[None, :]


def _over_heads(x: np.ndarray, sizes: Sizes) -> np.ndarray:
    """(*samples, T, S) as (*samples, H, T, S) where there are heads."""
    return x[..., None, :, :] if sizes.has_heads and x.ndim > 2 else x


def _rng(draw: st.DrawFn) -> np.random.Generator:
    return np.random.default_rng(draw(st.integers(0, 2**16)))


@st.composite
def _by_position(draw: st.DrawFn, sizes: Sizes) -> MaskCase:
    query, key = _positions(sizes)
    kind = draw(st.sampled_from(("causal", "window", "prefix")))
    if kind == "causal":
        if draw(st.booleans()):
            return MaskCase(Mask.causal(align="first"), key <= np.arange(sizes.T)[:, None])
        return MaskCase(Mask.causal(), key <= query)
    if kind == "prefix":
        n = draw(st.integers(0, sizes.S + 1))
        return MaskCase(Mask.prefix(n), np.broadcast_to(key < n, (sizes.T, sizes.S)))
    side = st.none() | st.integers(0, 4)
    left, right = draw(side), draw(side)
    visible = np.ones((sizes.T, sizes.S), bool)
    visible &= True if left is None else key >= query - left
    visible &= True if right is None else key <= query + right
    return MaskCase(Mask.window(left, right), visible)


@st.composite
def _by_key(draw: st.DrawFn, sizes: Sizes) -> MaskCase:
    rng, shape = _rng(draw), draw(sample_shapes(sizes))
    kind = draw(st.sampled_from(("padding", "from_keep", "from_blocked")))
    if kind != "padding":
        shape = shape[-1:]  # these two accept at most one axis of samples
    ids = rng.integers(0, 3, (*shape, sizes.S))
    kept = np.broadcast_to((ids != 0)[..., None, :], (*shape, sizes.T, sizes.S))
    if kind == "padding":
        return MaskCase(Mask.padding(ids, pad=0), kept)
    if kind == "from_keep":
        dtype = draw(st.sampled_from(("int64", "float32", "bool")))
        return MaskCase(Mask.from_keep((ids != 0).astype(dtype)), kept)
    dtype = draw(st.sampled_from(("uint8", "bool")))
    return MaskCase(Mask.from_blocked((ids == 0).astype(dtype), keys=True), kept)


@st.composite
def _per_sample_prefix(draw: st.DrawFn, sizes: Sizes) -> MaskCase:
    shape = draw(sample_shapes(sizes)) or (1,)
    counts = _rng(draw).integers(0, sizes.S + 2, shape)
    key = np.arange(sizes.S)
    return MaskCase(Mask.prefix(counts), np.broadcast_to(key < counts[..., None, None], (*shape, sizes.T, sizes.S)))


@st.composite
def _segments(draw: st.DrawFn, sizes: Sizes) -> MaskCase:
    rng = _rng(draw)
    keys = np.sort(rng.integers(0, 3, (*draw(sample_shapes(sizes)), sizes.S)), axis=-1)
    if sizes.T > sizes.S or draw(st.booleans()):
        queries = rng.integers(0, 3, (*draw(sample_shapes(sizes)), sizes.T))
        return MaskCase(Mask.segments(keys, queries), queries[..., :, None] == keys[..., None, :])
    own = keys[..., sizes.S - sizes.T :]
    return MaskCase(Mask.segments(keys), own[..., :, None] == keys[..., None, :])


@st.composite
def raw_masks(draw: st.DrawFn, sizes: Sizes) -> MaskCase:
    """A boolean array, (T, S) or with as many axes as the scores, sizes of one included."""
    full = draw(st.sampled_from([(sizes.T, sizes.S), sizes.scores]))
    raw = _rng(draw).random(draw(broadcastable_shapes(full))) < draw(st.sampled_from((0.0, 0.3, 0.7, 1.0)))
    return MaskCase(raw, raw)


@st.composite
def _from_array(draw: st.DrawFn, sizes: Sizes) -> MaskCase:
    raw, visible = draw(raw_masks(sizes))
    kind = draw(st.sampled_from(("of", "from_blocked", "from_additive", "from_lowest")))
    if kind == "from_blocked" and raw.ndim != 3:
        return MaskCase(Mask.from_blocked(~raw), visible)
    if kind == "from_additive":
        return MaskCase(Mask.from_additive(np.where(raw, 0.0, -np.inf)), visible)
    if kind == "from_lowest":
        return MaskCase(Mask.from_additive(np.where(raw, 0, np.finfo("f4").min).astype("f4")), visible)
    return MaskCase(Mask.of(raw), visible)


@st.composite
def mask_leaves(draw: st.DrawFn, sizes: Sizes) -> MaskCase:
    """One Mask from a constructor; `allowed` in the shape of the scores."""
    kinds = (_by_position, _by_key, _per_sample_prefix, _segments)
    if draw(st.integers(0, len(kinds))) == 0:
        mask, visible = draw(_from_array(sizes))
    else:
        mask, visible = draw(draw(st.sampled_from(kinds))(sizes))
        visible = _over_heads(visible, sizes)
    visible = visible[0] if visible.ndim > len(sizes.scores) else visible
    return MaskCase(mask, np.broadcast_to(visible, sizes.scores))


@st.composite
def composed_masks(draw: st.DrawFn, sizes: Sizes, depth: int = 3) -> MaskCase:
    """A Mask composed with &, | and ~ (also with raw arrays on the right), at most `depth` deep."""
    sign = draw(st.sampled_from(("leaf", "~", "&", "|", "& array"))) if depth else "leaf"
    if sign == "leaf":
        return draw(mask_leaves(sizes))
    left = draw(composed_masks(sizes, depth - 1))
    if sign == "~":
        return MaskCase(~left.mask, ~left.allowed)
    if sign == "& array":
        raw, visible = draw(raw_masks(sizes))
        return MaskCase(left.mask & raw, left.allowed & visible)
    right = draw(composed_masks(sizes, depth - 1))
    if sign == "&":
        return MaskCase(left.mask & right.mask, left.allowed & right.allowed)
    return MaskCase(left.mask | right.mask, left.allowed | right.allowed)


@st.composite
def masks(draw: st.DrawFn, sizes: Sizes) -> MaskCase:
    """What a caller may pass as `mask`: None, a Mask, or a raw boolean array."""
    kind = draw(st.sampled_from(("none", "mask", "composed", "raw")))
    if kind == "none":
        return MaskCase(None, np.ones(sizes.scores, bool))
    if kind == "raw":
        raw, visible = draw(raw_masks(sizes))
        return MaskCase(raw, np.broadcast_to(visible, sizes.scores))
    return draw(mask_leaves(sizes) if kind == "mask" else composed_masks(sizes))


# --- memory ----------------------------------------------------------------------------------------------


def lay_out(x: np.ndarray, layout: str) -> np.ndarray:
    """`x` in that memory layout; "expanded" also repeats the first element of the first axis.

    The gaps of a sliced array are NaN, so that code which reads them fails.
    """
    match layout:
        case "transposed":
            return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
        case "heads_last" if x.ndim > 3:
            return np.ascontiguousarray(x.swapaxes(-2, -3)).swapaxes(-2, -3)
        case "sliced":
            wide = np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan, x.dtype)
            wide[..., ::2] = x
            return wide[..., ::2]
        case "reversed":
            return np.ascontiguousarray(x[..., ::-1, :])[..., ::-1, :]
        case "expanded":
            return np.broadcast_to(x[:1], x.shape)
        case "read_only":
            x = x.copy()
            x.flags.writeable = False
            return x
    return np.ascontiguousarray(x)


def as_tensor(x: np.ndarray, dtype: str | None = None, device: str = "cpu") -> Any:
    """`x` as a tensor with its strides; arrays with negative strides or read-only memory are copied."""
    import torch

    repeated = [stride == 0 and size > 1 for stride, size in zip(x.strides, x.shape, strict=True)]
    core = x[tuple(slice(0, 1) if once else slice(None) for once in repeated)]
    if any(stride < 0 for stride in core.strides) or not core.flags.writeable:
        core = core.copy()
    tensor = torch.from_numpy(core).to(device)
    return tensor.to(getattr(torch, dtype) if dtype else tensor.dtype).expand(x.shape)


def _strides(x: Any) -> tuple[int, ...]:
    return tuple(x.strides) if isinstance(x, np.ndarray) else tuple(x.stride())


# --- calls -----------------------------------------------------------------------------------------------


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Random numbers of mean 0 and variance 1, as in a trained model."""
    return rng.standard_normal(shape).astype(dtype)


@st.composite
def calls(
    draw: st.DrawFn,
    *,
    axes: tuple[int, ...] = (2, 3, 4, 5),
    lengths: tuple[int, ...] = LENGTHS,
    dtypes: tuple[str, ...] = NUMPY_DTYPES,
    layouts: tuple[str, ...] = LAYOUTS,
    grouped: bool = True,
    masked: bool = True,
    biased: bool = True,
    scaled: bool = True,
    softcapped: bool = True,
) -> Call:
    """A valid attention call of unusual shape.

    Each switch turns one feature off, for backends without it; `dtypes` are NumPy's (for bfloat16 use
    `Call.as_torch("bfloat16")`).
    """
    sizes = draw(call_sizes(axes=axes, lengths=lengths, grouped=grouped))
    dtype, rng = draw(st.sampled_from(dtypes)), _rng(draw)
    kv_lead = (*samples_of(sizes), sizes.G) if sizes.has_heads else sizes.lead
    shapes = ((*sizes.lead, sizes.T, sizes.E), (*kv_lead, sizes.S, sizes.E), (*kv_lead, sizes.S, sizes.Ev))
    q, k, v = (lay_out(normal(rng, shape, dtype), draw(st.sampled_from(layouts))) for shape in shapes)
    mask, allowed = draw(masks(sizes)) if masked else MaskCase(None, np.ones(sizes.scores, bool))
    bias = None
    if biased and draw(st.integers(0, 3)) == 0:
        shape = draw(broadcastable_shapes(draw(st.sampled_from([(sizes.T, sizes.S), sizes.scores]))))
        bias = normal(rng, shape, dtype)
    return Call(
        sizes=sizes,
        q=q,
        k=k,
        v=v,
        mask=mask,
        allowed=allowed,
        bias=bias,
        scale=draw(st.none() | st.sampled_from((0.5, 1.0, 0.0, -0.3))) if scaled else None,
        softcap=draw(st.none() | st.sampled_from((0.7, 20.0))) if softcapped else None,
    )
