"""Training of a model that is divided among two processes (FSDP2): as one process trains it, and its checkpoints."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import divided_runs
import pytest
import tiny_runs
import torch
from divided_runs import Layered, train_layered
from safetensors.torch import load_file, save_file
from tiny_runs import ALONE, assert_same_tensors, metrics
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from torch.distributed.checkpoint.state_dict_loader import load

from regard.errors import ArgumentError, DtypeError, FileError
from regard.training import checkpoint_store, run_files, sharding
from regard.training.checkpoint_store import CheckpointStore, Snapshot
from regard.training.loop import Outcome
from regard.training.processes import Ranks
from regard.training.sharding import ShardedStore, shard, shard_names


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


WEIGHTS = {"a.weight": torch.arange(15.0).reshape(5, 3), "a.bias": torch.arange(5.0).bfloat16()}
STEP = {"a.weight/step": torch.tensor(7.0), "a.weight/exp_avg": torch.ones(5, 3) / 3}
FIRST, SECOND = shard_names(2)


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def store(tmp_path: Path) -> ShardedStore:
    return ShardedStore(tmp_path, ALONE, WEIGHTS)


def write_parts(folder: Path, parts: list[dict[str, tuple[Tensor, tuple[int, ...]]]]) -> None:
    """A checkpoint of several parts, each with tensors and their offsets."""
    folder.mkdir(parents=True)
    digests = {}
    for name, part in zip(shard_names(len(parts)), parts, strict=True):
        tensors = {f"model/{key}": tensor for key, (tensor, _) in part.items()}
        offsets = {f"model/{key}": start for key, (_, start) in part.items()}
        digests[name] = sharding._write_part(folder / name, tensors, offsets)
    digests["state.json"] = run_files.write_file(folder / "state.json", lambda writer: writer.write(b'{"cursor": 1}'))
    checkpoint_store.write_manifest(folder, 3, digests, checkpoint_store.IN_PARTS)


def test_checkpoint_is_restored_bit_for_bit(store: ShardedStore) -> None:
    for step in (10, 20):
        store.save(Snapshot(step, WEIGHTS, STEP, {"cursor": step}))
    found = store.newest()
    assert found.skipped == ()
    assert found.snapshot is not None
    assert (found.snapshot.step, found.snapshot.state) == (20, {"cursor": 20})
    assert_same_tensors(found.snapshot.model, WEIGHTS)
    assert_same_tensors(found.snapshot.optimizer, STEP)
    (newest,) = store.models(1)
    assert_same_tensors(newest, WEIGHTS)
    assert sorted(path.name for path in (store.folder / "step-00000020").iterdir()) == [
        "manifest.json",
        *shard_names(1),
        "state.json",
    ]


def test_parts_are_joined_by_their_offsets(store: ShardedStore) -> None:
    weight, bias = WEIGHTS["a.weight"], WEIGHTS["a.bias"]
    first = {"a.weight": (weight[3:], (3, 0)), "a.bias": (bias, (0,))}
    write_parts(store.folder / "step-00000003", [first, {"a.weight": (weight[:3], (0, 0))}])
    assert_same_tensors(store.load(3).model, WEIGHTS)


def test_damaged_part_is_skipped(store: ShardedStore) -> None:
    for step in (10, 20):
        store.save(Snapshot(step, WEIGHTS, STEP, {}))
    path = store.folder / "step-00000020" / shard_names(1)[0]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    found = store.newest()
    assert found.snapshot is not None
    assert found.snapshot.step == 10
    assert [skipped.reason.key for skipped in found.skipped] == ["checkpoint-hash"]


def test_error_while_writing_keeps_older_checkpoints(store: ShardedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(Snapshot(10, WEIGHTS, STEP, {}))

    def fail(call: str) -> None:
        if call == "fsync":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_files, "fault_point", fail)
    with pytest.raises(Exception, match="step-00000020"):
        store.save(Snapshot(20, WEIGHTS, STEP, {}))
    assert store.steps() == [10]
    assert sorted(path.name for path in store.folder.iterdir()) == ["LATEST", "step-00000010"]


def test_dtype_that_cannot_be_written_raises_before_writing(store: ShardedStore) -> None:
    with pytest.raises(DtypeError, match="model/ids"):
        store.save(Snapshot(1, {"ids": torch.arange(3)}, {}, {}))
    assert not store.steps()


def test_tensor_of_another_model_is_returned_whole(store: ShardedStore) -> None:
    """The caller compares names and shapes."""
    other = {"b.weight": torch.ones(2), "a.bias": torch.ones(9)}
    store.save(Snapshot(1, other, {}, {}))
    assert_same_tensors(store.load(1).model, other)


# --- parts that do not fit together ----------------------------------------------------------------------

ROWS = torch.ones(3, 2)
WRONG = {
    "a gap": [{"w": (ROWS, (0, 0))}, {"w": (ROWS, (4, 0))}],
    "an overlap": [{"w": (ROWS, (0, 0))}, {"w": (ROWS, (2, 0))}],
    "a missing beginning": [{"w": (ROWS, (1, 0))}, {}],
    "other columns": [{"w": (ROWS, (0, 0))}, {"w": (torch.ones(3, 3), (3, 0))}],
    "columns at an offset": [{"w": (ROWS, (0, 0))}, {"w": (ROWS, (3, 1))}],
    "a number twice": [{"w": (torch.ones(()), ())}, {"w": (torch.ones(()), ())}],
    "an offset too many": [{"w": (ROWS, (0, 0, 0))}, {}],
    "a negative offset": [{"w": (ROWS, (-1, 0))}, {}],
}


@pytest.mark.parametrize("parts", WRONG.values(), ids=WRONG)
def test_parts_that_do_not_fit_are_refused(store: ShardedStore, parts: list[Any]) -> None:
    write_parts(store.folder / "step-00000003", parts)
    with pytest.raises(FileError) as caught:
        store.load(3)
    assert caught.value.key == "model-garbled"


def rewrite(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        path = folder / "manifest.json"
        about = json.loads(path.read_text())
        change(about)
        path.write_text(json.dumps(about))

    return act


def link(folder: Path) -> None:
    (folder / FIRST).rename(folder / "x")
    (folder / FIRST).symlink_to("x")


def add_file(about: dict[str, Any]) -> None:
    about["files"]["x"] = about["files"][FIRST]


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a part gone": (lambda folder: (folder / SECOND).unlink(), "file-absent"),
    "a part of another number": (rewrite(lambda about: about["files"].pop(SECOND)), "checkpoint-files"),
    "a file that is no part": (rewrite(add_file), "checkpoint-files"),
    "a newer version": (rewrite(lambda about: about.update(version=3)), "checkpoint-newer"),
    "a link": (link, "checkpoint-not-plain"),
}


@pytest.mark.parametrize(("damage", "key"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_checkpoint_is_refused(store: ShardedStore, damage: Callable[[Path], object], key: str) -> None:
    folder = store.folder / "step-00000003"
    write_parts(folder, [{"w": (ROWS, (0, 0))}, {"w": (ROWS, (3, 0))}])
    damage(folder)
    with pytest.raises(FileError) as caught:
        store.load(3)
    assert caught.value.key == key


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"model/w": {}}', '{"model/w": {"saved_offsets": "0"}}'])
def test_invalid_offsets_are_refused(store: ShardedStore, text: str) -> None:
    folder = store.folder / "step-00000003"
    write_parts(folder, [{"w": (ROWS, (0, 0))}])
    path = folder / shard_names(1)[0]
    save_file({"model/w": ROWS}, path, {"DCP_SHARDING_INFO": text})
    digest = {"size": path.stat().st_size, "sha256": run_files.sha256_of(path)}
    rewrite(lambda about: about["files"].update({path.name: digest}))(folder)
    with pytest.raises(FileError) as caught:
        store.load(3)
    assert caught.value.key == "model-garbled"


def test_other_store_refuses_parts(store: ShardedStore) -> None:
    store.save(Snapshot(1, WEIGHTS, STEP, {}))
    with pytest.raises(FileError, match=r"model\.safetensors"):
        CheckpointStore(store.folder).load(1)
