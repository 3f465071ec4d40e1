"""Gradients through the statistics of a Record: which backends compute them, which refuse, and the edge cases."""

from typing import Any

import numpy as np
import pytest
import torch
from narrowing import Three, present, three
from tolerances import assert_close, assert_same_bits
from torch import Tensor

from regard import Mask, See, attend, backends
from regard.errors import ArgumentError, BackendError
from regard.messages import use_language

SEE = See(map=3, max_score=True, entropy=True, received=True, top=2, distance=True, differentiable=True)
FIELDS = ("map", "lse", "entropy")
MASKS = {
    "full": None,
    "causal": Mask.causal(),
    "fully masked": Mask.causal() & Mask.padding(np.array([0, 0, 1, 1, 0])),  # the first two queries
}


def leaves(T: int = 5, *, dtype: Any = torch.float64) -> Three[Tensor]:
    make = torch.Generator().manual_seed(0)
    return three(torch.randn(1, 2, T, 3, generator=make, dtype=dtype).requires_grad_() for _ in range(3))


def statistics_with_gradients(record: Any) -> tuple[Tensor, ...]:
    return record.map, record.lse[record.lse > -torch.inf], record.entropy


@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize("name", MASKS)
def test_gradients_match_finite_differences(name: str, softcap: float | None) -> None:
    def statistics(q: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        return statistics_with_gradients(
            attend(q, k, leaves()[2].detach(), mask=MASKS[name], softcap=softcap, see=SEE)[1]
        )

    assert torch.autograd.gradcheck(statistics, leaves()[:2])


@pytest.mark.parametrize("name", MASKS)
def test_values_match_the_undifferentiable_statistics(name: str) -> None:
    _, found = attend(*leaves(), mask=MASKS[name], see=SEE)
    _, right = attend(*leaves(), mask=MASKS[name], see=See(map=3, entropy=True, received=True, top=2, distance=True))
    for field in (*FIELDS, "received", "sink", "distance"):
        assert_close(getattr(found, field), getattr(right, field).detach(), "statistic")
        assert getattr(found, field).requires_grad == (field in FIELDS)
        assert not getattr(right, field).requires_grad


def test_large_scores_keep_their_precision() -> None:
    q, k, v = (x.detach().float() * 20 for x in leaves())
    _, found = attend(q, k, v, see=SEE, backend="eager")
    _, right = attend(q.double(), k.double(), v.double(), see=SEE)
    assert present(right.lse).abs().max() > 400
    assert_close(found.entropy, right.entropy, "statistic", "float32")


@pytest.mark.parametrize("garbage", [torch.nan, torch.inf, 1e38])
def test_masked_nan_and_inf_reach_no_gradient(garbage: float) -> None:
    def gradients(last: float | None) -> list[Tensor]:
        xs = leaves(dtype=torch.float32)
        if last is not None:
            for x in xs[1:]:
                x.data[:, :, -1] = last
        out, record = attend(*xs, mask=Mask.causal(), see=See(map=5, entropy=True, differentiable=True))
        total = sum(present(x)[:, :, :-1].square().sum() for x in (out, record.map, record.lse, record.entropy))
        return list(torch.autograd.grad(total, xs))

    for found, clean in zip(gradients(garbage), gradients(None), strict=True):
        assert_same_bits(found, clean)


@pytest.mark.parametrize(("T", "S"), [(0, 4), (4, 0)])
def test_no_queries_or_no_keys(T: int, S: int) -> None:
    q, k = torch.zeros(1, 2, T, 3, requires_grad=True), torch.zeros(1, 2, S, 3)
    _, record = attend(q, k, k, see=SEE)
    assert present(record.entropy).tolist() == torch.zeros(1, 2, T).tolist()
    assert (present(record.lse) == -torch.inf).all()
    (present(record.map).sum() + present(record.entropy).sum()).backward()
    assert (present(q.grad) == 0).all()


def test_backends_report_who_computes_these_gradients() -> None:
    q, k, v = leaves()
    answers = backends(q, k, v, see=SEE)
    assert answers.chosen == "eager"
    assert answers["chunked"].endswith("these do: eager")
    assert answers["sdpa"] == "the fused kernel gives no statistics; eager does"
    with use_language("zh"):
        assert backends(q, k, v, see=SEE)["chunked"].endswith("可以的有：eager")
    with pytest.raises(BackendError, match=r"differentiable=True requests; these do: eager; .*'auto' would take eager"):
        attend(q, k, v, see=SEE, backend="chunked")


def test_no_backend_refuses_without_a_gradient() -> None:
    q, k, v = leaves()
    assert backends(q.detach(), k.detach(), v.detach(), see=SEE).chosen == "chunked"
    with torch.no_grad():
        assert backends(q, k, v, see=SEE).chosen == "chunked"


def test_numpy_arrays_are_refused() -> None:
    x = np.eye(3)
    for call in (attend, backends):
        with pytest.raises(ArgumentError, match="give torch tensors") as caught:
            call(x, x, x, see=SEE)
        assert caught.value.key == "see-differentiable-numpy"


def test_kept_tensors_hold_no_graph() -> None:
    _, record = attend(*leaves(), see=See(qk=True, differentiable=True))
    assert present(record.lse).requires_grad
    assert not any(x.requires_grad for x in present(record.exact).arrays)
    assert not record.weights().requires_grad


@pytest.mark.parametrize("bad", [3e38, torch.inf, torch.nan])
def test_bad_key_of_later_queries_leaves_earlier_gradients_finite(bad: float) -> None:
    q, k, v = torch.randn(3, 1, 1, 8, 4, generator=torch.Generator().manual_seed(0))
    k[:, :, 5] = bad
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    out, record = attend(q, k, v, mask=Mask.causal(), see=See(map=8, entropy=True, differentiable=True))
    for one in (out, record.map, record.entropy, record.lse):
        gradients = torch.autograd.grad(present(one)[:, :, :5].square().sum(), (q, k), retain_graph=True)
        assert all(x.isfinite().all() for x in gradients)
