"""Trace files: everything is read back, and an invalid file raises a FileError."""

import json
import os
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from narrowing import present
from safetensors.numpy import save_file
from strategies import Call, calls

from regard import Mask, Record, See, Trace, attend, read_trace
from regard.attention_call import WeightsFromQK
from regard.errors import ArgumentError, FileError, NotKeptError, TooLargeError
from regard.records import Top
from regard.trace.file import LONGEST_TOKEN, MOST_QUERIES
from regard.trace.trace import Temperatures

EVERYTHING = See(map=4, top=2, max_score=True, entropy=True, received=True, distance=True, outputs=True, qk=True)


def small_trace() -> Trace:
    """Two records that use every kind of field."""
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(1, 2, 5, 3)), rng.normal(size=(1, 1, 7, 3))
    mask = Mask.causal() & Mask.padding(np.array([[1, 1, 0, 1, 1, 1, 1]])) | Mask.prefix(1)
    _, record = attend(q, k, k, mask=mask, see=EVERYTHING)
    record = record.named("h.0.attn", "cross").with_tokens(list("abcde"), [list("甲乙丙丁戊己庚")])
    record = replace(record, ids=np.arange(5)[None])
    other = Trace.from_weights(np.eye(3)[None], ["x", "\ud800", "\n"], name="h.1.attn")[0]
    return Trace([record, other])


def assert_same(found: Record, wanted: Record, atol: float = 0) -> None:
    for name in ("shape", "name", "kind", "query_tokens", "key_tokens"):
        assert getattr(found, name) == getattr(wanted, name), name
    for name in ("map", "lse", "max_score", "entropy", "received", "sink", "distance", "outputs", "ids"):
        one, other = getattr(found, name), getattr(wanted, name)
        assert (one is None) == (other is None), name
        if one is not None:
            # A file may store a coarse map in 16 bits.
            allowed = 2e-5 if name == "map" and not wanted.map_is_exact else atol
            np.testing.assert_allclose(one, np.asarray(other), rtol=0, atol=allowed, err_msg=name)
    if wanted.top is None:
        assert found.top is None
    else:
        assert isinstance(found.top, Top)
        np.testing.assert_array_equal(found.top.indices, wanted.top.indices)
        np.testing.assert_allclose(found.top.weights, wanted.top.weights, rtol=0, atol=atol)


def test_everything_is_read_back(tmp_path: Path) -> None:
    trace = small_trace()
    trace.save(tmp_path / "t.safetensors", qk=True)
    back = read_trace(str(tmp_path / "t.safetensors"))
    assert back.names == trace.names
    for found, wanted in zip(back, trace, strict=True):
        assert_same(found, wanted)
        np.testing.assert_allclose(found.weights(), wanted.weights(), atol=1e-12)
    np.testing.assert_allclose(back[0].weights(slice(1, 3), slice(2, 6)), trace[0].weights()[..., 1:3, 2:6], atol=1e-12)


def test_read_trace_can_be_saved_again(tmp_path: Path) -> None:
    small_trace().save(tmp_path / "a", qk=True)
    read_trace(tmp_path / "a").save(tmp_path / "b", qk=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("length", [6, 40])
def test_values_are_saved_with_q_and_k_also_of_a_short_text(tmp_path: Path, length: int) -> None:
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, length, 4))
    record = attend(q, k, v, mask=Mask.causal(), see=See(map=8, qk=True, v=True))[1]
    Trace(record).save(tmp_path / "t", qk=True)
    exact = read_trace(tmp_path / "t")[0].exact
    assert isinstance(exact, WeightsFromQK)
    for name, wanted in (("q", q), ("k", k), ("v", v)):
        np.testing.assert_array_equal(getattr(exact, name), wanted)
    Trace(record).save(tmp_path / "small")
    assert read_trace(tmp_path / "small")[0].exact is None


def test_texts_and_written_tokens_are_read_back(tmp_path: Path) -> None:
    trace = small_trace()
    trace.texts, trace.opening = ("I love you", "我爱你"), ("h.0.attn", 1)
    written = [["b", "c", "d", "e", "<eos>"]]
    whole = Trace([trace[0].with_tokens(written=written), trace[1]])
    whole.texts, whole.opening = trace.texts, trace.opening
    whole.save(tmp_path / "t", qk=True)
    back = read_trace(tmp_path / "t")
    assert (back.texts, back.opening) == (trace.texts, trace.opening)
    assert [record.written for record in back] == [(tuple(written[0]),), None]
    for part in (back[:1], back.select(kind="cross"), back.select(name="h.0*").merged("tokens")):
        assert (part.texts, part.opening) == (trace.texts, trace.opening)
        assert part[0].written == (tuple(written[0]),)


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.update(texts="I love you"),
        lambda about: about.update(candidates=[[["a", 2]]]),
        lambda about: about.update(candidates=[["a"]]),
        lambda about: about.update(temperatures=[[1.0], [[0.0]], []]),
        lambda about: about.update(temperatures=[[0.0], [[0.0]]]),
        lambda about: about.update(temperatures=[[1.0], [[0.0, 1.0]]]),
        lambda about: about.update(temperatures=[[1.0], ["0"]]),
        lambda about: about.update(beams=[[["a", 1], -0.5]]),
        lambda about: about.update(beams=[[["a"], "-0.5"]]),
        lambda about: about.update(texts=["I", 2]),
        lambda about: about.update(opening=["h.0.attn"]),
        lambda about: about.update(opening=["h.0.attn", -1]),
        lambda about: about["records"][0].update(written=[0, 1, 2]),
        lambda about: about["records"][0].update(written=[99]),
        lambda about: about["records"][0].update(packed=[]),
        lambda about: about["records"][0].update(packed={"sink": {"dtype": "<f8", "shape": [1, 2]}}),
        lambda about: about["records"][0].update(same={"kept.q": "map"}),
        lambda about: about["records"][1].update(kept={"mask": None, "scale": 1.0}),
    ],
)
def test_invalid_optional_fields_raise_a_file_error(tmp_path: Path, change: Any) -> None:
    with pytest.raises(FileError, match="makes no sense"):
        read_trace(rewritten(tmp_path, lambda about, tensors: change(about)))


def test_exact_weights_are_not_saved_without_qk(tmp_path: Path) -> None:
    small_trace().save(tmp_path / "t")
    back = read_trace(tmp_path / "t")
    assert back[0].exact is None
    with pytest.raises(NotKeptError):
        back[0].weights()
    np.testing.assert_array_equal(back[1].weights()[0, 0], np.eye(3))  # its map is the weights


@settings(max_examples=25)
@given(call=calls())
def test_rectangles_of_any_call_are_read_back(tmp_path_factory: pytest.TempPathFactory, call: Call) -> None:
    _, record = attend(call.q, call.k, call.v, **call.options, see=EVERYTHING)
    assert isinstance(record.exact, WeightsFromQK)
    assert record.exact.lead == call.sizes.lead  # the mask is stored for the caller's own axes
    path = tmp_path_factory.mktemp("trace") / "t"
    Trace([record]).save(path, qk=True)
    back = read_trace(path)[0]
    assert_same(back, record)
    np.testing.assert_allclose(back.weights(), record.weights(), atol=1e-5)


def test_tensors_are_saved(tmp_path: Path) -> None:
    q = torch.randn(1, 2, 5, 4, generator=torch.Generator().manual_seed(0))
    _, record = attend(q, q, q, mask=Mask.causal(), bias=torch.zeros(5, 5), see=EVERYTHING)
    half = replace(record, map=present(record.map).bfloat16())
    Trace([record, half]).save(tmp_path / "t", qk=True)
    back = read_trace(tmp_path / "t")
    np.testing.assert_allclose(back[0].weights(), record.weights(), atol=1e-6)
    assert present(back[1].map).dtype == np.float32
    np.testing.assert_array_equal(back[1].map, present(half.map).float().numpy())


def test_arrays_of_any_layout_are_saved(tmp_path: Path) -> None:
    trace = Trace([Record(shape=(1, 1, 3, 2), map=np.arange(6.0).reshape(1, 1, 2, 3).swapaxes(-1, -2)[..., ::-1])])
    present(trace[0].map).flags.writeable = False
    big_endian = Trace([replace(trace[0], map=present(trace[0].map).astype(">f4"))])
    for one in (trace, big_endian):
        one.save(tmp_path / "t")
        np.testing.assert_array_equal(read_trace(tmp_path / "t")[0].map, trace[0].map)


def test_fused_is_read_back(tmp_path: Path) -> None:
    ours, theirs = (replace(record, fused=fused) for record, fused in zip(small_trace(), (True, False), strict=False))
    Trace([ours, theirs]).save(tmp_path / "t")
    assert [record.fused for record in read_trace(tmp_path / "t")] == [True, False]


def test_empty_trace_is_read_back(tmp_path: Path) -> None:
    Trace().save(tmp_path / "t")
    assert len(read_trace(tmp_path / "t")) == 0


def test_shared_tokens_are_stored_once(tmp_path: Path) -> None:
    tokens = ["token"] * 500
    one = Trace.from_weights(np.eye(500), tokens, map=2)[0]
    Trace([one] * 20).save(tmp_path / "t")
    assert (tmp_path / "t").stat().st_size < 20_000
    assert read_trace(tmp_path / "t")[19].key_tokens == (tuple(tokens),)


def test_saving_q_and_k_that_were_not_kept_raises(tmp_path: Path) -> None:
    record = replace(small_trace()[0], exact=None)
    with pytest.raises(NotKeptError, match=r"See\(qk=True\)"):
        Trace([record]).save(tmp_path / "t", qk=True)
    assert list(tmp_path.iterdir()) == []


# --- writing ---------------------------------------------------------------------------------------------


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    small_trace().save(path)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(TooLargeError, match="No space left on device"):
        Trace().save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("where", ["absent/t", "folder"])
def test_error_names_the_path_that_cannot_be_written(tmp_path: Path, where: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match=where):
        Trace().save(tmp_path / where)


def test_ending_of_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"s\.csv has an ending .*; call it .*s\.safetensors"):
        small_trace().save(tmp_path / "s.csv")
    with pytest.raises(ArgumentError, match=r"x\.png has an ending .*; call it .*x\.html \(possible: \.html, \.htm\)"):
        small_trace().html(tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


def test_file_has_the_usual_permissions(tmp_path: Path) -> None:
    small_trace().save(tmp_path / "t.safetensors")
    (tmp_path / "other").touch()
    assert (tmp_path / "t.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


# --- invalid files ---------------------------------------------------------------------------------------


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"there is no file .*absent"):
        read_trace(tmp_path / "absent")
    with pytest.raises(FileError, match="is a folder"):
        read_trace(tmp_path)


@pytest.mark.parametrize("content", [b"x", b"\xff" * 100, struct.pack("<Q", 10**12)])
def test_file_that_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    with pytest.raises(FileError, match="could not be read as a safetensors file"):
        read_trace(path)


def test_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    small_trace().save(path, qk=True)
    whole = path.read_bytes()
    for length in range(0, len(whole), 50):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError):
            read_trace(path)


def test_flipped_bytes_raise_only_file_errors(tmp_path: Path) -> None:
    path = tmp_path / "t"
    small_trace().save(path, qk=True)
    whole = path.read_bytes()
    header = 8 + struct.unpack("<Q", whole[:8])[0]
    refused = 0
    for place in [*range(8), *range(8, header, 3), *range(header, len(whole), 40)]:
        for flip in (0x01, 0x80):
            changed = bytearray(whole)
            changed[place] ^= flip
            path.write_bytes(changed)
            try:
                trace = read_trace(path)
            except FileError:
                refused += 1
            else:
                for record in trace:
                    record.weights()
    assert refused > 500


def rewritten(tmp_path: Path, change: Any) -> Path:
    """A valid file after `change(about, tensors)` of its JSON and tensors."""
    from safetensors import safe_open

    path = tmp_path / "t"
    small_trace().save(path, qk=True)
    with safe_open(path, framework="np") as file:
        about = json.loads(file.metadata()["regard"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    metadata = change(about, tensors)
    save_file(tensors, path, {"regard": json.dumps(about)} if metadata is None else metadata)
    return path


def test_other_safetensors_files_are_refused(tmp_path: Path) -> None:
    for metadata in ({}, {"format": "pt"}, {"regard": "[]"}, {"regard": '{"format": "other"}'}):
        with pytest.raises(FileError, match="not a trace"):
            read_trace(rewritten(tmp_path, lambda about, tensors, m=metadata: m))


def test_newer_version_asks_to_upgrade(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"version 9; this one reads up to 8.*upgrade"):
        read_trace(rewritten(tmp_path, lambda about, tensors: about.update(version=9)))


def test_file_of_version_3_is_read() -> None:
    """Written by regard 0.1 before arrays were packed: `small_trace().save(path, qk=True)`."""
    back = read_trace(Path(__file__).with_name("version3.safetensors"))
    for found, wanted in zip(back, small_trace(), strict=True):
        assert_same(
            found, wanted.changed(max_score=None, outputs=None), atol=1e-12
        )  # it was computed on another processor
        np.testing.assert_allclose(found.weights(), wanted.weights(), atol=1e-12)
    assert (back.texts, back.opening, back[0].written) == (None, None, None)


@pytest.mark.parametrize(
    ("version", "unknown"),
    [
        (1, ("max_score", "sink", "distance", "outputs", "ids")),
        (2, ("max_score", "outputs", "ids")),
        (4, ("max_score", "outputs")),
        (7, ("outputs",)),
    ],
)
def test_files_of_older_versions_are_read(tmp_path: Path, version: int, unknown: tuple[str, ...]) -> None:
    def older(about: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        about["version"] = version
        for name in unknown:
            del tensors[f"0.{name}"]
            about["records"][0]["arrays"].remove(name)

    record = read_trace(rewritten(tmp_path, older))[0]
    assert_same(record, small_trace()[0].changed(**dict.fromkeys(unknown)))


def test_error_names_the_missing_tensor(tmp_path: Path) -> None:
    for name in ("0.map", "0.ids", "0.top.weights", "0.kept.q", "0.kept.mask.0", "1.map"):
        with pytest.raises(FileError, match=f"tensor '{name}' is missing"):
            read_trace(rewritten(tmp_path, lambda about, tensors, n=name: tensors.__delitem__(n)))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("0.map", np.zeros((1, 2, 9, 9)), "shape"),
        ("0.map", np.zeros((1, 2, 4, 2)), "shape"),  # 5 queries cannot form 4 bins
        ("0.map", np.zeros((1, 2, 3, 2), int), "dtype"),
        ("0.lse", np.zeros((1, 2, 4)), "shape"),
        ("0.received", np.zeros((1, 2)), "shape"),
        ("0.ids", np.zeros((1, 4), int), "shape"),
        ("0.ids", np.zeros((5, 1), int), "shape"),
        ("0.ids", np.zeros((1, 5)), "dtype"),
        ("0.top.indices", np.full((1, 2, 5, 2), 7), "makes no sense"),
        ("0.top.indices", np.full((1, 2, 5, 2), -1), "makes no sense"),
        ("0.kept.k", np.zeros((1, 3, 7, 3)), "makes no sense"),  # 2 heads among 3
        ("0.kept.q", np.zeros((1, 2, 4, 3)), "shape"),
        ("0.kept.mask.0", np.zeros((1, 9), bool), "makes no sense"),
        ("1.map", np.zeros((1, 1, 3, 4)), "shape"),
    ],
)
def test_error_names_the_invalid_tensor(tmp_path: Path, name: str, array: np.ndarray, message: str) -> None:
    path = rewritten(tmp_path, lambda about, tensors: tensors.__setitem__(name, array))
    with pytest.raises(FileError, match=f"{name.removesuffix('.0')}.*{message}"):
        read_trace(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.update(version="1"),
        lambda about: about.update(version=True),
        lambda about: about.update(records={}),
        lambda about: about.update(tokens=[["a", 1]]),
        lambda about: about.update(tokens=3),
        lambda about: about["records"].append(None),
        lambda about: about["records"][0].update(name=3),
        lambda about: about["records"][0].update(kind="causal"),
        lambda about: about["records"][0].update(kind=[]),
        lambda about: about["records"][0].update(shape=[1, 2, 5]),
        lambda about: about["records"][0].update(shape=[1, 2, 5, -7]),
        lambda about: about["records"][0].update(arrays="map"),
        lambda about: about["records"][0].update(fused="yes"),
        lambda about: about["records"][0].update(queries=[99]),
        lambda about: about["records"][0].update(queries=[1]),  # the keys' tokens: another length
        lambda about: about["records"][0]["kept"].update(scale="1"),
        lambda about: about["records"][0]["kept"].update(scale=float("nan")),
        lambda about: about["records"][0]["kept"].update(softcap=-1.0),
        lambda about: about["records"][0]["kept"].update(lead=[9, 9]),
        lambda about: about["records"][0]["kept"].update(mask={"name": "os.system", "rule": {}}),
    ],
)
def test_invalid_json_is_refused(tmp_path: Path, change: Any) -> None:
    with pytest.raises(FileError, match="makes no sense"):
        read_trace(rewritten(tmp_path, lambda about, tensors: change(about) and None))


def test_deeply_nested_mask_is_refused(tmp_path: Path) -> None:
    rule: dict[str, Any] = {"is": "band", "left": None, "right": 0}
    text = '{"is": "not", "rule": ' * 5000 + json.dumps(rule) + "}" * 5000

    def change(about: Any, tensors: Any) -> dict[str, str]:
        about["records"][0]["kept"]["mask"]["rule"] = "HERE"
        return {"regard": json.dumps(about).replace('"HERE"', text)}

    with pytest.raises(FileError):
        read_trace(rewritten(tmp_path, change))


def test_what_was_written_is_kept_within_bounds(tmp_path: Path) -> None:
    trace = Trace.from_weights(np.eye(2), ["I", "see"])
    trace.candidates = tuple((("x" * 1000, 0.5), (str(at), 0.25)) for at in range(MOST_QUERIES + 2))
    trace.beams = ((("我", "<eos>"), -0.25), (("你", "<eos>"), -1.5))
    trace.temperatures = Temperatures((0.5, 1.0), (*[()] * 3, *[(-0.125, 0.0)] * (MOST_QUERIES - 1)))
    trace.save(tmp_path / "t.safetensors")
    assert (tmp_path / "t.safetensors").stat().st_size < 1_000_000
    back = read_trace(tmp_path / "t.safetensors")
    assert back.beams == trace.beams
    assert back.temperatures == trace.temperatures
    assert back.candidates is not None
    assert len(back.candidates) == len(trace.candidates)
    assert back.candidates[:2] == ((), ())
    assert back.candidates[-1] == (("x" * LONGEST_TOKEN, 0.5), (str(MOST_QUERIES + 1), 0.25))
