"""Records of a Trace are found by number, name and kind; an error lists what exists."""

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regard import Record, Trace
from regard.errors import ArgumentError, UnknownNameError


def record(name: str, kind: str = "decoder", T: int = 2, S: int = 2) -> Record:
    return Record(shape=(1, 1, T, S), name=name, kind=kind)  # type: ignore[arg-type]


@pytest.fixture
def trace() -> Trace:
    names = ["encoder.0.attn", "encoder.1.attn", "decoder.0.attn", "decoder.0.cross"]
    kinds = ["encoder", "encoder", "decoder", "cross"]
    return Trace(record(name, kind) for name, kind in zip(names, kinds, strict=True))


def test_records_are_in_call_order(trace: Trace) -> None:
    assert len(trace) == 4
    assert [one.name for one in trace] == trace.names
    assert trace[0].name == "encoder.0.attn"
    assert trace[-1].name == trace[np.int64(3)].name == "decoder.0.cross"


def test_trace_of_one_record() -> None:
    assert Trace(record("attn")).names == ["attn"]


def test_record_by_name_or_end_of_name(trace: Trace) -> None:
    assert trace["encoder.1.attn"] is trace[1]
    assert trace["1.attn"] is trace[1]
    assert trace["cross"] is trace[3]


def test_end_of_a_name_begins_at_a_dot(trace: Trace) -> None:
    with pytest.raises(UnknownNameError):
        trace["ross"]
    with pytest.raises(UnknownNameError):
        trace[""]


def test_record_by_a_unique_part_of_its_name() -> None:
    names = ["transformer.h.0.attn", "transformer.h.1.attn", "transformer.h.11.attn", "transformer.h.1.attn"]
    trace = Trace([record(name) for name in names])
    assert trace["h.1"] is trace[1]
    assert trace["transformer.h.11"] is trace[2]
    assert trace["h.1#1"] is trace[3]
    with pytest.raises(ArgumentError, match=r"transformer\.h\.0\.attn, transformer\.h\.1\.attn"):
        trace["transformer.h"]
    for key in ("h.2", "nsformer.h.1", "h.1.", ".1."):
        with pytest.raises(UnknownNameError):
            trace[key]


def test_exact_name_takes_precedence() -> None:
    trace = Trace([record("model.attn"), record("attn")])
    assert trace["attn"] is trace[1]


def test_ambiguous_name_lists_the_matches(trace: Trace) -> None:
    with pytest.raises(ArgumentError, match=r"encoder\.0\.attn, decoder\.0\.attn"):
        trace["0.attn"]


def test_unknown_name_suggests_the_nearest(trace: Trace) -> None:
    with pytest.raises(UnknownNameError, match=r"nearest of the 4 is 'encoder.1.attn'"):
        trace["encodr.1.attn"]
    with pytest.raises(UnknownNameError, match="holds none"):
        Trace()["a"]


def test_number_out_of_range_names_the_count(trace: Trace) -> None:
    with pytest.raises(UnknownNameError, match="no record 9: this trace holds 4"):
        trace[9]
    with pytest.raises(ArgumentError, match="found float"):
        trace[1.5]  # type: ignore[call-overload]


def test_slice_is_a_trace(trace: Trace) -> None:
    assert trace[1:3].names == ["encoder.1.attn", "decoder.0.attn"]


def test_later_calls_of_a_module_are_numbered() -> None:
    trace = Trace([record("attn"), record("attn"), record("attn#1"), record("attn")])
    assert trace.names == ["attn", "attn#1", "attn#1#1", "attn#2"]
    assert trace["attn#2"] is trace[3]
    assert trace[2].name == "attn#1#1"


def test_records_are_appended_one_by_one(trace: Trace) -> None:
    trace.append(record("decoder.0.cross", "cross"))
    assert trace.names[-1] == "decoder.0.cross#1"
    with pytest.raises(ArgumentError, match=r"from_weights"):
        trace.append(np.eye(2))  # type: ignore[arg-type]


def test_select_by_kind_and_by_pattern(trace: Trace) -> None:
    assert trace.select(kind="cross").names == ["decoder.0.cross"]
    assert trace.select(name="encoder.*").names == ["encoder.0.attn", "encoder.1.attn"]
    assert trace.select(kind="decoder", name="encoder.*").names == []
    assert len(trace.select()) == 4
    with pytest.raises(ArgumentError, match="encoder, decoder, cross, self"):
        trace.select(kind="crosss")  # type: ignore[arg-type]


def test_repr(trace: Trace) -> None:
    assert repr(trace) == (
        "Trace(4 records: encoder.0.attn, …, decoder.0.cross; encoder, decoder, cross; 1 head 2 × 2)"
    )
    assert repr(Trace()) == "Trace(no records)"
    many = Trace(record(f"h.{i}", T=i, S=i) for i in range(100))
    assert len(repr(many)) < 120


def test_show_draws_in_the_terminal() -> None:
    out = io.StringIO()
    Trace.from_weights(np.eye(2)).show(file=out)
    assert "self-attention" in out.getvalue()


def test_mean_of_all_heads_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    even, sharp = np.full((2, 2), 0.5), np.eye(2)
    trace = Trace([Trace.from_weights(np.stack([even, sharp]), name=f"h.{n}")[0] for n in range(2)])
    out = io.StringIO()
    trace.show("1", head="mean", file=out, lang="en")
    assert out.getvalue().startswith("h.1 · self-attention · mean of all heads")
    assert out.getvalue().count(".75") == out.getvalue().count(".25") == 2
    drawn = []
    axes = SimpleNamespace(get_figure=lambda root: "figure")

    def plot(trace: Trace, *chosen: Any, **_: Any) -> Any:
        drawn.append((trace.names, *chosen[:2]))
        return axes

    monkeypatch.setattr("regard.views.plots.plot", plot)
    figures: list[object] = [trace.plot(0, head="mean"), trace.plot(head="mean"), trace.plot(1, head=0)]
    assert figures == ["figure"] * 3
    assert drawn == [(["h.0.mean"], None, 0), (["h.0.mean", "h.1.mean"], None, 0), (["h.0", "h.1"], 1, 0)]


@pytest.mark.parametrize("draw", [Trace.show, Trace.plot, Trace.html])
def test_everything_after_the_layer_is_passed_by_name(draw: Callable[..., object], tmp_path: Path) -> None:
    trace, path = Trace.from_weights(np.eye(2)), () if draw is not Trace.html else (tmp_path / "page.html",)
    with pytest.raises(TypeError, match="positional"):
        draw(trace, *path, 0, 0)
