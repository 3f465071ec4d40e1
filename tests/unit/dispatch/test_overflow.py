"""The check that q, k and v are finite and not huge, which reads them once."""

import pytest
import torch

from regard import Mask, attend
from regard.dispatch import overflow
from regard.dispatch.overflow import huge, start_norm_check, surely_finite


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("check", [surely_finite, lambda xs: start_norm_check(xs)()], ids=["waiting", "asking"])
def test_one_bad_number_is_found(check, transposed: bool, dtype: torch.dtype) -> None:  # type: ignore[no-untyped-def]
    xs = [torch.randn(2, 3, 5, 4).to(dtype) for _ in range(3)]
    xs = [x.transpose(1, 2) if transposed else x for x in xs]
    assert check(tuple(xs))
    bad = [torch.nan, torch.inf, -torch.inf] + ([] if dtype == torch.float16 else [huge(dtype), -huge(dtype)])
    for at in range(3):
        for value in bad:
            changed = [x.clone() for x in xs]
            changed[at][1, 2, 1, 3] = value * 1.01
            assert not check(tuple(changed))


def test_empty_tensors_are_finite() -> None:
    empty = (torch.zeros(1, 2, 0, 4),) * 3
    assert surely_finite(empty)
    assert start_norm_check(empty)()


@pytest.mark.parametrize("masked", [0.0, torch.nan, torch.inf])
def test_result_is_recomputed_when_the_late_check_fails(monkeypatch: pytest.MonkeyPatch, masked: float) -> None:
    """As on a GPU, where the kernel runs before the result of the check is known."""
    q, k, v = torch.randn(3, 1, 2, 5, 4)
    right = attend(q, k, v, mask=Mask.causal())
    results: list[bool] = []

    def start_check(xs: tuple[torch.Tensor, ...]) -> object:
        results.append(start_norm_check(xs)())
        return lambda: results[-1]

    monkeypatch.setattr(overflow, "_may_wait", lambda tensors: True)
    monkeypatch.setattr(overflow, "start_norm_check", start_check)
    v[:, :, -1], k[:, :, -1] = masked, masked
    out = attend(q, k, v, mask=Mask.causal())
    assert results == [masked == 0]
    torch.testing.assert_close(out[:, :, :-1], right[:, :, :-1], rtol=0, atol=0)
    assert out[:, :, -1].isfinite().all() == (masked == 0)
