"""One of two processes that train a small model with DDP and with FSDP2, with and without a monitor."""

import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import regard


class Block(nn.Module):
    """Causal self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out, self.dropout = nn.Linear(16, 48), nn.Linear(16, 16), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.dropout(self.out(y.transpose(1, 2).flatten(2)))


def train(way: str, monitored: bool, rank: int) -> tuple[list[float], list[Tensor], list[int], int]:
    torch.manual_seed(0)
    model: Any = nn.Sequential(Block(), Block())
    if way == "ddp":
        model = DistributedDataParallel(model)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (2,))
        for block in model:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    steps: list[int] = []
    layers = 0
    health = regard.monitor(model, every=2, log=lambda metrics, step: steps.append(step)) if monitored else None
    torch.manual_seed(rank)
    losses = []
    for _ in range(5):
        loss = model(torch.randn(2, 7, 16)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    if health is not None:
        health.close()
        layers = 0 if health.latest is None else len(health.latest)
    weights = [weight.to_local() if hasattr(weight, "to_local") else weight for weight in model.parameters()]
    return losses, [weight.detach().clone() for weight in weights], steps, layers


def main() -> None:
    store, rank = sys.argv[1], int(sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    for way in ("ddp", "fsdp"):
        plain, watched = train(way, False, rank), train(way, True, rank)
        is_same = plain[0] == watched[0] and all(map(torch.equal, plain[1], watched[1]))
        print(f"{way}: {'same' if is_same else 'different'}, steps {watched[2]}, layers {watched[3]}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
