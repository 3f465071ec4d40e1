"""The output projection of an attention module, found by the names that people give it, and how long it makes values.

A module that keeps it elsewhere, or under a name nobody else uses, is no error: values are then taken as they are.
"""

import torch
from torch import Tensor, nn

from regard.capture.caught import Caught, CaughtWeights
from regard.capture.heads import by_heads

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
