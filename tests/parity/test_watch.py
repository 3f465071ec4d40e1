"""`watch` against Hugging Face's own `eager` weights, for many architectures."""

from collections import Counter
from typing import Any

import pytest
import torch
from architectures import ARCHITECTURES, Architecture
from narrowing import present
from torch.utils._python_dispatch import TorchDispatchMode

import regard
from regard import See

FUSED = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
EXACT = 1e-5
OUTPUTS = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}

each = pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda a: a.name)


class Counting(TorchDispatchMode):
    """Counts the operators that a model calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[Any] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[func] += 1
        return func(*args, **kwargs or {})


def eager_weights(architecture: Architecture, model: Any) -> dict[str, list[torch.Tensor]]:
    """The weights of `eager`, by kind; "" if there is only one."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(**architecture.inputs(), output_attentions=True)
    if architecture.fused:
        model.set_attn_implementation("sdpa")
    if "attentions" in out:
        return {"": list(out.attentions)}
    return {kind: list(out[name]) for kind, name in OUTPUTS.items()}


def text_rows(architecture: Architecture, kind: str, rows: int) -> torch.Tensor:
    """B T: queries that are not padding; the weights of padding are arbitrary in `eager`."""
    keep = architecture.inputs().get("attention_mask")
    if keep is None or kind in ("decoder", "cross") or keep.shape[1] != rows:
        return torch.ones(2, rows, dtype=torch.bool)
    return keep.bool()


@each
def test_every_weight_equals_eager(architecture: Architecture) -> None:
    model = architecture.build()
    wanted = eager_weights(architecture, model)
    with torch.no_grad(), Counting() as counting:
        model(**architecture.inputs())
    with torch.no_grad(), regard.watch(model, see=See(map=64)) as trace:
        model(**architecture.inputs())
    total = sum(map(len, wanted.values()))
    assert len(trace) == total
    if architecture.fused:
        assert counting.calls[FUSED] == total, "the fused kernel was not used"
    for kind, layers in wanted.items():
        records = [record for record in trace if not kind or record.kind == kind]
        assert len(records) == len(layers), f"{kind}: {[(r.name, r.kind) for r in trace]}"
        for record, weights in zip(records, layers, strict=True):
            is_text = text_rows(architecture, kind, weights.shape[-2])
            difference = (present(record.map) - weights).abs().amax((1, 3))  # B T
            assert difference[is_text].max() <= EXACT, record.name


@each
def test_watching_changes_nothing(architecture: Architecture) -> None:
    model = architecture.build()
    for mode in ("eval", "train"):
        getattr(model, mode)()
        found = []
        for watched in (False, True):
            torch.manual_seed(3)
            model.zero_grad()
            if watched:
                with regard.watch(model, see=See(map=8, entropy=True, received=True)):
                    out = model(**architecture.inputs())[0]
            else:
                out = model(**architecture.inputs())[0]
            out.sum().backward()
            gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
            found.append((out.detach(), torch.get_rng_state(), gradients))
        (plain, state, gradients), (watched_out, state_after, gradients_after) = found
        assert torch.equal(plain, watched_out)
        assert torch.equal(state, state_after)
        assert all(torch.equal(a, b) for a, b in zip(gradients, gradients_after, strict=True))
