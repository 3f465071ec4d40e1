"""Small models with random weights in folders as Hugging Face's hub has them, with a tokenizer and settings."""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, pre_tokenizers, processors, trainers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

TEXTS = ["The cat sat on the mat.", "床前明月光，疑是地上霜。", "He said: “it's 5 o'clock” 🙂"]
SMALL: dict[str, Any] = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32}


def byte_tokenizer(*, template: tuple[str, str] | None = None) -> RustTokenizer:
    """A byte-level tokenizer with <s> and </s>; `template` puts them around a text."""
    inner = RustTokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    inner.train_from_iterator(TEXTS, trainer)
    if template is not None:
        single = " ".join(part for part in (template[0], "$A", template[1]) if part)
        special = [(name, inner.token_to_id(name)) for name in template if name]
        inner.post_processor = processors.TemplateProcessing(single=single, special_tokens=special)
    return inner


def saved(path: Path, model: Any, tokenizer: RustTokenizer | None = None, **generation: Any) -> Path:
    """The folder of a model, as `save_pretrained` writes it, with a tokenizer and settings."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.3, generator=torch.Generator().manual_seed(weight.numel()))
    model.save_pretrained(path)
    if tokenizer is not None:
        tokenizer.save(str(path / "tokenizer.json"))
    if generation:
        (path / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    return path


def llama(path: Path, **generation: Any) -> Path:
    inner = byte_tokenizer(template=("<s>", ""))
    config = LlamaConfig(**SMALL, vocab_size=inner.get_vocab_size() + 7, bos_token_id=0, eos_token_id=1)
    return saved(path, LlamaForCausalLM(config), inner, **generation)


def gpt2(path: Path, **generation: Any) -> Path:
    inner = byte_tokenizer()
    config = GPT2Config(
        vocab_size=inner.get_vocab_size(), n_embd=16, n_layer=2, n_head=2, eos_token_id=1, bos_token_id=1
    )
    return saved(path, GPT2LMHeadModel(config), inner, **generation)
