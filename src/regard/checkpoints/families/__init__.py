"""The families of public models that our Transformer computes: one table each, by Hugging Face's `model_type`.

To add a family, write a file with a `Family` and list it here.
"""

from regard.checkpoints.families import bart, bert, distilbert, gpt2, llama, opt, phi3, roberta, t5
from regard.checkpoints.families.config_keys import ConfigKeys
from regard.checkpoints.families.family import Family, Place

FAMILIES: dict[str, Family] = {
    "bart": bart.BART,
    "bert": bert.FAMILY,
    "distilbert": distilbert.FAMILY,
    "gpt2": gpt2.FAMILY,
    "llama": llama.LLAMA,
    "marian": bart.MARIAN,
    "mistral": llama.MISTRAL,
    "opt": opt.FAMILY,
    "phi3": phi3.FAMILY,
    "qwen2": llama.QWEN2,
    "qwen3": llama.QWEN3,
    "roberta": roberta.FAMILY,
    "t5": t5.FAMILY,
}

__all__ = ["FAMILIES", "ConfigKeys", "Family", "Place"]
