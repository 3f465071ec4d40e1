"""Surveys by several processes: divided, lost and killed, with the same numbers as one process."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from surveyed_poems import POEMS, assert_same

import regard
from regard.surveys import Survey, read_survey


def start_ranks(codes: list[str], *arguments: str) -> "list[subprocess.Popen[str]]":
    """Processes as `torchrun` starts them, each with its own program."""
    world = {"WORLD_SIZE": str(len(codes)), "MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"}
    world["MASTER_PORT"] = str(free_port())
    return [
        subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, **world, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, code in enumerate(codes)
    ]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


READ = "import sys, regard; regard.survey('poet', sys.argv[1], out=sys.argv[2])"
DIE = """import os, sys, regard
regard.survey("poet", sys.argv[1], out=sys.argv[2], progress=lambda texts, tokens: os._exit(9))"""
HANG = """import sys, time, regard.surveys.running
regard.surveys.running.SAVE_SECONDS = 0.0
def texts():
    for number, line in enumerate(open(sys.argv[1], encoding="utf-8")):
        if number == 3:
            time.sleep(600)
        yield line.rstrip("\\n")
regard.survey("poet", texts(), out=sys.argv[2])"""


def test_two_processes_equal_one_and_another_number_continues(whole: Survey, tmp_path: Path) -> None:
    """Two processes read four texts; then one process reads the fifth."""
    for number, count in (("four", 4), ("five", 5)):
        (tmp_path / number).write_text("\n".join(POEMS[:count]), encoding="utf-8")
    ranks = start_ranks([READ, READ], str(tmp_path / "four"), str(tmp_path / "out"))
    assert [(rank.communicate(timeout=300)[1], rank.returncode)[1] for rank in ranks] == [0, 0]
    assert read_survey(tmp_path / "out").texts == 3
    found = regard.survey("poet", tmp_path / "five", out=tmp_path / "out")
    assert_same(found, whole)


def test_a_rank_that_died_loses_nothing_of_the_others(whole: Survey, tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("\n".join(POEMS), encoding="utf-8")
    first, second = start_ranks([READ, DIE], str(tmp_path / "texts"), str(tmp_path / "out"))
    error = first.communicate(timeout=300)[1].splitlines()[-1]
    second.communicate(timeout=60)
    assert second.returncode == 9
    assert "RunError" in error
    assert "survey.json" not in os.listdir(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "state-0-of-2.json").read_text(encoding="utf-8"))["done"] == 3
    assert_same(regard.survey("poet", tmp_path / "texts", out=tmp_path / "out"), whole)


def test_a_killed_process_continues(whole: Survey, tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("\n".join(POEMS), encoding="utf-8")
    state = tmp_path / "out" / "state-0-of-1.json"
    with subprocess.Popen([sys.executable, "-c", HANG, str(tmp_path / "texts"), str(tmp_path / "out")]) as process:
        for _ in range(3000):
            if state.exists() and json.loads(state.read_text(encoding="utf-8"))["done"] == 3:
                break
            time.sleep(0.02)
        process.kill()
    found = regard.survey("poet", tmp_path / "texts", out=tmp_path / "out")
    assert_same(found, whole)
