"""Looking answers as attend does, remembers every call under its name, and learns the tokens afterwards."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from tolerances import assert_same_bits

from regard import Mask, See, attend
from regard.arrays import Array
from regard.errors import ArgumentError, RegardError
from regard.records import Attend
from regard.trace import Looking

SELF, CROSS, ENCODER = "decoder.layers.0.self_attention", "decoder.layers.0.cross_attention", "encoder.layers.0.x"


def numbers(kind: str, *shape: int) -> Array:
    x = np.random.default_rng(0).standard_normal(shape)
    return torch.from_numpy(x) if kind == "torch" else x


def step(
    look: Attend, T: int, S: int, *, name: str = SELF, kind: Any = "decoder", arrays: str = "numpy", B: int = 1
) -> None:
    """One call with T queries and S keys."""
    k = numbers(arrays, B, 1, S, 4)
    look(numbers(arrays, B, 2, T, 4), k, k, name=name, kind=kind)


def letters(record: Any, sample: int = 0) -> tuple[str, str]:
    """Queries and keys, a place without a token as a dot."""
    return tuple("".join(token or "." for token in side[sample]) for side in (record.queries, record.keys))  # type: ignore[return-value]


# --- an attend -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_it_answers_as_attend_does_and_keeps_the_record(kind: str) -> None:
    q, k, v = numbers(kind, 2, 4, 3, 8), numbers(kind, 2, 2, 5, 8), numbers(kind, 2, 2, 5, 6)
    options = {"mask": Mask.causal(), "bias": numbers(kind, 3, 5), "scale": 0.3, "softcap": 2.0}
    see = See(map=2, entropy=True, qk=True)
    look = Looking(see)
    out = look(q, k, v, name=SELF, kind="decoder", **options)
    wanted, record = attend(q, k, v, see=see, **options)
    assert_same_bits(out, wanted)
    found = look.trace[SELF]
    assert (found.kind, found.shape, found.queries) == ("decoder", (2, 4, 3, 5), None)
    for name in ("map", "lse", "entropy"):
        assert_same_bits(getattr(found, name), getattr(record, name))
    assert_same_bits(found.weights(), record.weights())


def test_records_hold_no_graph_and_the_output_keeps_its_own() -> None:
    for options in ({}, {"dropout": 0.5}, {"bias": torch.zeros(5, 5, dtype=torch.float64, requires_grad=True)}):
        x = numbers("torch", 1, 2, 5, 4).requires_grad_()
        look = Looking(See(map=8, entropy=True, received=True, top=2, qk=True))
        look(x, x, x, name=SELF, kind="decoder", **options).sum().backward()
        assert x.grad is not None
        record = look.trace[0]
        held = [record.map, record.lse, record.entropy, record.received, *record.top, *record.kept.values()]
        assert not any(part.requires_grad for part in held if isinstance(part, torch.Tensor))


def test_who_computes_is_a_value() -> None:
    asked = []

    def counting(*args: Any, **options: Any) -> Any:
        asked.append(options["see"])
        return attend(*args, **options)

    look = Looking(attend=counting)
    step(look, 2, 2)
    assert asked == [See()]
    step(Looking(attend=partial(attend, backend="reference")), 2, 2)


def test_an_error_of_attention_leaves_no_record() -> None:
    look = Looking()
    with pytest.raises(RegardError):
        look(np.zeros((1, 1, 2, 3)), np.zeros((1, 1, 2, 4)), np.zeros((1, 1, 2, 4)), name=SELF, kind="decoder")
    assert len(look.trace) == 0


# --- tokens ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrays", ["numpy", "torch"])
def test_a_generation_is_labelled_step_by_step(arrays: str) -> None:
    look = Looking()
    for T, S in ((3, 3), (1, 4), (2, 6)):
        step(look, T, S, arrays=arrays)
    trace = look.label(list("abcdef"))
    assert look.trace is trace
    assert trace.names == [SELF, f"{SELF}#1", f"{SELF}#2"]
    assert [letters(record) for record in trace] == [("abc", "abc"), ("d", "abcd"), ("ef", "abcdef")]


def test_what_was_written_last_was_never_read() -> None:
    look = Looking()
    step(look, 2, 2)
    step(look, 1, 3)
    assert letters(look.label(list("abcd"))[-1]) == ("c", "abc")


def test_after_something_was_taken_back_tokens_cannot_be_told() -> None:
    look = Looking()
    for T, S in ((3, 3), (1, 3)):
        step(look, T, S)
    with pytest.raises(ArgumentError, match="had 3 keys after 4 tokens were read: something was taken back"):
        look.label(list("abcd"))


def test_a_static_cache_has_room_left() -> None:
    static = Looking()
    for T in (3, 1, 1):
        step(static, T, 5)
    text = list("abcde")
    assert [letters(record) for record in static.label(text)] == [("abc", "abc.."), ("d", "abcd."), ("e", "abcde")]


def test_layers_count_for_themselves() -> None:
    look = Looking()
    for T, S in ((2, 2), (1, 3)):
        for layer in range(2):
            step(look, T, S, name=f"decoder.layers.{layer}.self_attention")
    look.label(list("abc"))
    for layer in range(2):
        assert letters(look.trace[f"decoder.layers.{layer}.self_attention#1"]) == ("c", "abc")


def translator(look: Looking, B: int = 1) -> None:
    """Three tokens are read, then two and one written."""
    step(look, 3, 3, name=ENCODER, kind="encoder", B=B)
    for T, S in ((2, 2), (1, 3)):
        step(look, T, S, B=B)
        step(look, T, 3, name=CROSS, kind="cross", B=B)


def test_encoder_decoder_and_cross_have_their_own_sides() -> None:
    look = Looking()
    translator(look)
    trace = look.label(list("abc"), source=list("xyz"))
    assert letters(trace[ENCODER]) == ("xyz", "xyz")
    assert [letters(record) for record in trace.select(kind="decoder")] == [("ab", "ab"), ("c", "abc")]
    assert [letters(record) for record in trace.select(kind="cross")] == [("ab", "xyz"), ("c", "xyz")]


def test_a_side_that_is_not_given_stays_without_tokens() -> None:
    look = Looking()
    translator(look)
    trace = look.label(list("abc"))
    assert trace[ENCODER].queries is None  # the decoder's text is not the encoder's
    assert (trace[CROSS].queries, trace[CROSS].keys) == ((("a", "b"),), None)
    trace = look.label(source=list("xyz"))  # what was named before stays
    assert letters(trace[ENCODER]) == ("xyz", "xyz")
    assert letters(trace[f"{CROSS}#1"]) == ("c", "xyz")


def test_an_encoder_alone_reads_the_tokens() -> None:
    for given in ({"tokens": list("abc")}, {"source": list("abc")}):
        look = Looking()
        step(look, 3, 3, name=ENCODER, kind="encoder")
        assert letters(look.label(**given)[0]) == ("abc", "abc")


def test_each_sample_may_have_its_own_padding_included() -> None:
    look = Looking()
    translator(look, B=2)
    trace = look.label([["", "b", "c"], list("def")], source=np.array([list("uvw"), list("xyz")]))
    assert [letters(trace[f"{SELF}#1"], sample) for sample in (0, 1)] == [("c", ".bc"), ("f", "def")]
    assert [letters(trace[CROSS], sample) for sample in (0, 1)] == [(".b", "uvw"), ("de", "xyz")]


def test_no_records_no_labels() -> None:
    assert len(Looking().label(list("abc"), ["x"])) == 0


@pytest.mark.parametrize("given", ["abcd", 5, [1, 2, 3], [["a"], "b"], [[1, 2, 3]], np.arange(3)])
@pytest.mark.parametrize("side", ["tokens", "source"])
def test_ids_are_not_tokens(side: str, given: Any) -> None:
    look = Looking()
    translator(look)
    with pytest.raises(ArgumentError, match=f"^{side} must be a list of strings"):
        look.label(**{side: given})


@pytest.mark.parametrize(
    ("tokens", "source", "side", "found", "name", "wanted"),
    [
        ("ab", "xyz", "tokens", 2, SELF, 3),
        ("abcde", "xyz", "tokens", 5, SELF, 3),
        ("abc", "xy", "source", 2, ENCODER, 3),
        ("abc", "wxyz", "source", 4, ENCODER, 3),
    ],
)
def test_counts_that_do_not_fit_are_told(
    tokens: str, source: str, side: str, found: int, name: str, wanted: int
) -> None:
    look = Looking()
    translator(look)
    with pytest.raises(ArgumentError) as caught:
        look.label(list(tokens), list(source))
    assert caught.value.key == "label-count"
    assert caught.value.values == {"side": side, "found": found, "name": name, "wanted": wanted}
    assert all(record.queries is None for record in look.trace)


def test_two_runs_in_one_looking_are_told() -> None:
    look = Looking()
    for _ in range(2):
        step(look, 3, 3, name=ENCODER, kind="encoder")
    with pytest.raises(ArgumentError, match=r"tokens names 3 tokens, but .* read 6; .* a new Looking for each run"):
        look.label(list("abc"))


def test_rows_of_different_length_and_number_are_told() -> None:
    look = Looking()
    step(look, 3, 3, B=2)
    with pytest.raises(ArgumentError, match="rows of 2 to 3 tokens"):
        look.label([list("ab"), list("abc")])
    with pytest.raises(ArgumentError, match="tokens for 3 samples, but there are 2"):
        look.label([list("abc")] * 3)
