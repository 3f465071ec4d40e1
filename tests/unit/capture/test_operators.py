"""Every kernel of `scaled_dot_product_attention`, against the formula."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from capturing import assert_unchanged, captured_in, records_of
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close
from torch import Tensor, nn

from regard.capture.captured import CapturedCall
from regard.capture.operators import named

NOTHING = nn.Identity()


def formula(q: Tensor, k: Tensor, visible: Tensor | None = None, scale: float | None = None) -> Tensor:
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    return scores.softmax(-1).nan_to_num(0.0)


@given(T=st.integers(1, 9), S=st.integers(1, 9), grouped=st.booleans(), causal=st.booleans(), seed=st.integers(0, 99))
def test_fused_attention_is_captured_with_its_weights(T: int, S: int, grouped: bool, causal: bool, seed: int) -> None:
    torch.manual_seed(seed)
    q, k, v = (
        torch.randn(2, 4, T, 8),
        torch.randn(2, 2 if grouped else 4, S, 8),
        torch.randn(2, 2 if grouped else 4, S, 8),
    )
    records = records_of(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped), NOTHING)
    visible = torch.ones(T, S, dtype=torch.bool).tril() if causal else None
    assert len(records) == 1
    assert_close(records[0].weights(), formula(q, k, visible), "weights")
    assert_close(records[0].map, formula(q, k, visible), "weights")


@pytest.mark.parametrize("shape", [(5, 6), (2, 1, 1, 6), (2, 1, 5, 6), (1, 4, 5, 6)], ids=str)
@pytest.mark.parametrize("boolean", [True, False])
def test_masks_of_every_shape(shape: tuple[int, ...], boolean: bool) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 6, 8)
    visible = torch.rand(shape) < 0.6
    mask = visible if boolean else torch.zeros(shape).masked_fill(~visible, -torch.inf)
    (record,) = records_of(lambda: F.scaled_dot_product_attention(q, k, k, attn_mask=mask), NOTHING)
    assert_close(record.weights(), formula(q, k, visible), "weights")


def test_the_scale_and_the_lse_of_the_call() -> None:
    q = torch.randn(1, 2, 5, 8)
    (record,) = records_of(lambda: F.scaled_dot_product_attention(q, q, q, scale=0.3), NOTHING)
    assert_close(record.weights(), formula(q, q, scale=0.3), "weights")
    assert_close(record.lse, (q @ q.mT * 0.3).logsumexp(-1), "statistic")


@pytest.mark.parametrize(
    ("what", "options"), [("dropout", {"dropout_p": 0.4}), ("narrow values", {}), ("three axes", {}), ("float64", {})]
)
def test_the_math_kernel_is_captured_before_dropout(what: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    q = torch.randn((3, 5, 8) if what == "three axes" else (2, 3, 5, 8))
    q = q.double() if what == "float64" else q
    v = q[..., :3] if what == "narrow values" else q
    found = captured_in(lambda: F.scaled_dot_product_attention(q, q, v, is_causal=True, **options))
    assert len(found) == 1
    (record,) = records_of(lambda: F.scaled_dot_product_attention(q, q, v, is_causal=True, **options), NOTHING)
    four = q if q.dim() == 4 else q[:, None]
    assert_close(record.weights(), formula(four, four, torch.ones(5, 5, dtype=torch.bool).tril()), "weights")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_training_is_unchanged(dtype: torch.dtype) -> None:
    project = nn.Linear(8, 24).to(dtype)
    x = torch.randn(2, 5, 8, dtype=dtype)

    def run() -> Tensor:
        q, k, v = project(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.2)

    assert len(assert_unchanged(run, project)) == 1


def test_default_arguments_are_named() -> None:
    func = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    found = named(func, (1, 2, 3), {"scale": 4})
    assert found == {
        "query": 1,
        "key": 2,
        "value": 3,
        "dropout_p": 0.0,
        "is_causal": False,
        "attn_mask": None,
        "scale": 4,
    }


def test_the_lse_of_the_kernel_is_used() -> None:
    q = torch.randn(1, 2, 5, 8)
    (found,) = captured_in(lambda: F.scaled_dot_product_attention(q, q, q))
    assert isinstance(found, CapturedCall)
    assert found.lse is not None
    assert found.q.data_ptr() == q.data_ptr()
