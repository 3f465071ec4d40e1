"""ConfigKeys: a config.json in Hugging Face's layout, taken key by key; and settings that several families share.

A family takes each key that its computation depends on, and refuses values that our Transformer does not compute. What
is left must be a key that changes no result (`WITHOUT_EFFECT`); all others are reported by `unused`: no key is ignored
silently. Shared are activations, rotary positions and windows, in Hugging Face's names.
"""

import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeVar

from regard.arrays import is_integer, is_number
from regard.config import (
    FactorScaling,
    LinearScaling,
    Llama3Scaling,
    Output,
    Rotary,
    Scaling,
    TransformerConfig,
    YarnScaling,
)
from regard.config.transformer import GATES, Activation, ActivationName
from regard.errors import FileError
from regard.messages import Listed

Value = TypeVar("Value")
MOST_LAYERS, LARGEST_COUNT = 1024, 2**24

WITHOUT_EFFECT = frozenset(
    {
        # Of the file and the library.
        "_name_or_path",
        "_attn_implementation",
        "_attn_implementation_autoset",
        "_commit_hash",
        "architectures",
        "attn_implementation",
        "dtype",
        "model_type",
        "tokenizer_class",
        "torch_dtype",
        "torchscript",
        "transformers_version",
        "use_bfloat16",
        "_num_labels",
        "directionality",
        "extra_pos_embeddings",
        "full_attn_mod",
        "interpolate_factor",
        "is_llama_config",
        "output_past",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
        "tie_weights_",
        # Of training and initialisation.
        "attention_dropout",
        "attention_probs_dropout_prob",
        "activation_dropout",
        "attn_pdrop",
        "classifier_dropout",
        "classifier_dropout_prob",
        "decoder_layerdrop",
        "dropout",
        "dropout_rate",
        "embd_pdrop",
        "encoder_layerdrop",
        "hidden_dropout",
        "hidden_dropout_prob",
        "init_std",
        "initializer_factor",
        "initializer_range",
        "layerdrop",
        "resid_pdrop",
        "gradient_checkpointing",
        # Of other tasks and of generation.
        "bad_words_ids",
        "begin_suppress_tokens",
        "bos_token_id",
        "cls_token_id",
        "decoder_start_token_id",
        "diversity_penalty",
        "do_sample",
        "early_stopping",
        "encoder_no_repeat_ngram_size",
        "eos_token_id",
        "exponential_decay_length_penalty",
        "finetuning_task",
        "forced_bos_token_id",
        "forced_eos_token_id",
        "id2label",
        "label2id",
        "length_penalty",
        "mask_token_id",
        "max_length",
        "min_length",
        "no_repeat_ngram_size",
        "num_beam_groups",
        "num_beams",
        "num_labels",
        "num_return_sequences",
        "output_attentions",
        "output_hidden_states",
        "output_scores",
        "pad_token_id",
        "prefix",
        "problem_type",
        "remove_invalid_values",
        "repetition_penalty",
        "return_dict",
        "return_dict_in_generate",
        "sep_token_id",
        "suppress_tokens",
        "task_specific_params",
        "temperature",
        "tf_legacy_loss",
        "top_k",
        "top_p",
        "typical_p",
        "use_cache",
    }
)
"""Keys that no family's logits depend on."""

REFUSED: dict[str, Any] = {
    "quantization_config": None,
    "pruned_heads": {},
    "chunk_size_feed_forward": 0,
    "add_cross_attention": False,
    "is_decoder": False,
    "is_encoder_decoder": False,
}
"""Keys of every family that change the computation or the weights: only this value is accepted."""


OTHER_HEADS = ("score", "classifier", "qa_outputs", "multiple_choice_head", "v_head")
"""Modules of decoders for other tasks: to classify texts, tokens or spans, or to give a value."""


class ConfigKeys:
    """The keys of one config.json. Each is taken once, with the default that Hugging Face uses where it is absent."""

    def __init__(self, path: Path, given: Mapping[str, Any], tensors: frozenset[str] = frozenset()) -> None:
        self.path = path
        self.tensors = tensors
        """The names of the tensors in the files: some families have optional parts that no key mentions."""
        self._given = dict(given)
        self._taken: set[str] = {"model_type"}
        self.numbers: dict[str, float] = {}
        """The numbers that were taken so far, for messages."""

    def has(self, name: str) -> bool:
        """Whether the file has this key, with a value other than null."""
        return self._given.get(name) is not None

    def is_listed(self, name: str) -> bool:
        """Whether the file has this key, also if its value is null."""
        return name in self._given

    def take(self, name: str, default: Any, *aliases: str) -> Any:
        """The value of a key as it is; null counts as absent. `aliases` are other names that files use."""
        names = (name, *aliases)
        self._taken.update(names)
        found = {key: self._given[key] for key in names if self.has(key)}
        if any(value != next(iter(found.values())) for value in found.values()):
            raise self.different(found)
        return next(iter(found.values()), default)

    def count(self, name: str, default: int | None = None, *aliases: str, least: int = 1) -> int:
        """A whole number; without a default the key must be there. A family may loop over it: huge ones are refused."""
        value = self.take(name, default, *aliases)
        most = MOST_LAYERS if "layer" in name else LARGEST_COUNT
        if not is_integer(value) or not least <= value <= most:
            raise self.invalid(name, value, f"{least}, {least + 1}, … {most:,}")
        self.numbers[name] = int(value)
        return int(value)

    def number(self, name: str, default: float | None = None, *aliases: str) -> float:
        """A number greater than 0."""
        value = self.take(name, default, *aliases)
        if not (is_number(value) and value > 0):
            raise self.invalid(name, value, "> 0")
        return float(value)

    def flag(self, name: str, default: bool, *aliases: str) -> bool:
        """True or false."""
        value = self.take(name, default, *aliases)
        if not isinstance(value, bool):
            raise self.invalid(name, value, "true, false")
        return value

    def choice(self, name: str, choices: Mapping[str, Value], default: str, *aliases: str) -> Value:
        """The entry of a table that the value names."""
        value = self.take(name, default, *aliases)
        if not isinstance(value, str) or value not in choices:
            raise self.invalid(name, value, Listed(choices))
        return choices[value]

    def table(self, name: str) -> Mapping[str, Any] | None:
        """A JSON object, or None."""
        value = self.take(name, None)
        if value is not None and not isinstance(value, dict):
            raise self.invalid(name, value, "{…}")
        return value

    def only(self, name: str, *accepted: Any) -> None:
        """Refuse every value but these, the first of which is the default."""
        value = self.take(name, accepted[0])
        # In Python 1 == True, and in JSON they are not the same.
        if not any(value == one and type(value) is type(one) for one in accepted):
            shown = shortened(value)
            raise FileError(
                "config-key-refused", path=str(self.path), name=name, value=shown, accepted=Listed(accepted)
            )

    def same(self, name: str, other: str, default: int) -> int:
        """A whole number that two keys must share: our model has one setting for both."""
        value = self.count(other, default)
        if self.count(name, value) != value:
            raise self.different({other: value, name: self.count(name, value)})
        return value

    def output(self, tied: bool, **style: Any) -> Output | None:
        """The output layer of a decoder; None for one that is stored without it: as LlamaModel, or for another task."""
        if any(tensor.startswith(("lm_head.", "embed_out.")) for tensor in self.tensors) or not self.tensors:
            return Output(tied=tied, **style)
        names = self._given.get("architectures")
        writes = isinstance(names, list) and str(names[0] if names else "").endswith(("ForCausalLM", "LMHeadModel"))
        has_head = any(tensor.startswith(tuple(f"{head}." for head in OTHER_HEADS)) for tensor in self.tensors)
        return Output(tied=tied, **style) if (writes or tied) and not has_head else None

    def unused(self) -> tuple[str, ...]:
        """The keys that neither the family nor the lists above know: they change nothing. Call it last."""
        for name, accepted in REFUSED.items():
            if name not in self._taken:
                self.only(name, accepted)
        return tuple(sorted(self._given.keys() - self._taken - WITHOUT_EFFECT))

    def different(self, found: Mapping[str, Any]) -> FileError:
        """The error for keys that must have the same value, or values that agree."""
        values = Listed(f"{key} = {shortened(value)}" for key, value in found.items())
        return FileError("config-keys-differ", path=str(self.path), found=values)

    def invalid(self, name: str, value: Any, wanted: Any) -> FileError:
        """The error for a value that a key does not accept."""
        shown = shortened(value)
        return FileError("config-key-value", path=str(self.path), name=name, value=shown, wanted=wanted)


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
    # Up to `max_position_embeddings`, the longest text that we read, it is the default.
    "dynamic": (("factor",), {}),
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
    if kind in ("default", "dynamic"):
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
