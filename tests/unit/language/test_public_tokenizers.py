"""Tokenizers of folders without tokenizer.json: the same ids around and in a text as transformers'; masks by name."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers as hf
from public_folders import SMALL, byte_tokenizer, saved

import regard
from regard.errors import FileError
from regard.language.loading import convert
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


# --- SentencePiece ------------------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def field(number: int, value: bytes | int | float) -> bytes:
    """A field of a message of protocol buffers."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


UNIGRAM, BPE = 1, 2
CONTROLS = {"<unk>": 2, "<s>": 3, "</s>": 3}


def pieces(path: Path, scores: dict[str, float], kind: int, *, trainer: bytes = b"", prefix: int = 1) -> Path:
    """A SentencePiece model: the control tokens, and pieces with their scores."""
    content = b""
    for piece, score in {**dict.fromkeys(CONTROLS, 0.0), **scores}.items():
        content += field(1, field(1, piece.encode()) + field(2, score) + field(3, CONTROLS.get(piece, 1)))
    content += field(2, field(3, kind) + trainer) + field(3, field(2, b"") + field(3, prefix))
    path.write_bytes(content)
    return path


WORDS = {"▁the": -1.0, "▁cat": -2.0, "▁": -4.0, **dict.fromkeys("acehst</>unk", -6.0), "he": -3.0}
NAME = {piece: number for number, piece in enumerate([*CONTROLS, *WORDS])}


def ids(*names: str) -> list[int]:
    return [NAME[name] for name in names]


def llama_without_json(path: Path, count: int = len(NAME)) -> Path:
    return saved(path, hf.LlamaForCausalLM(hf.LlamaConfig(**SMALL, vocab_size=count, bos_token_id=1, eos_token_id=2)))


def test_sentence_pieces_of_llama(tmp_path: Path) -> None:
    """The pair with the best score is merged first; recorded from sentencepiece 0.2.1."""
    folder = llama_without_json(tmp_path, len(NAME) + 2)
    scores = {"h": -9.0, **WORDS, "▁t": -2.5, "▁th": -2.0}
    pieces(folder / "tokenizer.model", scores, BPE)
    about = {"added_tokens_decoder": {str(len(scores) + 3): {"content": "<|end|>", "special": True}}}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    lm = regard.load(folder)
    names = [*CONTROLS, *scores]
    assert lm.tokenizer.raw_tokens(lm.tokenizer.encode("the cat</s>")) == [
        "▁the", "▁", "c", "a", "t", "<", "/", "s", ">",
    ]  # fmt: skip
    assert lm.special.around([]) == [names.index("<s>")]
    assert "<|end|>" in lm.tokenizer.control_tokens
    assert lm.tokenizer.decode(lm.tokenizer.encode("the  cat")) == "the  cat"


def test_sentence_pieces_of_t5(tmp_path: Path) -> None:
    """The most likely division, without repeated spaces; names of control tokens stay text."""
    config = hf.T5Config(vocab_size=len(NAME), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    folder = saved(tmp_path, hf.T5ForConditionalGeneration(config), decoder_start_token_id=0, eos_token_id=2)
    pieces(folder / "spiece.model", WORDS, UNIGRAM)
    lm = regard.load(folder)
    assert lm.tokenizer.encode("  the   cat ") == ids("▁the", "▁cat")
    assert lm.tokenizer.encode("the</s>") == ids("▁the", "<", "/", "s", ">")
    assert lm.tokenizer.encode("the <unk>Z") == ids("▁the", "▁", "<", "u", "n", "k", ">", "<unk>")
    assert lm.special.around([]) == ids("</s>")
    assert lm.see("the cat").trace[0].key_tokens == (("the", "cat", "</s>"),)


def marian_with_pieces(folder: Path) -> Path:
    """The target language has pieces of its own, which are never found in a text."""
    vocabulary = {"</s>": 0, "<unk>": 1, "▁cat": 2, "▁": 3, "猫": 4, "▁the": 5, ">>cmn_Hans<<": 6, "the": 7, "<pad>": 8}
    config = hf.MarianConfig(
        vocab_size=9,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        pad_token_id=8,
        decoder_start_token_id=8,
        eos_token_id=0,
    )
    saved(folder, hf.MarianMTModel(config), decoder_start_token_id=8, eos_token_id=0, pad_token_id=8)
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    pieces(folder / "source.spm", WORDS, UNIGRAM)
    pieces(folder / "target.spm", {"▁": -1.0, "猫": -1.0, "the": -1.0}, UNIGRAM)
    return folder


@pytest.mark.filterwarnings("ignore::regard.language.hub_files.UnusedKeysWarning")
def test_sentence_pieces_of_marian(tmp_path: Path) -> None:
    lm = regard.load(marian_with_pieces(tmp_path / "model"))
    assert lm.tokenizer.encode("the cat") == [5, 2]
    assert lm.tokenizer.encode(">>cmn_Hans<< cat") == [6, 2]
    assert lm.tokenizer.encode("猫") == [3, 1]  # not a character of the source language
    assert lm.tokenizer.decode([3, 4, 7, 0]) == "猫the"
    assert lm.tokenizer.pieces([4, 7]) == ["猫", "the"]
    assert lm.special.around([5]) == [5, 0]
    assert isinstance(lm.translate("the cat"), str)
    convert(tmp_path / "model", tmp_path / "again")
    assert regard.load(tmp_path / "again").tokenizer.encode("the cat") == [5, 2]


@pytest.mark.parametrize(
    "content",
    [b"", b"\x0a", b"\x0a\x05abc", b"\xff" * 20, b"\x0b\x01", field(1, b"\x0a\x01\xff"), field(2, field(3, 3))],
    ids=["empty", "no length", "cut", "endless number", "group", "not UTF-8", "words"],
)
def test_damaged_sentence_pieces_are_refused(content: bytes, tmp_path: Path) -> None:
    folder = llama_without_json(tmp_path)
    (folder / "tokenizer.model").write_bytes(content)
    with pytest.raises(FileError, match=r"tokenizer\.model"):
        regard.load(folder)
