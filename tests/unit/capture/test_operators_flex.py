"""`flex_attention` called directly."""

from collections.abc import Callable

import pytest
import torch
from capturing import assert_unchanged
from narrowing import present
from tolerances import assert_close
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

import regard
from regard import See

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")

T = 20
Q, K, V = torch.randn(2, 4, T, 16), torch.randn(2, 2, T, 16), torch.randn(2, 2, T, 16)
SLOPES = torch.randn(4)
CAUSAL = create_block_mask(lambda b, h, i, j: i >= j, None, None, T, T, device="cpu")
Index = Tensor


def with_slopes(score: Tensor, b: Index, h: Index, i: Index, j: Index) -> Tensor:
    return score + SLOPES[h] * (i - j)


def capped(score: Tensor, b: Index, h: Index, i: Index, j: Index) -> Tensor:
    return torch.tanh(score)


@pytest.mark.parametrize("score_mod", [None, with_slopes, capped])
@pytest.mark.parametrize("block_mask", [None, CAUSAL], ids=["all", "causal"])
def test_score_and_mask_functions(score_mod: Callable[..., Tensor] | None, block_mask: BlockMask | None) -> None:
    def run() -> Tensor:
        return flex_attention(Q, K, V, score_mod=score_mod, block_mask=block_mask, enable_gqa=True)

    (record,) = assert_unchanged(run, nn.Identity())
    assert_close(record.weights() @ V.repeat_interleave(2, 1), run())
    scores = Q @ K.repeat_interleave(2, 1).mT / 4
    if score_mod is with_slopes:
        scores = scores + SLOPES[:, None, None] * (torch.arange(T)[:, None] - torch.arange(T))
    scores = scores.tanh() if score_mod is capped else scores
    if block_mask is not None:
        scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -torch.inf)
    assert_close(record.weights(), scores.softmax(-1), "weights")
    assert_close(record.lse, scores.logsumexp(-1), "statistic")


def test_a_fully_masked_query() -> None:
    none = create_block_mask(lambda b, h, i, j: i > j, None, None, T, T, device="cpu")
    (record,) = assert_unchanged(lambda: flex_attention(Q, K, V, block_mask=none, enable_gqa=True), nn.Identity())
    assert not record.weights()[:, :, 0].any()
    assert (present(record.lse)[:, :, 0] == -torch.inf).all()


def test_norms_of_shared_values() -> None:
    class Flexible(nn.Module):
        def forward(self) -> Tensor:
            return flex_attention(Q, K, V, enable_gqa=True)

    model = Flexible()
    with regard.watch(model, see=See(values=True)) as trace:
        model()
    assert_close(trace[0].value_norms, V.norm(dim=-1).repeat_interleave(2, 1))
