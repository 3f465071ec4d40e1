"""What people mean by `layers`."""

from typing import Any

import pytest

from regard.capture.layer_choice import Chosen
from regard.errors import ArgumentError, UnknownNameError

NAMES = ["", "h", "h.0", "h.0.attn", "h.1", "h.1.attn", "h.10", "h.10.attn", "ln_f"]


def meant(layers: Any) -> list[str]:
    chosen = Chosen(layers, NAMES)
    return [name for name in NAMES if name.endswith("attn") and name in chosen]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (None, ["h.0.attn", "h.1.attn", "h.10.attn"]),
        ("h", ["h.0.attn", "h.1.attn", "h.10.attn"]),
        ("attn", ["h.0.attn", "h.1.attn", "h.10.attn"]),
        ("h.1.attn", ["h.1.attn"]),
        ("h.1.attn#3", ["h.1.attn"]),
        ("1.attn", ["h.1.attn"]),
        (["h.0", "h.10"], ["h.0.attn", "h.10.attn"]),
        ("h.1*", ["h.1.attn", "h.10.attn"]),
        ("*.attn", ["h.0.attn", "h.1.attn", "h.10.attn"]),
        (1, ["h.1.attn"]),
        ([0, 10], ["h.0.attn", "h.10.attn"]),
        (-1, ["h.10.attn"]),
        ([0, -10], ["h.0.attn", "h.1.attn"]),
        ([], []),
    ],
)
def test_what_is_meant(layers: Any, expected: list[str]) -> None:
    assert meant(layers) == expected


def test_nothing_and_everything() -> None:
    assert Chosen(None, NAMES)
    assert not Chosen([], NAMES)
    assert "" in Chosen(None, NAMES)


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("h.2.attn", "h.1.attn"),
        ("10.att", "h.10.attn"),
        ("model.h.10.attn", "h.10.attn"),
        ("h.10.self_attn", "h.10.attn"),
        ("ln", "ln_f"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(asked: Any, nearest: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        Chosen([asked], NAMES)
    assert error.value.key == "watch-layer-unknown"
    assert error.value.values == {"asked": asked, "nearest": nearest}


def test_a_whole_name_is_suggested_for_the_end_of_one() -> None:
    names = [f"transformer.h.{n}.{part}" for n in range(6) for part in ("ln_1", "attn", "attn.c_attn", "mlp")]
    for asked, nearest in (("h.7.attn", "transformer.h.5.attn"), ("h.3.atn", "transformer.h.3.attn")):
        with pytest.raises(UnknownNameError) as error:
            Chosen(asked, names)
        assert error.value.values["nearest"] == nearest


@pytest.mark.parametrize("asked", ["out", "bloks", "decoder.layers.0.self_attention"])
def test_a_name_that_is_like_none_suggests_none(asked: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"'{asked}', no name ends so, and none is like it; .* trace\.names"):
        Chosen(asked, NAMES)


@pytest.mark.parametrize("asked", [2, 100, -2, -12])
def test_a_number_too_far_tells_those_that_there_are(asked: int) -> None:
    with pytest.raises(
        UnknownNameError, match=f"there is no layer {asked}; .* numbered 0 to 10, or from -1 back"
    ) as error:
        Chosen([0, asked], NAMES)
    assert error.value.key == "watch-layer-number"
    with pytest.raises(UnknownNameError, match=f"there is no layer {asked}: .* no numbered layers; choose by name"):
        Chosen(asked, ["attn", "attn.out_proj"])


def test_the_last_layer_is_that_of_each_list() -> None:
    names = [f"{side}.layers.{layer}" for side, count in (("encoder", 6), ("decoder", 2)) for layer in range(count)]
    chosen = Chosen(-1, names)
    assert [name for name in names if name in chosen] == ["encoder.layers.5", "decoder.layers.1"]


@pytest.mark.parametrize("number", [0, 1])
def test_a_number_is_that_of_the_outermost_list(number: int) -> None:
    """T5 numbers the parts of its blocks, too: they once were meant as well."""
    names = [
        f"{side}.block.{block}{part}"
        for side in ("encoder", "decoder")
        for block in range(3)
        for part in ("", ".layer", ".layer.0", ".layer.0.SelfAttention", ".layer.1", ".layer.1.EncDecAttention")
    ]
    chosen = Chosen(number, names)
    assert [name for name in names if name in chosen] == [name for name in names if f".block.{number}" in name]


@pytest.mark.parametrize("layers", [3.5, [None], [True], object()])
def test_what_is_no_name(layers: Any) -> None:
    with pytest.raises(ArgumentError) as error:
        Chosen(layers, NAMES)
    assert error.value.key == "watch-layers"
