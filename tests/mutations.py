"""Random mutations for fuzzers: of a JSON tree, of the header of a safetensors file, of bytes."""

import json
import marshal
import random
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, 10**30, -(2**63),
    0.0, -0.0, 1e308, 5e-324, "", "a", "\u0000", "\x1b[31m", "\ud7ff", "猫", "a" * 300, "0", "1e9", [], {}, [[]], [{}],
    [0] * 9, [None] * 50, {"type": "Sequence"}, {"is": "not"}, [[[[[[]]]]]],
)  # fmt: skip


def places(tree: Any, most: int = 24) -> list[tuple[Any, ...]]:
    """The paths to the values of a tree; of a long list or object only the first and last entries."""
    found: list[tuple[Any, ...]] = []

    def visit(node: Any, path: tuple[Any, ...]) -> None:
        found.append(path)
        names = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        for name in names if len(names) <= most else [*names[: most // 2], *names[-most // 2 :]]:
            visit(node[name], (*path, name))

    visit(tree, ())
    return found


def copy_of(tree: Any) -> Any:
    return marshal.loads(marshal.dumps(tree))  # a fifth of the time of JSON


class Original:
    """A tree of which many mutants are made: what all of them begin with is kept."""

    def __init__(self, tree: Any) -> None:
        self.copied, self.places = marshal.dumps(tree), places(tree)


def mutated(tree: Any, rng: random.Random) -> Any:
    """A copy with one to three changes: a value replaced, removed, duplicated, moved, or a number changed slightly."""
    original = tree if isinstance(tree, Original) else Original(tree)
    copy = marshal.loads(original.copied)
    for number in range(rng.choice((1, 1, 1, 2, 3))):
        path = rng.choice(places(copy) if number else original.places)
        if not path:
            continue
        at = copy
        for name in path[:-1]:
            at = at[name]
        name, value = path[-1], at[path[-1]]
        kind = rng.randrange(6)
        if kind == 0 and isinstance(at, dict):
            del at[name]
        elif kind == 0:
            at.pop(name)
        elif kind == 1 and isinstance(at, list):
            at.extend([value] * rng.choice((1, 2, 100)))
        elif kind == 1:
            at[str(name) + "2"] = value
        elif kind == 2 and isinstance(value, int | float):
            at[name] = value + rng.choice((-1, 1, 0.5, 10**6))
        elif kind == 3:
            other = copy
            for step in rng.choice(places(copy)):
                other = other[step]
            at[name] = copy_of(other)
        else:
            at[name] = copy_of(rng.choice(ODD))
    return copy


def split_tensors(content: bytes) -> tuple[Any, bytes]:
    """The header of a safetensors file, and the data after it."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined_tensors(header: Any, numbers: bytes) -> bytes:
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    return len(text).to_bytes(8, "little") + text + numbers


def mutated_tensors(content: bytes, rng: random.Random) -> bytes:
    """The file with a changed header, changed data, or changed single bytes."""
    header, numbers = split_tensors(content)
    kind = rng.randrange(4)
    if kind < 2:
        return joined_tensors(mutated(header, rng), numbers)
    if kind == 2:
        return joined_tensors(header, numbers[: rng.randrange(len(numbers) + 1)] + bytes(rng.choice((0, 1, 100))))
    changed = bytearray(content)
    for _ in range(rng.choice((1, 3, 20))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def mutated_trace(content: bytes, rng: random.Random) -> bytes:
    """A trace file with changed JSON, otherwise as `mutated_tensors`."""
    if rng.random() < 0.3:
        return mutated_tensors(content, rng)
    header, numbers = split_tensors(content)
    about = mutated(json.loads(header["__metadata__"]["regard"]), rng)
    header["__metadata__"]["regard"] = json.dumps(about)
    return joined_tensors(mutated(header, rng) if rng.random() < 0.2 else header, numbers)
