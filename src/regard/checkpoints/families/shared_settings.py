"""Settings that several families share: activations, rotary positions and windows, in Hugging Face's names."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from regard.arrays import is_integer, is_number
from regard.checkpoints.families.config_keys import ConfigKeys
from regard.config import FactorScaling, LinearScaling, Llama3Scaling, Rotary, Scaling, TransformerConfig, YarnScaling
from regard.config.transformer import GATES, Activation, ActivationName
from regard.messages import Listed

ACTIVATIONS: dict[str, ActivationName] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
GATED: dict[str, Activation] = {
    name: next(gated for gated, inner in GATES.items() if inner == activation)  # type: ignore[misc]
    for name, activation in ACTIVATIONS.items()
    if activation in GATES.values()
}
"""The gated feed-forward with that activation."""


def _is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


_YARN: dict[str, Callable[[Any], bool]] = dict.fromkeys(("beta_fast", "beta_slow", "attention_factor"), _is_positive)
_ROPE_KEYS: dict[str, tuple[tuple[str, ...], dict[str, Callable[[Any], bool]]]] = {
    "default": ((), {}),
    "linear": (("factor",), {}),
    "llama3": (("factor", "high_freq_factor", "low_freq_factor"), {}),
    "yarn": (("factor",), {**_YARN, "truncate": lambda value: value is True}),
}
"""The keys that each kind of scaling needs, and those that it may have with the values we compute."""
ROPE_KINDS = tuple(_ROPE_KEYS)
_LONG_ROPE = ("longrope", "su", "yarn")
"""Names of LongRoPE in files of Phi-3."""
_TRAINED = "original_max_position_embeddings"
MOST_FACTORS = 2**16


def rotary(
    keys: ConfigKeys,
    *,
    base: tuple[str, float] = ("rope_theta", 10_000.0),
    fraction: tuple[str, float] | None = None,
    kinds: Collection[str] = ROPE_KINDS,
) -> Rotary:
    """Rotary positions from `rope_parameters`, or from single keys and `rope_scaling` in older files.

    base       the key of the base in older files, and the default
    fraction   likewise of the share of a head that is rotated; None if the family rotates whole heads only
    kinds      the kinds of scaling that the family has
    """
    old, new = keys.table("rope_scaling"), keys.table("rope_parameters")
    single = {"rope_theta": keys.take(*base), "partial_rotary_factor": keys.take(*fraction) if fraction else None}
    place = "rope_scaling" if old else "rope_parameters"
    return rotary_from(keys, place, old or new or {}, single, whole=fraction is None, kinds=kinds)


def rotary_from(
    keys: ConfigKeys,
    place: str,
    table: Mapping[str, Any],
    single: Mapping[str, Any],
    *,
    whole: bool = True,
    kinds: Collection[str] = ROPE_KINDS,
) -> Rotary:
    """Rotary positions from a table at `place`; `single` has the values that it may lack, `whole` refuses fractions."""
    given = {name: value for name, value in table.items() if value is not None}
    kind = given.pop("rope_type", None) or given.pop("type", "default")
    given.pop("type", None)
    if kind not in kinds:
        raise keys.invalid(f"{place}.rope_type", kind, Listed(kinds))
    values = {name: given.pop(name, single.get(name)) for name in ("rope_theta", "partial_rotary_factor")}
    theta, fraction = values["rope_theta"], values["partial_rotary_factor"]
    if not (is_number(theta) and theta > 0):
        raise keys.invalid(f"{place}.rope_theta", theta, "> 0")
    fraction = 1.0 if fraction is None else fraction
    if not (is_number(fraction) and 0 < fraction <= 1) or (whole and fraction != 1):
        raise keys.invalid(f"{place}.partial_rotary_factor", fraction, "1.0" if whole else "0 < … ≤ 1")
    keys.numbers |= {"rope_theta": theta, "partial_rotary_factor": fraction}
    if kind in _LONG_ROPE and "longrope" in kinds:
        scaling: Scaling | None = _long_rope(keys, place, given)
    else:
        scaling = _scaling(keys, place, str(kind), given)
    return Rotary(base=float(theta), scaling=scaling, fraction=float(fraction))


def _long_rope(keys: ConfigKeys, place: str, given: Mapping[str, Any]) -> FactorScaling:
    """LongRoPE's factors of texts up to the length of the first training."""
    strange = given.keys() - {"short_factor", "long_factor", "factor", "attention_factor"} - {_TRAINED}
    if strange:
        raise keys.invalid(f"{place}.{min(strange)}", given[min(strange)], "null")
    factors = given.get("short_factor")
    if not isinstance(factors, list) or len(factors) > MOST_FACTORS or not all(map(_is_positive, factors)):
        raise keys.invalid(f"{place}.short_factor", factors, "[> 0, …]")
    length = keys.count(_TRAINED, given.get(_TRAINED, 4096))
    longest = keys.count("max_position_embeddings")
    sharpness, factor = given.get("attention_factor"), given.get("factor", longest / length)
    for name, value in (("attention_factor", sharpness), ("factor", factor)):
        if value is not None and not _is_positive(value):
            raise keys.invalid(f"{place}.{name}", value, "> 0")
    if sharpness is None:
        sharpness = 1.0 if factor <= 1 or length == 1 else math.sqrt(1 + math.log(factor) / math.log(length))
    return FactorScaling(factors=tuple(map(float, factors)), sharpness=float(sharpness))


def _scaling(keys: ConfigKeys, place: str, kind: str, given: dict[str, Any]) -> Scaling | None:
    """The scaling of a kind; refuses keys and values that we do not compute."""
    trained = keys.take("original_max_position_embeddings", None)
    length = trained or given.pop("original_max_position_embeddings", None)
    given.pop("original_max_position_embeddings", None)
    needed, optional = _ROPE_KEYS[kind]
    for name in needed:
        if not (is_number(given.get(name)) and given[name] > 0):
            raise keys.invalid(f"{place}.{name}", given.get(name), "> 0")
    keys.numbers |= {name: value for name, value in given.items() if is_number(value)}
    for name, value in given.items():
        accepted = optional.get(name)
        if name not in needed and (accepted is None or not accepted(value)):
            wanted = "> 0" if accepted is _is_positive else f"null, with rope_type = {kind!r}"
            raise keys.invalid(f"{place}.{name}", value, wanted)
    if kind == "default":
        return None
    if kind == "linear":
        return LinearScaling(factor=given["factor"])
    length = keys.count("max_position_embeddings") if length is None else length
    if not is_integer(length) or length < 1:
        raise keys.invalid(f"{place}.original_max_position_embeddings", length, "1, 2, …")
    if kind == "llama3":
        fast, slow = given["high_freq_factor"], given["low_freq_factor"]
        return Llama3Scaling(factor=given["factor"], original_len=length, fast=fast, slow=slow)
    return YarnScaling(
        factor=given["factor"],
        original_len=length,
        fast=given.get("beta_fast") or 32.0,
        slow=given.get("beta_slow") or 1.0,
        sharpness=given.get("attention_factor"),
    )


def rope_table(rotary: Rotary) -> dict[str, Any]:
    """The `rope_parameters` of rotary positions; the inverse of `rotary`."""
    table: dict[str, Any] = {"rope_type": "default", "rope_theta": rotary.base}
    match rotary.scaling:
        case LinearScaling(factor=factor):
            table |= {"rope_type": "linear", "factor": factor}
        case Llama3Scaling(factor=factor, original_len=length, fast=fast, slow=slow):
            table |= {"rope_type": "llama3", "factor": factor, "original_max_position_embeddings": length}
            table |= {"high_freq_factor": fast, "low_freq_factor": slow}
        case YarnScaling(factor=factor, original_len=length, fast=fast, slow=slow, sharpness=sharpness):
            table |= {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": length}
            table |= {"beta_fast": fast, "beta_slow": slow, "attention_factor": sharpness}
        case FactorScaling(factors=factors, sharpness=sharpness):
            table |= {"rope_type": "longrope", "short_factor": list(factors), "long_factor": list(factors)}
            table |= {"attention_factor": sharpness}
    return table | ({} if rotary.fraction == 1 else {"partial_rotary_factor": rotary.fraction})


def their_activation(config: TransformerConfig) -> str | None:
    """The name of an activation, plain or gated; the inverse of the tables above."""
    found = (name for name, ours in (*ACTIVATIONS.items(), *GATED.items()) if ours == config.activation)
    return next(found, None)


def layer_kinds(config: TransformerConfig) -> dict[str, Any]:
    """`layer_types` and `sliding_window`; the inverse of `layer_windows`."""
    windows = [config.attention.window_of(i) for i in range(config.n_decoder_layers or 0)]
    kinds = ["full_attention" if window is None else "sliding_attention" for window in windows]
    return {"layer_types": kinds, "sliding_window": next((window for window in windows if window is not None), None)}


def layer_windows(keys: ConfigKeys, kinds: Any, window: int | None, layers: int) -> tuple[int | None, ...] | None:
    """The window of each layer, from its kind in `layer_types`."""
    known = ("full_attention", "sliding_attention")
    if not isinstance(kinds, list) or len(kinds) != layers or any(kind not in known for kind in kinds):
        raise keys.invalid("layer_types", kinds, f"{layers} × ({', '.join(known)})")
    windows = tuple(window if kind == "sliding_attention" else None for kind in kinds)
    return windows if any(windows) else None
