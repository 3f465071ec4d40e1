"""Checkpoints are restored bit for bit; damaged ones are skipped with the reason."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from regard.errors import ArgumentError, DtypeError, FileError, TooLargeError
from regard.training import checkpoint_store, run_files
from regard.training.checkpoint_store import LATEST, CheckpointStore, Snapshot

DTYPES = (torch.float16, torch.float32, torch.float64, torch.bfloat16)


def snapshot(step: int) -> Snapshot:
    draw = torch.Generator().manual_seed(step)
    model = {"a.weight": torch.randn(3, 5, generator=draw), "half": torch.randn(7, generator=draw).bfloat16()}
    optimizer = {"a.weight.exp_avg": torch.randn(3, 5, generator=draw), "step": torch.tensor(float(step))}
    return Snapshot(step, model, optimizer, {"cursor": step * 4, "best": 0.1 + step, "versions": {"torch": "2"}})


def assert_same(found: Snapshot | None, expected: Snapshot) -> None:
    assert found is not None
    assert (found.step, found.state) == (expected.step, expected.state)
    for mine, theirs in ((found.model, expected.model), (found.optimizer, expected.optimizer)):
        assert mine.keys() == theirs.keys()
        for name in theirs:
            assert mine[name].dtype == theirs[name].dtype
            assert mine[name].shape == theirs[name].shape
            assert bits(mine[name]) == bits(theirs[name])


def bits(x: torch.Tensor) -> bytes:
    return bytes(x.detach().contiguous().view(-1).view(torch.uint8).numpy()) if x.numel() else b""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power failure is tested here: waiting for the disk would only slow down the tests."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    """Two good checkpoints, of steps 10 and 20."""
    store = CheckpointStore(tmp_path / "checkpoints")
    for step in (10, 20):
        store.save(snapshot(step))
    return store


# --- writing ---------------------------------------------------------------------------------------------


def test_newest_is_restored_bit_for_bit(store: CheckpointStore) -> None:
    found = store.newest()
    assert not found.skipped
    assert_same(found.snapshot, snapshot(20))
    assert_same(store.load(10), snapshot(10))
    assert (store.folder / LATEST).read_text() == "step-00000020\n"
    assert names(store.folder / "step-00000020") == sorted((*checkpoint_store.FILES, checkpoint_store.MANIFEST))


@given(st.data())
def test_every_dtype_and_shape_is_restored(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    shapes = data.draw(st.lists(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5), max_size=4))
    tensors = {}
    for number, shape in enumerate(shapes):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(number))
        x = x.to(data.draw(st.sampled_from(DTYPES)))
        tensors[f"层.{number}"] = x.transpose(0, -1) if x.dim() and data.draw(st.booleans()) else x
    store = CheckpointStore(tmp_path_factory.mktemp("store"))
    saved = Snapshot(0, tensors, dict(reversed(tensors.items())), {})
    store.save(saved)
    assert_same(store.newest().snapshot, saved)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_every_half_precision_value_is_restored(dtype: torch.dtype, tmp_path: Path) -> None:
    every = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)
    store = CheckpointStore(tmp_path)
    store.save(Snapshot(1, {"every": every}, {"grad": every.clone().requires_grad_()}, {}))
    assert_same(store.newest().snapshot, Snapshot(1, {"every": every}, {"grad": every}, {}))


def test_loaded_tensors_are_writable(store: CheckpointStore) -> None:
    weight = store.load(20).model["a.weight"]
    weight += 1
    assert_same(store.load(20), snapshot(20))


def test_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=3)
    for step in (1, 2, 3, 4, 100_000_000):
        store.save(snapshot(step))
    assert store.steps() == [3, 4, 100_000_000]
    with pytest.raises(ArgumentError, match="keep must be a whole number of at least 2; found 1"):
        CheckpointStore(tmp_path, keep=1)


def test_saving_a_step_again_replaces_it(store: CheckpointStore) -> None:
    again = snapshot(20)._replace(state={"again": True})
    store.save(again)
    assert_same(store.newest().snapshot, again)
    assert store.steps() == [10, 20]
    assert not [name for name in names(store.folder) if "tmp" in name]


def test_saving_an_earlier_step_removes_later_ones(store: CheckpointStore) -> None:
    store.save(snapshot(15))
    assert store.steps() == [10, 15]
    assert (store.folder / LATEST).read_text() == "step-00000015\n"


def test_models_are_verified_and_oldest_first(store: CheckpointStore) -> None:
    found = list(store.models(2))
    assert [bits(model["half"]) for model in found] == [bits(snapshot(step).model["half"]) for step in (10, 20)]
    assert len(list(store.models(9))) == 2
    damage(store.folder / "step-00000010" / checkpoint_store.MODEL)
    assert len(list(store.models(1))) == 1
    with pytest.raises(FileError, match="has changed since it was written"):
        list(store.models(2))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": {"ids": torch.arange(3)}}, DtypeError, "ids must hold floating-point"),
        ({"state": {"loss": float("nan")}}, ArgumentError, "state must be JSON values"),
        ({"state": {"rng": b"\0"}}, ArgumentError, "not JSON serializable"),
        ({"state": {1: "a", "1": "b"}}, ArgumentError, "state must be"),
        ({"state": {"x": "x" * checkpoint_store.LARGEST_JSON}}, ArgumentError, "the maximum is 16.0 MiB"),
        ({"step": -1}, ArgumentError, "step must be a whole number"),
    ],
)
def test_invalid_snapshot_raises_before_writing(
    change: dict[str, Any], error: type[Exception], message: str, store: CheckpointStore
) -> None:
    before = names(store.folder)
    with pytest.raises(error, match=message):
        store.save(snapshot(30)._replace(**change))
    assert names(store.folder) == before


# --- leftovers -------------------------------------------------------------------------------------------


def test_sweep_removes_only_files_of_dead_processes(store: CheckpointStore) -> None:
    dead = 2**22 + 1  # larger than any process id of Linux
    left = [f"step-00000030.tmp-{dead}", f"step-00000005.gone.tmp-{os.getpid()}", f"{LATEST}.tmp-9999999999"]
    for name in (*left, "step-00000030.tmp-0"):
        (store.folder / name).mkdir()
        (store.folder / name / "half").write_text("…")
    others = [f"step-00000040.tmp-{os.getppid()}", f"mine.tmp-{dead}", "step-00000030.tmp-", "step-7.tmp-x"]
    for name in others:
        (store.folder / name).mkdir()
    store.sweep()
    assert names(store.folder) == sorted((LATEST, "step-00000010", "step-00000020", *others))
    assert store.steps() == [10, 20]


def test_save_replaces_leftovers_with_its_own_name(store: CheckpointStore) -> None:
    """A process may have the same id as one that was killed during the same step."""
    run_files.temporary(store.folder / "step-00000030").mkdir()
    run_files.temporary(store.folder / LATEST).write_text("half")
    (store.folder / "step-00000030").symlink_to("nowhere")
    store.save(snapshot(30))
    assert names(store.folder) == [LATEST, "step-00000020", "step-00000030"]


def test_files_are_synced_before_the_rename(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power failure may undo whatever was not synced, in any order."""
    happened: list[int | str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: happened.append(os.fstat(descriptor).st_ino))
    monkeypatch.setattr(run_files, "fault_point", lambda call: happened.append(call) if call == "rename" else None)
    target = store.save(snapshot(30))
    files = (
        target / checkpoint_store.STATE,
        target / checkpoint_store.MODEL,
        target / checkpoint_store.OPTIMIZER,
        target / checkpoint_store.MANIFEST,
    )
    inside = [path.stat().st_ino for path in (*files, target)]
    folder, latest = store.folder.stat().st_ino, (store.folder / LATEST).stat().st_ino
    assert happened == [*inside, "rename", folder, latest, "rename", folder, "rename"]  # the last: step 10 is removed


def test_sweep_does_not_follow_links(store: CheckpointStore, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("here")
    kept_copy = store.folder / f"step-00000030.tmp-{os.getpid()}"
    kept_copy.mkdir()
    (kept_copy / "link").symlink_to(tmp_path)
    (store.folder / f"step-00000031.tmp-{os.getpid()}").symlink_to(tmp_path)
    store.sweep()
    assert names(store.folder) == [LATEST, "step-00000010", "step-00000020"]
    assert (tmp_path / "precious").read_text() == "here"


def test_empty_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path / "none").newest() == (None, ())
    assert CheckpointStore(tmp_path).newest() == (None, ())
    with pytest.raises(FileError, match="no checkpoint of step 3; there are: –"):
        CheckpointStore(tmp_path).load(3)


# --- damaged checkpoints ---------------------------------------------------------------------------------


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def rewrite(**changes: Any) -> Callable[[Path], None]:
    """Change entries of the manifest; None removes one."""

    def change(folder: Path) -> None:
        path = folder / checkpoint_store.MANIFEST
        about = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({name: value for name, value in about.items() if value is not None}))

    return change


def swap(folder: Path) -> None:
    (folder / checkpoint_store.MODEL).rename(folder / "x")
    (folder / checkpoint_store.OPTIMIZER).rename(folder / checkpoint_store.MODEL)
    (folder / "x").rename(folder / checkpoint_store.OPTIMIZER)


def lead_out(folder: Path) -> None:
    files = json.loads((folder / checkpoint_store.MANIFEST).read_text())["files"]
    rewrite(files=files | {"../../../etc/passwd": {"size": 1, "sha256": ""}})(folder)


def link(folder: Path) -> None:
    (folder / checkpoint_store.MODEL).rename(folder.parent / "elsewhere")
    (folder / checkpoint_store.MODEL).symlink_to(folder.parent / "elsewhere")


def link_folder(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to("elsewhere")


def pipe(folder: Path) -> None:
    (folder / checkpoint_store.STATE).unlink()
    os.mkfifo(folder / checkpoint_store.STATE)


def zero(folder: Path) -> None:
    path = folder / checkpoint_store.OPTIMIZER
    path.write_bytes(bytes(path.stat().st_size))


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a bit flipped": (lambda folder: damage(folder / checkpoint_store.MODEL), "checkpoint-hash"),
    "a file cut short": (lambda folder: os.truncate(folder / checkpoint_store.OPTIMIZER, 9), "checkpoint-size"),
    "a file emptied": (lambda folder: os.truncate(folder / checkpoint_store.MODEL, 0), "checkpoint-size"),
    "a file full of zeros": (zero, "checkpoint-hash"),
    "a file gone": (lambda folder: (folder / checkpoint_store.STATE).unlink(), "file-absent"),
    "two files swapped": (swap, "checkpoint-size"),
    "no manifest": (lambda folder: (folder / checkpoint_store.MANIFEST).unlink(), "checkpoint-unfinished"),
    "an empty manifest": (lambda folder: os.truncate(folder / checkpoint_store.MANIFEST, 0), "checkpoint-garbled"),
    "a manifest that is a list": (
        lambda folder: (folder / checkpoint_store.MANIFEST).write_text("[]"),
        "checkpoint-garbled",
    ),
    "a huge manifest": (
        lambda folder: os.truncate(folder / checkpoint_store.MANIFEST, checkpoint_store.LARGEST_JSON + 1),
        "checkpoint-size",
    ),
    "another format": (rewrite(format="regard-model"), "checkpoint-garbled"),
    "a newer version": (rewrite(version=3), "checkpoint-newer"),
    "no version": (rewrite(version=None), "checkpoint-garbled"),
    "version 0": (rewrite(version=0), "checkpoint-garbled"),
    "version true": (rewrite(version=True), "checkpoint-garbled"),
    "another step": (rewrite(step=21), "checkpoint-step"),
    "something unknown": (rewrite(more=1), "checkpoint-garbled"),
    "fewer files": (rewrite(files={}), "checkpoint-files"),
    "a file outside": (lead_out, "checkpoint-files"),
    "files that are numbers": (rewrite(files=dict.fromkeys(checkpoint_store.FILES, 1)), "checkpoint-garbled"),
    "a link": (link, "checkpoint-not-plain"),
    "a folder that is a link": (link_folder, "checkpoint-not-plain"),
    "a pipe": (pipe, "checkpoint-not-plain"),
    "an empty folder": (empty, "checkpoint-unfinished"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_damaged_checkpoint_is_skipped_with_its_reason(fault: str, store: CheckpointStore) -> None:
    spoil, key = FAULTS[fault]
    spoil(store.folder / "step-00000020")
    found = store.newest()
    assert_same(found.snapshot, snapshot(10))
    ((path, reason),) = found.skipped
    assert path == store.folder / "step-00000020"
    assert reason.key == key
    assert "step-00000020" in reason.text("en")
    assert re.search("[\u4e00-\u9fff]", reason.text("zh"))
    with pytest.raises(FileError) as caught:
        store.load(20)
    assert caught.value.key == key
    store.save(snapshot(20))  # the run continues
    assert_same(store.newest().snapshot, snapshot(20))
    assert store.newest().skipped == ()


def test_correct_hashes_of_invalid_content_raise(store: CheckpointStore) -> None:
    """A forged checkpoint can have correct hashes: its content is validated all the same."""
    folder = store.folder / "step-00000020"
    for name in checkpoint_store.FILES:
        (folder / name).write_bytes(b"\x80\x04 pickle, perhaps")
        contents = {name: (folder / name).read_bytes() for name in checkpoint_store.FILES}
        files = {name: run_files.Digest(len(x), hashlib.sha256(x).hexdigest()) for name, x in contents.items()}
        (folder / checkpoint_store.MANIFEST).unlink()
        checkpoint_store.write_manifest(folder, 20, files)
        assert len(store.newest().skipped) == 1


@pytest.mark.parametrize("content", ["", "step-00000099\n", "../../etc\n", None])
def test_latest_file_is_not_read(content: str | None, store: CheckpointStore) -> None:
    (store.folder / LATEST).unlink()
    if content is not None:
        (store.folder / LATEST).write_text(content)
    assert_same(store.newest().snapshot, snapshot(20))
    store.save(snapshot(30))
    assert (store.folder / LATEST).read_text() == "step-00000030\n"


def test_all_damaged_checkpoints_are_listed_newest_first(store: CheckpointStore) -> None:
    for step in (10, 20):
        damage(store.folder / f"step-{step:08d}" / checkpoint_store.STATE)
    found = store.newest()
    assert found.snapshot is None
    assert [skipped.path.name for skipped in found.skipped] == ["step-00000020", "step-00000010"]


# --- errors of the disk ----------------------------------------------------------------------------------


def test_full_disk_raises_before_writing(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(store.folder)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    before = names(store.folder)
    message = r"needs 2\d\d B, and 100 B is free \(No space left on device\)"
    with pytest.raises(TooLargeError, match=message) as caught:
        store.save(snapshot(30))
    assert caught.value.exit_code == 5
    assert names(store.folder) == before
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: usage._replace(total=0)
    )  # a file system that reports no size
    store.save(snapshot(30))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_error_at_any_call_keeps_older_checkpoints(
    call: str, number: int, store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(os, call)
    for n in range(100):
        left = [n]

        def refuse(*arguments: Any, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(number, os.strerror(number))
            return real(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, refuse)
            try:
                store.save(snapshot(30))
                break
            except (TooLargeError, FileError) as error:
                refusal = error
        assert isinstance(refusal, FileError if number == errno.EIO else TooLargeError)
        assert os.strerror(number) in str(refusal)
        assert_same(store.load(20), snapshot(20))
        assert not [name for name in names(store.folder) if "tmp" in name]
        if 30 in store.steps():  # the error came after the rename
            assert_same(store.newest().snapshot, snapshot(30))
            store.save(snapshot(20))  # start again from two good ones
            store.save(snapshot(10))
            store.save(snapshot(20))
    assert n > {"write": 8, "fsync": 6, "replace": 0}[call]


def test_short_write_is_continued(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[:7]))
    store.save(snapshot(30))
    assert_same(store.newest().snapshot, snapshot(30))


def test_interrupt_leaves_no_partial_checkpoint(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    before = names(store.folder)

    def interrupt(call: str) -> None:
        if call == "write":
            raise KeyboardInterrupt

    monkeypatch.setattr(run_files, "fault_point", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.save(snapshot(30))
    assert names(store.folder) == before


def test_unwritable_folder_is_named(store: CheckpointStore, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="could not be written"):
        CheckpointStore(tmp_path / "no" / "such").save(snapshot(1))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"file.* could not be written \((Not a directory|File exists)\)"):
        CheckpointStore(tmp_path / "file").save(snapshot(1))
    with pytest.raises(FileError, match="file could not be read"):
        CheckpointStore(tmp_path / "file").newest()
    shutil.rmtree(store.folder)
    store.save(snapshot(30))  # the folder is created again: the run can continue
    assert_same(store.newest().snapshot, snapshot(30))
