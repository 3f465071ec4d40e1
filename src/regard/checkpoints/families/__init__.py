"""The families of public models that our Transformer computes: one table each, by Hugging Face's `model_type`.

To add a family, write a `Family` in the file of those nearest to it, or in a file of its own, and list it here.
"""

from regard.checkpoints.families import bert, encoder_decoders, gpt, llama
from regard.checkpoints.families.config_keys import ConfigKeys
from regard.checkpoints.families.family import Family, TensorPlace

FAMILIES: dict[str, Family] = {
    "bart": encoder_decoders.BART,
    "bert": bert.BERT,
    "distilbert": bert.DISTILBERT,
    "gemma2": llama.GEMMA2,
    "gemma3_text": llama.GEMMA3,
    "gpt2": gpt.GPT2,
    "gpt_neox": gpt.GPT_NEOX,
    "llama": llama.LLAMA,
    "marian": encoder_decoders.MARIAN,
    "mistral": llama.MISTRAL,
    "opt": gpt.OPT,
    "phi3": llama.PHI3,
    "qwen2": llama.QWEN2,
    "qwen3": llama.QWEN3,
    "roberta": bert.ROBERTA,
    "t5": encoder_decoders.T5,
}

__all__ = ["FAMILIES", "ConfigKeys", "Family", "TensorPlace"]
