"""The arithmetic of one query equals `regard.explain`, and its code runs and reproduces the weights and the output."""

import contextlib
import io
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import Mask, See
from regard.errors import ArgumentError, NotKeptError
from regard.messages import LANGUAGES
from regard.records import Record
from regard.trace import Trace
from regard.views.explorer.numbers import all_queries, explained
from regard.views.explorer.source import TraceSource


def recorded(T: int, S: int, *, v: bool = True, dtype: Any = np.float32, **options: Any) -> tuple[Record, Any]:
    rng = np.random.default_rng(S)
    q, k, values = (rng.standard_normal((1, heads, n, 4)).astype(dtype) for heads, n in ((4, T), (2, S), (2, S)))
    _, record = regard.attend(q, k, values, see=See(qk=True, v=v), **options)
    return record, (q[0], k[0], values[0])


def run(code: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, found)
    return found


@pytest.mark.parametrize("mask", [None, Mask.causal()])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_every_stage_is_that_of_explain(mask: Mask | None, scale: float | None) -> None:
    record, (q, k, v) = recorded(5, 5, mask=mask, scale=scale)
    steps = regard.explain(q[3], k[1], v[1], mask, scale=scale)
    found = explained(record, 0, 3, 2)
    names = {"dots": "scores", "scaled": "scaled", "exps": "powers", "weights": "weights"}
    names |= {} if mask is None else {"masked": "masked"}
    for ours, theirs in names.items():
        np.testing.assert_allclose(found.arrays[ours], steps[theirs].values[2], rtol=1e-12)
    np.testing.assert_allclose(found.arrays["sum"], steps["sums"].values[2], rtol=1e-12)
    np.testing.assert_allclose(found.arrays["output"], steps.output[2], rtol=1e-12)
    assert found.about["scale"] == scale
    assert found.about["keys"] == [0, 1, 2, 3, 4]


OPTIONS = [
    {},
    {"mask": Mask.causal()},
    {"softcap": 1.5},
    {"scale": 0.2},
    {"bias": np.linspace(-2, 2, 9 * 100, dtype=np.float32).reshape(9, 100)},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_code_reproduces_weights_and_output(options: dict[str, Any], lang: str) -> None:
    record, _ = recorded(9, 100, **options)
    found = explained(record, 0, 1, 4, most=10)
    made = run(found.about["code"][lang])
    keys = found.about["keys"]
    assert len(keys) == 10
    np.testing.assert_allclose(made["weights"], found.arrays["weights"], rtol=1e-12)
    np.testing.assert_allclose(
        made["weights"], np.asarray(record.weights(rows=4, head=1))[0, keys], rtol=1e-4, atol=1e-7
    )
    np.testing.assert_allclose(made["output"], found.arrays["output"], rtol=1e-9, atol=1e-12)


def test_listed_keys_have_the_largest_weights_and_the_rest_is_counted() -> None:
    record, _ = recorded(9, 100)
    found = explained(record, 0, 0, 8, most=7)
    weights = np.asarray(record.weights(rows=8, head=0))[0]
    assert found.about["keys"] == sorted(np.argsort(-weights)[:7].tolist())
    assert found.about["rest"]["keys"] == 93
    assert found.about["rest"]["weight"] == pytest.approx(1 - found.arrays["weights"].sum(), abs=1e-12)


def test_without_values_there_is_no_output() -> None:
    record, _ = recorded(3, 3, v=False)
    found = explained(record, 0, 0, 1)
    assert not {"v", "output"} & set(found.arrays)
    assert found.about["Ev"] is None
    assert "output" not in run(found.about["code"]["en"])
    assert TraceSource(Trace(record)).abilities(0)["explain"] == "without-values"


def test_a_fully_masked_query_has_weights_of_zero() -> None:
    record, _ = recorded(3, 3, mask=Mask.of(np.array([[1, 1, 1], [0, 0, 0], [1, 0, 1]], bool)))
    found = explained(record, 0, 0, 1)
    assert found.arrays["weights"].tolist() == [0, 0, 0]
    assert found.about["largest"] is None
    made = run(found.about["code"]["en"])
    assert made["weights"].tolist() == [0, 0, 0]
    assert made["output"].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("options", [{}, {"mask": Mask.causal()}, {"bias": np.eye(6, dtype=np.float32)}])
def test_a_file_stores_what_every_query_is_computed_from(options: dict[str, Any]) -> None:
    """`tests/web/test_numbers_panel.py` compares what the front end computes from it."""
    record, (q, k, v) = recorded(6, 6, **options)
    stored = all_queries(record, 0, 2)
    assert {name: array.dtype for name, array in stored.arrays.items() if name in "qkv"} == dict.fromkeys(
        "qkv", np.float32
    )
    for name, wanted in {"q": q[2], "k": k[1], "v": v[1]}.items():
        np.testing.assert_array_equal(stored.arrays[name], wanted)
    assert ("bias" in stored.arrays) == ("bias" in options)
    np.testing.assert_array_equal(stored.arrays["visible"], np.tri(6) if "mask" in options else np.ones((6, 6)))


def test_numbers_that_float32_cannot_hold_stay_double() -> None:
    record, (q, *_) = recorded(3, 3, dtype=np.float64)
    stored = all_queries(record, 0, 0).arrays["q"]
    assert stored.dtype == np.float64
    np.testing.assert_array_equal(stored, q[0])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_code_of_a_file_has_a_place_for_q_k_and_v(lang: str) -> None:
    record, _ = recorded(9, 100)
    plain, file = (explained(record, 0, 1, 4, 10, for_file=for_file).about["code"][lang] for for_file in (False, True))
    before, after = file.split("{inputs}")
    assert plain.startswith(before)
    assert plain.endswith(after)
    assert len(file) < len(plain) / 2


def test_a_part_explains_the_query_that_is_shown() -> None:
    record, _ = recorded(9, 9)
    part = TraceSource(Trace(record), rows=slice(4, 8)).explain(0, 1, 2)
    np.testing.assert_array_equal(part.arrays["weights"], explained(record, 0, 1, 6).arrays["weights"])


def test_tensors_give_the_same_numbers() -> None:
    record, arrays = recorded(5, 5, mask=Mask.causal())
    q, k, v = (torch.from_numpy(array[None]) for array in arrays)
    theirs = regard.attend(q, k, v, mask=Mask.causal(), see=See(qk=True, v=True))[1]
    one, other = explained(record, 0, 1, 3), explained(theirs, 0, 1, 3)
    for name, values in one.arrays.items():
        np.testing.assert_allclose(other.arrays[name], values, rtol=1e-12)


def test_labels_name_query_and_keys() -> None:
    record, _ = recorded(3, 3)
    about = TraceSource(Trace(record.with_tokens(list("abc"), list("abc")))).explain(0, 0, 1).about
    assert about["labels"] == {"query": "b", "keys": ["a", "b", "c"]}


def test_weights_alone_cannot_be_explained() -> None:
    source = TraceSource(Trace.from_weights(np.eye(3)))
    assert source.abilities(0)["explain"] == "none"
    with pytest.raises(NotKeptError, match=r"See\(qk=True, v=True\)"):
        source.explain(0, 0, 1)


def test_values_are_kept_beside_q_and_k() -> None:
    with pytest.raises(ArgumentError, match=r"See\(qk=True, v=True\)"):
        See(v=True)
