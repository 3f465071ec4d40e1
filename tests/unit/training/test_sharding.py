"""Training of a model that is divided among two processes (FSDP2): as one process trains it, and its checkpoints."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import divided_runs
import pytest
import tiny_runs
import torch
from divided_runs import Layered, train_layered
from safetensors.torch import load_file
from tiny_runs import ALONE, metrics
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from torch.distributed.checkpoint.state_dict_loader import load

from regard.errors import ArgumentError
from regard.training.loop import Outcome
from regard.training.processes import Ranks
from regard.training.sharded_store import ShardedStore
from regard.training.sharding import shard


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """The run of one process, which keeps the whole model."""
    folder = tmp_path_factory.mktemp("alone")
    return folder, train_layered(folder, ALONE)[1]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[str]]]:
    """The run folder of two processes, and the lines that they print."""
    folder = tmp_path_factory.mktemp("both")
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    env = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    env["PYTHONPATH"] = os.pathsep.join([str(Path(tiny_runs.__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, divided_runs.__file__, str(folder)]
    ranks = [
        subprocess.Popen(
            command,
            env=os.environ | env | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    return folder, [rank.communicate(timeout=100)[0].splitlines() for rank in ranks]


def test_two_processes_stop_together_and_continue(both: tuple[Path, list[list[str]]]) -> None:
    for lines, rows in zip(both[1], ("1 6 3 3 3 3 6 6", "0 5 3 3 3 3 5 5"), strict=True):
        assert lines[:2] == ["stopped: signal 3", "finished: steps 6"], lines
        assert lines[2] == f"rows: {rows}", lines


def test_no_pickle_is_read(both: tuple[Path, list[list[str]]]) -> None:
    for lines in both[1]:
        assert not [line for line in lines if line.startswith("pickle")]


def test_losses_are_those_of_one_process(both: tuple[Path, list[list[str]]], alone: tuple[Path, Outcome]) -> None:
    found, expected = metrics(both[0]), metrics(alone[0])
    assert [line["step"] for line in found] == [1, 2, 3, 4, 5, 6]
    for mine, theirs in zip(found, expected, strict=True):
        for name in mine.keys() & {"loss", "norm", "valid_loss"}:
            assert mine[name] == pytest.approx(theirs[name], rel=1e-5)


def test_first_process_gets_the_whole_weights(both: tuple[Path, list[list[str]]], alone: tuple[Path, Outcome]) -> None:
    folder, (first, second) = both
    assert (first[3], second[3]) == ("whole: 8", "whole: 0")
    expected = alone[1].weights
    assert expected is not None
    for name, weight in load_file(folder / "whole.safetensors").items():
        assert_close(weight, expected[name], "gradient")


# --- checkpoints of two processes, read by one -----------------------------------------------------------


def read_by_one(folder: Path, step: int) -> dict[str, Tensor]:
    return ShardedStore(folder / "checkpoints", ALONE, Layered().state_dict()).load(step).model


def test_one_process_reads_what_two_wrote(both: tuple[Path, list[list[str]]]) -> None:
    """The final weights are the mean of the last two checkpoints."""
    steps = [read_by_one(both[0], step) for step in (4, 6)]
    for name, weight in load_file(both[0] / "whole.safetensors").items():
        assert_same_bits(weight, ((steps[0][name].double() + steps[1][name].double()) / 2).float())


def test_one_process_continues_the_run_of_two(
    both: tuple[Path, list[list[str]]], alone: tuple[Path, Outcome], tmp_path: Path
) -> None:
    shutil.copytree(both[0] / "checkpoints", tmp_path / "checkpoints")
    shutil.rmtree(tmp_path / "checkpoints" / "step-00000006")
    shutil.copy(both[0] / "metrics.jsonl", tmp_path)
    _, outcome = train_layered(tmp_path, ALONE)
    assert outcome.progress == train_layered(alone[0], ALONE)[1].progress
    assert metrics(tmp_path)[:4] == metrics(both[0])[:4]
    for mine, theirs in zip(metrics(tmp_path), metrics(alone[0]), strict=True):
        assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-5)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_pytorch_reads_the_parts(both: tuple[Path, list[list[str]]]) -> None:
    expected = read_by_one(both[0], 6)
    found = {f"model/{name}": torch.empty_like(weight) for name, weight in expected.items()}
    folder = both[0] / "checkpoints" / "step-00000006"
    load(found, storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
    for name, weight in expected.items():
        assert_same_bits(found[f"model/{name}"], weight)


# --- a model that cannot be divided ----------------------------------------------------------------------


class Scalar(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(()))


def test_weight_without_axes_raises() -> None:
    with pytest.raises(ArgumentError, match=r"temperature has no axes; give it the shape \(1,\)"):
        shard(Scalar(), Ranks(0, 2, torch.device("cpu")))


def test_run_of_one_process_does_not_import_it() -> None:
    code = "import sys, regard.recipes.running; print([name for name in sys.modules if name in sys.argv])"
    names = ["torch.distributed.checkpoint", "torch.distributed.fsdp", "torch._dynamo"]
    found = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
