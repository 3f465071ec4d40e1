"""Defaults of a view: the opening head for any records, titles of layers, and source and target text."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from regard import Record, Trace
from regard.records import DecodeStep
from regard.views.caption import clearest_head, layer_of, source_and_target, texts_of_tokens, with_layer_label

EVEN, DIAGONAL = np.full((4, 4), 0.25), np.eye(4)


def record(*heads: np.ndarray, **about: Any) -> Record:
    return Trace.from_weights(np.stack(heads), **about)[0]


def test_cross_attention_precedes_the_decoder_and_the_decoder_the_encoder() -> None:
    encoder = record(DIAGONAL, name="e.0", kind="encoder")
    decoder = record(EVEN, np.eye(4)[[0, 0, 1, 2]], name="d.0", kind="decoder")
    cross = record(EVEN, DIAGONAL, name="d.0.cross", kind="cross")
    assert clearest_head([encoder, decoder]) == (1, 1)
    assert clearest_head([encoder, decoder, cross]) == (2, 1)


@pytest.mark.parametrize(
    "odd",
    [
        Record(shape=(1, 2, 9, 9), kind="cross"),
        Record(shape=(1, 2, 9, 9), map=np.full((1, 2, 3, 3), 1 / 3), kind="cross"),
        Record(shape=(1, 2, 0, 3), map=np.zeros((1, 2, 0, 3)), kind="cross"),
        Record(shape=(1, 2, 3, 3), map=np.full((1, 2, 3, 3), np.nan), kind="cross"),
        record(EVEN, EVEN, kind="decoder"),
    ],
    ids=["no map", "pooled", "no queries", "NaN", "no pattern"],
)
def test_without_a_pattern_the_first_head_opens(odd: Record) -> None:
    assert clearest_head([odd]) == (0, 0)


def test_the_layer_is_the_first_number_of_the_path() -> None:
    assert layer_of("encoder.block.3.layer.0.SelfAttention") == "3"
    assert layer_of("h2.attn#1") is None
    assert with_layer_label(record(EVEN, name="h.0.attn#1"), "zh").name == "h.层 0.attn#1"
    assert with_layer_label(record(EVEN, name="attn.0#1"), "en").name == "attn.layer 0#1"
    assert with_layer_label(record(EVEN), "en").name == "attention"


def test_source_and_target_are_joined_with_spaces_of_their_script() -> None:
    spaced = record(EVEN, queries=["<s>", "▁Ich", "▁lie", "be"], keys=["I", "love", "you", "[SEP]"], kind="cross")
    assert source_and_target([spaced], 0) == ("I love you", "Ich liebe")
    assert source_and_target([replace(spaced, step=DecodeStep(3, (0,)))], 0) is None
    assert source_and_target([replace(spaced, kind="decoder")], 0) is None


def test_a_head_on_the_first_token_opens_last() -> None:
    sink, back = np.eye(12)[[0] * 12], np.eye(12)[[0, 0, 0, *range(9)]] * 0.9 + np.tril(np.ones((12, 12))) * 0.1 / 12
    back /= back.sum(1, keepdims=True)
    assert clearest_head([Trace.from_weights(np.stack([sink, back]), kind="decoder")[0]]) == (0, 1)
    assert clearest_head([Trace.from_weights(np.stack([back * 0 + 1 / 12, sink]), kind="decoder")[0]]) == (0, 1)


def test_the_text_that_was_read_is_shown_from_its_tokens_in_one_short_line() -> None:
    def read(tokens: list[str], **fields: Any) -> Record:
        return replace(Trace.from_weights(np.eye(len(tokens)), tokens, kind="decoder")[0], **fields)

    spaced = read(["Once", " upon", "\n a", " time"], prompt=2)
    assert texts_of_tokens([read(["我", "爱"]), spaced], 0) == ("Once upon", "a time")
    assert texts_of_tokens([read(["词"] * 5000)], 0) == ("词" * 79 + "…", "")
    assert texts_of_tokens([read(["\u202e", "<b>"])], 0) == ("\u202e", "")  # `bounded` makes it printable
    assert texts_of_tokens([Trace.from_weights(np.eye(3))[0]], 0) is None
    assert texts_of_tokens([read(["<pad>", "</s>"])], 0) is None
    picture = read(["a", "tree"]).with_image(np.zeros((2, 2, 3)), (1, 1))
    assert texts_of_tokens([picture], 0) is None
    cross = Trace.from_weights(np.eye(2), ["我", "爱"], ["I", "love"], kind="cross")[0]
    assert texts_of_tokens([spaced, cross], 0) == ("I love", "我爱")
