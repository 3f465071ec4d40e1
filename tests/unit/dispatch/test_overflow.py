"""Whether something in q, k and v may go wrong, told by reading them once."""

import pytest
import torch

from regard.dispatch.overflow import huge, surely_tame, tame_at_once


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("lies", [False, True])
@pytest.mark.parametrize("judge", [surely_tame, tame_at_once])
def test_one_number_is_enough(judge, lies: bool, dtype: torch.dtype) -> None:  # type: ignore[no-untyped-def]
    xs = [torch.randn(2, 3, 5, 4).to(dtype) for _ in range(3)]
    xs = [x.transpose(1, 2) if lies else x for x in xs]
    assert judge(tuple(xs))
    wild = [torch.nan, torch.inf, -torch.inf] + ([] if dtype == torch.float16 else [huge(dtype), -huge(dtype)])
    for at in range(3):
        for value in wild:
            spoilt = [x.clone() for x in xs]
            spoilt[at][1, 2, 1, 3] = value * 1.01
            assert not judge(tuple(spoilt))


def test_no_numbers_are_tame() -> None:
    empty = (torch.zeros(1, 2, 0, 4),) * 3
    assert surely_tame(empty)
    assert tame_at_once(empty)
