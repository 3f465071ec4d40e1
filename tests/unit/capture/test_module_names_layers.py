"""The modules that `layers` selects."""

from typing import Any

import pytest

from regard.capture.module_names import ChosenLayers
from regard.errors import ArgumentError, UnknownNameError

NAMES = ["", "h", "h.0", "h.0.attn", "h.1", "h.1.attn", "h.10", "h.10.attn", "ln_f"]


def selected(layers: Any) -> list[str]:
    chosen = ChosenLayers(layers, NAMES)
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
def test_selected_modules(layers: Any, expected: list[str]) -> None:
    assert selected(layers) == expected


def test_nothing_and_everything() -> None:
    assert ChosenLayers(None, NAMES)
    assert not ChosenLayers([], NAMES)
    assert "" in ChosenLayers(None, NAMES)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("h.2.attn", "h.1.attn"),
        ("10.att", "h.10.attn"),
        ("model.h.10.attn", "h.10.attn"),
        ("h.10.self_attn", "h.10.attn"),
        ("ln", "ln_f"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name: Any, nearest: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        ChosenLayers([name], NAMES)
    assert error.value.key == "watch-layer-unknown"
    assert error.value.values == {"asked": name, "nearest": nearest}


def test_the_full_name_is_suggested() -> None:
    names = [f"transformer.h.{n}.{part}" for n in range(6) for part in ("ln_1", "attn", "attn.c_attn", "mlp")]
    for name, nearest in (("h.7.attn", "transformer.h.5.attn"), ("h.3.atn", "transformer.h.3.attn")):
        with pytest.raises(UnknownNameError) as error:
            ChosenLayers(name, names)
        assert error.value.values["nearest"] == nearest


@pytest.mark.parametrize("name", ["out", "bloks", "decoder.layers.0.self_attention"])
def test_without_a_similar_name_none_is_suggested(name: str) -> None:
    with pytest.raises(
        UnknownNameError, match=rf"'{name}', no name ends with it, and none is similar; .* trace\.names"
    ):
        ChosenLayers(name, NAMES)


@pytest.mark.parametrize("number", [2, 100, -2, -12])
def test_an_invalid_number_lists_the_valid_ones(number: int) -> None:
    with pytest.raises(
        UnknownNameError, match=f"there is no layer {number}; .* numbered 0 to 10, or from -1 back"
    ) as error:
        ChosenLayers([0, number], NAMES)
    assert error.value.key == "watch-layer-number"
    with pytest.raises(UnknownNameError, match=f"there is no layer {number}: .* no numbered layers; choose by name"):
        ChosenLayers(number, ["attn", "attn.out_proj"])


def test_minus_one_is_the_last_layer_of_each_list() -> None:
    names = [f"{side}.layers.{layer}" for side, count in (("encoder", 6), ("decoder", 2)) for layer in range(count)]
    chosen = ChosenLayers(-1, names)
    assert [name for name in names if name in chosen] == ["encoder.layers.5", "decoder.layers.1"]


@pytest.mark.parametrize("number", [0, 1])
def test_numbers_count_in_the_outermost_list(number: int) -> None:
    """T5 also numbers the parts of its blocks: they were once selected as well."""
    names = [
        f"{side}.block.{block}{part}"
        for side in ("encoder", "decoder")
        for block in range(3)
        for part in ("", ".layer", ".layer.0", ".layer.0.SelfAttention", ".layer.1", ".layer.1.EncDecAttention")
    ]
    chosen = ChosenLayers(number, names)
    assert [name for name in names if name in chosen] == [name for name in names if f".block.{number}" in name]


@pytest.mark.parametrize("layers", [3.5, [None], [True], object()])
def test_layers_of_another_type_raise(layers: Any) -> None:
    with pytest.raises(ArgumentError) as error:
        ChosenLayers(layers, NAMES)
    assert error.value.key == "watch-layers"
