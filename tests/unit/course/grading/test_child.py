"""Calls in the learner's process, and the serialisation of values."""

import contextlib
import json
import math
import struct
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from regard.course.grading import child
from regard.course.grading.serialisation import BYTES, DTYPES, Other, decode, encode, type_name

SCALARS = st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats() | st.text(max_size=20)
ARRAYS = st.sampled_from(sorted(DTYPES)).flatmap(
    lambda name: arrays.arrays(name, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
)
VALUES = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def same(left: Any, right: Any) -> bool:
    """Equal in type and, bit for bit, in value."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return left == right or (isinstance(left, float) and math.isnan(left) and math.isnan(right))


@given(VALUES)
def test_values_survive_a_round_trip(value: Any) -> None:
    assert same(decode(encode(value)), value)


def test_numpy_scalars_keep_their_type() -> None:
    for value in (np.float32(1.5), np.int64(-3), np.bool_(True), np.float64("nan")):
        back = decode(encode((value,)))[0]
        assert type(back) is type(value)
    assert decode(encode((np.longdouble(0.5),)))[0] == 0.5


@given(st.binary(max_size=300))
def test_any_bytes_decode_or_raise_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode(data)


@given(VALUES, st.integers(0, 400), st.integers(1, 255))
def test_a_flipped_byte_is_an_error_or_another_value(value: Any, place: int, flip: int) -> None:
    data = bytearray(encode(value))
    data[place % len(data)] ^= flip
    with contextlib.suppress(ValueError):
        decode(bytes(data))


def message(tree: Any, shapes: Any = (), rest: bytes = b"") -> bytes:
    header = json.dumps({"tree": tree, "arrays": shapes}).encode()
    return struct.pack("!I", len(header)) + header + rest


@pytest.mark.parametrize(
    "data",
    [
        message({"a": 0}, [["object", [1]]], bytes(8)),
        message({"a": 0}, [["float64", [2]]], bytes(8)),
        message({"a": 0}, [["float64", [1]]], bytes(9)),
        message({"a": 0}, [["float64", [-1]]], b""),
        message({"a": 0}, [["float64", [2**40, 2**40]]], b""),
        message({"a": 1}, [["float64", [1]]], bytes(8)),
        message({"a": -1}, [["float64", [1]]], bytes(8)),
        message({"a": True}, [["float64", [1]]], bytes(8)),
        message({"a": 0, "f": "0x0p0"}, [["float64", [1]]], bytes(8)),
        message({"pickle": "x"}),
        message({"f": "nonsense"}),
        message([1, 2]),
        message(1.5),
        message({"d": [[[1], 2]]}),
        b"",
        b"\xff\xff\xff\xff{}",
        struct.pack("!I", 200_000) + b"[" * 200_000,
    ],
)
def test_invalid_messages_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode(data)


class Claims(np.ndarray):
    pass


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (np.zeros(2).view(Claims), "Claims"),
        (type("Float", (float,), {})(1.0), "Float"),
        (np.array([object()]), "ndarray[object]"),
        (np.array(["a"]), "ndarray[str32]"),
        ((n for n in range(0)), "generator"),
        (torch.ones(1), "torch.Tensor"),
        ({1.5: 1}, "dict"),
        ({1, 2}, "set"),
        (1j, "complex"),
        (10**400, "int"),
        (np.broadcast_to(0.0, (10**6, 10**6)), "numpy.ndarray"),
        (np.zeros(BYTES), "numpy.ndarray"),
        (list(range(10**5)), "list"),
    ],
)
def test_everything_else_arrives_as_other(value: Any, name: str) -> None:
    back = decode(encode([value] if type(value) not in (list, np.ndarray) else value))
    back = back[0] if type(back) is list else back
    assert isinstance(back, Other)
    assert back.type == name
    assert back != Other(name)  # it equals nothing, not even an equal one


def test_an_oversized_part_does_not_affect_the_rest_of_a_message() -> None:
    back = decode(encode({"value": list(range(10**6)), "after": {"args.0": "x"}, "array": np.ones(2)}))
    assert back["value"].about == "large"
    assert back["after"] == {"args.0": "x"}
    assert back["array"].tolist() == [1, 1]


def test_in_the_torch_track_tensors_replace_arrays() -> None:
    back = decode(encode([torch.ones(2, dtype=torch.bfloat16), np.ones(2), torch.tensor(3)], "torch"))
    assert back[0].dtype == np.float32
    assert isinstance(back[1], Other)
    assert back[2].shape == ()
    assert isinstance(decode(encode([torch.empty(2, device="meta")], "torch"))[0], Other)


def test_type_names_cannot_be_forged() -> None:
    class Meta(type):
        __name__ = property(lambda cls: 1 / 0)

    assert type_name(Meta("Odd", (), {})()) == "Odd"


# --- calls --------------------------------------------------------------------------------------------------


def call(target: str, *args: Any, instance: Any = None, gradients: bool = False, **kwargs: Any) -> dict[str, Any]:
    return {"target": target, "args": args, "kwargs": kwargs, "instance": instance, "gradients": gradients}


def answered(source: str, request: dict[str, Any], track: str = "numpy") -> dict[str, Any]:
    return child.answer(child.load(source), request, track)


def test_a_call_returns_its_value_and_digests_of_the_arguments() -> None:
    x = np.arange(3.0)
    result = answered("def f(x, k):\n    x += k\n    return x", call("f", x, k=2))
    assert result["value"].tolist() == [2, 3, 4]
    assert x.tolist() == [0, 1, 2]  # the learner had a copy
    assert result["after"]["args.0"] == child.digest(np.arange(3.0) + 2, "numpy")
    assert result["after"]["kwargs.k"] == child.digest(2, "numpy")


@pytest.mark.parametrize(
    ("source", "raised", "line", "message"),
    [
        ("def f():\n    return 1 / 0", "ZeroDivisionError", 2, "division by zero"),
        ("import json\ndef f():\n    json.loads('{')", "JSONDecodeError", 3, "Expecting"),
        ("def f():\n    raise SystemExit(3)", "SystemExit", 2, "3"),
        ("def f():\n    raise KeyboardInterrupt", "KeyboardInterrupt", 2, ""),
        ("def f():\n    raise ValueError('x' * 10_000)", "ValueError", 2, "x" * 500),
        ("class E(Exception):\n    def __str__(self): raise E\ndef f():\n    raise E", "E", None, ""),
        ("def f(): raise NotImplementedError", "NotImplementedError", 1, ""),
    ],
)
def test_exceptions_become_data(source: str, raised: str, line: int | None, message: str) -> None:
    result = answered(source, call("f"))
    assert (result["raised"], result["line"], result["fault"]) == (raised, line, "")
    assert result["message"].startswith(message)
    assert len(result["message"]) <= 500


def test_a_missing_name_or_one_that_is_not_a_function() -> None:
    assert answered("def sofmax(x): pass", call("softmax"))["details"] == {"name": "softmax", "nearest": "sofmax"}
    assert answered("x = 1", call("softmax"))["details"]["nearest"] == ""
    assert answered("f = 3", call("f"))["fault"] == "not-callable"


def test_running_out_of_memory_has_its_own_diagnosis() -> None:
    assert answered("def f(): raise MemoryError", call("f"))["fault"] == "too-much-memory"


def test_definitions_are_found_by_their_module() -> None:
    source = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int"
    assert child.load(source)["P"](3).x == 3


def test_code_under_name_main_does_not_run() -> None:
    assert "x" not in child.load("if __name__ == '__main__':\n    x = 1")


LINEAR = """
import torch
from torch import nn
class Linear(nn.Module):
    def __init__(self, d_in, d_out, bias=True):
        super().__init__()
        self.W = nn.Linear(d_in, d_out, bias=bias)
        self.register_buffer("seen", torch.zeros(1), persistent=False)
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(self.W(x))
"""


def instance_of(state: dict[str, Any], *, training: bool = False, **kwargs: Any) -> dict[str, Any]:
    return {"args": (2, 3), "kwargs": kwargs, "state": state, "training": training}


def test_modules_get_the_given_parameters() -> None:
    weight, bias = np.arange(6, dtype=np.float32).reshape(3, 2), np.ones(3, dtype=np.float32)
    x = np.array([[1, 2]], dtype=np.float32)
    request = call("Linear", x, instance=instance_of({"W.weight": weight, "W.bias": bias}), gradients=True)
    result = answered(LINEAR, request, "torch")
    assert np.allclose(result["value"].detach().numpy(), x @ weight.T + bias)  # in eval mode: nothing is dropped
    c = np.sin(1 + np.arange(3.0))[None]
    assert np.allclose(result["gradients"]["args.0"], c @ weight, atol=1e-6)
    assert np.allclose(result["gradients"]["W.weight"], c.T @ x, atol=1e-6)
    assert np.allclose(result["gradients"]["W.bias"], c[0], atol=1e-6)
    assert result["after"]["args.0"] == child.digest(x, "numpy")


@pytest.mark.parametrize(
    ("state", "kwargs", "fault", "details"),
    [
        ({"W.weight": (3, 2)}, {}, "extra-parameter", {"name": "W.bias", "wanted": "W.weight"}),
        ({"Q.weight": (3, 2)}, {"bias": False}, "missing-parameter", {"name": "Q.weight", "found": "W.weight"}),
        (
            {"W.weight": (2, 3)},
            {"bias": False},
            "wrong-parameter",
            {"name": "W.weight", "wanted": "(2, 3)", "found": "(3, 2)"},
        ),
    ],
)
def test_missing_extra_and_wrong_parameters(state: Any, kwargs: Any, fault: str, details: Any) -> None:
    arrays = {name: np.zeros(shape, dtype=np.float32) for name, shape in state.items()}
    result = answered(LINEAR, call("Linear", instance=instance_of(arrays, **kwargs)), "torch")
    assert (result["fault"], result["details"]) == (fault, details)


def test_a_class_that_is_not_a_module() -> None:
    result = answered(
        "class Linear:\n    def __init__(self, *a): pass", call("Linear", instance=instance_of({})), "torch"
    )
    assert result["fault"] == "not-a-module"


def test_an_in_place_change_is_detected_with_gradients_too() -> None:
    result = answered(
        "def f(x):\n    x.mul_(2)\n    return x", call("f", np.ones(2, np.float32), gradients=True), "torch"
    )
    assert result["after"]["args.0"] == child.digest(np.full(2, 2, np.float32), "numpy")


def test_an_unused_leaf_has_gradient_none() -> None:
    result = answered("def f(x): return x.detach() * 2", call("f", np.ones(2, np.float32), gradients=True), "torch")
    assert result["gradients"] == {"args.0": None}
