"""Tokenizers of folders without tokenizer.json: the same ids around and in a text as transformers'; masks by name."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers as hf
from public_folders import SMALL, byte_tokenizer, saved

import regard
from regard.text import Tokenizer

INNER = json.loads(byte_tokenizer().to_str())["model"]
W = byte_tokenizer().get_vocab_size()
TEXTS = ["The cat sat.", " two  spaces", "床前明月光 🙂 it's", "a\n\tb", "</s> and <s>", ""]


def pairs(folder: Path, about: dict[str, Any] | None = None) -> Path:
    """vocab.json, merges.txt and tokenizer_config.json."""
    vocabulary = INNER["vocab"] | {"<mask>": W}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in INNER["merges"])]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if about is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    return folder


def roberta(path: Path) -> Path:
    config = hf.RobertaConfig(
        **SMALL, vocab_size=W + 1, bos_token_id=0, eos_token_id=1, pad_token_id=1, max_position_embeddings=66
    )
    return saved(path, hf.RobertaForMaskedLM(config))


def opt(path: Path) -> Path:
    config = hf.OPTConfig(
        vocab_size=W + 1,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        ffn_dim=16,
        word_embed_proj_dim=16,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
    )
    return saved(path, hf.OPTForCausalLM(config))


NAMES = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "unk_token": "<s>"}
NAMES |= {"pad_token": "</s>", "mask_token": "<mask>"}
FOLDERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "roberta": (roberta, {"tokenizer_class": "RobertaTokenizer", **NAMES}),
    "roberta, a space before": (roberta, {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True, **NAMES}),
    "opt": (
        opt,
        {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "</s>", "eos_token": "</s>"}
        | {"unk_token": "</s>", "pad_token": "<s>"},
    ),
    "opt without": (
        opt,
        {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": False, "bos_token": "</s>", "eos_token": "</s>"}
        | {"unk_token": "</s>", "pad_token": "<s>"},
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_pairs_have_the_control_tokens_of_transformers(name: str, tmp_path: Path) -> None:
    make, about = FOLDERS[name]
    folder = pairs(make(tmp_path), about)
    lm = regard.load(folder)
    theirs = hf.AutoTokenizer.from_pretrained(folder, split_special_tokens=True)
    for text in TEXTS[:-2]:
        assert lm.special.around(lm.tokenizer.encode(text)) == theirs(text)["input_ids"], text
    text = "</s> and <s>"  # in a text they are characters
    assert not {0, 1, W} & set(lm.tokenizer.encode(text))
    assert lm.tokenizer.decode(lm.tokenizer.encode(text)).strip() == text


@pytest.mark.parametrize(("make", "before", "after"), [(roberta, (0,), (1,)), (opt, (1,), ())])
def test_pairs_without_tokenizer_config(make: Any, before: Any, after: Any, tmp_path: Path) -> None:
    lm = regard.load(pairs(make(tmp_path)))
    assert (lm.special.before, lm.special.after) == (before, after)


def test_a_mask_in_a_text_is_the_mask_of_a_model_that_predicts_it(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", ".", "[", "]", "mask"]
    for kind in (hf.BertForMaskedLM, hf.BertModel):
        folder = saved(tmp_path / kind.__name__, kind(hf.BertConfig(**SMALL, vocab_size=len(words))))
        (folder / "vocab.txt").write_text("\n".join(words) + "\n")
        lm = regard.load(folder)
        text = "The [MASK] sat. [MASK][SEP]"
        ids = lm.tokenizer.encode(text)
        plain = [5, 9, 11, 10, 7, 8, 9, 11, 10, 9, 1, 10]
        masked = [5, 4, 7, 8, 4, 9, 1, 10]  # only the mask: [SEP] stays text
        assert ids == (masked if kind is hf.BertForMaskedLM else plain)
        theirs = hf.AutoTokenizer.from_pretrained(folder)
        assert masked[:5] == theirs("The [MASK] sat. [MASK]", add_special_tokens=False)["input_ids"]
        assert isinstance(lm.tokenizer, Tokenizer)
        lm.tokenizer.mask = None
        assert lm.tokenizer.encode(text) == plain


def test_roberta_takes_the_space_before_its_mask(tmp_path: Path) -> None:
    folder = pairs(roberta(tmp_path), FOLDERS["roberta"][1])
    lm = regard.load(folder)
    theirs = hf.AutoTokenizer.from_pretrained(folder)
    for text in ("The <mask> sat.", "<mask>", "a<mask> b", "a  <mask><mask>"):
        assert lm.special.around(lm.tokenizer.encode(text)) == theirs(text)["input_ids"], text
    seen = lm.see("The <mask> sat.")
    assert np.asarray(seen.trace[0].weights()).shape[2] == len(theirs("The <mask> sat.")["input_ids"])
