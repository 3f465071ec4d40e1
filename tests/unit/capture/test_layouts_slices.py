"""Attention computed in slices: some samples, some heads, or one head at a time. One record, with every weight."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import regard
from regard import See

B, H, T, E = 3, 4, 5, 2
Use = Callable[["Attention", Tensor, Tensor, Tensor], Tensor]


class Attention(nn.Module):
    """As diffusers writes it: heads and samples are one axis, B · H."""

    def __init__(self, use: Use) -> None:
        super().__init__()
        self.use, self.heads = use, H
        self.to_q, self.to_k, self.to_v = (nn.Linear(H * E, H * E) for _ in range(3))

    def qkv(self, x: Tensor) -> list[Tensor]:
        """Each B H T E."""
        return [part(x).unflatten(-1, (H, E)).transpose(1, 2) for part in (self.to_q, self.to_k, self.to_v)]

    def forward(self, x: Tensor) -> Tensor:
        return self.use(self, *self.qkv(x))


def sliced(size: int) -> Use:
    """`set_attention_slice(size)`."""

    def use(self: Attention, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (y.reshape(B * H, T, E) for y in (q, k, v))
        out = torch.zeros(B * H, T, E)
        for start in range(0, B * H, size):
            part = slice(start, start + size)
            buffer = torch.empty(len(q[part]), T, T)
            weights = torch.baddbmm(buffer, q[part], k[part].mT, beta=0, alpha=E**-0.5).softmax(-1)
            out[part] = torch.bmm(weights, v[part])
        return out.view(B, H, T, E).transpose(1, 2).flatten(2)

    return use


def some_heads(self: Attention, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    parts = [slice(0, 2), slice(2, 4)]
    return torch.cat([(q[:, p] @ k[:, p].mT * E**-0.5).softmax(-1) @ v[:, p] for p in parts], 1)


def head_by_head(self: Attention, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    heads = [(q[:, h] @ k[:, h].mT * E**-0.5).softmax(-1) @ v[:, h] for h in range(H)]
    return torch.stack(heads, 1)


def sample_by_sample(self: Attention, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    return torch.stack([(q[b] @ k[b].mT * E**-0.5).softmax(-1) @ v[b] for b in range(B)])


def whole(self: Attention, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT * E**-0.5).softmax(-1) @ v


WAYS: dict[str, Use] = {
    "slices of 1": sliced(1),
    "slices of 2": sliced(2),
    "slices of 3": sliced(3),
    "slices of 5, the last one shorter": sliced(5),
    "slices of 4, which are samples": sliced(4),
    "all at once": sliced(B * H),
    "some heads": some_heads,
    "head by head": head_by_head,
    "sample by sample": sample_by_sample,
    "whole": whole,
}


@pytest.mark.parametrize("use", WAYS.values(), ids=WAYS)
def test_one_record_with_every_weight(use: Use) -> None:
    torch.manual_seed(0)
    attention = Attention(use)
    model = nn.Sequential(attention, nn.Identity())
    x = torch.randn(B, T, H * E)
    with torch.no_grad():
        plain = model(x)
        with regard.watch(model, see=See(map=8, entropy=True)) as trace:
            watched = model(x)
            model(x)
        q, k, _ = attention.qkv(x)
    assert torch.equal(plain, watched)
    wanted = (q @ k.mT * E**-0.5).softmax(-1)
    assert trace.names == ["0", "0#1"]
    for record in trace:
        torch.testing.assert_close(record.map, wanted)
        torch.testing.assert_close(record.entropy, -(wanted * wanted.log()).sum(-1))
        torch.testing.assert_close(record.lse, (q @ k.mT * E**-0.5).logsumexp(-1))


def test_incomplete_slices_are_recorded_one_by_one() -> None:
    def first_half(self: Attention, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (y.reshape(B * H, T, E) for y in (q, k, v))
        return torch.bmm((q[:6] @ k[:6].mT).softmax(-1), v[:6])

    torch.manual_seed(0)
    model = Attention(first_half)
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.randn(B, T, H * E))
    assert len(trace) == 1
