"""`Trace.gather`: two processes that watch their parts get the trace of one process that watches the whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch import nn

from regard.capture.model_facts import split_of
from regard.errors import ArgumentError
from regard.trace import Trace


@pytest.fixture(scope="module")
def both_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The lines that two processes print."""
    store = tmp_path_factory.mktemp("ranks") / "store"
    command = [sys.executable, str(Path(__file__).with_name("gathered_ranks.py")), str(store)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "REGARD_LANG": "en"}
    ranks = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        for rank in range(2)
    ]
    return [rank.communicate(timeout=300)[0].splitlines() for rank in ranks]


@pytest.mark.parametrize("way", ["ddp", "groups", "fsdp", "tensor_parallel", "keys", "queries"])
def test_two_processes_gather_the_trace_of_one(both_ranks: list[list[str]], way: str) -> None:
    for lines in both_ranks:
        assert f"{way}: same" in lines, lines


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("unknown", "choose split="),
        ("arguments", 'found split="samples", map=8, split="samples", map=9'),
        ("positions", 'only for split="queries"; the split is heads'),
        ("positions", "must be 0, 1, 2"),
        ("names", "process 1 recorded 1 calls and process 0 2"),
    ],
)
def test_both_processes_raise_the_same_error(both_ranks: list[list[str]], what: str, message: str) -> None:
    for lines in both_ranks:
        (line,) = [line for line in lines if line.startswith(f"{what}:")]
        assert message in line


def test_a_process_that_cannot_send_does_not_keep_the_other_waiting(both_ranks: list[list[str]]) -> None:
    first, second = both_ranks
    assert any(line.startswith("failed: process 1 could not send its part") for line in first), first
    assert any(line.startswith("failed: the outputs of the heads of lost were not recorded") for line in second), second


def test_a_lost_process_leaves_the_trace_of_the_other(both_ranks: list[list[str]]) -> None:
    first, _ = both_ranks
    assert any(line.startswith("lost: process 0 of 2 lost the connection") for line in first), first
    assert "after: True" in first


def test_without_a_process_group() -> None:
    with pytest.raises(ArgumentError, match="torchrun"):
        Trace().gather()
    assert split_of(nn.Linear(2, 2), list) is None
