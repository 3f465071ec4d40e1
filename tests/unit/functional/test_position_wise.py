"""`linear_rows` equals `F.linear` for all sizes, and uses bands only where they are faster."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tolerances import assert_close

from regard.functional import position_wise
from regard.functional.position_wise import linear_rows


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_marked_as_constant_as_pytorch_does_it() -> None:
    marked = torch.compiler.assume_constant_result(lambda: 1)
    assert vars(position_wise._threads) == vars(marked)


@pytest.mark.parametrize("lead", [(), (1,), (1, 1), (3,), (4, 1), (2, 3), (1, 5), (32,), (33,), (0,)])
@pytest.mark.parametrize("rows", [256, 257, 259])
def test_it_equals_linear(threads: int, lead: tuple[int, ...], rows: int) -> None:
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(*shape).double() for shape in ((*lead, 300), (rows, 300), (rows,)))
    with torch.no_grad():
        for b in (None, bias):
            assert_close(linear_rows(x, weight, b), F.linear(x, weight, b))
        assert_close(linear_rows(x.mT.contiguous().mT if x.ndim > 1 else x, weight), F.linear(x, weight))


def test_bands_are_used_only_where_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    by_bands = position_wise._linear_by_bands

    def counted(*args: Any) -> Any:
        taken.append(args)
        return by_bands(*args)

    monkeypatch.setattr(position_wise, "_linear_by_bands", counted)
    monkeypatch.setattr(position_wise, "_threads", lambda: 2)
    x, weight = torch.randn(1, 1, 256), torch.randn(256, 256)
    with torch.no_grad():
        linear_rows(x, weight)
        assert len(taken) == 1
        linear_rows(torch.randn(40, 256), weight)
        linear_rows(x, weight[:16])
        linear_rows(x.bfloat16(), weight.bfloat16())
        linear_rows(x, torch.randn(256, 256).mT)
        with torch.autocast("cpu", torch.bfloat16):
            assert linear_rows(x, weight).dtype == torch.bfloat16
    linear_rows(x, weight.requires_grad_()).sum().backward()
    assert len(taken) == 1
