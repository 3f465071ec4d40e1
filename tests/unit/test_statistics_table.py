"""The table of statistics describes the fields of See, Statistics and Record, and their arrays."""

from dataclasses import fields
from inspect import getsource
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from strategies import Call, calls

from regard import See, attend
from regard.capture import budget
from regard.dispatch import backend
from regard.records import Record, Statistics
from regard.statistics_table import REQUESTS, STATISTICS, bytes_of
from regard.trace import file, from_weights, processes, read_record, stitching, trace_merging

EVERYTHING = See(map=4, max_score=True, entropy=True, received=True, top=3, distance=True, values=True, outputs=True)


def test_every_statistic_is_a_field() -> None:
    assert {one.name for one in STATISTICS} <= {field.name for field in fields(Record)}
    assert {one.name for one in STATISTICS if one.computed} == set(Statistics._fields)
    assert {field.name for field in fields(See)} == {*REQUESTS, "qk", "v", "fused", "differentiable"}
    assert len(set(REQUESTS)) == len(REQUESTS)


@pytest.mark.parametrize("name", [*REQUESTS, "qk"])
def test_every_request_alone_is_a_request(name: str) -> None:
    nothing: dict[str, Any] = {"map": None, "lse": False, "sink": False}
    assert See(**nothing).is_empty
    assert not See(**nothing | {name: 3 if name in ("map", "top") else True}).is_empty


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@given(call=calls())
def test_arrays_have_the_axes_and_bytes_of_the_table(kind: str, call: Call) -> None:
    q, k, v = (x.astype(np.float32) for x in (call.q, call.k, call.v))
    options = dict(call.options)
    bias = options.pop("bias", None)
    bias = None if bias is None else bias.astype(np.float32)
    if kind == "torch":
        q, k, v = map(torch.from_numpy, (q, k, v))
        bias = None if bias is None else torch.from_numpy(bias)
    record = attend(q, k, v, **options, bias=bias, see=EVERYTHING)[1]
    B, H, T, S = record.shape
    held = 0
    for one in STATISTICS:
        value = getattr(record, one.name)
        assert (value is None) == (one.see is None)
        for array in one.arrays(value).values():
            assert len(array.shape) == 2 + len(one.axes)
            known = zip(array.shape, (B, H, *one.known_sizes(T, S)), strict=True)
            assert all(size is None or size == found for found, size in known)
            held += array.nbytes
    assert held == bytes_of(EVERYTHING, record.shape, v.shape[-1])


READERS = [budget, backend, file, read_record, stitching, from_weights, trace_merging, processes]


@pytest.mark.parametrize("module", READERS, ids=lambda module: module.__name__)
@pytest.mark.parametrize("name", ["max_score", "entropy", "distance", "value_norms"])
def test_readers_of_the_table_name_no_statistic(module: ModuleType, name: str) -> None:
    """So a new statistic needs no change in them."""
    for text in (f"{name}=", f'"{name}"', f".{name}"):
        assert text not in getsource(module)
