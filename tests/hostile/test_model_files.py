"""Model folders with mutated configuration, settings and weights, and with headers of maximum size."""

import json
import random
import time
from pathlib import Path

import pytest
from tiny_language import poet_folder, translator_folder

from mutations import mutated, mutated_tensors
from regard import load
from regard.errors import FileError
from resource_use import assert_refused, read_limited

pytestmark = pytest.mark.hostile

FOLDERS = {"poet": poet_folder, "translator": translator_folder}
FILES = ("config.json", "generation_config.json", "model.safetensors")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", FOLDERS)
def test_mutated_models_are_used_or_refused(name: str, seed: int, tmp_path: Path) -> None:
    folder, rng = tmp_path / name, random.Random(seed)
    FOLDERS[name](folder)
    whole = {file: (folder / file).read_bytes() for file in FILES}
    for _ in range(1500):
        file = rng.choice(FILES)
        if file.endswith(".json"):
            (folder / file).write_text(json.dumps(mutated(json.loads(whole[file]), rng)), encoding="utf-8")
        else:
            (folder / file).write_bytes(mutated_tensors(whole[file], rng))
        began = time.process_time()
        message = refusal(folder)
        assert message is None or str(folder) in message
        assert time.process_time() - began < 5
        (folder / file).write_bytes(whole[file])


def refusal(folder: Path) -> str | None:
    try:
        load(folder)
    except FileError as error:
        return str(error)
    return None


def header(content: bytes, numbers: int) -> bytes:
    return len(content).to_bytes(8, "little") + content + bytes(numbers)


TENSORS = {
    "objects": header(b'{"x":[' + b"{}," * (2**25 // 3 - 10) + b"{}]}", 2**26),
    "lists": header(b'{"x":[' + b"[]," * (2**25 // 3 - 10) + b"[]]}", 2**26),
    "numbers": header(b'{"x":[' + b"0," * (2**24 - 10) + b"0]}", 2**26),
    "strings": header(b'{"x":[' + b'"ab",' * (2**25 // 5 - 10) + b'""]}', 2**26),
    "short names": header(b"{" + b",".join(b'"%d":{}' % n for n in range(10**6)) + b"}", 2**26),
    "metadata": header(b'{"__metadata__":{' + b",".join(b'"%d":""' % n for n in range(10**6)) + b"}}", 2**26),
    "brackets": header(b"[" * 2**25, 2**26),
    "a string without end": header(b'{"' + b'\\"' * (2**24 - 8), 2**26),
    "half of the file": header(b'{"__metadata__":{"x":"' + b"a" * 2**24 + b'"}}', 2**20),
}


@pytest.mark.parametrize("name", TENSORS)
def test_hostile_headers_are_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "poet"
    poet_folder(folder)
    path = folder / "model.safetensors"
    path.write_bytes(TENSORS[name])
    found = read_limited("from pathlib import Path; from regard import load", "load(Path(path).parent)", path)
    assert_refused(found, path)


CONFIGS = {
    "objects": b'{"x":[' + b"{}," * (2**20 // 3 - 10) + b"{}]}",
    "brackets": b"[" * 2**20,
    "digits": b"9" * 2**20,
    "too large": b" " * 2**26,
    "nulls": b"[" + b"0," * (2**19 - 10) + b"0]",
}


@pytest.mark.parametrize("file", FILES[:2])
@pytest.mark.parametrize("name", CONFIGS)
def test_hostile_json_is_refused(name: str, file: str, tmp_path: Path) -> None:
    folder = tmp_path / "poet"
    poet_folder(folder)
    (folder / file).write_bytes(CONFIGS[name])
    found = read_limited("from pathlib import Path; from regard import load", "load(Path(path).parent)", folder / file)
    assert_refused(found, folder / file)
