"""Whether something in q, k and v may go wrong, told by reading them once."""

import pytest
import torch

from regard import Mask, attend
from regard.dispatch import overflow
from regard.dispatch.overflow import asked_whether_tame, huge, surely_tame


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("lies", [False, True])
@pytest.mark.parametrize("judge", [surely_tame, lambda xs: asked_whether_tame(xs)()], ids=["waiting", "asking"])
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
    assert asked_whether_tame(empty)()


@pytest.mark.parametrize("hidden", [0.0, torch.nan, torch.inf])
def test_what_is_begun_before_the_answer_is_done_again_if_need_be(
    monkeypatch: pytest.MonkeyPatch, hidden: float
) -> None:
    """As on a GPU, which goes on meanwhile."""
    q, k, v = torch.randn(3, 1, 2, 5, 4)
    right = attend(q, k, v, mask=Mask.causal())
    asked: list[bool] = []

    def ask(xs: tuple[torch.Tensor, ...]) -> object:
        asked.append(asked_whether_tame(xs)())
        return lambda: asked[-1]

    monkeypatch.setattr(overflow, "_may_wait", lambda tensors: True)
    monkeypatch.setattr(overflow, "asked_whether_tame", ask)
    v[:, :, -1], k[:, :, -1] = hidden, hidden
    out = attend(q, k, v, mask=Mask.causal())
    assert asked == [hidden == 0]
    torch.testing.assert_close(out[:, :, :-1], right[:, :, :-1], rtol=0, atol=0)
    assert out[:, :, -1].isfinite().all() == (hidden == 0)
