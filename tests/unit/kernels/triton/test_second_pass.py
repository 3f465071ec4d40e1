"""The inputs of the passes that follow an output."""

import pytest
import torch
from tolerances import assert_close

from regard.kernels.triton.second_pass import padded_shifts


@pytest.mark.parametrize("T", [1, 15, 16, 40])
def test_shifts_fill_whole_tiles(T: int, device: str) -> None:
    lse = torch.randn(2, 3, T, device=device)
    lse[1, 2, 0] = -torch.inf
    found = padded_shifts(lse, 16).cpu()
    assert found.shape == (2, 3, -(-T // 16) * 16)
    assert (found[:, :, T:] == torch.inf).all()
    assert found[1, 2, 0] == torch.inf
    visible = lse.cpu() != -torch.inf
    assert_close(found[:, :, :T][visible], lse.cpu()[visible] / torch.log(torch.tensor(2.0)))
