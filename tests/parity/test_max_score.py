"""The largest score of each query: the same on every backend, in every way of watching, stitched, and in files.

The definition against all backends is in test_attend.py, padding in test_padding.py, Triton in tests/unit/kernels.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from narrowing import present
from strategies import Call, calls
from tolerances import assert_close
from torch import Tensor, nn

import regard
from regard import Mask, See, attend
from regard.arrays import to_numpy

SEE = See(map=4, max_score=True, qk=True)


def qkv(T: int = 6, *, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    make = torch.Generator().manual_seed(0)
    return [torch.randn(2, 4, T, 8, generator=make).to(dtype) for _ in range(3)]


@pytest.mark.parametrize("backend", ["blocked", "reference", "chunked", "eager"])
@given(call=calls(dtypes=("float64",)))
def test_the_largest_weight_is_that_of_the_largest_score(backend: str, call: Call) -> None:
    given_call = call if backend in ("blocked", "reference") else call.as_torch()
    _, record = attend(given_call.q, given_call.k, given_call.v, **given_call.options, see=SEE, backend=backend)
    found, lse = to_numpy(record.max_score), to_numpy(record.lse)
    assert found.shape == record.shape[:3]
    assert (np.isneginf(found) == np.isneginf(lse)).all()
    largest = np.where(np.isneginf(lse), 0, np.exp(found - np.where(np.isneginf(lse), 0, lse)))
    assert_close(largest, to_numpy(record.weights()).max(-1, initial=0), "statistic", "float64")


def test_no_gradient_flows_through_it() -> None:
    q, k, v = (x.requires_grad_() for x in qkv())
    for differentiable in (False, True):
        _, record = attend(q, k, v, see=See(map=4, max_score=True, differentiable=differentiable))
        assert not present(record.max_score).requires_grad
        assert present(record.lse).requires_grad == differentiable


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("backend", ["chunked", "eager"])
def test_half_precision_is_computed_in_float32(backend: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype=dtype)
    _, record = attend(q, k, v, see=SEE, backend=backend)
    assert present(record.max_score).dtype == torch.float32
    assert_close(record.max_score, (q.double() @ k.double().mT / 8**0.5).amax(-1), "statistic", "float32")


class Attention(nn.Module):
    """One attention of a model: PyTorch's fused operator, or a softmax of its own, perhaps changed afterwards."""

    def __init__(self, how: str = "fused") -> None:
        super().__init__()
        self.how = how

    def forward(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = True) -> Tensor:
        if self.how == "fused":
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        if self.how == "sink":  # a learned score beside those of the keys
            sink = torch.full((*scores.shape[:-1], 1), 0.5, dtype=scores.dtype)
            weights = torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
        else:
            weights = scores.softmax(-1)
        if self.how == "scaled":
            weights = weights * 0.5
        return weights @ v


def expected(q: Tensor, k: Tensor) -> Tensor:
    scores = q.double() @ k.double().mT / q.shape[-1] ** 0.5
    return scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf).amax(-1)


@pytest.mark.parametrize("T", [6, 300])
@pytest.mark.parametrize("how", ["fused", "own", "sink"])
def test_watched_models(how: str, T: int) -> None:
    q, k, v = qkv(T)
    model = Attention(how)
    with regard.watch(model, see=See(max_score=True)) as trace:
        model(q, k, v)
    assert_close(trace[0].max_score, expected(q, k), "statistic", "float32")


def test_scores_of_changed_weights_are_unknown() -> None:
    model = Attention("scaled")
    with (
        pytest.warns(UserWarning, match="max_score of attention is None: the model changed the weights"),
        regard.watch(model, see=See(max_score=True)) as trace,
    ):
        model(*qkv())
    assert trace[0].max_score is None
    assert trace[0].map is not None


def test_without_a_request_there_is_none() -> None:
    model = Attention("scaled")
    with regard.watch(model, see=See()) as trace:
        model(*qkv())
    assert trace[0].max_score is None


@pytest.mark.parametrize("how", ["sdpa", "eager"])
@pytest.mark.parametrize("see", [See(max_score=True), See(map=None, lse=False, sink=False, max_score=True)], ids=str)
def test_a_generated_text_equals_the_text_read_at_once(see: See, how: str) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=50, n_positions=32, n_embd=16, n_layer=2, n_head=4)
    config._attn_implementation = how
    model = GPT2LMHeadModel(config).eval()
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    with torch.no_grad(), regard.watch(model, see=see) as steps:
        ids = model.generate(torch.tensor([[3, 1, 4, 1]]), **options)
    with torch.no_grad(), regard.watch(model, see=see) as whole:
        model(ids[:, :-1])
    for found, wanted in zip(steps.stitched(ids), whole, strict=True):
        assert found.shape == wanted.shape
        assert_close(found.max_score, wanted.max_score, "statistic", "float32")


def test_files_keep_it(tmp_path: Path) -> None:
    q, k, v = (x.numpy() for x in qkv(40))
    _, record = attend(q, k, v, mask=Mask.causal(), see=SEE)
    _, without = attend(q, k, v, see=See())
    regard.Trace([record, without]).save(tmp_path / "t")
    back = regard.read_trace(tmp_path / "t")
    np.testing.assert_array_equal(back[0].max_score, record.max_score)
    assert back[1].max_score is None
