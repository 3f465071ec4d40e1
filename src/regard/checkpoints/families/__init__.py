"""The families of public models that our Transformer computes: one table each, by Hugging Face's `model_type`.

To add a family, write a file with a `Family` and list it here.
"""

from regard.checkpoints.families import bart, bert, distilbert, gemma, gpt2, gpt_neox, llama, opt, phi3, roberta, t5
from regard.checkpoints.families.config_keys import ConfigKeys
from regard.checkpoints.families.family import Family, TensorPlace

FAMILIES: dict[str, Family] = {
    "bart": bart.BART,
    "bert": bert.FAMILY,
    "distilbert": distilbert.FAMILY,
    "gemma2": gemma.GEMMA2,
    "gemma3_text": gemma.GEMMA3,
    "gpt2": gpt2.FAMILY,
    "gpt_neox": gpt_neox.FAMILY,
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

__all__ = ["FAMILIES", "ConfigKeys", "Family", "TensorPlace"]
