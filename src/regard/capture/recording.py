"""From a captured attention call to its Record.

Keys that a module adds (learned sinks) become `sink_mass`, rows that do not sum to 1 get a reason, and the output
projection gives the norms of the values.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention_call import AttentionCall
from regard.capture.layouts import by_heads
from regard.capture.model_facts import attribute_of
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.capture.watched_trace import WatchedTrace
from regard.dispatch import attend
from regard.dispatch.backend_choice import copied_outputs
from regard.dispatch.observation import attend_and_observe, observe_attention
from regard.exact_weights import WeightsArray
from regard.functional.statistics import statistics_of
from regard.kernels.chunked.forward import all_weights
from regard.masks.padding import Padding, padding_of, without_rows
from regard.records import Record, Rest, See, Statistics, Top

MAX_BATCHED_WEIGHTS = 2**22
"""Up to this number of weights, all heads are computed together; beyond, head by head to save memory."""


def record_of_call(
    captured: CapturedCall | CapturedWeights, module: nn.Module, see: See, padding: Padding | None = None
) -> Record:
    """The Record of a call of `module`; with `see.qk`, it keeps copies of what its weights are computed from."""
    if isinstance(captured, CapturedWeights):
        return record_of_weights(captured, module, see, padding)
    call = AttentionCall(
        captured.q,
        captured.k,
        captured.v,
        captured.scale,
        mask=captured.mask,
        bias=captured.bias,
        softcap=captured.softcap,
        see=see,
        padding=padding,
    )
    if captured.output is not None:
        ours = attend_and_observe(call)
        if ours is not None:
            captured.output.out, captured.output.lse = ours.out, ours.lse
            return ours.record
    return observe_attention(call, captured.lse)


@torch.no_grad()
def record_of_weights(captured: CapturedWeights, module: nn.Module, see: See, padding: Padding | None = None) -> Record:
    """The Record of weights that the model computed; with `see.qk`, it keeps a copy of them."""
    weights = by_heads(captured.weights, module)
    lse = weights.new_zeros(weights.shape[:-1]) if captured.lse is None else captured.lse.reshape(weights.shape[:-1])
    sink = None if captured.sink is None else captured.sink.reshape(weights.shape[:-1]).float()
    if see.max_score and (captured.lse is None or captured.rest not in ("", "sink")):
        # The LSE is unknown, or that of other weights: a score cannot be recovered from these.
        see = replace(see, max_score=False)
    found = _statistics(weights, lse, see, padding, sink)
    if not see.lse or captured.lse is None:
        found = found._replace(lse=None)
    kept = without_rows(weights, None if padding is None else padding.queries, 0, axes=1).clone() if see.qk else None
    return Record(
        shape=tuple(weights.shape),
        exact=None if kept is None else WeightsArray(kept, values=_kept_values(captured, module) if see.v else None),
        padding=padding,
        **found._asdict(),
    )


def _kept_values(captured: CapturedWeights, module: nn.Module) -> Tensor | None:
    """A copy of the values, B H S Ev, where they can be assigned to heads."""
    values = _values_of_weights(captured, module)
    return None if values is None else values.detach().clone()


def _statistics(weights: Tensor, lse: Tensor, see: See, padding: Padding | None, sink: Tensor | None) -> Statistics:
    exact = torch.promote_types(weights.dtype, torch.float32)
    if weights.numel() <= MAX_BATCHED_WEIGHTS:
        return _unshared(statistics_of(weights.to(exact), lse, see, padding=padding, sink_mass=sink), weights)
    sinks = [None] * weights.shape[1] if sink is None else sink.split(1, 1)
    heads = [
        statistics_of(one.to(exact), its_lse, see, padding=padding, sink_mass=its_sink)
        for one, its_lse, its_sink in zip(weights.split(1, 1), lse.split(1, 1), sinks, strict=True)
    ]
    return Statistics(*map(_joined, zip(*heads, strict=True)))


def _joined(parts: tuple[Any, ...]) -> Any:
    """One field of several Statistics, concatenated over heads."""
    if parts[0] is None:
        return None
    if isinstance(parts[0], Top):
        return Top(*(torch.cat(halves, 1) for halves in zip(*parts, strict=True)))
    return torch.cat(parts, 1)


def _unshared(found: Statistics, weights: Tensor) -> Statistics:
    """Copy a map that is the model's own tensor, as a map of one bin per weight may be: the model may overwrite it."""
    if found.map is not None and found.map.untyped_storage().data_ptr() == weights.untyped_storage().data_ptr():
        return found._replace(map=found.map.clone())
    return found


class AddedKeys(NamedTuple):
    """The number of keys that a module adds before those of the text, and after them."""

    before: int = 0
    after: int = 0


def added_keys(module: nn.Module) -> AddedKeys:
    """The keys that a module adds, by its attributes: `nn.MultiheadAttention`, and x-transformers' `add_zero_kv`.

    >>> added_keys(nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True))
    AddedKeys(before=0, after=2)
    """
    if isinstance(module, nn.MultiheadAttention):
        return AddedKeys(after=int(module.bias_k is not None) + int(module.add_zero_attn))
    return AddedKeys(before=int(attribute_of(module, "add_zero_kv") is True))


def without_added_keys(captured: CapturedCall | CapturedWeights, added: AddedKeys) -> CapturedCall | CapturedWeights:
    """The same without the keys that the module added, and with the weight that these received as `sink`."""
    if not any(added):
        return captured
    whole = _recomputed(captured) if isinstance(captured, CapturedCall) else captured
    S = whole.weights.shape[-1]
    if sum(added) >= S:
        return captured
    keys = slice(added.before, S - added.after)
    sink = whole.weights[..., : keys.start].sum(-1) + whole.weights[..., keys.stop :].sum(-1)
    weights = whole.weights[..., keys]
    return whole._replace(
        weights=weights,
        factor=weights if whole.factor is whole.weights else None if whole.factor is None else whole.factor[..., keys],
        v=None if whole.v is None or whole.v.shape[-2] != S else whole.v[..., keys, :],
        visible=None if whole.visible is None else whole.visible[..., keys],
        sink=sink,
    )


@torch.no_grad()
def _recomputed(captured: CapturedCall) -> CapturedWeights:
    """The weights of all keys, recomputed from q and k."""
    (B, H, T, _), S = captured.q.shape, captured.k.shape[2]
    bound = None if captured.mask is None else captured.mask.bind((B, H), T, S, captured.q)
    call = AttentionCall(
        captured.q, captured.k, captured.v, captured.scale, bound=bound, bias=captured.bias, softcap=captured.softcap
    )
    weights, lse, _ = all_weights(call, captured.lse)
    padding = padding_of(bound, captured.bias, (B, H, T, S), across=True)
    visible = None if padding is None or padding.keys is None else padding.keys[:, None].expand(B, H, S)
    v = captured.v.repeat_interleave(H // max(1, captured.v.shape[1]), 1)
    return CapturedWeights(weights, lse, captured.submodule, v=v, factor=weights, visible=visible)


EXACT, COARSE = 1e-3, 3e-2
"""How far from 1 a row sum may be by rounding: in float32, and in float16 and bfloat16."""


class _RowSum(NamedTuple):
    position: int  # of the record in its Trace
    name: str
    deviation: Tensor  # in units of the rounding tolerance
    reason: Rest


class RowSums:
    """Row sums of all attention that a model computed itself."""

    def __init__(self) -> None:
        self._sums: list[_RowSum] = []

    def add(self, position: int, name: str, captured: CapturedWeights) -> None:
        """Add the weights of the record at `position` of the Trace."""
        weights = captured.weights
        coarse = weights.dtype in (torch.float16, torch.bfloat16)
        if weights.numel():
            sums = weights.detach().sum(-1, dtype=torch.float32)
            deviation = torch.where(sums == 0, 0.0, (sums - 1).abs()).amax() / (COARSE if coarse else EXACT)
            reason: Rest = captured.rest or ("" if captured.sink is None else "sink")
            self._sums.append(_RowSum(position, name, deviation, reason))

    def apply(self, trace: WatchedTrace) -> list[str]:
        """Set `rest` of the records whose rows do not sum to 1. Returns the modules for which the reason is unknown."""
        unknown: dict[str, None] = {}
        for one, is_far in zip(self._sums, _beyond_rounding([one.deviation for one in self._sums]), strict=True):
            if is_far:
                trace.complete(one.position, {"rest": one.reason or "unknown"})
                if not one.reason:
                    unknown.setdefault(one.name)
        self._sums.clear()
        return list(unknown)


def _beyond_rounding(deviations: list[Tensor]) -> Iterable[bool]:
    """Which deviations are beyond rounding; read in one transfer if all are on one device."""
    if len({one.device for one in deviations}) > 1:
        return [not one.item() <= 1 for one in deviations]
    return [not one <= 1 for one in torch.stack(deviations).tolist()] if deviations else []


PROJECTION_NAMES = (
    "o_proj",
    "out_proj",
    "c_proj",
    "proj",
    "to_out",
    "out_lin",
    "wo",
    "o",
    "dense",
    "out",
    "output.dense",
)
"""Names of the output projection in the module, or in its parent: BERT's is beside the attention, not in it."""


def output_projection(modules: list[nn.Module], width: int) -> nn.Module | None:
    """The module with W_o, of the last of `modules` or its parent; None if neither has one of this width.

    >>> output_projection([nn.MultiheadAttention(8, 2)], 8)
    NonDynamicallyQuantizableLinear(in_features=8, out_features=8, bias=True)
    """
    for module in modules[:-3:-1]:
        for name in PROJECTION_NAMES:
            found = _child(module, name)
            if found is not None and weight_of(found, width) is not None:
                return found
    return None


def value_norms(captured: CapturedCall | CapturedWeights, modules: list[nn.Module]) -> Tensor | None:
    """‖v W_o‖ for every head and key, B H S; ‖v‖ if W_o is unknown, None if v was not captured."""
    v = (
        _values_of_weights(captured, modules[-1]) if isinstance(captured, CapturedWeights) else _values(captured)
    )  # B H S Ev
    if v is None:
        return None
    v, H = v.to(torch.promote_types(v.dtype, torch.float32)), v.shape[1]
    projection = output_projection(modules, H * v.shape[-1])
    W_o = None if projection is None else weight_of(projection, H * v.shape[-1])
    if W_o is None:
        return v.norm(dim=-1)
    each = W_o.detach().to(v).unflatten(0, (H, -1))  # H Ev D
    # ‖v W‖² = v (W Wᵀ) vᵀ: avoids vectors as wide as the model.
    return ((v @ (each @ each.transpose(1, 2))) * v).sum(-1).clamp_min(0).sqrt()


@torch.no_grad()
def outputs_of(
    captured: CapturedCall | CapturedWeights, module: nn.Module, padding: Padding | None = None
) -> Tensor | None:
    """A copy of what each head computed, B H T Ev; None if the values were not captured.

    That of the operator, or of our kernel in its place; where neither is known, or of a model's own softmax, it is
    computed from the values.
    """
    if isinstance(captured, CapturedWeights):
        v, weights = _values_of_weights(captured, module), by_heads(captured.weights, module)
        out = None if v is None else weights.to(v.dtype) @ v
    else:
        out = captured.out if captured.output is None else captured.output.out
        if out is None and captured.v.shape[-1]:
            q, k, v, scale = captured.q, captured.k, captured.v, captured.scale
            out = attend(q, k, v, mask=captured.mask, bias=captured.bias, scale=scale, softcap=captured.softcap)
    return None if out is None else copied_outputs(out, padding)


def _values(captured: CapturedCall) -> Tensor | None:
    v = captured.v
    return v.repeat_interleave(captured.q.shape[1] // max(1, v.shape[1]), 1) if v.shape[-1] else None


def _values_of_weights(captured: CapturedWeights, module: nn.Module) -> Tensor | None:
    """The values that the weights of each head were multiplied with; None if they cannot be assigned to heads.

    Heads and samples may have changed places before the product, so the factor must equal the captured weights; after
    dropout it does not. Heads that share values may be adjacent in one matrix.
    """
    weights, v, factor = captured.weights, captured.v, captured.factor
    if v is None or factor is None or not torch.equal(factor.reshape(weights.shape), weights.to(factor.dtype)):
        return None
    lead = weights.shape[:-2]
    v = v.reshape(-1, *v.shape[-2:])
    v = v.repeat_interleave(lead.numel() // len(v), 0)
    return by_heads(v.reshape(*lead, *v.shape[-2:]), module) if len(v) == lead.numel() else None


def _child(module: nn.Module, name: str) -> nn.Module | None:
    found: nn.Module | None = module
    for part in name.split("."):
        found = None if found is None or part not in found._modules else found._modules[part]
    if isinstance(found, nn.Sequential | nn.ModuleList) and len(found):
        return found[0]  # a projection and its dropout
    return found


def weight_of(module: nn.Module, width: int) -> Tensor | None:
    """W_o, (H·Ev) D: the matrix that the module multiplies with from the right, if its input has that width."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2 or not weight.is_floating_point():
        return None
    inner = 1 if isinstance(module, nn.Linear) else 0
    if weight.shape[inner] != width and hasattr(weight, "to_local"):  # tensor parallel: the heads of this process
        weight = weight.to_local()
    if isinstance(module, nn.Linear):
        weight = weight.T
    elif type(module).__name__ != "Conv1D":  # Hugging Face's GPT-2 stores the transpose
        return None
    return weight if weight.shape[0] == width else None
