"""Trace files and films: thousands of mutated ones, and headers of maximum size."""

import contextlib
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile_traces import content, entry, example, raw, try_trace
from mutations import mutated_trace
from regard.errors import RegardError
from regard.views.film import head_film, head_film_json, read_film
from resource_use import assert_refused, read_limited

pytestmark = pytest.mark.hostile


@pytest.mark.parametrize("seed", range(8))
def test_mutated_traces_are_used_or_refused(seed: int, tmp_path: Path) -> None:
    rng, whole = random.Random(seed), example()
    for _ in range(3000):
        began = time.process_time()
        try_trace(tmp_path / "t.safetensors", mutated_trace(whole, rng))
        assert time.process_time() - began < 5


@pytest.mark.parametrize("seed", range(4))
def test_mutated_films_are_shown_or_refused(seed: int, tmp_path: Path) -> None:
    rng, whole = random.Random(seed), example()
    (tmp_path / "film").mkdir()
    for _ in range(500):
        for step in range(3):
            frame = mutated_trace(whole, rng) if rng.random() < 0.4 else whole
            (tmp_path / "film" / f"step-{step:08d}.safetensors").write_bytes(frame)
        with contextlib.suppress(RegardError):
            json.dumps(head_film_json(head_film(read_film(tmp_path)), {}))


LARGE: dict[str, Callable[[], bytes]] = {  # built by the test: collection must not take seconds
    "objects": lambda: content([{} for _ in range(10**7)], {}),
    "lists": lambda: content([], {}, [[] for _ in range(10**7)]),
    "tokens": lambda: content([], {}, [["ab"] * 10**7]),
    "records": lambda: content([entry([1, 1, 5, 5], ()) for _ in range(300_000)], {}),
    "tensors": lambda: raw(
        {f"{n}.map": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(600_000)}
    ),
    "objects of the header": lambda: b"".join(((2**26 - 8).to_bytes(8, "little"), b'{"x":[', b"{}," * (2**26 // 3))),
    "a header of 90 MB": lambda: raw({"__metadata__": {"regard": "a" * (90 * 2**20)}}),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_claims_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    path.write_bytes(LARGE[name]())
    assert_refused(read_limited("from regard import read_trace", "read_trace(path)", path), path)
