"""`Trace.relevance` against autograd through Hugging Face's own `eager` weights."""

from typing import Any

import pytest
import torch
from architectures import ARCHITECTURES, Architecture
from torch import Tensor

import regard
from regard import See

EXACT = 1e-5
OUTPUTS = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}


def first_number(out: Any) -> Tensor:
    """A loss: the sum over samples of the largest output of the middle position, which is text in all inputs."""
    found: Tensor = out.logits if "logits" in out else out.last_hidden_state
    return found.reshape(found.shape[0], -1, found.shape[-1])[:, found.shape[1] // 2].max(-1).values.sum()


def eager_relevance(architecture: Architecture, model: Any) -> dict[str, list[Tensor]]:
    """max(0, A ⊙ dA) by kind; "" if there is only one."""
    model.set_attn_implementation("eager")
    out = model(**architecture.inputs(), output_attentions=True)
    if architecture.fused:
        model.set_attn_implementation("sdpa")
    names = {"": "attentions"} if "attentions" in out else OUTPUTS
    weights = {kind: list(out[name]) for kind, name in names.items()}
    every = [one for layers in weights.values() for one in layers]
    gradients = iter(torch.autograd.grad(first_number(out), every))
    return {kind: [(one * next(gradients)).clamp_min(0).detach() for one in layers] for kind, layers in weights.items()}


WITHOUT_GRADIENT = {"XLNetModel"}
"""Architectures whose `eager` returns copies of the weights, to which no gradient flows."""
SHORT = {"GPT2Model", "LlamaModel", "Gemma2Model", "BloomModel", "BertModel", "DebertaV2Model", "T5Model", "BartModel"}
CASES = [
    pytest.param(one, marks=() if one.name in SHORT else pytest.mark.long, id=one.name)
    for one in ARCHITECTURES
    if one.name not in WITHOUT_GRADIENT
]


@pytest.mark.parametrize("architecture", CASES)
def test_relevance_equals_autograd_through_eager(architecture: Architecture) -> None:
    model = architecture.build().eval()
    wanted = eager_relevance(architecture, model)
    with regard.watch(model, see=See(qk=True)) as trace:
        out = model(**architecture.inputs())
    relevance = trace.relevance(first_number(out))
    for kind, layers in wanted.items():
        records = [record for record in relevance if not kind or record.kind == kind]
        assert len(records) == len(layers)
        for record, found in zip(records, layers, strict=True):
            largest = found.max()
            assert largest > 0, record.name
            difference = float((record.weights() - found).abs().max())
            assert difference <= EXACT * max(1.0, float(largest)), record.name
