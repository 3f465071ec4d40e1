"""What is captured of one attention call, and how the arguments and results of PyTorch's fused operators are read.

The captured tensors are the model's own. Read them at once and do not keep them: the model may overwrite them. Tensors
without data, subclasses of Tensor, and our own errors leave an attention unobserved: the model runs as without `watch`,
and one warning names the modules. All operators are listed by name, since a machine may lack some:
scaled_dot_product_attention, the fused encoder layer of `torch.nn`, flex_attention, and the package flash_attn.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.capture.torch_internals import flex_attention_scores, is_functorch_wrapped_tensor, safe_softmax
from regard.errors import in_one_line
from regard.masks import Mask
from regard.masks.padding import visible_columns
from regard.messages import Listed, say
from regard.records import Rest


class CapturedOutput:
    """The output B H T Ev and LSE of a call that is not computed yet; the recording code may set them."""

    __slots__ = ("lse", "out")

    def __init__(self) -> None:
        self.out: Tensor | None = None
        self.lse: Tensor | None = None


class CapturedCall(NamedTuple):
    """The inputs of one attention, and what its kernel returns.

    q B H T E, k and v B G S ·. Scores are q kᵀ · scale, capped, + bias where `mask` allows. `lse` B H T and `out`
    B H T Ev, if known. `submodule` is the submodule that would have computed it, if a fused layer computed it instead.
    `output` is set if the model has not computed the output, and we may.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    scale: float
    mask: Mask | None = None
    bias: Tensor | None = None
    lse: Tensor | None = None
    softcap: float | None = None
    submodule: str = ""
    output: CapturedOutput | None = None
    out: Tensor | None = None


class CapturedWeights(NamedTuple):
    """The weights of a model that computed its own softmax, before dropout. weights (…, T, S), lse (…, T).

    lse         None if several softmaxes or several heads were combined into one matrix
    v           (…, S, Ev), what the weights were multiplied with; as many axes as `factor`
    factor      the same weights as they entered that product
    rows_known  whether the product showed which axis counts queries; else the last but one is assumed
    rest        why rows may not sum to 1: what was done to them after the softmax
    visible     (…, S), the keys that some query sees, by the scores, if known; the others are padding
    sink        (…, T), the weight that went to no key, as to a learned sink; None if there is none

    q and k are not known, so what is not read from the weights now is lost. Nor is it known which of the axes before T
    count heads: the module determines that (`layouts.py`).
    """

    weights: Tensor
    lse: Tensor | None
    submodule: str = ""
    v: Tensor | None = None
    factor: Tensor | None = None
    rows_known: bool = True
    rest: Rest = ""
    visible: Tensor | None = None
    sink: Tensor | None = None


class Unobserved:
    """The modules whose attention was skipped, each with the first reason."""

    def __init__(self, running_module: Callable[[bool], str | None] | None = None) -> None:
        self._running_module = running_module or (lambda likely: "")
        self.reasons: dict[str, str] = {}
        self.errors: list[Exception] = []

    def add(self, reason: str, likely: bool = True) -> None:
        """Note that the running module computed attention, or what may be; `likely` as in `SoftmaxTracker`."""
        name = self._running_module(likely)
        if name is not None:
            self.reasons.setdefault(name, reason)

    def add_error(self, error: Exception, names: Iterable[str] | None = None) -> None:
        """Note that observing the modules of these names raised `error`; without names, the running module."""
        self.errors.append(error.with_traceback(None))  # a traceback would keep the model's tensors alive
        if names is None:
            self.add(in_one_line(error))
        for name in names or ():
            self.reasons.setdefault(name, in_one_line(error))


def why_unobservable(args: tuple[Any, ...], types: Any) -> str | None:
    """Why the data of an operator's arguments cannot be read; None if it can.

    types   the subclasses of Tensor among them that handle operators themselves, as PyTorch passes them to a mode

    >>> import torch
    >>> why_unobservable((torch.ones(2),), ()) is None, why_unobservable((torch.ones(2, device="meta"),), ()) is None
    (True, False)
    """
    if types:
        return say("watch-unseen-type", found=Listed.few(sorted({one.__name__ for one in types}), 3))
    for x in args:
        if isinstance(x, Tensor):
            if x.is_meta:
                return say("watch-unseen-meta")
            if is_functorch_wrapped_tensor(x):
                return say("watch-unseen-type", found="functorch")
    return None


def is_readable(tensor: Tensor) -> bool:
    """Whether the data of a tensor on the Python stack can be read: not if functorch or a mode made it."""
    return type(tensor).__torch_dispatch__ is _PLAIN and why_unobservable((tensor,), ()) is None


_PLAIN = Tensor.__torch_dispatch__


CAUSAL, CAUSAL_FROM_FIRST = Mask.causal(), Mask.causal(align="first")
"""The masks of `is_causal`: the same objects for every call, so that they are recognised without reading them."""

KEYS = 1
"""`mask_type` of a mask over the keys alone, (B, S). Other types are over scores, (T, S) and (B, H, T, S)."""


def read_encoder_layer(given: dict[str, Any], result: Any) -> CapturedCall:
    """`aten._transformer_encoder_layer_fwd`: a whole `nn.TransformerEncoderLayer`."""
    x, lengths = _padded(given["src"])
    if given["norm_first"]:
        x = F.layer_norm(x, x.shape[-1:], given["norm_weight_1"], given["norm_bias_1"], given["eps"])
    return _captured_layer(given, x, x, x, given["num_heads"], lengths, submodule="self_attn")


def read_multi_head(given: dict[str, Any], result: Any) -> CapturedCall:
    """`aten._native_multi_head_attention`: `nn.MultiheadAttention` with its projections."""
    (query, _), (key, lengths), (value, _) = (_padded(given[name]) for name in ("query", "key", "value"))
    return _captured_layer(given, query, key, value, given["num_head"], lengths)


def _padded(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """B T D padded with zeros at the end, and the lengths if the tensor is nested."""
    if not x.is_nested:
        return x, None
    return x.to_padded_tensor(0.0), x._nested_tensor_size()[:, 0].to(x.device)


def _captured_layer(
    given: dict[str, Any],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    heads: int,
    lengths: Tensor | None,
    submodule: str = "",
) -> CapturedCall:
    weights, biases = given["qkv_weight"].chunk(3), given["qkv_bias"].chunk(3)
    q, k, v = (
        F.linear(x, weight, bias).unflatten(-1, (heads, -1)).transpose(1, 2)
        for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
    )
    mask, allowed, added = given["mask"], None, None
    if lengths is not None:
        allowed = Mask.from_keep(torch.arange(key.shape[1], device=key.device) < lengths[:, None])
    elif mask is not None and given["mask_type"] == KEYS:
        allowed = Mask.from_keep(mask == 0)  # True or −inf is masked
    elif mask is not None and mask.dtype == torch.bool:
        allowed = Mask.of(~mask)
    elif mask is not None:
        added = mask[(None,) * (4 - mask.dim())]
    return CapturedCall(q, k, v, scale=q.shape[-1] ** -0.5, mask=allowed, bias=added, submodule=submodule)


def read_flash(given: dict[str, Any], result: Any) -> CapturedCall:
    """`flash_attn_func`. Its causal mask and its window count from the last key, as ours do."""
    q, k, v = (given[name].transpose(1, 2) for name in "qkv")
    return _captured_flash(given, q, k, v, _band(given), lse=result[1])._replace(out=result[0].transpose(1, 2))


def read_packed_flash(given: dict[str, Any], result: Any) -> CapturedCall:
    """`flash_attn_varlen_func`, unpacked. Texts are padded on the left: the last query stays at the last key."""
    queries, keys = given["cu_seqlens_q"].diff(), given["cu_seqlens_k"].diff()
    q = _unpacked(given["q"], queries)
    k, v = _unpacked(given["k"], keys), _unpacked(given["v"], keys)
    S = k.shape[2]
    there = Mask.from_keep(torch.arange(S, device=k.device) >= S - keys[:, None])
    band = _band(given)
    return _captured_flash(given, q, k, v, there if band is None else band & there)


def _captured_flash(
    given: dict[str, Any], q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, lse: Tensor | None = None
) -> CapturedCall:
    T, S = q.shape[2], k.shape[2]
    bias, slopes = None, given.get("alibi_slopes")
    if slopes is not None:
        apart = torch.arange(T, device=q.device)[:, None] + (S - T) - torch.arange(S, device=q.device)
        bias = -slopes.reshape(-1, q.shape[1], 1, 1) * apart.abs()
    return CapturedCall(
        q, k, v, given["softmax_scale"], mask=mask, bias=bias, lse=lse, softcap=given.get("softcap") or None
    )


def _band(given: dict[str, Any]) -> Mask | None:
    left, right = given["window_size_left"], 0 if given["causal"] else given["window_size_right"]
    if left < 0 and right < 0:
        return None
    return Mask.window(None if left < 0 else left, None if right < 0 else right)


def _unpacked(x: Tensor, lengths: Tensor) -> Tensor:
    """Packed texts (·, H, E) as B H T E, shorter texts padded with zeros on the left."""
    longest = int(lengths.max())
    texts = x.split(lengths.tolist())
    return torch.stack([torch.nn.functional.pad(one, (0, 0, 0, 0, longest - len(one), 0)) for one in texts]).transpose(
        1, 2
    )


def read_flex(given: dict[str, Any], result: Any) -> CapturedWeights:
    """(query, key, value, score_mod, block_mask, scale, …); shared heads and samples of keys are repeated."""
    query, key, value, *rest = given.values()
    key, v = (x.repeat_interleave(query.shape[1] // x.shape[1], 1).expand(len(query), -1, -1, -1) for x in (key, value))
    _, scores = flex_attention_scores(query, key, value, *rest)
    weights = safe_softmax(scores, -1)
    return CapturedWeights(weights, scores.logsumexp(-1), v=v, factor=weights, visible=visible_columns(scores))


Reader = Callable[[dict[str, Any], Any], CapturedCall | CapturedWeights]
"""Reads an operator's arguments by name, and its result."""


def read_fused(given: dict[str, Any], result: Any) -> CapturedCall:
    """A call of `scaled_dot_product_attention`, in the form that all of its kernels take."""
    q, added = given["query"], given.get("attn_mask", given.get("attn_bias"))
    T, scale = q.shape[2], given.get("scale")
    mask = CAUSAL_FROM_FIRST if given["is_causal"] else None  # PyTorch counts from the first key
    if added is not None:
        added = added[(None,) * (4 - added.dim())]
        if added.dtype == torch.bool:
            mask, added = Mask.of(added) if mask is None else mask & Mask.of(added), None
    return CapturedCall(
        q=q,
        k=given["key"],
        v=given["value"],
        scale=q.shape[-1] ** -0.5 if scale is None else scale,
        mask=mask,
        bias=added,
        lse=lse_of(result[1], T),
        out=result[0],
    )


def lse_of(found: Any, T: int) -> Tensor | None:
    """The LSE, B H T. Some kernels return padded rows, or one more axis; or none, without gradients."""
    if not isinstance(found, Tensor):
        return None
    if found.dim() == 3 and found.shape[-1] == T:
        return found
    found = found.squeeze(-1) if found.dim() == 4 and found.shape[-1] == 1 else found
    return found[..., :T] if found.dim() == 3 and found.shape[-1] >= T else None


def read_flash_on_cuda(given: dict[str, Any], result: Any) -> CapturedCall:
    """The same for a causal mask that counts from the last key: `causal_lower_right` uses this operator with T ≠ S."""
    captured = read_fused(given, result)
    return captured._replace(mask=CAUSAL) if captured.mask is CAUSAL_FROM_FIRST else captured


def is_plain_causal(captured: CapturedCall) -> bool:
    """Whether a call is causal by `is_causal`, with as many queries as keys."""
    mask, T = captured.mask, captured.q.shape[2]
    return (mask is CAUSAL or mask is CAUSAL_FROM_FIRST) and captured.bias is None and T == captured.k.shape[2] > 1


def is_plain_row(captured: CapturedCall) -> bool:
    """Whether a call has one query that sees every key, as the last token of a text that is being generated."""
    is_plain = captured.mask is None and captured.bias is None and captured.softcap is None
    return is_plain and captured.q.shape[2] == 1


FUSED = (read_fused, read_flash_on_cuda)
"""Readers of `scaled_dot_product_attention`, for any of its kernels."""

BY_NAME: dict[str, Reader] = {
    "aten._scaled_dot_product_flash_attention_for_cpu.default": read_fused,
    "aten._scaled_dot_product_flash_attention.default": read_flash_on_cuda,
    "aten._scaled_dot_product_efficient_attention.default": read_fused,
    "aten._scaled_dot_product_cudnn_attention.default": read_fused,
    "aten._scaled_dot_product_fused_attention_overrideable.default": read_fused,
    "aten._native_multi_head_attention.default": read_multi_head,
    "aten._transformer_encoder_layer_fwd.default": read_encoder_layer,
    "flash_attn._flash_attn_forward.default": read_flash,
    "flash_attn._flash_attn_varlen_forward.default": read_packed_flash,
    "flex_attention": read_flex,
}


class _Readers(dict[Any, Reader | None]):
    """Readers by operator; the name of each operator is read once."""

    def __missing__(self, func: Any) -> Reader | None:
        reader = self[func] = BY_NAME.get(str(func))
        return reader


READERS = _Readers()


def named(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """An operator's arguments by name, with defaults. `flex_attention` has no schema: its arguments are numbered."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return {str(at): value for at, value in enumerate(args)} | kwargs
    known = _DEFAULTS.get(id(func))
    if known is None:
        known = _DEFAULTS[id(func)] = func, {one.name: one.default_value for one in schema.arguments}
    return known[1] | dict(zip(known[1], args, strict=False)) | kwargs


_DEFAULTS: dict[int, tuple[Any, dict[str, Any]]] = {}
"""By the id of an operator, because operators hash slowly; with the operator, so that its id is not reused."""
