"""Mutated headers of safetensors, GGUF and JSON files: each is read or refused by our own error.

`PYTHONPATH=tests python tests/hostile/test_headers.py 2000000 --seed 1 --processes 2` tries that many, each process its
share with a seed of its own; a test tries fewer. A process makes many mutants, one after the other. The system ends it
if one takes too long, also inside a library, and it gets no more than `MOST_MEMORY` beyond what it has at the start.
"""

import argparse
import json
import multiprocessing
import random
import resource
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

import hostile_gguf
from hostile_hub import CONFIGS, content, header
from mutations import Original, mutated
from regard.checkpoints.families import FAMILIES, ConfigKeys
from regard.checkpoints.gguf_file import GgufFile
from regard.checkpoints.gguf_model import GgufTensors, gguf_config
from regard.checkpoints.hub_folder import ShardedTensors, of_family, write_hub_model
from regard.checkpoints.model_folder import read_model
from regard.config.weights import weight_shapes
from regard.errors import FileError
from regard.memory import format_bytes

SLOWEST = 5.0
"""Seconds of processor time for one file."""
MOST_MEMORY = 512 * 2**20
KINDS = ("safetensors", "gguf", "json")
PROGRESS = 50_000
STANDSTILL = 120.0
"""Seconds for one file after which a process that is not even computing is ended."""


class Current(Protocol):
    """The number of the mutant that a process is at, in memory that another process reads."""

    value: int


def changed(data: bytes, rng: random.Random) -> bytes:
    """Bytes replaced, removed, added or cut, and numbers of eight bytes replaced by odd ones."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(found))
        match rng.randrange(6):
            case 0:
                found[at] = rng.randrange(256)
            case 1:
                found[at] ^= 1 << rng.randrange(8)
            case 2:
                found[at : at + 8] = rng.choice((0, 1, 2**31, 2**32, 2**62, 2**63, 2**64 - 1)).to_bytes(8, "little")
            case 3:
                del found[at : at + rng.choice((1, 4, 8, 100))]
            case 4:
                found[at:at] = rng.randbytes(rng.choice((1, 4, 8, 64)))
            case _:
                del found[at + 16 :]
        if not found:
            return b"\0"
    return bytes(found)


class Fuzzer:
    """Folders, in memory where possible, whose files are replaced by mutants."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tensors, self.file = Original(header()), content(header())
        self.gguf = [hostile_gguf.content(), hostile_gguf.content(VALUES)]
        self.configs: list[tuple[Path, Original, bytes, ShardedTensors]] = []
        for family, about in CONFIGS.items():
            config = FAMILIES[family].config(ConfigKeys(folder, about))
            weights = {name: np.zeros(shape, np.float32) for name, shape in weight_shapes(config).items()}
            write_hub_model(folder / family, family, config, weights)
            whole = json.loads((folder / family / "config.json").read_text()) | about
            place = folder / family / "config.json"
            self.configs.append((place, Original(whole), json.dumps(whole).encode(), ShardedTensors(place.parent)))
        (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))

    def try_one(self, kind: int, rng: random.Random) -> str:
        """How a mutant ended: "read" or "refused"; any other error is raised."""
        try:
            (self._safetensors, self._gguf, self._json)[kind](rng)
        except FileError as error:
            str(error)  # raises where a value of the message is missing
            return "refused"
        return "read"

    def _safetensors(self, rng: random.Random) -> None:
        data = content(mutated(self.tensors, rng)) if rng.random() < 0.5 else changed(self.file, rng)
        (self.folder / "model.safetensors").write_bytes(data)
        read_all(ShardedTensors(self.folder))

    def _gguf(self, rng: random.Random) -> None:
        path = self.folder / "x.gguf"
        path.write_bytes(changed(rng.choice(self.gguf), rng))
        file = GgufFile(path)
        about = gguf_config(file)
        tensors = GgufTensors(file, about)
        of_family(path, about, lambda: tensors)
        read_all(tensors)

    def _json(self, rng: random.Random) -> None:
        path, tree, text, tensors = rng.choice(self.configs)
        if rng.random() < 0.8:
            of_family(path, mutated(tree, rng), lambda: tensors)
        else:
            path.write_bytes(changed(text, rng))
            read_model(path.parent)


def read_all(tensors: Mapping[str, np.ndarray]) -> None:
    """The numbers of every tensor; FileError for one that is not of numbers that we read."""
    for name in tensors:
        assert tensors[name].size >= 0


VALUES = {
    "llama.rope.freq_base": 1e4,
    "llama.rope.scaling.type": "linear",
    "llama.rope.scaling.factor": 2.0,
    "llama.attention.key_length": 4,
    "llama.attention.head_count_kv": hostile_gguf.numbers(hostile_gguf.U32, 1, struct.pack("<I", 2)),
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": [f"t{number}" for number in range(11)],
    "tokenizer.ggml.scores": hostile_gguf.numbers(hostile_gguf.F32, 11, bytes(44)),
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.add_bos_token": True,
}
"""Metadata of other types: lists, texts, flags."""


def fuzz(count: int, seed: int, folder: Path, *, first: int = 0, current: Current | None = None) -> Counter[str]:
    """How many mutants ended in each way. With `current`, its number is there, and the system ends what takes long."""
    rng, fuzzer, found = random.Random(), Fuzzer(folder), Counter[str]()
    slowest, began, memory = 0.0, time.time(), peak_memory()
    for number in range(first, count):
        if current is not None:
            current.value = number
            signal.setitimer(signal.ITIMER_PROF, 2 * SLOWEST)
        rng.seed((seed << 32) + number)  # each mutant can be made again without those before it
        start = time.process_time()
        try:
            end = fuzzer.try_one(number % 3, rng)
        except Exception as error:
            raise AssertionError(f"seed {seed}, mutant {number}") from error
        seconds = time.process_time() - start
        slowest = max(slowest, seconds)
        assert seconds < SLOWEST, (seed, number)
        found[f"{KINDS[number % 3]} {end}"] += 1
        if current is not None and ((number + 1) % PROGRESS == 0 or number + 1 == count):
            passed = f"{time.time() - began:.0f} s, {time.process_time():.0f} s of processor time"
            most = f"slowest {slowest:.3f} s, {format_bytes(peak_memory() - memory)} more than at the start"
            print(f"seed {seed}: {number + 1:,} mutants, {passed}, {most}, {dict(sorted(found.items()))}", flush=True)
    return found


def peak_memory() -> int:
    """The most bytes in memory that this process had."""
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else 1024 * found


def fuzz_limited(count: int, seed: int, first: int, current: Current) -> None:
    """The same with a limit of memory, in a folder of its own, in memory where the system has such a folder."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_MEMORY,) * 2)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        fuzz(count, seed, Path(name), first=first, current=current)


def watch(process: SpawnProcess, seed: int, current: Current) -> bool:
    """Wait for a process; False, and a line that names the mutant, if it failed, was ended, or stands still."""
    last = None
    while last != current.value:
        last = current.value
        process.join(STANDSTILL)
        if not process.is_alive():
            break
    else:
        process.kill()
        process.join()
    if process.exitcode != 0:
        print(f"seed {seed}, mutant {current.value}: exit code {process.exitcode}; --first {current.value} repeats it")
    return process.exitcode == 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1, help="of the first process; the others have the next numbers")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the mutant of each process to begin with")
    given = parser.parse_args()
    spawn, started = multiprocessing.get_context("spawn"), []
    for n in range(given.processes):
        share = given.count // given.processes + (n < given.count % given.processes)
        current = spawn.Value("q", -1, lock=False)
        process = spawn.Process(target=fuzz_limited, args=(share, given.seed + n, given.first, current))
        process.start()
        started.append((process, given.seed + n, current))
    ended = [watch(*one) for one in started]
    sys.exit(0 if all(ended) else 1)


def test_mutated_headers(tmp_path: Path) -> None:
    found = fuzz(1500, 7, tmp_path)
    assert sum(found.values()) == 1500
    assert all(found[f"{kind} refused"] > 100 and found[f"{kind} read"] > 20 for kind in KINDS)


def endless() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0.05)
    sum(iter(int, 1))  # one call of a library that never returns


def test_a_mutant_that_hangs_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """By the signal whose default action ends a process: no Python code runs inside such a call."""
    spawn = multiprocessing.get_context("spawn")
    current = spawn.Value("q", 41, lock=False)
    process = spawn.Process(target=endless)
    process.start()
    assert not watch(process, 3, current)
    assert f"seed 3, mutant 41: exit code -{signal.SIGPROF.value}" in capsys.readouterr().out


@pytest.mark.hostile
def test_many_mutated_headers(tmp_path: Path) -> None:
    assert sum(fuzz(100_000, 8, tmp_path).values()) == 100_000


if __name__ == "__main__":
    main()
