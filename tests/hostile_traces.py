"""Trace files with arbitrary JSON and tensors, also invalid ones."""

import contextlib
import io
import json
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from regard import Mask, See, Trace, attend, read_trace
from regard.errors import FileError, RegardError
from regard.records import DecodeStep

HUGE = 10**9
MAP = np.random.default_rng(0).dirichlet(np.ones(64), (1, 2, 64)).astype(np.float32)
KEPT = {"scale": 1.0, "softcap": None, "mask": None}


def entry(shape: list[Any], arrays: tuple[str, ...] = ("map",), **changes: Any) -> dict[str, Any]:
    plain = {"name": "h.0.attn", "kind": "self", "queries": None, "keys": None, "kept": None}
    return plain | {"shape": shape, "arrays": list(arrays)} | changes


def content(records: list[Any], tensors: dict[str, np.ndarray], tokens: Any = ()) -> bytes:
    about = {"format": "regard-trace", "version": 3, "tokens": list(tokens), "records": records}
    return save(tensors, {"regard": json.dumps(about)})


def raw(header: dict[str, Any], numbers: bytes = b"") -> bytes:
    """A safetensors file with any header, also an invalid one."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def with_tensor(shape: list[int], **changes: Any) -> bytes:
    """A trace whose map claims this shape and stores no number."""
    record = entry([1, 1, 5, 5]) | changes
    about = {"format": "regard-trace", "version": 3, "tokens": [], "records": [record]}
    tensor = {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
    return raw({"__metadata__": {"regard": json.dumps(about)}, "0.map": tensor})


def empty(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def example() -> bytes:
    """A trace with every kind of field: kept q and k under a mask, a coarse map, exact weights, steps, tokens."""
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(1, 2, 5, 3)), rng.normal(size=(1, 1, 7, 3))
    mask = Mask.causal() & Mask.padding(np.array([[1, 1, 0, 1, 1, 1, 1]])) | Mask.prefix(1)
    asked = {"max_score": True, "entropy": True, "received": True, "distance": True, "values": True, "outputs": True}
    everything = See(map=4, top=2, qk=True, **asked)
    _, record = attend(q, k, k, mask=mask, see=everything)
    first = record.named("h.0.attn", "cross").with_tokens(list("abcde"), list("甲乙丙丁戊己庚"))
    first = replace(first, ids=np.ones((1, 5), int))
    exact = Trace.from_weights(np.eye(3)[None], ["x", "y", "\n"], name="h.1.attn", kind="decoder")[0]
    step = Trace.from_weights(np.full((1, 4), 0.25)[None], name="h.1.attn", kind="decoder")[0]
    step = replace(step, step=DecodeStep(3, (0,)))
    with tempfile.TemporaryDirectory() as folder:
        Trace([first, exact, step]).save(Path(folder) / "t.safetensors", qk=True)
        return (Path(folder) / "t.safetensors").read_bytes()


def try_trace(path: Path, written: bytes) -> None:
    """Read the file and call the methods of the trace; only RegardErrors are suppressed."""
    path.write_bytes(written)
    try:
        trace = read_trace(path)
    except FileError:
        return
    actions = (
        lambda: trace.show(file=io.StringIO(), width=60, lang="en"),
        lambda: trace.show("all", file=io.StringIO(), width=60),
        lambda: trace.show(0, head=0, file=io.StringIO(), rows=slice(0, 2), cols=slice(0, 2)),
        lambda: trace.show(0, head="mean", file=io.StringIO()),
        lambda: trace.html(path.with_name("page.html")),
        lambda: str(trace.heads()),
        lambda: trace.measure("sink"),
        lambda: trace.measure("distance"),
        lambda: trace.measure("entropy"),
        lambda: trace.stitched().show(file=io.StringIO()),
        lambda: trace.merged().show(file=io.StringIO()),
        lambda: trace.value_weighted(),
        lambda: trace.rollout(),
        lambda: [record.weights(slice(0, 3), slice(0, 3)) for record in trace],
        lambda: trace.save(path.with_name("again.safetensors"), qk=True),
    )
    for action in actions:
        with warnings.catch_warnings(), contextlib.suppress(RegardError):
            warnings.simplefilter("ignore")
            action()
