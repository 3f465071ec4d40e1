"""Operators that call others give the same results under the mode: with autocast, in inference mode, nested."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from capturing import assert_unchanged, captured_in
from tolerances import assert_same_bits
from torch import Tensor, nn

X = torch.randn(2, 5, 8)
LAYER = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
ATTENTION = nn.MultiheadAttention(8, 2, batch_first=True).eval()
RUNS: dict[str, Callable[[], Tensor]] = {
    "encoder layer": lambda: LAYER(X),
    "multi-head": lambda: ATTENTION(X, X, X)[0],
    "einsum": lambda: torch.einsum("bij,bkj->bik", X, X),
    "einsum of weights": lambda: torch.einsum("bij,bkj->bik", (X @ X.mT).softmax(-1), X.mT),
    "fused": lambda: F.scaled_dot_product_attention(X[:, None], X[:, None], X[:, None]),
    "fused, three axes": lambda: F.scaled_dot_product_attention(X, X, X),
    "fused, narrow values": lambda: F.scaled_dot_product_attention(X[:, None], X[:, None], X[:, None, :, :3]),
    "multi-head with an added mask": lambda: ATTENTION(X, X, X, attn_mask=torch.arange(25.0).view(5, 5).sin())[0],
    "linear across memory": lambda: F.linear(X.transpose(0, 1), ATTENTION.in_proj_weight, ATTENTION.in_proj_bias),
    "distances": lambda: torch.cdist(X, X),
    "similarity": lambda: F.cosine_similarity(X, X + 1, dim=-1),
}
ATTENTIONS = {"encoder layer": 1, "multi-head": 1, "einsum of weights": 1, "fused": 1}
ATTENTIONS |= {"fused, three axes": 1, "fused, narrow values": 1, "multi-head with an added mask": 1}


@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("autocast", [True, False])
@pytest.mark.parametrize("what", RUNS)
def test_composite_operators_give_the_same_bits(what: str, autocast: bool, guard: type) -> None:
    def run() -> Tensor:
        with guard(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return RUNS[what]().clone()

    assert len(assert_unchanged(run, LAYER)) == ATTENTIONS.get(what, 0)


def test_autocast_is_restored() -> None:
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        captured_in(lambda: LAYER(X))
        assert torch.is_autocast_enabled("cpu")
        assert (X @ X.mT).dtype == torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")


def test_q_and_k_are_recomputed_in_their_precision() -> None:
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        (found,) = captured_in(lambda: LAYER(X))
        expected = F.linear(X, LAYER.self_attn.in_proj_weight, LAYER.self_attn.in_proj_bias)[..., :8]
    assert_same_bits(found.q.transpose(1, 2).flatten(-2), expected)  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("jagged", [True, False])
@pytest.mark.parametrize("guard", [torch.enable_grad, torch.inference_mode])
def test_nested_tensors_are_unchanged(jagged: bool, guard: type) -> None:
    texts = [torch.randn(2, 5, 4), torch.randn(2, 3, 4)]

    def run() -> Tensor:
        with guard():
            if jagged:
                transposed = [text.transpose(0, 1) for text in texts]
                nested = torch.nested.nested_tensor(transposed, layout=torch.jagged).transpose(1, 2)
            else:
                nested = torch.nested.nested_tensor(texts)
            return torch.nested.to_padded_tensor(F.scaled_dot_product_attention(nested, nested, nested), 0.0).clone()

    assert_unchanged(run, LAYER)
