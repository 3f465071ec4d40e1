"""Tokenizers from the metadata of GGUF files: the same ids as the tokenizer whose vocabulary they hold."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from regard.errors import FileError
from regard.text.tokenizer_formats import gguf_tokenizer

CORPUS = [
    "The quick brown fox doesn't jump over 12345 lazy dogs; it's what they'll do.",
    "小明喜欢猫。他说：“你好，世界！”今天是2024年5月1日。",
    "import os\n\n\tdef f(x):\n        return x + 1  # done\n",
    "Ünïcödé café naïve — русский текст 🙂👩‍👧 🎉",
] * 4
TEXTS = [
    *CORPUS[:4],
    "",
    " ",
    "   leading and   inner  spaces ",
    "control \x00 \x07 \x1b[0m end\r\n\r\n",
    "新的字：龘靐齉 and 🧬",
    "I'LL WE'RE 3.14159 100000",
    "<s> is text, and so is <|im_start|>",
]
PATH = Path("model.gguf")
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CONTROL = ["<unk>", "<s>", "</s>", "<|im_start|>"]


def ids_of(inner: Tokenizer, text: str) -> list[int]:
    inner.encode_special_tokens = True
    ids: list[int] = inner.encode(text, add_special_tokens=False).ids
    return ids


def metadata(inner: Tokenizer, model: str, **more: Any) -> dict[str, Any]:
    vocabulary = sorted(inner.get_vocab().items(), key=lambda item: item[1])
    tokens = [token for token, _ in vocabulary]
    found = {"model": model, "tokens": tokens, "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    found["token_type"] = np.array([3 if token in CONTROL else 1 for token in tokens], np.int32)
    return {f"tokenizer.ggml.{name}": value for name, value in (found | more).items()}


def merges(inner: Tokenizer) -> list[str]:
    return [" ".join(pair) for pair in json.loads(inner.to_str())["model"]["merges"]]


SPLITS: dict[str, Any] = {
    "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": lambda: pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
    "llama-bpe": lambda: split(LLAMA3),
    "qwen2": lambda: split(LLAMA3.replace("{1,3}", "")),
}


def split(pattern: str) -> Any:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


@pytest.mark.parametrize("name", SPLITS)
def test_byte_pairs(name: str) -> None:
    inner = Tokenizer(models.BPE(ignore_merges=name == "llama-bpe"))
    inner.pre_tokenizer, inner.decoder = SPLITS[name](), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=CONTROL, initial_alphabet=alphabet)
    inner.train_from_iterator(CORPUS, trainer)
    found = gguf_tokenizer(PATH, metadata(inner, "gpt2", pre=name, merges=merges(inner)))
    assert found is not None
    for text in TEXTS:
        assert found.encode(text) == ids_of(inner, text), text
        assert found.decode(found.encode(text)) == text
    assert (found.bos, found.eos, found.unknown, found.surrounding_ids()) == (1, 2, 0, ((), ()))


@pytest.mark.parametrize("prefix", [True, False])
def test_sentence_pieces(prefix: bool) -> None:
    """Ranks of merges become scores, as SentencePiece stores them."""
    inner = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    mark = normalizers.Replace(" ", "▁")
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), mark] if prefix else [mark])
    special = [*CONTROL, *(f"<0x{byte:02X}>" for byte in range(256))]
    inner.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=700, special_tokens=special))
    # Bytes are ordinary tokens there, not special ones.
    tree = json.loads(inner.to_str())
    tree["added_tokens"] = [one for one in tree["added_tokens"] if one["content"] in CONTROL]
    inner = Tokenizer.from_str(json.dumps(tree))
    ranks = {"".join(pair.split(" ")): rank for rank, pair in reversed(list(enumerate(merges(inner))))}
    about = metadata(inner, "llama", add_space_prefix=prefix)
    scores = [-float(ranks.get(token, len(ranks))) for token in about["tokenizer.ggml.tokens"]]
    about["tokenizer.ggml.scores"] = np.array(scores, np.float32)
    found = gguf_tokenizer(PATH, about)
    assert found is not None
    for text in TEXTS:
        assert found.encode(text) == ids_of(inner, text), text
        assert found.decode(found.encode(text)) == text
    assert found.surrounding_ids() == ((1,), ())


def test_word_pieces() -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "sat", "##ting", ".", "小", "明", "x", "##y"]
    inner = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    inner.normalizer, inner.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokens = [
        word if word.startswith("[") else word.removeprefix("##") if word.startswith("##") else f"▁{word}"
        for word in words
    ]
    types = np.array([3 if word.startswith("[") else 1 for word in words], np.int32)
    about = metadata(inner, "bert", tokens=tokens, token_type=types, cls_token_id=2, seperator_token_id=3)
    found = gguf_tokenizer(PATH, about | {"tokenizer.ggml.unknown_token_id": 1})
    assert found is not None
    for text in ("The cats sat.", "小明 sitting xy xyz", ""):
        assert found.encode(text) == ids_of(inner, text), text
    assert found.surrounding_ids() == ((2,), (3,))


def test_unigrams() -> None:
    inner = Tokenizer(models.Unigram())
    inner.pre_tokenizer = inner.decoder = None
    marks: dict[str, Any] = {"replacement": "▁", "prepend_scheme": "always", "split": True}
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.Metaspace(**marks), decoders.Metaspace(**marks)
    inner.train_from_iterator(
        CORPUS, trainers.UnigramTrainer(vocab_size=200, special_tokens=CONTROL, unk_token="<unk>")
    )
    scores = dict(json.loads(inner.to_str())["model"]["vocab"])
    about = metadata(inner, "t5", eos_token_id=2, add_bos_token=False)
    found = gguf_tokenizer(
        PATH,
        about | {"tokenizer.ggml.scores": np.array([scores[token] for token in about["tokenizer.ggml.tokens"]])},
    )
    assert found is not None
    for text in TEXTS:
        assert found.encode(text) == ids_of(inner, text), text
    assert found.surrounding_ids() == ((), (2,))


def test_tokens_that_the_user_defined_are_not_left_out() -> None:
    inner = Tokenizer(models.BPE({"a": 0, "b": 1, "<think>": 2}, []))
    about = metadata(inner, "gpt2", merges=[], pre="qwen2", token_type=np.array([1, 1, 4], np.int32))
    found = gguf_tokenizer(PATH, {name: one for name, one in about.items() if not name.endswith("_id")})
    assert found is not None
    assert found.decode([0, 2, 1]) == "a<think>b"


BROKEN: dict[str, dict[str, Any]] = {
    "an unknown way to split": {"pre": "of tomorrow"},
    "an unknown model": {"model": "rwkv"},
    "no merges": {"merges": ...},
    "a merge of other tokens": {"merges": ["q q"]},
    "fewer types than tokens": {"token_type": np.array([1], np.int32)},
    "tokens that are numbers": {"tokens": np.arange(3)},
    "no tokens": {"tokens": []},
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_metadata_is_refused(name: str) -> None:
    given = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a", "b", "ab"], "merges": ["a b"]} | BROKEN[name]
    about = {f"tokenizer.ggml.{key}": value for key, value in given.items() if value is not ...}
    with pytest.raises(FileError, match=r"model\.gguf"):
        gguf_tokenizer(PATH, about)


def test_a_file_without_a_tokenizer() -> None:
    assert gguf_tokenizer(PATH, {}) is None
