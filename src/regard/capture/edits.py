"""The requested edits, validated before anything runs, and how they change scores, weights and outputs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.arrays import is_integer, is_tensor
from regard.axes import Shape
from regard.capture.attention_kinds import HIDING
from regard.capture.call_masks import narrowed
from regard.capture.module_names import ModuleNames, layers_numbered, unknown_layer
from regard.errors import ArgumentError, ShapeError, UnknownNameError
from regard.exact_weights import WeightsArray
from regard.masks import Mask
from regard.masks.padding import padding_of
from regard.memory import free_gpu_bytes, require_bytes
from regard.messages import Listed
from regard.records import Record
from regard.trace import Trace
from regard.trace.from_weights import record_from_weights

Edge = tuple[int | None, int, int]
"""Head (None for all), query, key."""


@dataclass(slots=True)
class Edit:
    """One edit of one name, and its effect so far."""

    name: str
    """The name as given, with `#number`, or the number of a layer."""
    modules: frozenset[str]
    number: int | None
    """Which call of the module, counted from 0; None for all."""
    heads: tuple[int, ...] = ()
    edges: tuple[Edge, ...] = ()
    mask: Mask | None = None
    pattern: Record | None = None
    averaged: tuple[int, ...] = ()
    """Heads whose output becomes its mean over the queries."""
    source: Record | None = None
    """The record whose outputs replace those of this call."""
    is_constant: bool = False
    """Whether `source` holds one output for all queries."""
    resampled: tuple[int, ...] | None = None
    """The heads that get outputs of `source`; None for all."""
    is_layer: bool = False
    """Whether a layer was given by number, which selects its only attention."""
    edited: set[str] = field(default_factory=set)
    """The modules whose attention it has changed so far."""
    missed: set[Edge] = field(default_factory=set)
    """Edges that were in no call so far."""
    largest_sizes: tuple[int, int] = (0, 0)
    """The largest numbers of queries and keys so far, for the message about missed edges."""

    @property
    def cuts(self) -> bool:
        """Whether it masks edges."""
        return self.mask is not None or bool(self.edges)


def parse_edits(
    names: ModuleNames, silence: Any = None, cut: Any = None, freeze: Any = None, mean: Any = None, resample: Any = None
) -> list[Edit]:
    """The edits, each with the modules that its name selects. Raises on invalid edits."""
    return [
        *(_edit(names, name, heads=_heads(name, heads)) for name, heads in _items("silence", silence, "[3]")),
        *(_edit(names, name, **_cut(name, edges)) for name, edges in _items("cut", cut, "[(7, 0)]")),
        *(
            _edit(names, name, pattern=_pattern(found))
            for name, found in _items("freeze", _by_name(freeze), "trace[5]")
        ),
        *(edit for name, given in _items("mean", _by_module(mean), "[3]") for edit in _averaged(names, name, given)),
        *(
            _edit(names, name, **_resampled(name, found))
            for name, found in _items("resample", _by_name(resample), "(trace[5], [3])")
        ),
    ]


def _by_name(given: Any) -> Any:
    """The records of a Trace by name; anything else as it is."""
    return {record.name: record for record in given} if isinstance(given, Trace) else given


def _by_module(given: Any) -> Any:
    """The parts of a Trace by module; anything else as it is."""
    if not isinstance(given, Trace):
        return given
    return {name: given.select(name=f"{name}*") for name in dict.fromkeys(record.module for record in given)}


def _averaged(names: ModuleNames, name: str | int, given: Any) -> Iterable[Edit]:
    """The edits of `mean`: heads, or another mean (of a Trace or a Record, or as an array), perhaps with heads."""
    is_whole = isinstance(given, Record | Trace) or _is_floating(given)
    source, heads = tuple(given) if not is_whole and _is_list(given) and len(tuple(given)) == 2 else (given, None)
    if not isinstance(source, Record | Trace) and not _is_floating(source):
        return [_edit(names, name, averaged=_heads(name, given))]
    edit = _edit(names, name, is_constant=True, resampled=None if heads is None else _heads(name, heads))
    if not isinstance(source, Trace):
        return [replace(edit, source=_mean_record(name, [source]))]
    own = {module: [one for one in source if one.module == (module or "attention")] for module in sorted(edit.modules)}
    found = {module: records for module, records in own.items() if records}
    if not found:
        raise UnknownNameError("edit-mean-unknown", asked=name, names=Listed.few(source.names, 3))
    return [replace(edit, modules=frozenset({m}), source=_mean_record(name, one)) for m, one in found.items()]


def _is_floating(given: Any) -> bool:
    return (isinstance(given, np.ndarray) and given.dtype.kind == "f") or (
        isinstance(given, Tensor) and given.is_floating_point()
    )


def _mean_record(name: str | int, sources: Sequence[Any]) -> Record:
    """A record of one sample and one query: the mean of the outputs of all samples and queries, padding left out."""
    total: Any = 0
    count = 0
    for source in sources:
        if not isinstance(source, Record):
            return Record(shape=(1, 1, 1, 1), outputs=_mean_array(name, source))
        outputs = torch.as_tensor(source.with_outputs().outputs)
        text = None if source.padding is None else source.padding.queries  # outputs of padding are 0
        count += outputs.shape[0] * outputs.shape[2] if text is None else int(text.sum())
        total = total + outputs.double().sum((0, 2))
    return Record(shape=(1, 1, 1, 1), outputs=(total / max(1, count))[None, :, None])


def _mean_array(name: str | int, given: Any) -> Tensor:
    mean = torch.as_tensor(given)
    if mean.dim() != 2:
        raise ShapeError("edit-mean-shape", asked=name, found=tuple(mean.shape))
    return mean[None, :, None]


def _resampled(name: str | int, given: Any) -> dict[str, Any]:
    """A Record, or a Record and heads, as the fields of an Edit."""
    record, heads = tuple(given) if _is_list(given) and len(tuple(given)) == 2 else (given, None)
    if not isinstance(record, Record):
        raise ArgumentError("edit-resample", asked=name, found=type(record).__name__)
    return {"source": record.with_outputs(), "resampled": None if heads is None else _heads(name, heads)}


def _items(how: str, given: Any, example: str) -> Iterable[tuple[str | int, Any]]:
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not all(isinstance(name, str) or is_integer(name) for name in given):
        raise ArgumentError("edit-mapping", how=how, example=example, found=type(given).__name__)
    return given.items()


def _edit(names: ModuleNames, requested: str | int, **what: Any) -> Edit:
    if not isinstance(requested, str):
        edit = Edit(str(requested), modules_in_layer(names, int(requested)), None, is_layer=True, **what)
        edit.missed = set(edit.edges)
        return edit
    name, sign, number = requested.partition("#")
    if sign and not number.isdecimal():
        raise ArgumentError("edit-number", asked=requested)
    edit = Edit(requested, modules_named(names, name), int(number) if sign else None, **what)
    edit.missed = set(edit.edges)
    return edit


def modules_named(names: ModuleNames, requested: str) -> frozenset[str]:
    """The modules that a name selects: a full name, the end of one from a dot on, or a pattern such as `h.*.attn`.

    A layer of `nn.TransformerEncoder` selects the attention inside it: a trace of its fused path has no other name.

    >>> model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2, enable_nested_tensor=False)
    >>> sorted(modules_named(ModuleNames(model), "layers.0")), sorted(modules_named(ModuleNames(model), "1.self_attn"))
    (['layers.0.self_attn'], ['layers.1.self_attn'])
    """
    known = [name for name in names if name]
    if any(sign in requested for sign in "*?["):
        found = [name for name in known if fnmatchcase(name, requested) or fnmatchcase(name, f"*.{requested}")]
    else:
        found = [name for name in known if name == requested] or [
            name for name in known if name.endswith(f".{requested}")
        ]
        if len(found) > 1:
            pattern = f"*.{requested}"
            raise ArgumentError(
                "edit-name-ambiguous", asked=requested, count=len(found), first=found[0], pattern=pattern
            )
    if not found and requested in ("", "attention"):  # the name in a trace of a model that is itself the attention
        found = [""]
    if not found:
        raise unknown_layer(requested, known)
    return frozenset(_attention_in(names, name) for name in found)


def modules_in_layer(names: ModuleNames, number: int) -> frozenset[str]:
    """The modules of the layer with that number. If both encoder and decoder have it, a name is required."""
    layers = layers_numbered(number, [name for name in names if name])
    if len(layers) > 1:
        raise ArgumentError("edit-layer-several", asked=number, names=Listed(repr(name) for name in layers))
    inside = [name for name in names if name == layers[0] or name.startswith(f"{layers[0]}.")]
    return frozenset(_attention_in(names, name) for name in inside)


def _attention_in(names: ModuleNames, name: str) -> str:
    if not isinstance(names.ancestors(name)[-1], nn.TransformerEncoderLayer):
        return name
    return f"{name}.self_attn" if name else "self_attn"


def _heads(name: str | int, given: Any) -> tuple[int, ...]:
    heads = (given,) if is_integer(given) else tuple(given) if _is_list(given) else ()
    if not heads or not all(is_integer(head) and head >= 0 for head in heads):
        raise ArgumentError("edit-heads", asked=name, found=given)
    return tuple(int(head) for head in heads)


def _cut(name: str | int, given: Any) -> dict[str, Any]:
    if isinstance(given, Mask) or is_tensor(given) or isinstance(given, np.ndarray):
        return {"mask": Mask.of(given)}
    edges = [tuple(edge) if _is_list(edge) else (edge,) for edge in given] if _is_list(given) else []
    if not edges or not all(len(edge) in (2, 3) and all(map(is_integer, edge)) for edge in edges):
        raise ArgumentError("edit-edges", asked=name, found=given)
    if any(len(edge) == 3 and edge[0] < 0 for edge in edges):
        raise ArgumentError("edit-heads", asked=name, found=min(edges)[0])
    return {"edges": tuple((None, *map(int, edge)) if len(edge) == 2 else tuple(map(int, edge)) for edge in edges)}


def _is_list(given: Any) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | Mapping)


def _pattern(given: Any) -> Record:
    """Weights, validated as those of a Trace; or a Record, if it can return all of its weights."""
    if not isinstance(given, Record):
        return record_from_weights(given, map=None)
    # Not `record_from_weights`: rows may sum to less than 1 in a model with sinks.
    return Record(shape=given.shape, name=given.name, exact=WeightsArray(given.weights()))


LARGE_MASK = 2**24
"""From this number of edges on, free memory is checked before a mask is made."""

Fused = Callable[..., Tensor]


def edited_attention(
    fused: Fused,
    edits: list[Edit],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    options: dict[str, Any],
    first: int | None,
    text: Tensor | None = None,
) -> Tensor:
    """The output of `scaled_dot_product_attention` with the edits, B H T Ev; its first query is at `first`.

    text   which queries are no padding, B T; None for all
    """
    shape = (*q.shape[:-1], k.shape[-2])
    frozen = _frozen(edits, shape, v)
    if frozen is not None:
        weights = _weights(*frozen, edits, first, torch.float32).to(v.dtype)
        v = v.repeat_interleave(q.shape[1] // v.shape[1], dim=1) if options.get("enable_gqa") else v
        return edited_outputs(F.dropout(weights, options.get("dropout_p", 0.0)) @ v, edits, text)
    for edit in edits:
        if edit.cuts:
            keep = visible_after_cut(edit, shape, first, q)
            options["attn_mask"] = _masked(options.get("attn_mask"), options.pop("is_causal", False), keep)
    return edited_outputs(fused(q, k, v, **options), edits, text)


def edited_softmax(
    scores: Tensor,
    edits: list[Edit],
    dtype: torch.dtype | None,
    first: int | None,
    sinks: int = 0,
    text: Tensor | None = None,
) -> Tensor:
    """The weights of a softmax along the last axis with the edits, B H T S.

    The last `sinks` columns are not keys but learned scores, which take weight and have no value.
    `text` tells which queries are no padding, B T; None for all.
    """
    dtype = dtype or scores.dtype
    frozen = _frozen(edits, (*scores.shape[:-1], scores.shape[-1] - sinks), scores)
    if frozen is None:
        return silenced(_weights(scores, None, edits, first, dtype, sinks), edits, text)
    weights = _weights(*frozen, edits, first, torch.float32).to(dtype)
    return silenced(F.pad(weights, (0, sinks)), edits, text)


def _weights(
    scores: Tensor, share: Tensor | None, edits: list[Edit], first: int | None, dtype: torch.dtype, sinks: int = 0
) -> Tensor:
    """The softmax of the scores after the cuts, times the share of each row; a share of 0 gives 0 with gradient 0."""
    before, shape = scores, (*scores.shape[:-1], scores.shape[-1] - sinks)
    for edit in edits:
        if edit.cuts:
            keep = F.pad(visible_after_cut(edit, shape, first, scores), (0, sinks), value=True)
            scores, has_visible = _cut_scores(scores, keep, before)
            share = has_visible if share is None else share * has_visible
    if share is None:
        return torch.softmax(scores, -1, dtype=dtype)
    weights = torch.softmax(scores.masked_fill(share == 0, 0), -1, dtype=dtype)
    return weights * share.to(weights.dtype)


# --- cut -------------------------------------------------------------------------------------------------


def visible_after_cut(edit: Edit, shape: Shape, first: int | None, like: Tensor) -> Tensor:
    """The edges that are visible after the cut, broadcasting to `shape`; `first` is the position of the first query."""
    H, T, S = shape[1:]
    if first is None:
        raise ArgumentError("edit-positions", asked=edit.name, T=T, S=S)
    own = H if any(head is not None for head, _, _ in edit.edges) else 1
    if own * T * S > LARGE_MASK:  # the mask, and the kernel's copy of it
        require_bytes(5 * own * T * S, key="edit-too-large", asked=edit.name, T=T, S=S, free=free_gpu_bytes(like))
    if edit.mask is not None:
        visible = edit.mask.bind(shape[:2], T, S, like).block(slice(0, T), slice(0, S))
        visible = torch.as_tensor(visible, device=like.device)
        return visible[(None,) * (4 - visible.dim())].expand(-1, -1, T, S)
    edit.largest_sizes = max(edit.largest_sizes, (first + T, S))
    keep = torch.ones(own, T, S, dtype=torch.bool, device="cpu")  # written edge by edge
    for edge in edit.edges:
        head, query, key = edge
        row, col = query - first if query >= 0 else T + query, key if key >= 0 else S + key
        if head is not None:
            _check_head(edit, head, H)
        if 0 <= row < T and 0 <= col < S:
            keep[slice(None) if head is None else head, row, col] = False
            edit.missed.discard(edge)
    return keep.to(like.device)[None]


def _cut_scores(scores: Tensor, keep: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (or an additive mask) without the cut edges, and which rows still have a visible key.

    A key that the model masks with a large negative number must stay masked when all others are cut. A row without cuts
    is unchanged, even if the model masks all of it.
    """
    left = scores.masked_fill(~keep, -torch.inf)
    return left, left.amax(-1, keepdim=True) >= before.amax(-1, keepdim=True) - HIDING


def _masked(attn_mask: Tensor | None, causal: bool, keep: Tensor) -> Tensor:
    """The mask of a `scaled_dot_product_attention` call, combined with a cut."""
    if causal:  # PyTorch counts from the first key
        keep = keep & torch.ones(keep.shape[-2:], dtype=torch.bool, device=keep.device).tril()
    if attn_mask is None:
        return keep
    if attn_mask.dtype == torch.bool:
        return attn_mask & keep
    left, has_visible = _cut_scores(attn_mask, keep, attn_mask)
    return left.masked_fill(~has_visible, -torch.inf)


def masked_score_mod(
    score_mod: Callable[..., Tensor], keep: Tensor | None, q: Tensor, k: Tensor
) -> Callable[..., Tensor]:
    """A `flex_attention` score function that also masks what `keep` excludes."""
    if keep is None:
        return score_mod
    whole = keep.expand(*q.shape[:-1], k.shape[-2])

    def masked(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor, *buffers: Any) -> Tensor:
        return torch.where(whole[b, h, i, j], score_mod(score, b, h, i, j, *buffers), -torch.inf)

    return masked


# --- freeze, silence, mean, resample ---------------------------------------------------------------------


def _frozen(edits: list[Edit], shape: Shape, like: Tensor) -> tuple[Tensor, Tensor] | None:
    """Scores whose softmax is the latest frozen pattern, B H T S, and its row sums: 1, or 0 if fully masked."""
    edit = next((edit for edit in reversed(edits) if edit.pattern is not None), None)
    if edit is None or edit.pattern is None:
        return None
    found = edit.pattern.shape
    if found[2:] != shape[2:] or any(size not in (1, all_) for size, all_ in zip(found[:2], shape[:2], strict=True)):
        call = f"{edit.name.partition('#')[0]}#0"
        raise ShapeError("edit-freeze-shape", asked=edit.name, found=found, wanted=shape, call=call)
    weights = torch.as_tensor(edit.pattern.weights(), device=like.device).float().expand(shape)
    return weights.log(), weights.sum(-1, keepdim=True)


def silenced(x: Tensor, edits: Iterable[Edit], text: Tensor | None = None) -> Tensor:
    """Weights or outputs, B H T ·, with 0 for the silenced heads and the mean over the queries for the averaged ones.

    Averaging weights gives the mean of the outputs, since a product is linear.
    """
    for edit in edits:
        if edit.heads:
            x = x * (~_chosen_heads(edit, edit.heads, x)).to(x.dtype)
        if edit.averaged:
            x = torch.where(_chosen_heads(edit, edit.averaged, x), _mean_of_text(x, text), x)
    return x


def _mean_of_text(x: Tensor, text: Tensor | None) -> Tensor:
    """The mean over the queries that are no padding, B H 1 ·."""
    if text is None:
        return x.mean(2, keepdim=True)
    kept, wide = text[:, None, :, None], torch.promote_types(x.dtype, torch.float32)
    return (x.masked_fill(~kept, 0).sum(2, keepdim=True, dtype=wide) / kept.sum(2, keepdim=True).clamp_min(1)).to(
        x.dtype
    )


def text_queries(mask_or_scores: Tensor | None, shape: Shape, is_cross: bool) -> Tensor | None:
    """Which queries are no padding, B T, by a mask (boolean or added) or scores, up to B H T S; None for all of them.

    >>> mask = torch.tensor([[False, True, True], [True, True, True]])[:, None, None]
    >>> text_queries(mask, (2, 1, 3, 3), is_cross=False).tolist()
    [[False, True, True], [True, True, True]]
    """
    if mask_or_scores is None:
        return None
    x = narrowed(mask_or_scores.detach())
    if x.dtype == torch.bool:
        padding = padding_of(Mask.of(x).bind(shape[:2], shape[2], shape[3], x), None, shape, is_cross)
    else:
        padding = padding_of(None, x, shape, is_cross)
    return None if padding is None or padding.queries is None else torch.as_tensor(padding.queries)


def edited_outputs(out: Tensor, edits: Iterable[Edit], text: Tensor | None = None) -> Tensor:
    """Outputs B H T Ev with the heads that are silenced, averaged or replaced by those of another run."""
    return resampled(silenced(out, edits, text), edits)


def resampled(out: Tensor, edits: Iterable[Edit]) -> Tensor:
    """Outputs B H T Ev, of which some heads are replaced by the outputs of another run."""
    for edit in edits:
        if edit.source is None:
            continue
        found = torch.as_tensor(edit.source.outputs, device=out.device).to(out.dtype)
        wanted = (out.shape[1], 1 if edit.is_constant else out.shape[2], out.shape[3])
        if found.shape[1:] != wanted or len(found) not in (1, len(out)):
            if edit.is_constant:
                wanted_mean = (out.shape[1], out.shape[3])
                raise ShapeError(
                    "edit-mean-size", asked=edit.name, wanted=wanted_mean, found=(found.shape[1], found.shape[3])
                )
            raise ShapeError("edit-resample-shape", asked=edit.name, found=tuple(found.shape), wanted=tuple(out.shape))
        if edit.resampled is None:
            out = found.expand(out.shape)
        else:
            out = torch.where(_chosen_heads(edit, edit.resampled, out), found, out)
    return out


def _chosen_heads(edit: Edit, heads: tuple[int, ...], x: Tensor) -> Tensor:
    """H 1 1: whether each head of x, B H · ·, is one of `heads`."""
    _check_head(edit, max(heads), x.shape[1])
    chosen = torch.zeros(x.shape[1], 1, 1, dtype=torch.bool, device=x.device)
    chosen[list(heads)] = True
    return chosen


def _check_head(edit: Edit, head: int, H: int) -> None:
    if head >= H:
        raise ArgumentError("edit-head-range", asked=edit.name, head=head, H=H, last=H - 1)
