"""tokenizer.json: hostile files, and thousands of mutated ones."""

import json
import random
from pathlib import Path

import pytest

import hostile_tokenizers as files
from mutations import mutated
from resource_use import assert_refused, read_limited

pytestmark = pytest.mark.hostile

SMALL = json.dumps(files.tree_of(files.small())).encode()[:-1]
LARGE = {
    "objects": SMALL + b', "x": [' + b"{}," * (2**26 // 3 - 10**4) + b"{}]}",
    "lists": SMALL + b', "x": [' + b"[]," * (2**26 // 3 - 10**4) + b"[]]}",
    "numbers": SMALL + b', "x": [' + b"0," * (2**25 - 10**4) + b"0]}",
    "strings": SMALL + b', "x": [' + b'"ab",' * (2**26 // 5 - 10**4) + b'""]}',
    "one string": SMALL + b', "normalizer2": "' + b"a" * (2**26 - 10**4) + b'"}',
    "brackets": b"[" * 2**26,
    "too large": SMALL + b" " * 2**26 + b"}",
}
HOSTILE = files.hostile() | {f"64 MB of {name}": content for name, content in LARGE.items()}
READ = ("from regard.text import Tokenizer", "Tokenizer.read(path).encode('a')")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(HOSTILE[name])
    found = read_limited(*READ, path)
    if name == "64 MB of one string":  # harmless
        assert found.seconds < 5
    else:
        assert_refused(found, path)


@pytest.mark.parametrize("seed", range(8))
def test_mutated_files_are_used_or_refused(seed: int) -> None:
    rng, trees = random.Random(seed), [files.tree_of(inner) for inner in files.good().values()]
    for _ in range(1000):
        files.try_tokenizer(json.dumps(mutated(rng.choice(trees), rng)).encode())


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns_never_stall(seed: int, tmp_path: Path) -> None:
    """Random patterns: accepted ones encode texts of their own characters in time."""
    rng = random.Random(seed)
    path = tmp_path / "tokenizer.json"
    for _ in range(25):
        regex = random_pattern(rng, 3)
        path.write_text(json.dumps(files.tree_of(files.small(), pre_tokenizer=files.split(regex))), encoding="utf-8")
        texts = "[word * 2**13 + end for word in ('a', 'ab', 'b ', ' ', '1') for end in ('', '!', 'c')]"
        action = f"t = Tokenizer.read(path); [t.encode(text[: 2**14]) for text in {texts}]"
        found = read_limited("from regard.text import Tokenizer", action, path)
        assert found.seconds < 20, (regex, found.seconds)


def random_pattern(rng: random.Random, depth: int) -> str:
    atoms = ["a", "b", "[ab]", r"\s", r"\w", r"\d", ".", "[^a]", "c", "!"]
    if depth == 0:
        return rng.choice(atoms)
    kind = rng.randrange(6)
    if kind == 0:
        return "(?:" + "|".join(random_pattern(rng, depth - 1) for _ in range(rng.randint(2, 3))) + ")"
    if kind in (1, 2):
        return "(?:" + random_pattern(rng, depth - 1) + ")" + rng.choice(["*", "+", "?", "{2,}", "{1,3}", "*?"])
    if kind == 3:
        return "(?=" + random_pattern(rng, depth - 1) + ")" + random_pattern(rng, depth - 1)
    return "".join(random_pattern(rng, depth - 1) for _ in range(rng.randint(1, 3)))
