"""Round trip of configs through trees and JSON; an invalid tree raises a RegardError with the path."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import CONFIGS

from regard.config import (
    Alibi,
    AttentionStyle,
    Embeddings,
    Learned,
    LinearScaling,
    Llama3Scaling,
    Norm,
    NtkScaling,
    Output,
    Positions,
    Relative,
    Rotary,
    Scaling,
    Sinusoidal,
    TransformerConfig,
    YarnScaling,
    from_tree,
    to_tree,
)
from regard.config.transformer import SIZES
from regard.config.tree import JSON_TYPES, KINDS, LATER_FIELDS, Fault, TreeReader
from regard.errors import ArgumentError, RegardError

PRESETS = {f"{name} {size}": getattr(TransformerConfig, name)(size) for name, table in SIZES.items() for size in table}
LLAMA = TransformerConfig.llama()


def changed(path: str, value: Any) -> dict[str, Any]:
    """Llama's tree with another value at a path such as `norm.eps`."""
    tree: dict[str, Any] = json.loads(json.dumps(to_tree(LLAMA)))
    *parents, last = path.split(".")
    part = tree
    for name in parents:
        part = part[name]
    part[last] = value
    return tree


@pytest.mark.parametrize("config", [*PRESETS.values(), *CONFIGS.values()], ids=[*PRESETS, *CONFIGS])
def test_round_trip_of_every_config_through_json(config: TransformerConfig) -> None:
    tree = json.loads(json.dumps(to_tree(config), allow_nan=False))
    assert tree == to_tree(config)
    assert from_tree(tree) == config


@pytest.mark.parametrize(
    "positions",
    [
        None,
        Sinusoidal(base=3.5, pairing="halves"),
        Learned(),
        Alibi(),
        Relative(n_buckets=6, max_distance=9),
        Rotary(pairing="pairs", scaling=LinearScaling(factor=2.0)),
        Rotary(scaling=NtkScaling(factor=2.0)),
        Rotary(scaling=YarnScaling(factor=2.0, original_len=8, sharpness=1.5)),
        Rotary(scaling=Llama3Scaling(factor=2.0, original_len=8)),
        Rotary(fraction=0.25, local_base=7.0),
    ],
)
def test_round_trip_of_every_kind_of_positions(positions: Positions | None) -> None:
    config = TransformerConfig.llama(positions=positions)
    assert from_tree(to_tree(config)) == config


def test_every_kind_has_a_name() -> None:
    assert set(KINDS.values()) == set((Positions | Scaling).__args__)


def test_later_fields_are_written_only_where_they_are_not_the_default() -> None:
    """Files that were written before these fields existed are still read, and still written the same."""
    config = TransformerConfig.llama()
    tree = to_tree(config)
    styled = replace(
        config,
        norm=Norm(kind="rms", place="both", plus_one=True),
        embeddings=Embeddings(scaled=True, rounded_scale=True),
        output=Output(softcap=30.0),
        positions=Rotary(fraction=0.5, local_base=10.0),
    )
    for kind, names in LATER_FIELDS.items():
        part = next(field.name for field in fields(config) if isinstance(getattr(config, field.name), kind))
        assert not names & tree[part].keys()
        assert names <= to_tree(styled)[part].keys()
    assert from_tree(to_tree(styled)) == styled
    del tree["norm"]["eps"]
    with pytest.raises(ArgumentError, match="eps"):
        from_tree(tree)


def test_a_tuple_of_windows_is_a_list() -> None:
    for window, written in (((4, None), [4, None]), (4, 4), (None, None)):
        config = TransformerConfig.llama(attention=AttentionStyle(window=window))
        assert to_tree(config)["attention"]["window"] == written
        assert from_tree(to_tree(config)).attention.window == window


def test_numpy_numbers_are_written_as_python_numbers() -> None:
    tree = to_tree(TransformerConfig.gpt2(vocab_size=np.int64(7), dropout=np.float64(0.5)))
    assert (type(tree["vocab_size"]), type(tree["dropout"])) == (int, float)


def test_an_int_is_accepted_for_a_float_but_not_a_float_for_an_int() -> None:
    assert from_tree(changed("dropout", 0)).dropout == 0.0
    assert type(from_tree(changed("positions.base", 500_000)).positions.base) is float  # type: ignore[union-attr]
    with pytest.raises(ArgumentError, match=r"config\.d_ff must be one of: int; found 8192\.0"):
        from_tree(changed("d_ff", 8192.0))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("d_model", "2048", "config.d_model must be one of: int; found '2048'"),
        ("d_model", True, "config.d_model must be one of: int; found bool"),
        ("d_model", None, "config.d_model must be one of: int; found null"),
        ("max_len", "8", "config.max_len must be one of: int, null; found '8'"),
        ("norm", None, "config.norm must be one of: object; found null"),
        ("norm", [], "config.norm must be one of: object; found list"),
        ("output", 5, "config.output must be one of: object, null; found int"),
        ("positions", "rotary", "config.positions must be one of: object, null; found 'rotary'"),
        ("norm.eps", "1e-5", "config.norm.eps must be one of: float; found '1e-5'"),
        ("norm.eps", float("nan"), "config.norm.eps must be one of: float; found nan"),
        ("norm.eps", float("inf"), "config.norm.eps must be one of: float; found inf"),
        ("norm.eps", 10**400, "config.norm.eps must be one of: float; found int"),
        ("norm.eps", False, "config.norm.eps must be one of: float; found bool"),
        ("norm.final", 1, "config.norm.final must be one of: bool; found int"),
        ("norm.final", "yes", "config.norm.final must be one of: bool; found 'yes'"),
        ("norm.kind", "batch", "there is no config.norm.kind='batch'; choose one of: layer, rms"),
        ("norm.kind", 3, "config.norm.kind must be one of: str; found int"),
        ("activation", ["relu"], "config.activation must be one of: str; found list"),
        ("attention.window", [4, "8"], "config.attention.window[1] must be one of: int, null; found '8'"),
        ("attention.window", [[4]], "config.attention.window[0] must be one of: int, null; found list"),
        ("attention.window", "4", "config.attention.window must be one of: int, null, list; found '4'"),
        ("attention.window", [], "window must be a whole number of at least 1; found ()"),
        ("positions.is", "os.system", "there is no config.positions.is='os.system'; choose one of: sinusoidal"),
        ("positions.is", "yarn", "there is no config.positions.is='yarn'"),
        ("positions.is", {}, "config.positions.is must be one of: str; found object"),
        ("positions.is", "alibi", "config.positions has what no configuration has: 'base', 'pairing', 'scaling'"),
        ("positions.scaling.factor", -1.0, "factor must be a number greater than 0; found -1.0"),
        ("positions.scaling", {"is": "linear"}, "config.positions.scaling lacks: factor"),
        ("positions.scaling", {"factor": 2.0}, "config.positions.scaling.is must be one of: str; found null"),
        ("norm.trust", True, "config.norm has what no configuration has: 'trust'; known are: kind, place, eps, final"),
        ("norm.is", "Norm", "config.norm has what no configuration has: 'is'"),
        ("auto_map", {}, "config has what no configuration has: 'auto_map'"),
        ("n_heads", 12, "n_heads=12 must divide d_model=2048"),
        ("d_model", 0, "d_model must be a whole number of at least 1; found 0"),
        ("n_decoder_layers", 1025, "config.n_decoder_layers is larger than 1024"),
        ("d_model", 10**15, "config.d_model is larger than 131072"),
        ("vocab_size", 10**400, "config.vocab_size is larger than 4194304"),
        ("n_heads", -(10**400), "config.n_heads is larger than 131072"),
        ("attention.window", 10**400, "config.attention.window is larger than 2147483648"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_reported_with_its_path(path: str, value: Any, message: str) -> None:
    with pytest.raises(RegardError) as caught:
        from_tree(changed(path, value))
    assert message in caught.value.text("en")
    assert caught.value.text("zh") != caught.value.text("en")


@pytest.mark.parametrize("path", ["d_model", "norm.eps", "norm.final", "norm.kind", "attention.window", "positions"])
def test_an_integer_too_large_to_print_is_reported(path: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        from_tree(changed(path, 10**5000))
    assert f"config.{path} " in str(caught.value)


@pytest.mark.parametrize("tree", [None, [], "llama", 5, {}, {1: 2}, {"is": "rotary"}])
def test_a_non_tree_is_refused(tree: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^config "):
        from_tree(tree)


def paths(tree: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in tree.items():
        yield prefix + name
        if isinstance(value, dict):
            yield from paths(value, f"{prefix}{name}.")


PATHS = list(paths(to_tree(LLAMA)))


@pytest.mark.parametrize("path", PATHS)
def test_every_key_is_required(path: str) -> None:
    tree = changed(path, None)
    *parents, last = path.split(".")
    part = tree
    for name in parents:
        part = part[name]
    del part[last]
    with pytest.raises(ArgumentError, match=rf"^config.*{last}"):
        from_tree(tree)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["is", "eps", "x"]), inner, max_size=3),
    max_leaves=6,
)


@given(path=st.sampled_from(PATHS), value=JSON)
def test_any_value_anywhere_gives_a_config_or_a_regard_error(path: str, value: Any) -> None:
    try:
        config = from_tree(changed(path, value))
    except RegardError as error:
        error.text("zh")
    else:
        assert from_tree(to_tree(config)) == config


# --- any dataclass -----------------------------------------------------------------------------------------


class FaultError(RegardError):
    """Carries the fault itself."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


@dataclass(frozen=True)
class Part:
    name: str
    sizes: tuple[int, int] = (1, 1)
    colour: Literal["red", "blue"] | None = None
    counts: dict[str, int] = field(default_factory=dict)


READER = TreeReader(error=FaultError, type_names=JSON_TYPES, largest=100)


def test_missing_keys_take_the_default_or_the_value_of_the_base() -> None:
    assert READER.table({"name": "a"}, Part, "") == Part("a")
    base = Part("a", (2, 3), "red")
    assert READER.table({"colour": None}, Part, "", base) == Part("a", (2, 3))
    tree = {"name": "b", "sizes": [4, 5], "colour": "blue", "counts": {"x": 6}}
    assert READER.table(tree, Part, "") == Part("b", (4, 5), "blue", {"x": 6})


@pytest.mark.parametrize(
    ("tree", "fault"),
    [
        (5, Fault("type", "part", "int", ["object"])),
        ({"sizes": [1, 2]}, Fault("missing", "part", ["sizes"], ["name"])),
        ({"name": "a", "size": 1}, Fault("unknown", "part", ["size"], ["name", "sizes", "colour", "counts"])),
        ({"name": "a", "sizes": [1]}, Fault("count", "part.sizes", 1, 2)),
        ({"name": "a", "sizes": [1, 101]}, Fault("large", "part.sizes[1]", 101, 100)),
        ({"name": "a", "colour": "green"}, Fault("choice", "part.colour", "green", ("red", "blue"))),
        ({"name": "a", "counts": {"x": "1"}}, Fault("type", "part.counts.x", "'1'", ["int"])),
    ],
)
def test_every_fault_has_its_place_and_what_was_wanted(tree: Any, fault: Fault) -> None:
    with pytest.raises(FaultError) as caught:
        READER.table(tree, Part, "part")
    assert caught.value.fault == fault
