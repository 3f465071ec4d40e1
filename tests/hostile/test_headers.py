"""Mutated headers of safetensors, GGUF and JSON files: each is read or refused by our own error.

`PYTHONPATH=tests python tests/hostile/test_headers.py 2000000 --seed 1 --processes 2` tries that many, each process its
share with a seed of its own; a test tries fewer.
"""

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import hostile_gguf
from hostile_hub import CONFIG, content, header
from mutations import mutated
from regard.checkpoints.gguf_file import GgufFile
from regard.checkpoints.gguf_model import GgufTensors, gguf_config
from regard.checkpoints.hub_folder import ShardedTensors, of_family
from regard.errors import FileError

SLOWEST = 5.0
"""Seconds of processor time for one file."""
KINDS = ("safetensors", "gguf", "json")


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
    """One folder in memory-backed storage whose files are replaced by mutants."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tensors, self.about = header(), CONFIG
        self.gguf = hostile_gguf.content()
        (folder / "config.json").write_text(json.dumps(CONFIG))
        self.file = content(header())
        (folder / "model.safetensors").write_bytes(self.file)
        self.weights = ShardedTensors(folder)

    def try_one(self, kind: int, rng: random.Random) -> str:
        """How a mutant ended: "read" or "refused"; any other error is raised."""
        try:
            if kind == 0:
                self._safetensors(rng)
            elif kind == 1:
                self._gguf(rng)
            else:
                of_family(self.folder / "config.json", mutated(self.about, rng), lambda: self.weights)
        except FileError as error:
            str(error)  # raises where a value of the message is missing
            return "refused"
        return "read"

    def _safetensors(self, rng: random.Random) -> None:
        data = content(mutated(self.tensors, rng)) if rng.random() < 0.5 else changed(self.file, rng)
        (self.folder / "model.safetensors").write_bytes(data)
        ShardedTensors(self.folder)

    def _gguf(self, rng: random.Random) -> None:
        path = self.folder / "x.gguf"
        path.write_bytes(changed(self.gguf, rng))
        file = GgufFile(path)
        about = gguf_config(file)
        of_family(path, about, lambda: GgufTensors(file, about))


def fuzz(count: int, seed: int, folder: Path, *, reported: bool = False) -> Counter[str]:
    """How many mutants ended in each way."""
    rng, fuzzer, found = random.Random(seed), Fuzzer(folder), Counter[str]()
    slowest, began = 0.0, time.time()
    for number in range(count):
        start = time.process_time()
        try:
            end = fuzzer.try_one(number % 3, rng)
        except Exception as error:
            raise AssertionError(f"seed {seed}, mutant {number}") from error
        seconds = time.process_time() - start
        slowest = max(slowest, seconds)
        assert seconds < SLOWEST, (seed, number)
        found[f"{KINDS[number % 3]} {end}"] += 1
        if reported and ((number + 1) % 50_000 == 0 or number + 1 == count):
            passed = f"{time.time() - began:.0f} s, slowest {slowest:.3f} s"
            print(f"seed {seed}: {number + 1:,} mutants, {passed}, {dict(found)}", flush=True)
    return found


def fuzz_in_own_folder(count: int, seed: int) -> Counter[str]:
    """The same in a folder of its own, in memory where the system has such a folder."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        return fuzz(count, seed, Path(name), reported=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1, help="of the first process; the others have the next numbers")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    shares = [given.count // given.processes + (n < given.count % given.processes) for n in range(given.processes)]
    with ProcessPoolExecutor(given.processes) as pool:
        found = pool.map(fuzz_in_own_folder, shares, range(given.seed, given.seed + given.processes))
        total = sum(found, Counter())
    print(f"{total.total():,} mutants: {dict(sorted(total.items()))}")


def test_mutated_headers(tmp_path: Path) -> None:
    found = fuzz(1500, 7, tmp_path)
    assert sum(found.values()) == 1500
    assert all(found[f"{kind} refused"] > 100 for kind in KINDS)


@pytest.mark.hostile
def test_many_mutated_headers(tmp_path: Path) -> None:
    assert sum(fuzz(100_000, 8, tmp_path).values()) == 100_000


if __name__ == "__main__":
    main()
