"""`AttentionCall`: the arguments of one attention call, arranged as B H T E, as every backend and kernel takes them.

`make_call` validates the arguments of a caller. `WeightsFromQK` are its exact weights, by a function of a backend.
"""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Protocol, get_args

import numpy as np

from regard.arrays import Array, convert_like, is_tensor
from regard.axes import Shape, Sizes, attention_sizes, check_bias
from regard.errors import ArgumentError, DtypeError
from regard.exact_weights import ExactWeights, KnownMask
from regard.masks import BoundMask, Mask
from regard.masks.padding import Padding, padding_of
from regard.masks.rules import as_four_axes
from regard.messages import Listed
from regard.records import Kind, See


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """One attention call. q B H T E, k B G S E, v B G S Ev; `bias` broadcasts to B H T S."""

    q: Array
    k: Array
    v: Array
    scale: float
    lead: Shape | None = None
    """The caller's own axes before T and S; None for B H."""
    mask: Mask | None = None
    bound: BoundMask | None = None
    """The mask, bound to this call: kernels use only this one."""
    bias: Array | None = None
    softcap: float | None = None
    dropout: float = 0.0
    see: See | None = None
    padding: Padding | None = None
    """Only with `see`."""

    @property
    def sizes(self) -> Sizes:
        B, H, T, E = self.q.shape
        _, G, S, Ev = self.v.shape
        return Sizes(lead=(B, H) if self.lead is None else self.lead, B=B, H=H, G=G, T=T, S=S, E=E, Ev=Ev)

    @property
    def is_torch(self) -> bool:
        return is_tensor(self.q)

    def any_visible(self, flagged: Array) -> Array:
        """… B H T (or 1, where all rows agree): whether a flagged key, … B H S, is visible to each query."""
        return flagged.any(-1)[..., None] if self.bound is None else self.bound.sees(flagged)


class RectangleFunction(Protocol):
    """The function of a backend that computes rows × cols of the weights of a call, B H rows cols, from its LSE."""

    def __call__(self, call: AttentionCall, lse: Array, rows: slice, cols: slice) -> Array: ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class WeightsFromQK(ExactWeights):
    """exp(score − LSE), computed from q and k. q B H T E, k B G S E, lse B H T; `bias` broadcasts to B H T S.

    lead      the caller's axes before T and S, to which `mask` applies; `bound` is the mask of T queries and S keys
    compute   the function of the backend
    v         B G S Ev, where `See(v=True)` requests it; the weights do not depend on it
    """

    q: Array
    k: Array
    lse: Array
    scale: float
    lead: Shape
    compute: RectangleFunction
    mask: Mask | None = None
    bound: BoundMask | None = None
    bias: Array | None = None
    softcap: float | None = None
    v: Array | None = None

    def block(self, rows: slice, cols: slice) -> Array:
        options: dict[str, Any] = {"bound": self.bound, "bias": self.bias, "softcap": self.softcap}
        # The values are not used.
        call = AttentionCall(self.q, self.k, self.k[..., :0], self.scale, **options)
        return self.compute(call, self.lse, rows, cols)

    def of_head(self, sample: int, head: int) -> "WeightsFromQK":
        b, h = slice(sample, sample + 1), slice(head, head + 1)
        group = head // (self.q.shape[1] // self.k.shape[1])
        bias = self.bias
        if bias is not None:  # axes of size 1 broadcast
            bias = bias[b if bias.shape[0] > 1 else slice(1), h if bias.shape[1] > 1 else slice(1)]
        return replace(
            self,
            q=self.q[b, h],
            k=self.k[b, group : group + 1],
            lse=self.lse[b, h],
            v=None if self.v is None else self.v[b, group : group + 1],
            bound=None if self.bound is None else self.bound.only(sample, head),
            bias=bias,
        )

    @property
    def arrays(self) -> tuple[Array, ...]:
        return tuple(array for array in (self.q, self.k, self.lse, self.bias, self.v) if array is not None)

    @property
    def values(self) -> Array | None:
        return self.v

    @property
    def known_mask(self) -> KnownMask | None:
        return None if self.bias is not None else KnownMask(self.mask, self.lead, self.q)


def make_call(
    q: Array,
    k: Array,
    v: Array,
    *,
    mask: Any = None,
    bias: Any = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    see: See | None = None,
    kind: Kind = "self",
) -> AttentionCall:
    """Validate the arguments of a call and arrange them. Raises RegardErrors with the values and the fix."""
    _check_array_types(q, k, v)
    if is_tensor(q):
        from regard.functional.attention import autocast

        q, k, v = autocast(q, k, v)
    else:
        # Subclasses such as np.matrix treat axes differently; BLAS reads only the native byte order.
        q, k, v = (np.asarray(x, dtype=x.dtype.newbyteorder("=")) for x in (q, k, v))
    sizes = attention_sizes(q.shape, k.shape, v.shape)
    _check_dtypes(q, k, v)
    _check_numbers(scale, softcap, dropout)
    if see is not None and not isinstance(see, See):
        raise ArgumentError("see-type", found=type(see).__name__)
    if kind not in get_args(Kind):
        raise ArgumentError("kind-unknown", asked=kind, kinds=Listed(get_args(Kind)))
    if see is not None and see.differentiable and not is_tensor(q):
        raise ArgumentError("see-differentiable-numpy")
    mask = None if mask is None else Mask.of(mask)
    bound = None if mask is None else mask.bind(sizes.lead, sizes.T, sizes.S, q)
    bias = None if bias is None else _four_axes_of_bias(bias, sizes, q)
    shape = (sizes.B, sizes.H, sizes.T, sizes.S)
    return AttentionCall(
        q=_as_four_axes(q, sizes.B, sizes.H),
        k=_as_four_axes(k, sizes.B, sizes.G),
        v=_as_four_axes(v, sizes.B, sizes.G),
        scale=1 / math.sqrt(sizes.E) if scale is None else float(scale),
        lead=sizes.lead,
        mask=mask,
        bound=bound,
        bias=bias,
        softcap=softcap,
        dropout=dropout,
        see=see,
        padding=None if see is None else padding_of(bound, bias, shape, across=kind == "cross"),
    )


def _as_four_axes(x: Array, B: int, heads: int) -> Array:
    return x if x.ndim == 4 else x.reshape(B, heads, *x.shape[-2:])


def _check_array_types(q: Array, k: Array, v: Array) -> None:
    tensors = [is_tensor(x) for x in (q, k, v)]
    if not all(tensors):
        for name, x, tensor in zip("qkv", (q, k, v), tensors, strict=True):
            if not tensor and not isinstance(x, np.ndarray):
                raise DtypeError("not-an-array", name=name, found=type(x).__name__)
        if any(tensors):
            types = {name: "torch" if tensor else "NumPy" for name, tensor in zip("qkv", tensors, strict=True)}
            raise DtypeError("mixed-kinds", **types)
        return
    for name, x in zip("qkv", (q, k, v), strict=True):
        if x.is_nested or str(x.layout) != "torch.strided":
            layout = "nested" if x.is_nested else str(x.layout).removeprefix("torch.")
            raise DtypeError("tensor-not-dense", name=name, found=layout)
    if not q.device == k.device == v.device:
        raise ArgumentError("devices-differ", q=q.device, k=k.device, v=v.device)


def _check_dtypes(q: Array, k: Array, v: Array) -> None:
    same = q.dtype == k.dtype == v.dtype
    for name, x in zip("q" if same else "qkv", (q, k, v), strict=False):
        if not _is_float(x.dtype):
            raise DtypeError("float-wanted", name=name, dtype=x.dtype)
    if not same:
        raise DtypeError("dtypes-differ", q=q.dtype, k=k.dtype, v=v.dtype)


def _is_float(dtype: Any) -> bool:
    """float16, bfloat16, float32 or float64, NumPy's or torch's; not float8 and not longdouble."""
    floating = dtype.kind == "f" if isinstance(dtype, np.dtype) else dtype.is_floating_point
    return floating and dtype.itemsize in (2, 4, 8)


def _check_numbers(scale: float | None, softcap: float | None, dropout: float) -> None:
    if scale is not None and not (isinstance(scale, Real) and math.isfinite(scale)):
        raise ArgumentError("scale-value", value=type(scale).__name__ if is_tensor(scale) else repr(scale))
    if softcap is not None and not (isinstance(softcap, Real) and math.isfinite(softcap) and softcap > 0):
        raise ArgumentError("softcap-value", value=repr(softcap))
    if dropout != 0.0 and not (isinstance(dropout, Real) and 0 <= dropout < 1):
        raise ArgumentError("dropout-value", value=repr(dropout))


def _four_axes_of_bias(bias: Any, sizes: Sizes, like: Array) -> Array:
    bias = convert_like(bias, like)
    if not _is_float(bias.dtype):
        raise DtypeError("bias-dtype", dtype=bias.dtype)
    check_bias(bias.shape, sizes)
    return as_four_axes(bias, sizes.lead)
