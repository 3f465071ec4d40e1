"""One of two processes that watch their part of a model or batch, and gather the whole: compared with one process."""

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

import regard
from regard import See, Trace
from regard.errors import NotKeptError, RegardError
from regard.exact_weights import ExactWeights
from regard.statistics_table import STATISTICS
from regard.trace.processes import chunk_positions

SEE = See(map=8, max_score=True, entropy=True, received=True, top=3, distance=True, values=True, qk=True)


class Attention(nn.Module):
    """Self-attention whose heads are as many as its projections yield."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(16, 16) for _ in range(3))
        self.out_proj = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (f(x).unflatten(-1, (-1, 4)).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out_proj(y.transpose(1, 2).flatten(2))


class KeySlice(nn.Module):
    """Attention to some of the keys, as one process of context parallel computes it."""

    def forward(self, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, k, mask)


class Ring(nn.Module):
    """Causal attention of some queries to all keys, which the processes pass on, balanced as PyTorch balances it."""

    def __init__(self, rank: int = 0, world: int = 1) -> None:
        super().__init__()
        self.rank, self.world = rank, world

    def forward(self, q: Tensor, k: Tensor) -> None:
        attend = nn.functional.scaled_dot_product_attention
        attend(q, k, k, is_causal=True)
        for step in range(1, self.world):
            k = self.passed_on(k)
            if step <= self.rank:
                half = k.chunk(2, 2)[0]
                attend(q, half, half)
            else:
                attend(q.chunk(2, 2)[1], k, k)

    def passed_on(self, k: Tensor) -> Tensor:
        """The keys of the process before this one."""
        found = torch.empty_like(k)
        sent = dist.isend(k.contiguous(), (self.rank + 1) % self.world)
        assert sent is not None
        dist.recv(found, (self.rank - 1) % self.world)
        sent.wait()
        return found


class Unreadable(ExactWeights):
    """Weights that cannot be computed any more."""

    lse = None

    def block(self, rows: slice, cols: slice) -> Any:
        raise NotKeptError("outputs-not-kept", name="lost")


def model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(Attention(), Attention()).eval()


def watched(model: Any, *inputs: Tensor, see: See = SEE) -> Trace:
    with torch.no_grad(), regard.watch(model, see=see) as trace:
        model(*inputs)
    return trace


def batch() -> Tensor:
    return torch.randn(4, 7, 16, generator=torch.Generator().manual_seed(1))


def ddp(rank: int) -> tuple[Trace, Trace]:
    from torch.nn.parallel import DistributedDataParallel

    parallel = DistributedDataParallel(model())
    return watched(parallel, batch()[2 * rank :][:2]).gather(), watched(parallel, batch())


def groups(rank: int) -> tuple[Trace, Trace]:
    """Heads within one group, then samples within another; the first has a single process here."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "tp"))
    part = watched(model(), batch()[2 * rank :][:2])
    part.opening = (part.names[1], 3)
    whole = part.gather(mesh["tp"].get_group(), "heads").gather(mesh["dp"].get_group(), "samples")
    assert whole.opening == part.opening
    return whole, watched(model(), batch())


def fsdp(rank: int) -> tuple[Trace, Trace]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    sharded, mesh = model(), init_device_mesh("cpu", (2,))
    for block in sharded:
        fully_shard(block, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    return watched(sharded, batch()[:3] if rank == 0 else batch()[3:]).gather(), watched(model(), batch())


def tensor_parallel(rank: int) -> tuple[Trace, Trace]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    parallel = model()
    plan: Any = {f"{name}_proj": ColwiseParallel() for name in "qkv"} | {"out_proj": RowwiseParallel()}
    for block in parallel:
        parallelize_module(block, init_device_mesh("cpu", (2,)), plan)
    part = watched(parallel, batch())
    assert part[0].shape[1] == 2
    return part.gather(), watched(model(), batch())


def keys(rank: int) -> tuple[Trace, Trace]:
    """Each process has all queries and its part of the keys; 40 keys are more than the map has bins."""
    generator = torch.Generator().manual_seed(2)
    q, k = torch.randn(2, 4, 40, 8, generator=generator), torch.randn(2, 4, 40, 8, generator=generator)
    mask = torch.ones(40, 40, dtype=torch.bool).tril()
    own = slice(0, 24) if rank == 0 else slice(24, 40)
    part = watched(KeySlice(), q, k[:, :, own], mask[:, own])
    return part.gather(split="keys", map=8), watched(KeySlice(), q, k, mask)


def queries(rank: int) -> tuple[Trace, Trace]:
    """Each process has two chunks of the queries and of the keys."""
    q, k = torch.randn(2, 2, 4, 40, 8, generator=torch.Generator().manual_seed(3))
    positions = torch.from_numpy(chunk_positions(40, 2, balanced=True)[rank])
    part = watched(Ring(rank, 2), q[:, :, positions], k[:, :, positions])
    assert len(part) == 2
    whole = part.gather(split="queries", map=8, positions="balanced")
    (same,) = part.gather(split="queries", map=8, positions=positions)
    assert np.array_equal(same.weights(), whole[0].weights())
    return whole, watched(Ring(), q, k)


def differences(found: Trace, wanted: Trace) -> list[str]:
    """The statistics that differ, by more than the rounding of float32."""
    differ = [] if found.names == wanted.names else [f"{found.names} {wanted.names}"]
    for one, other in zip(found, wanted, strict=True):
        differ += [] if one.shape == other.shape else [f"shape {one.shape} {other.shape}"]
        pairs = {"weights": (one.weights(), other.weights())}
        for statistic in STATISTICS:
            here, there = (statistic.arrays(getattr(record, statistic.name)) for record in (one, other))
            differ += [] if here.keys() == there.keys() else [statistic.name]
            pairs |= {name: (here[name], there[name]) for name in here if name in there}
        for name, (left, right) in pairs.items():
            if not (left.shape == right.shape and np.allclose(left, right.numpy(), rtol=1e-5, atol=1e-5)):
                differ.append(f"{one.name} {name}")
    return differ


def refused(gather: Callable[[], Any]) -> str:
    try:
        gather()
    except RegardError as error:
        return str(error)
    return "nothing"


def main() -> None:
    store, rank = sys.argv[1], int(sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    for way in (ddp, groups, fsdp, tensor_parallel, keys, queries):
        print(f"{way.__name__}: {differences(*way(rank)) or 'same'}", flush=True)
    part = watched(model(), batch())
    print("unknown:", refused(part.gather), flush=True)
    print("arguments:", refused(lambda: part.gather(split="samples", map=8 + rank)), flush=True)
    print("names:", refused(lambda: (part[:1] if rank else part).gather(split="heads")), flush=True)
    broken = part[0].changed(map=None, exact=Unreadable())
    gather = (Trace([broken]) if rank else part[:1]).gather
    unused = refused(lambda: part.gather(split="heads", positions="balanced"))
    print("positions:", unused, refused(lambda: part.gather(split="queries", positions=[0, 1])), flush=True)
    print("failed:", refused(lambda: gather(split="heads")), flush=True)
    if rank == 1:
        os._exit(0)  # without a word to the other
    print("lost:", refused(lambda: part.gather(split="heads")), flush=True)
    print("after:", part[0].map is not None, flush=True)


if __name__ == "__main__":
    main()
