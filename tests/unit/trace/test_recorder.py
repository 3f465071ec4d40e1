"""Recorder computes what attend computes, records every call under its name, and gets the tokens afterwards."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from narrowing import present
from tolerances import assert_same_bits

from regard import Mask, See, attend
from regard.arrays import Array
from regard.errors import ArgumentError, RegardError
from regard.records import Attend
from regard.trace import Recorder

SELF, CROSS, ENCODER = "decoder.layers.0.self_attention", "decoder.layers.0.cross_attention", "encoder.layers.0.x"


def numbers(kind: str, *shape: int) -> Array:
    x = np.random.default_rng(0).standard_normal(shape)
    return torch.from_numpy(x) if kind == "torch" else x


def step(
    recorder: Attend, T: int, S: int, *, name: str = SELF, kind: Any = "decoder", arrays: str = "numpy", B: int = 1
) -> None:
    """One call with T queries and S keys."""
    k = numbers(arrays, B, 1, S, 4)
    recorder(numbers(arrays, B, 2, T, 4), k, k, name=name, kind=kind)


def letters(record: Any, sample: int = 0) -> tuple[str, str]:
    """Queries and keys as text, with a dot for a position without a token."""
    return tuple("".join(token or "." for token in side[sample]) for side in (record.query_tokens, record.key_tokens))  # type: ignore[return-value]


# --- attention -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_output_and_record_equal_attend(kind: str) -> None:
    q, k, v = numbers(kind, 2, 4, 3, 8), numbers(kind, 2, 2, 5, 8), numbers(kind, 2, 2, 5, 6)
    options = {"mask": Mask.causal(), "bias": numbers(kind, 3, 5), "scale": 0.3, "softcap": 2.0}
    see = See(map=2, entropy=True, qk=True)
    recorder = Recorder(see)
    out = recorder(q, k, v, name=SELF, kind="decoder", **options)
    wanted, record = attend(q, k, v, see=see, **options)
    assert_same_bits(out, wanted)
    found = recorder.trace[SELF]
    assert (found.kind, found.shape, found.query_tokens) == ("decoder", (2, 4, 3, 5), None)
    for name in ("map", "lse", "entropy"):
        assert_same_bits(getattr(found, name), getattr(record, name))
    assert_same_bits(found.weights(), record.weights())


def test_records_hold_no_graph_and_the_output_keeps_it() -> None:
    for options in ({}, {"dropout": 0.5}, {"bias": torch.zeros(5, 5, dtype=torch.float64, requires_grad=True)}):
        x = numbers("torch", 1, 2, 5, 4).requires_grad_()
        recorder = Recorder(See(map=8, entropy=True, received=True, top=2, qk=True))
        recorder(x, x, x, name=SELF, kind="decoder", **options).sum().backward()
        assert x.grad is not None
        record = recorder.trace[0]
        parts = [
            *(record.map, record.lse, record.entropy, record.received),
            *(*present(record.top), *present(record.exact).arrays),
        ]
        assert not any(part.requires_grad for part in parts if isinstance(part, torch.Tensor))


def test_attend_function_can_be_replaced() -> None:
    requested = []

    def counting(*args: Any, **options: Any) -> Any:
        requested.append(options["see"])
        return attend(*args, **options)

    recorder = Recorder(attend=counting)
    step(recorder, 2, 2)
    assert requested == [See()]
    step(Recorder(attend=partial(attend, backend="reference")), 2, 2)


def test_failed_call_leaves_no_record() -> None:
    recorder = Recorder()
    with pytest.raises(RegardError):
        recorder(np.zeros((1, 1, 2, 3)), np.zeros((1, 1, 2, 4)), np.zeros((1, 1, 2, 4)), name=SELF, kind="decoder")
    assert len(recorder.trace) == 0


# --- tokens ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrays", ["numpy", "torch"])
def test_generation_is_labelled_step_by_step(arrays: str) -> None:
    recorder = Recorder()
    for T, S in ((3, 3), (1, 4), (2, 6)):
        step(recorder, T, S, arrays=arrays)
    trace = recorder.label(list("abcdef"))
    assert recorder.trace is trace
    assert trace.names == [SELF, f"{SELF}#1", f"{SELF}#2"]
    assert [letters(record) for record in trace] == [("abc", "abc"), ("d", "abcd"), ("ef", "abcdef")]


def test_last_generated_token_is_never_read() -> None:
    recorder = Recorder()
    step(recorder, 2, 2)
    step(recorder, 1, 3)
    assert letters(recorder.label(list("abcd"))[-1]) == ("c", "abc")


def test_labels_after_a_cropped_cache_are_refused() -> None:
    recorder = Recorder()
    for T, S in ((3, 3), (1, 3)):
        step(recorder, T, S)
    with pytest.raises(ArgumentError, match="had 3 keys after 4 tokens were read: the cache was cropped"):
        recorder.label(list("abcd"))


def test_free_slots_of_a_static_cache_have_no_token() -> None:
    static = Recorder()
    for T in (3, 1, 1):
        step(static, T, 5)
    text = list("abcde")
    assert [letters(record) for record in static.label(text)] == [("abc", "abc.."), ("d", "abcd."), ("e", "abcde")]


def test_layers_are_counted_separately() -> None:
    recorder = Recorder()
    for T, S in ((2, 2), (1, 3)):
        for layer in range(2):
            step(recorder, T, S, name=f"decoder.layers.{layer}.self_attention")
    recorder.label(list("abc"))
    for layer in range(2):
        assert letters(recorder.trace[f"decoder.layers.{layer}.self_attention#1"]) == ("c", "abc")


def translator(recorder: Recorder, B: int = 1) -> None:
    """Three tokens are encoded, then two and one decoded."""
    step(recorder, 3, 3, name=ENCODER, kind="encoder", B=B)
    for T, S in ((2, 2), (1, 3)):
        step(recorder, T, S, B=B)
        step(recorder, T, 3, name=CROSS, kind="cross", B=B)


def test_encoder_decoder_and_cross_attention_get_their_tokens() -> None:
    recorder = Recorder()
    translator(recorder)
    trace = recorder.label(list("abc"), source=list("xyz"))
    assert letters(trace[ENCODER]) == ("xyz", "xyz")
    assert [letters(record) for record in trace.select(kind="decoder")] == [("ab", "ab"), ("c", "abc")]
    assert [letters(record) for record in trace.select(kind="cross")] == [("ab", "xyz"), ("c", "xyz")]


def test_side_that_is_not_given_stays_without_tokens() -> None:
    recorder = Recorder()
    translator(recorder)
    trace = recorder.label(list("abc"))
    assert trace[ENCODER].query_tokens is None  # the text of the decoder is not that of the encoder
    assert (trace[CROSS].query_tokens, trace[CROSS].key_tokens) == ((("a", "b"),), None)
    trace = recorder.label(source=list("xyz"))  # tokens that are already set stay
    assert letters(trace[ENCODER]) == ("xyz", "xyz")
    assert letters(trace[f"{CROSS}#1"]) == ("c", "xyz")


def test_tokens_of_a_lone_encoder() -> None:
    for given in ({"tokens": list("abc")}, {"source": list("abc")}):
        recorder = Recorder()
        step(recorder, 3, 3, name=ENCODER, kind="encoder")
        assert letters(recorder.label(**given)[0]) == ("abc", "abc")


def test_tokens_for_each_sample_include_padding() -> None:
    recorder = Recorder()
    translator(recorder, B=2)
    trace = recorder.label([["", "b", "c"], list("def")], source=np.array([list("uvw"), list("xyz")]))
    assert [letters(trace[f"{SELF}#1"], sample) for sample in (0, 1)] == [("c", ".bc"), ("f", "def")]
    assert [letters(trace[CROSS], sample) for sample in (0, 1)] == [(".b", "uvw"), ("de", "xyz")]


def test_label_without_records() -> None:
    assert len(Recorder().label(list("abc"), ["x"])) == 0


@pytest.mark.parametrize("given", ["abcd", 5, [1, 2, 3], [["a"], "b"], [[1, 2, 3]], np.arange(3)])
@pytest.mark.parametrize("side", ["tokens", "source"])
def test_ids_are_refused_as_tokens(side: str, given: Any) -> None:
    recorder = Recorder()
    translator(recorder)
    with pytest.raises(ArgumentError, match=f"^{side} must be a list of strings"):
        recorder.label(**{side: given})


@pytest.mark.parametrize(
    ("tokens", "source", "side", "found", "name", "wanted"),
    [
        ("ab", "xyz", "tokens", 2, SELF, 3),
        ("abcde", "xyz", "tokens", 5, SELF, 3),
        ("abc", "xy", "source", 2, ENCODER, 3),
        ("abc", "wxyz", "source", 4, ENCODER, 3),
    ],
)
def test_wrong_number_of_tokens_is_refused(
    tokens: str, source: str, side: str, found: int, name: str, wanted: int
) -> None:
    recorder = Recorder()
    translator(recorder)
    with pytest.raises(ArgumentError) as caught:
        recorder.label(list(tokens), list(source))
    assert caught.value.key == "label-count"
    assert caught.value.values == {"side": side, "found": found, "name": name, "wanted": wanted}
    assert all(record.query_tokens is None for record in recorder.trace)


def test_second_run_in_one_recorder_is_refused() -> None:
    recorder = Recorder()
    for _ in range(2):
        step(recorder, 3, 3, name=ENCODER, kind="encoder")
    with pytest.raises(ArgumentError, match=r"tokens names 3 tokens, but .* read 6; .* a new Recorder for each run"):
        recorder.label(list("abc"))


def test_wrong_rows_of_tokens_are_refused() -> None:
    recorder = Recorder()
    step(recorder, 3, 3, B=2)
    with pytest.raises(ArgumentError, match="rows of 2 to 3 tokens"):
        recorder.label([list("ab"), list("abc")])
    with pytest.raises(ArgumentError, match="tokens for 3 samples, but there are 2"):
        recorder.label([list("abc")] * 3)
