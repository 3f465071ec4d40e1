"""Checkpoints of a divided model: their parts are read as they were written, and damaged ones are refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tiny_runs import ALONE, assert_same_tensors
from torch import Tensor

from regard.errors import DtypeError, FileError
from regard.training import checkpoint_store, run_files, sharded_store
from regard.training.checkpoint_store import CheckpointStore, Snapshot
from regard.training.sharded_store import ShardedStore, shard_names

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
        digests[name] = sharded_store._write_part(folder / name, tensors, offsets)
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
