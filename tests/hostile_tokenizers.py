"""Contents of tokenizer.json for tests: like those of public models, and hostile ones."""

import base64
import contextlib
import json
import struct
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

import regard.text.tokenizer
from regard.errors import ArgumentError, FileError
from regard.text import tokenizer_checks

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
AFTER = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
NO_HAN = "&&[^\\p{Han}]]"

GOOD_PATTERNS = {
    "gpt-2": [GPT2],
    "llama 3": [rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{AFTER}"],
    "qwen 2": [rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{AFTER}"],
    "gpt-4o": [
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ],
    "tiktoken's cl100k": [
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s"
    ],
    "deepseek v3": [
        r"\p{N}{1,3}",
        "[一-龥぀-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    "deepseek coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+"],
    "kimi k2": [
        rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{UPPER[:-1]}{NO_HAN}*{LOWER[:-1]}{NO_HAN}+{CONTRACTIONS}?"
        rf"|[^\r\n\p{{L}}\p{{N}}]?{UPPER[:-1]}{NO_HAN}+{LOWER[:-1]}{NO_HAN}*{CONTRACTIONS}?|\p{{N}}{{1,3}}|{AFTER}"
    ],
    "bloom": [" ?[^(\\s|[.,!?…。，、।۔،])]+"],
    "falcon": ["[0-9][0-9][0-9]"],
    "clip": [r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"],
    "words and signs": [r"\w+|[^\w\s]+"],
}
# Each with a character on whose long runs it is slow.
QUADRATIC_PATTERNS = {
    r"\d{1,3}(?=(?:\d{3})*\b)": "1",
    "(?=(\\d{3})+(?!\\d))": "1",
    "[ab]*[cd]": "a",
    "a+[bc]|a": "a",
    r"\w+@\w+": "a",
    r"\s+$": " ",
}
SLOW_PATTERNS = [
    "(a+)+$",
    "(a|a)*b",
    "(a|aa)+$",
    "(x+x+)+y",
    r"([a-zA-Z]+)*\d",
    r"(\w+\s?)*$",
    "(.*)*X",
    "(?:zq|zqz|q)+!",
    r"\s*\s*\s*x",
    r"\s*\s*[xy]",
    r"(\w|_)+!",
    "((a?)?b)*c",
    "(?=(a+)+b)x",
    "(?<=x)(a*)*b",
    "([ab]*[bc]*)*d",
    "(a{1,30}){1,30}b",
    "(a?){50}a{50}",
    "((a?){8}){8}a{60}[xy]",
    "(?:(a|aa){8}){8}b",
    "(a|a)" * 60 + "x",
    r"(\p{L}+ ?)+\.",
    ".*.*.*=",
    "(?i:(A|a)+)!",
    "(?>(b+)+)c",
    r"(?:[^,]+,?)+;",
    r"(\d+\.?\d*)+e",
]
UNSUPPORTED_PATTERNS = [r"(a)\1", "(?~abc)", "(?(1)a)", r"\g<0>", "(a", "a)", "[a", "(?x: a)", "\\", "a{3,1}", "(" * 99]


def small(model: Any = None) -> Tokenizer:
    """Byte-level BPE without merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(["<pad>", "<bos>", "<eos>", "<unk>", *alphabet])}
    inner = Tokenizer(model or models.BPE(vocab, [], unk_token="<unk>"))
    inner.add_special_tokens([AddedToken(name, special=True) for name in ("<pad>", "<bos>", "<eos>", "<unk>")])
    return inner


def tree_of(inner: Tokenizer, **changes: Any) -> dict[str, Any]:
    return json.loads(inner.to_str()) | changes


def good() -> dict[str, Tokenizer]:
    """Tokenizers with the usual components of public models."""
    found = {}
    for name, patterns in GOOD_PATTERNS.items():
        inner = found[name] = small()
        splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns if "\ud7ff" not in pattern]
        inner.pre_tokenizer = pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(False, use_regex=False)])
        inner.decoder = decoders.ByteLevel()
        inner.post_processor = processors.ByteLevel(trim_offsets=False)
    words = {name: i for i, name in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghij", "##a", "##b", "猫"])}
    bert = found["bert"] = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    bert.normalizer, bert.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    bert.decoder = decoders.WordPiece()
    template = {"single": "[CLS] $A [SEP]", "pair": "[CLS] $A [SEP] $B:1 [SEP]:1"}
    bert.post_processor = processors.TemplateProcessing(**template, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    pieces = [("<unk>", 0.0), *((character, -1.0) for character in "▁abcdefg"), ("▁ab", -2.0)]
    unigram = found["t5"] = Tokenizer(models.Unigram(pieces, 0, False))
    unigram.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    )
    unigram.pre_tokenizer, unigram.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    llama = found["llama 2"] = Tokenizer(
        models.BPE({"<unk>": 0, "▁": 1, "a": 2, "<0x0A>": 3}, [], unk_token="<unk>", byte_fallback=True)
    )
    llama.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    llama.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return found


# --- hostile files ---------------------------------------------------------------------------------------


def replace(pattern: Any, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def split(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def normalizer_sequence(*parts: Any) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(parts)}


def decoder_sequence(*parts: Any) -> dict[str, Any]:
    return {"type": "Sequence", "decoders": list(parts)}


def template(single: list[Any], special: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": special or {}}


def table(index: bytes, replacements: bytes) -> dict[str, Any]:
    raw = struct.pack("<I", len(index)) + index + replacements
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(raw).decode()}


def nested(part: Any, depth: int) -> Any:
    for _ in range(depth):
        part = normalizer_sequence(part)
    return part


def hostile() -> dict[str, bytes]:
    """Contents of hostile files by name."""
    expand = replace({"String": "a"}, "a" * 60)
    text = {"Sequence": {"id": "A", "type_id": 0}}
    begin = {"SpecialToken": {"id": "<bos>", "type_id": 0}}
    many_ids = {"<bos>": {"id": "<bos>", "ids": [1] * 10**5, "tokens": ["<bos>"] * 10**5}}
    lower = {"type": "Lowercase"}
    bpe = tree_of(small())["model"]
    added = {"id": 0, "content": "x", "single_word": False, "lstrip": False, "rstrip": False}
    added |= {"normalized": False, "special": True}
    trees = {
        "replacing normalizers": {"normalizer": normalizer_sequence(*[expand] * 4)},
        "replacing decoders": {"decoder": decoder_sequence(*[expand] * 5)},
        "one huge replacement": {"decoder": replace({"String": "a"}, "b" * 10**6)},
        "a replacement of nothing": {"normalizer": normalizer_sequence(*[replace({"Regex": "x*"}, "y" * 30)] * 3)},
        "a replacement of an empty text": {"normalizer": normalizer_sequence(*[replace({"String": ""}, "yyyyyy")] * 9)},
        "prepended megabyte": {"normalizer": {"type": "Prepend", "prepend": "a" * 2**20}},
        "20,000 normalizers": {"normalizer": normalizer_sequence(*[lower] * 20_000)},
        "20,000 pre-tokenizers": {
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}] * 20_000}
        },
        "20,000 decoders": {"decoder": decoder_sequence(*[{"type": "Fuse"}] * 20_000)},
        "nested normalizers": {"normalizer": nested(lower, 60)},
        "normalizers nested and many": {"normalizer": nested(normalizer_sequence(*[lower] * 60), 20)},
        "a text a thousand times": {"post_processor": template([text] * 1000)},
        "a text twice": {"post_processor": template([text, text])},
        "100,000 ids": {"post_processor": template([begin] * 50 + [text], many_ids)},
        "a post-processor of many": {"post_processor": {"type": "Sequence", "processors": [template([text])] * 1000}},
        "long prefix": {"model": bpe | {"continuing_subword_prefix": "p" * 2**20}},
        "long suffix": {"model": bpe | {"end_of_word_suffix": "p" * 2**20}},
        "long name of the unknown": {"model": bpe | {"unk_token": "p" * 2**20}},
        "long token": {"model": bpe | {"vocab": bpe["vocab"] | {"p" * 2**20: 260}}},
        "long words": {
            "model": {
                "type": "WordPiece",
                "vocab": bpe["vocab"],
                "unk_token": "<unk>",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 10**9,
            }
        },
        "no vocabulary": {"model": {"type": "BPE", "merges": []}},
        "vocabulary of numbers": {"model": {"type": "Unigram", "unk_id": 0, "vocab": [[1, 2], [3, 4]]}},
        "unknown beyond the vocabulary": {"model": {"type": "Unigram", "unk_id": 7, "vocab": [["a", -1.0]]}},
        "prefix longer than the tokens": {
            "model": {
                "type": "BPE",
                "vocab": {"a": 0, "b": 1, "ab": 2},
                "merges": [["a", "b"]],
                "continuing_subword_prefix": "#" * 9,
            }
        },
        "140,000 added tokens": {"added_tokens": [added | {"id": i, "content": f"<{i}>"} for i in range(140_000)]},
        "an added megabyte": {"added_tokens": [added | {"content": "x" * 2**20}]},
        "an added token twice": {"added_tokens": [added, added | {"id": 1}]},
        "an added token of nothing": {"added_tokens": [added | {"content": ""}]},
        "a table that expands": {"normalizer": table(b"\0" * 1024, b"x" * 10**6)},
        "a table with a wrong index": {"normalizer": table(b"", b"") | {"precompiled_charsmap": "////fw=="}},
        "a malformed table": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "not base64 !"}},
        "a pattern of a megabyte": {"pre_tokenizer": split("a?" * 2**19)},
        "a name of a megabyte": {"normalizer": {"type": "Lowercase", "x" * 2**20: 1}},
        "an unknown normalizer": {"normalizer": {"type": "Exec", "command": "id"}},
        "a number for a normalizer": {"normalizer": 7},
    }
    for number, regex in enumerate(SLOW_PATTERNS + UNSUPPORTED_PATTERNS):
        trees[f"pattern {number}"] = {"pre_tokenizer": split(regex)}
    for number, regex in enumerate(SLOW_PATTERNS[:4]):
        trees[f"normalizer {number}"] = {"normalizer": replace({"Regex": regex}, "")}
        trees[f"decoder {number}"] = {"decoder": decoder_sequence({"type": "Fuse"}, replace({"Regex": regex}, ""))}
    base = tree_of(small())
    found = {name: json.dumps(base | changes).encode() for name, changes in trees.items()}
    start = json.dumps(base).encode()[:-1]
    return found | {
        "empty objects": start + b', "x": [' + b"{}," * 3 * 10**5 + b"{}]}",
        "empty lists": start + b', "x": [' + b"[]," * 3 * 10**6 + b"[]]}",
        "a million nulls": start + b', "x": [' + b"0," * 10**7 + b"0]}",
        "deep lists": start + b', "x": ' + b"[" * 10**5 + b"]" * 10**5 + b"}",
        "a key twice": start + b', "normalizer": {"type": "Lowercase"}}',
        "a long number": start + b', "x": ' + b"9" * 10**5 + b"}",
        "half a file": start[:2000],
        "UTF-16": json.dumps(base).encode("utf-16"),
        "a byte order mark": b"\xef\xbb\xbf" + json.dumps(base).encode(),
    }


def try_tokenizer(content: bytes) -> None:
    """Try and use a file; only ArgumentError and FileError may be raised."""
    found = tokenizer_checks.try_content(content)
    if "key" in found:
        assert str(FileError(found["key"], path="tokenizer.json", **found["values"]))
        return
    with contextlib.suppress(ArgumentError, FileError):
        tokenizer = regard.text.Tokenizer(regard.text.tokenizer._loaded(Path("tokenizer.json"), content))
        ids = tokenizer.encode("The cat's 12 猫\n")
        tokenizer.decode(ids)
        tokenizer.pieces(ids)
