"""Runs of a divided model. As a program: one of two processes that train it, stop, continue, and print results."""

import signal
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tiny_runs import VOCAB, Numbers, train
from torch import Tensor, nn

from regard.training.loop import Callback, Outcome
from regard.training.processes import Ranks, joined
from regard.training.sharding import full_weights, own_part

OPTIONS: dict[str, Any] = {
    "accumulate": 2,
    "steps": 6,
    "save_every": 4,
    "clip": 0.5,
    "valid_every": 2,
    "average": 2,
    "shard": True,
}


class Layered(nn.Module):
    """Layers in a list, a matrix that is used twice, and weights whose rows two processes cannot share evenly."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(VOCAB, 6)
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(2))
        self.gain = nn.Parameter(torch.ones(1))
        self.output = nn.Linear(6, VOCAB)
        self.output.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = x + layer(x).relu()
        return self.output(x * self.gain)


def train_layered(folder: Path, ranks: Ranks, stop_after: int | None = None, **plan: Any) -> tuple[nn.Module, Outcome]:
    """Train, with a callback that runs the model; it requests a stop after a step."""
    model = Layered()

    def run_model(step: int) -> None:
        model(torch.ones(1, 2, dtype=torch.int64))
        if step == stop_after:
            signal.raise_signal(signal.SIGTERM)

    data, valid = Numbers(rows=(1, 2, 3)), Numbers(batches=2, rows=(1, 2))
    options: dict[str, Any] = {"model": model, "data": data, "valid": valid, "ranks": ranks}
    options["callbacks"] = [Callback(2, run_model)]
    return model, train(folder, **options, **(OPTIONS | plan))


def print_unpickled(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "pickle.find_class":
        print("pickle:", *arguments)


def main() -> None:
    folder = Path(sys.argv[1])
    with joined("cpu") as ranks:
        sys.addaudithook(print_unpickled)
        _, stopped = train_layered(folder, ranks, None if ranks.is_first else 2)
        print("stopped:", stopped.reason, stopped.progress.step)
        model, outcome = train_layered(folder, ranks)
        assert outcome.weights is not None
        print("finished:", outcome.reason, outcome.progress.step)
        print("rows:", *(len(own_part(weight)) for weight in outcome.weights.values()))
        model.load_state_dict(outcome.weights)
        whole = full_weights(model)
        print("whole:", len(whole))
        if ranks.is_first:
            save_file(whole, folder / "whole.safetensors")


if __name__ == "__main__":
    main()
