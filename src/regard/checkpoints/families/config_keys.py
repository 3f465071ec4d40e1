"""ConfigKeys: the values of a config.json in Hugging Face's layout, taken key by key; no key is ignored silently.

A family takes each key that its computation depends on, and refuses values that our Transformer does not compute. What
is left must be a key that changes no result (`WITHOUT_EFFECT`); all others are reported by `unused`.
"""

from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeVar

from regard.arrays import is_integer, is_number
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
