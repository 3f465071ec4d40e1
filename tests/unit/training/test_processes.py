"""Processes of a run: devices by name, connection errors, and two real processes that train like one."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import tiny_runs
import torch
import torch.distributed as dist
from tiny_runs import Numbers, Tiny, train
from tolerances import assert_close

from regard.errors import ArgumentError, MissingDeviceError, RunError
from regard.training import processes as ranks_module
from regard.training.checkpoint_store import CheckpointStore
from regard.training.processes import SIGNALS, Ranks, chosen_device, handle_signals, joined


@pytest.fixture(autouse=True)
def single_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> list[torch.device]:
    """Fake `count` GPUs. Returns the devices that were selected."""
    taken: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    return taken


def test_single_process_is_first_and_does_not_wait() -> None:
    with joined("cpu") as ranks:
        assert (ranks.rank, ranks.world, ranks.device, ranks.is_first) == (0, 1, torch.device("cpu"), True)
        ranks.wait()
        ranks.wait_for_first()
        values = torch.tensor([1.0, 2.0])
        assert ranks.summed(values) is values
        model = Tiny()
        assert ranks.distributed(model) is model
        assert not dist.is_initialized()
    assert not Ranks(1, 2, torch.device("cpu")).is_first


@pytest.mark.parametrize(
    ("count", "device", "found"),
    [(0, None, "cpu"), (2, None, "cuda:0"), (2, "cpu", "cpu"), (2, "cuda", "cuda:0"), (2, "cuda:1", "cuda:1")],
)
def test_device_selection(monkeypatch: pytest.MonkeyPatch, count: int, device: str | None, found: str) -> None:
    taken = gpus(monkeypatch, count)
    with joined(device) as ranks:
        assert ranks.device == torch.device(found)
    assert taken == ([torch.device(found)] if found.startswith("cuda") else [])


@pytest.mark.parametrize(("count", "device"), [(0, "cuda"), (0, "cuda:0"), (2, "cuda:2")])
def test_missing_device_raises(monkeypatch: pytest.MonkeyPatch, count: int, device: str) -> None:
    gpus(monkeypatch, count)
    with pytest.raises(MissingDeviceError, match=f"PyTorch finds {count} GPUs") as caught, joined(device):
        pass
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("device", ["gpu", "tpu", "meta", "cuda:x", ""])
def test_invalid_device_raises(device: str) -> None:
    with pytest.raises(ArgumentError, match="choose one of: cpu, cuda, cuda:1"), joined(device):
        pass


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("WORLD_SIZE", value) for value in ("", "0", "-1", "two", "1.5", "9" * 20, "٣")],
        *[("RANK", value) for value in ("", "2", "-1", "first", None)],
        *[("MASTER_PORT", value) for value in ("", "x", "99999", None)],
        *[("LOCAL_RANK", "x"), ("MASTER_ADDR", None)],
    ],
)
def test_invalid_environment_raises(monkeypatch: pytest.MonkeyPatch, name: str, value: str | None) -> None:
    variables = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for key, text in {**variables, name: value}.items():
        monkeypatch.delenv(key, raising=False)
        if text is not None:
            monkeypatch.setenv(key, text)
    with pytest.raises(ArgumentError, match=f"{name}.*torchrun"), joined("cpu", 1):
        pass


def test_each_local_process_has_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    assert chosen_device(None, 1) == torch.device("cuda", 1)
    assert chosen_device("cuda", 1) == torch.device("cuda", 1)
    with pytest.raises(MissingDeviceError, match=r"no device cuda:2 here: PyTorch finds 2"):
        chosen_device(None, 2)  # more processes than GPUs


def fake_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake group of two processes."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(ranks_module, "_rendezvous_store", lambda timeout: None)
    monkeypatch.setattr(dist, "init_process_group", lambda backend, **about: None)
    monkeypatch.setattr(dist, "new_group", lambda backend, **about: None)


@pytest.mark.parametrize(
    "error",
    [
        dist.DistNetworkError("failed to recv"),
        RuntimeError("[../third_party/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1"),
        RuntimeError("Timed out waiting 20000ms for recv operation to complete"),
    ],
)
def test_lost_process_raises_run_error(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    fake_group(monkeypatch)
    with pytest.raises(RunError, match="process 1 of 2 lost the others") as caught, joined("cpu"):
        raise error
    assert caught.value.exit_code == 1
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        torch.OutOfMemoryError("of a peer"),
        RunError("run-weights-not-finite", name="socket.weight", step=3),
        ValueError("timeout"),
    ],
)
def test_other_errors_are_not_converted(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    fake_group(monkeypatch)
    with pytest.raises(type(error)) as caught, joined("cpu"):
        raise error
    assert caught.value is error


# --- two processes -------------------------------------------------------------------------------------------

OPTIONS: dict[str, Any] = {
    "accumulate": 2,
    "smoothing": 0.1,
    "steps": 6,
    "save_every": 3,
    "clip": 0.5,
    "valid_every": 2,
}

# Only the second process gets a stop request, in its fourth forward pass: both stop after the same step and continue.
WORKER = """
import json, signal, sys
from pathlib import Path
from regard.training.loop import Callback
from regard.training.processes import joined
from tiny_runs import Numbers, Tiny, train

folder, options, passes = Path(sys.argv[1]), json.loads(sys.argv[2]), 0
with joined("cpu") as ranks:

    def forward(model, ids):
        global passes
        passes += model.training
        if passes == 4 and model.training and not ranks.is_first:
            signal.raise_signal(signal.SIGTERM)
        return model(ids)

    calls = []
    for reason, step in (("signal", 2), ("steps", 6)):
        outcome = train(folder, model=Tiny(dropout=0.0), forward=forward, data=Numbers(rows=(1, 2, 3)),
                        valid=Numbers(batches=2), callbacks=[Callback(1, calls.append)], ranks=ranks, **options)
        assert (outcome.reason, outcome.progress.step) == (reason, step), outcome
    assert calls == ([0, 1, 2, 2, 3, 4, 5, 6] if ranks.is_first else []), calls
"""


# The first process works longer than the timeout of a step and is waited for; the second does so and is not.
LONG_WAIT = """
import time
from regard.errors import RunError
from regard.training.processes import joined

met = False
try:
    with joined("cpu", seconds=1.0) as ranks:
        ranks.wait()
        time.sleep(2.0 if ranks.is_first else 0)
        ranks.wait_for_first()
        met, began = True, time.monotonic()
        time.sleep(0 if ranks.is_first else 3)
        ranks.wait_for_first()
        raise AssertionError("no process was given up")
except RunError as error:
    assert met and error.key == "rank-lost", error
    assert time.monotonic() - began < 2.5 or not ranks.is_first
"""


# The first process does not reach the barrier. The second gets stop requests while it waits there: after two it ends at
# once, after one it gives up the first process after a while.
STOPPING = """
import signal, threading, time
from dataclasses import replace
from regard.errors import RunError
from regard.training import processes
from regard.training.processes import handle_signals, joined

processes.STOPPING_SECONDS = 1.0
with joined("cpu") as ranks:
    ranks.wait()
    if ranks.is_first:
        time.sleep(6)
    else:
        for signals, expected in ((2, KeyboardInterrupt), (1, RunError)):
            with handle_signals() as request:
                for at in range(signals):
                    threading.Timer(0.2 * (at + 1), signal.raise_signal, (signal.SIGTERM,)).start()
                began = time.monotonic()
                try:
                    replace(ranks, request=request).wait()
                except (KeyboardInterrupt, RunError) as error:
                    assert type(error) is expected, error
                else:
                    raise AssertionError("the first process arrived")
                assert time.monotonic() - began < 2.5
"""


def run_two(program: str, *arguments: str) -> None:
    """Run the program as two processes, which must succeed."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    shared["PYTHONPATH"] = os.pathsep.join([str(Path(tiny_runs.__file__).parent), os.environ.get("PYTHONPATH", "")])
    both = [
        subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env=os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for process in both:
            _, talk = process.communicate(timeout=100)
            assert process.returncode == 0, talk
    finally:
        for process in both:
            process.kill()


@pytest.mark.long
def test_first_process_is_waited_for_and_does_not_wait() -> None:
    run_two(LONG_WAIT)


@pytest.mark.long
def test_two_processes_train_like_one(tmp_path: Path) -> None:
    """With micro-batches, clipping and validation; a batch of one row leaves one process without rows."""
    run_two(WORKER, str(tmp_path / "two"), json.dumps(OPTIONS))
    data, valid = Numbers(rows=(1, 2, 3)), Numbers(batches=2)
    train(tmp_path / "one", model=Tiny(dropout=0.0), data=data, valid=valid, **OPTIONS)
    two, one = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("two", "one")
    )
    for mine, theirs in zip(two, one, strict=True):
        assert mine.keys() == theirs.keys()
        assert (mine["step"], mine["tokens"]) == (theirs["step"], theirs["tokens"])
        for name in mine.keys() & {"loss", "norm", "valid_loss"}:
            assert mine[name] == pytest.approx(theirs[name], rel=1e-5)
    weights, expected = (CheckpointStore(tmp_path / name / "checkpoints").load(6).model for name in ("two", "one"))
    for name, weight in expected.items():
        assert_close(weights[name], weight, "gradient")


@pytest.mark.long
def test_waiting_process_can_be_stopped() -> None:
    run_two(STOPPING)


pytestmark = pytest.mark.usefixtures("signals_at_default")


@pytest.mark.parametrize("number", SIGNALS)
def test_first_signal_requests_second_raises(number: int) -> None:
    with handle_signals() as request:
        assert not request.is_set
        signal.raise_signal(number)
        assert request.is_set
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_handlers_are_restored(number: int) -> None:
    before = signal.getsignal(number)
    received: list[int] = []
    signal.signal(number, lambda found, frame: received.append(found))
    try:
        with handle_signals() as request:
            signal.raise_signal(number)
        assert request.is_set
        assert received == []
        signal.raise_signal(number)
        assert received == [number]
    finally:
        signal.signal(number, before)


def test_handlers_are_restored_after_an_error() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(RuntimeError), handle_signals():
        raise RuntimeError
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_no_effect_in_a_thread() -> None:
    requested: list[bool] = []

    def work() -> None:
        with handle_signals() as request:
            requested.append(request.is_set)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert requested == [False]


def test_sighup_requests_and_ignored_signals_stay_ignored() -> None:
    with handle_signals() as request:
        signal.raise_signal(signal.SIGHUP)
    assert request.is_set
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with handle_signals() as request:
            signal.raise_signal(signal.SIGHUP)
        assert not request.is_set
    finally:
        signal.signal(signal.SIGHUP, before)
