"""Padding by ids, and how generation continues from what was known of the start."""

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from narrowing import present
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

import regard
from regard import See
from regard.capture.call_masks import PadIds, padding_by_mask
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.masks import Mask
from regard.records import Kind


def pad_ids(pad: int | None = 0, eos: Any = 2) -> PadIds:
    model = nn.Linear(1, 1)
    model.config = SimpleNamespace(pad_token_id=pad, eos_token_id=eos)  # type: ignore[assignment]
    return PadIds(model, None)


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([[5, 6, 7], [8, 9, 4]], None),
        ([[5, 6, 0], [5, 0, 0]], [[1, 1, 0], [1, 0, 0]]),
        ([[0, 0, 5], [0, 6, 7]], [[1, 0, 1], [1, 1, 1]]),  # all start with it: a decoder's start token
        ([[0, 5, 6], [7, 8, 9]], [[0, 1, 1], [1, 1, 1]]),
        ([[5, 0, 6], [7, 0, 8]], None),  # between others it is a token
        ([[0, 5, 0]], [[1, 1, 0]]),
        ([[0]], None),
        ([[0, 0, 0], [5, 6, 7]], [[1, 0, 0], [1, 1, 1]]),
    ],
)
def test_ids_at_the_ends(ids: list[list[int]], text: list[list[int]] | None) -> None:
    found = pad_ids().is_text(np.array(ids))
    assert (None if found is None else found.astype(int).tolist()) == text


def test_an_end_token_after_a_text_is_not_padding() -> None:
    assert pad_ids(pad=2, eos=[2, 3]).is_text(np.array([[5, 6, 2], [5, 2, 2]])) is None
    assert pad_ids(pad=None).is_text(np.array([[5, 6, 0]])) is None


def test_padding_after_the_end_of_a_generated_text() -> None:
    pads, ended = pad_ids(pad=0, eos=2), np.zeros(2, bool)
    rows = []
    for column in ([5, 0], [2, 6], [0, 7], [0, 2], [0, 0]):
        text, ended = pads.continue_text(np.array(column)[:, None], ended)
        rows.append([1, 1] if text is None else text[:, 0].astype(int).tolist())
    assert rows == [[1, 1], [1, 1], [0, 1], [0, 1], [0, 0]]


def test_a_finished_text_in_a_batch_that_continues() -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
    }
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, num_key_value_heads=2, **sizes)).eval()
    prompt = torch.tensor([[5, 6, 7], [8, 9, 10]])
    free = model.generate(prompt, max_new_tokens=6, do_sample=False, pad_token_id=0, eos_token_id=49)
    model.config.eos_token_id, model.config.pad_token_id = end, _ = int(free[0, 4]), 0
    assert end not in free[1].tolist()  # else both texts would end
    with torch.no_grad(), regard.watch(model, see=See(entropy=True)) as trace:
        out = model.generate(prompt, max_new_tokens=6, do_sample=False, pad_token_id=0, eos_token_id=end)
    (whole,) = trace.stitched(out)
    after = int((out[0] == end).nonzero()[0]) + 1
    assert not whole.weights()[0, :, after:].any()
    assert (whole.weights()[1].sum(-1) - 1).abs().max() < 1e-5
    assert (whole.weights()[0, :, :after].sum(-1) - 1).abs().max() < 1e-5


def test_ids_that_follow_a_text_given_as_vectors() -> None:
    """The ids of the first call are unknown; those of later calls continue it."""
    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "vocab_size": 9}
    config = LlamaConfig(**sizes, num_attention_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    model = LlamaForCausalLM(config).eval()
    with warnings.catch_warnings(), torch.no_grad(), regard.watch(model) as trace:
        warnings.simplefilter("error")
        cache = model(inputs_embeds=torch.randn(2, 3, 16), use_cache=True).past_key_values
        model(torch.tensor([[2], [5]]), past_key_values=cache)
        model(torch.tensor([[0], [6]]), past_key_values=cache)
    assert [record.shape[2:] for record in trace] == [(3, 3), (1, 4), (1, 5)]
    assert present(present(trace[2].padding).queries).tolist() == [[False], [True]]


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_a_mask_shows_padded_queries_in_self_attention_only(kind: Kind) -> None:
    q = torch.randn(2, 2, 4, 8)
    keep = torch.tensor([[True] * 4, [True, True, False, False]])
    captured = CapturedCall(q, q, q, 1.0, mask=Mask.from_keep(keep))
    found = padding_by_mask(captured, (2, 2, 4, 4), nn.Identity(), across=kind == "cross")
    assert found is not None
    assert present(found.keys).tolist() == keep.tolist()
    assert found.queries is None if kind == "cross" else present(found.queries).tolist() == keep.tolist()


def test_scores_show_padding_if_the_model_computes_its_softmax() -> None:
    visible = torch.tensor([[True, True, False], [True, True, True]])[:, None].expand(2, 2, 3)
    captured = CapturedWeights(torch.rand(2, 2, 3, 3), None, visible=visible)
    found = padding_by_mask(captured, (2, 2, 3, 3), nn.Identity(), across=False)
    assert found is not None
    assert present(found.queries).tolist() == [[True, True, False], [True, True, True]]
    assert padding_by_mask(captured._replace(visible=None), (2, 2, 3, 3), nn.Identity(), across=False) is None


class SummaryAttention(nn.Module):
    """Causal attention that computes its own softmax. The last of its keys summarise the text, as in DeepSeek V4."""

    def __init__(self, summaries: int) -> None:
        super().__init__()
        self.summaries = summaries

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        T = x.shape[1]
        keys = torch.cat([x, x[:, : self.summaries]], 1)
        visible = torch.cat([torch.ones(T, T).tril() * keep[:, None], torch.ones(len(x), T, self.summaries)], -1)
        scores = (x @ keys.mT).masked_fill(visible == 0, -torch.inf)
        return (scores[:, None].softmax(-1) @ keys[:, None])[:, 0]


def test_padding_before_keys_that_are_no_text() -> None:
    """The queries at padded keys are padding, though the last query is not at the last key."""
    layers = nn.ModuleList([nn.Embedding(9, 4), SummaryAttention(0), SummaryAttention(2)])
    keep = torch.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]])
    with torch.no_grad(), regard.watch(layers, see=See(map=64)) as trace:
        x = layers[0](torch.tensor([[1, 2, 3, 4, 5, 6]] * 2))
        for layer in (layers[1], layers[2]):
            layer(x, keep)
    assert [record.shape for record in trace] == [(2, 1, 6, 6), (2, 1, 6, 8)]
    for record in trace:
        assert present(present(record.padding).queries).tolist() == keep.bool().tolist()
        torch.testing.assert_close(present(record.map)[:, 0].sum(-1), keep.float())
