"""From a captured attention call to its Record.

Keys that a module adds (learned sinks) become `sink_mass`, rows that do not sum to 1 get their reason, and the output
projection gives the norms of values.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.capture.captured import Caught, CaughtWeights
from regard.capture.layouts import by_heads
from regard.dispatch.observation import answered, observed
from regard.functional.statistics import statistics_of
from regard.kernels.chunked.observe import weights_at_once
from regard.masks.padding import padding_of
from regard.padding import Padding, without_rows
from regard.records import Record, Rest, See, Statistics, Top
from regard.trace import Trace

AT_ONCE = 2**22
"""Weights up to which statistics are made of all heads together; beyond, head by head, to need little room."""


def recorded(caught: Caught | CaughtWeights, module: nn.Module, see: See, padding: Padding | None = None) -> Record:
    """The Record of what `module` computed, or has us compute; with `see.qk`, copies of what weights come from."""
    if isinstance(caught, CaughtWeights):
        return record_of_weights(caught, module, see, padding)
    options: dict[str, Any] = {"mask": caught.mask, "bias": caught.bias, "scale": caught.scale}
    options |= {"softcap": caught.softcap, "see": see, "padding": padding}
    if caught.output is not None:
        ours = answered(caught.q, caught.k, caught.v, **options)
        if ours is not None:
            caught.output.out, caught.output.lse = ours.out, ours.lse
            return ours.record
    return observed(caught.q, caught.k, caught.v, lse=caught.lse, **options)


@torch.no_grad()
def record_of_weights(caught: CaughtWeights, module: nn.Module, see: See, padding: Padding | None = None) -> Record:
    """What can be read off the weights now; they themselves, copied, with `see.qk`."""
    weights = by_heads(caught.weights, module)
    lse = weights.new_zeros(weights.shape[:-1]) if caught.lse is None else caught.lse.reshape(weights.shape[:-1])
    sink = None if caught.sink is None else caught.sink.reshape(weights.shape[:-1]).float()
    found = _statistics(weights, lse, see, padding, sink)
    if not see.lse or caught.lse is None:
        found = found._replace(lse=None)
    kept = without_rows(weights, None if padding is None else padding.queries, 0, axes=1).clone() if see.qk else None
    return Record(
        shape=tuple(weights.shape),
        rectangle=None if kept is None else lambda rows, cols: kept[..., rows, cols],
        kept={} if kept is None else {"weights": kept},
        padding=padding,
        **found._asdict(),
    )


def _statistics(weights: Tensor, lse: Tensor, see: See, padding: Padding | None, sink: Tensor | None) -> Statistics:
    exact = torch.promote_types(weights.dtype, torch.float32)
    if weights.numel() <= AT_ONCE:
        return _fresh(statistics_of(weights.to(exact), lse, see, padding=padding, sink_mass=sink), weights)
    sinks = [None] * weights.shape[1] if sink is None else sink.split(1, 1)
    heads = [
        statistics_of(one.to(exact), its_lse, see, padding=padding, sink_mass=its_sink)
        for one, its_lse, its_sink in zip(weights.split(1, 1), lse.split(1, 1), sinks, strict=True)
    ]
    return Statistics(*map(_joined, zip(*heads, strict=True)))


def _joined(parts: tuple[Any, ...]) -> Any:
    """One field of several Statistics, heads side by side."""
    if parts[0] is None:
        return None
    if isinstance(parts[0], Top):
        return Top(*(torch.cat(halves, 1) for halves in zip(*parts, strict=True)))
    return torch.cat(parts, 1)


def _fresh(found: Statistics, weights: Tensor) -> Statistics:
    """A map of one bin per weight may be the model's own tensor, which it may write over."""
    if found.map is not None and found.map.untyped_storage().data_ptr() == weights.untyped_storage().data_ptr():
        return found._replace(map=found.map.clone())
    return found


class AddedKeys(NamedTuple):
    """How many keys stand before those of the text, and how many behind."""

    before: int = 0
    behind: int = 0


def added_keys(module: nn.Module) -> AddedKeys:
    """What a module says of itself: `nn.MultiheadAttention`, and x-transformers' `add_zero_kv`.

    >>> added_keys(nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True))
    AddedKeys(before=0, behind=2)
    """
    if isinstance(module, nn.MultiheadAttention):
        return AddedKeys(behind=int(module.bias_k is not None) + int(module.add_zero_attn))
    return AddedKeys(before=int(getattr(module, "add_zero_kv", False) is True))


def without_added_keys(caught: Caught | CaughtWeights, added: AddedKeys) -> Caught | CaughtWeights:
    """The same without the keys that the module added, and with what these took."""
    if not any(added):
        return caught
    whole = _weights(caught) if isinstance(caught, Caught) else caught
    S = whole.weights.shape[-1]
    if sum(added) >= S:
        return caught
    keys = slice(added.before, S - added.behind)
    sink = whole.weights[..., : keys.start].sum(-1) + whole.weights[..., keys.stop :].sum(-1)
    weights = whole.weights[..., keys]
    return whole._replace(
        weights=weights,
        taken=weights if whole.taken is whole.weights else None if whole.taken is None else whole.taken[..., keys],
        v=None if whole.v is None or whole.v.shape[-2] != S else whole.v[..., keys, :],
        seen=None if whole.seen is None else whole.seen[..., keys],
        sink=sink,
    )


@torch.no_grad()
def _weights(caught: Caught) -> CaughtWeights:
    """The weights of all keys, made again from q and k."""
    (B, H, T, _), S = caught.q.shape, caught.k.shape[2]
    bound = None if caught.mask is None else caught.mask.bind((B, H), T, S, caught.q)
    options = (caught.lse, bound, caught.bias, caught.scale, caught.softcap)
    weights, lse = weights_at_once(caught.q, caught.k, *options)
    padding = padding_of(bound, caught.bias, (B, H, T, S), across=True)
    seen = None if padding is None or padding.keys is None else padding.keys[:, None].expand(B, H, S)
    v = caught.v.repeat_interleave(H // max(1, caught.v.shape[1]), 1)
    return CaughtWeights(weights, lse, caught.part, v=v, taken=weights, seen=seen)


EXACT, COARSE = 1e-3, 3e-2
"""How far from 1 a sum may be by rounding: of float32, and of float16 and bfloat16."""


class _Sum(NamedTuple):
    place: int  # of the record in its Trace
    name: str
    deviation: Tensor  # in units of what rounding may do
    reason: Rest


class RowSums:
    """Is told every attention that a model made by hand."""

    def __init__(self) -> None:
        self._sums: list[_Sum] = []

    def add(self, place: int, name: str, caught: CaughtWeights) -> None:
        """The weights of the record that the Trace has at `place`."""
        weights = caught.weights
        coarse = weights.dtype in (torch.float16, torch.bfloat16)
        if weights.numel():
            sums = weights.detach().sum(-1, dtype=torch.float32)
            deviation = torch.where(sums == 0, 0.0, (sums - 1).abs()).amax() / (COARSE if coarse else EXACT)
            reason: Rest = caught.rest or ("" if caught.sink is None else "sink")
            self._sums.append(_Sum(place, name, deviation, reason))

    def settle(self, trace: Trace) -> list[str]:
        """Give the records their reasons; the modules of which none is known."""
        unknown: dict[str, None] = {}
        for one, is_far in zip(self._sums, _far([one.deviation for one in self._sums]), strict=True):
            if is_far:
                trace.complete(one.place, {"rest": one.reason or "unknown"})
                if not one.reason:
                    unknown.setdefault(one.name)
        self._sums.clear()
        return list(unknown)


def _far(deviations: list[Tensor]) -> Iterable[bool]:
    """Which of them are beyond rounding: read once for all that lie on one device."""
    if len({one.device for one in deviations}) > 1:
        return [not one.item() <= 1 for one in deviations]
    return [not one <= 1 for one in torch.stack(deviations).tolist()] if deviations else []


NAMES = ("o_proj", "out_proj", "c_proj", "proj", "to_out", "out_lin", "wo", "o", "dense", "out", "output.dense")
"""Of the module itself, or of the one around it: BERT's stands beside the attention, not in it."""


def output_projection(modules: list[nn.Module], width: int) -> Tensor | None:
    """W_o, (H·Ev) D, of the innermost of `modules` or the one around it; None where neither has one so wide.

    >>> output_projection([nn.MultiheadAttention(8, 2)], 8).shape
    torch.Size([8, 8])
    """
    for module in modules[:-3:-1]:
        for name in NAMES:
            found = _weight(_child(module, name), width)
            if found is not None:
                return found
    return None


def value_lengths(caught: Caught | CaughtWeights, modules: list[nn.Module]) -> Tensor | None:
    """‖v W_o‖ for every head and key, B H S; ‖v‖ where W_o is not known, None where v was not caught."""
    v = _values_of_weights(caught, modules[-1]) if isinstance(caught, CaughtWeights) else _values(caught)  # B H S Ev
    if v is None:
        return None
    v, H = v.to(torch.promote_types(v.dtype, torch.float32)), v.shape[1]
    W_o = output_projection(modules, H * v.shape[-1])
    if W_o is None:
        return v.norm(dim=-1)
    each = W_o.detach().to(v).unflatten(0, (H, -1))  # H Ev D
    # ‖v W‖² = v (W Wᵀ) vᵀ: no vectors as wide as the model.
    return ((v @ (each @ each.transpose(1, 2))) * v).sum(-1).clamp_min(0).sqrt()


def _values(caught: Caught) -> Tensor | None:
    v = caught.v
    return v.repeat_interleave(caught.q.shape[1] // max(1, v.shape[1]), 1) if v.shape[-1] else None


def _values_of_weights(caught: CaughtWeights, module: nn.Module) -> Tensor | None:
    """What the weights of each head were multiplied with; None where it cannot be told which were whose.

    Heads and samples may have changed places on the way to the product, so the weights there must be those that were
    caught: after dropout they are not. Heads that share values may stand side by side in one matrix.
    """
    weights, v, taken = caught.weights, caught.v, caught.taken
    if v is None or taken is None or not torch.equal(taken.reshape(weights.shape), weights.to(taken.dtype)):
        return None
    lead = weights.shape[:-2]
    v = v.reshape(-1, *v.shape[-2:])
    v = v.repeat_interleave(lead.numel() // len(v), 0)
    return by_heads(v.reshape(*lead, *v.shape[-2:]), module) if len(v) == lead.numel() else None


def _child(module: nn.Module, name: str) -> nn.Module | None:
    found: nn.Module | None = module
    for part in name.split("."):
        found = None if found is None else found._modules.get(part)
    if isinstance(found, nn.Sequential | nn.ModuleList) and len(found):
        return found[0]  # a projection and its dropout
    return found


def _weight(module: nn.Module | None, width: int) -> Tensor | None:
    """The matrix that the module multiplies with from the right, if it takes vectors of that width."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2 or not weight.is_floating_point():
        return None
    if isinstance(module, nn.Linear):
        weight = weight.T
    elif type(module).__name__ != "Conv1D":  # Hugging Face's GPT-2 keeps the transpose
        return None
    return weight if weight.shape[0] == width else None
