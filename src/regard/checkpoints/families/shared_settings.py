"""Settings that several families share: activations and rotary positions, in Hugging Face's names."""

from collections.abc import Mapping
from typing import Any

from regard.checkpoints.families.config_keys import ConfigKeys
from regard.config import LinearScaling, Llama3Scaling, Rotary, Scaling, YarnScaling
from regard.config.transformer import GATES, Activation, ActivationName
from regard.number_checks import is_number

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

_ROPE_KEYS = {
    "linear": ("factor",),
    "llama3": ("factor", "original_max_position_embeddings", "high_freq_factor", "low_freq_factor"),
    "yarn": ("factor", "original_max_position_embeddings"),
}
_OPTIONAL_ROPE_KEYS = {"yarn": ("beta_fast", "beta_slow", "attention_factor", "truncate", "mscale", "mscale_all_dim")}


def rotary(keys: ConfigKeys, base: float = 10_000.0, **options: Any) -> Rotary:
    """Rotary positions from `rope_parameters`, or from `rope_theta` and `rope_scaling` in older files."""
    old = keys.table("rope_scaling")
    given = dict(keys.table("rope_parameters") or old or {})
    kind = given.pop("rope_type", None) or given.pop("type", None) or "default"
    given.pop("type", None)
    theta = given.pop("rope_theta", None) or keys.take("rope_theta", base)
    keys.take("rope_theta", None)
    if not (is_number(theta) and theta > 0):
        raise keys.invalid("rope_theta", theta, "> 0")
    return Rotary(base=float(theta), scaling=_scaling(keys, str(kind), given), **options)


def _scaling(keys: ConfigKeys, kind: str, given: Mapping[str, Any]) -> Scaling | None:
    """The scaling of a kind; refuses kinds and keys that we do not compute."""
    if kind not in ("default", *_ROPE_KEYS):
        raise keys.invalid("rope_parameters.rope_type", kind, ", ".join(("default", *_ROPE_KEYS)))
    for name in _ROPE_KEYS.get(kind, ()):
        if not (is_number(given.get(name)) and given[name] > 0):
            if name == "original_max_position_embeddings" and keys.has(name):
                continue
            raise keys.invalid(f"rope_parameters.{name}", given.get(name), "> 0")
    known = {*_ROPE_KEYS.get(kind, ()), *_OPTIONAL_ROPE_KEYS.get(kind, ())}
    # A default of Hugging Face writes this key beside every kind.
    strange = sorted(name for name in given if name not in known and given[name] is not None)
    strange = [name for name in strange if not (name == "partial_rotary_factor" and given[name] == 1.0)]
    if strange:
        raise keys.invalid(f"rope_parameters.{strange[0]}", given[strange[0]], "null")
    if kind == "linear":
        return LinearScaling(factor=given["factor"])
    if kind == "default":
        return None
    length = given.get("original_max_position_embeddings") or keys.take("original_max_position_embeddings", None)
    if kind == "llama3":
        return Llama3Scaling(
            factor=given["factor"], original_len=length, fast=given["high_freq_factor"], slow=given["low_freq_factor"]
        )
    for name, accepted in (("truncate", (None, True)), ("mscale", (None,)), ("mscale_all_dim", (None,))):
        if given.get(name) not in accepted:
            raise keys.invalid(f"rope_parameters.{name}", given[name], accepted[-1])
    return YarnScaling(
        factor=given["factor"],
        original_len=length,
        fast=given.get("beta_fast") or 32.0,
        slow=given.get("beta_slow") or 1.0,
        sharpness=given.get("attention_factor"),
    )
