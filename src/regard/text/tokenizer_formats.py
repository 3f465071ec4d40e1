"""Tokenizers of files other than tokenizer.json: a GGUF file, BERT's vocab.txt, GPT-2's vocab.json with merges.txt."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regard.errors import FileError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.output import reason_of
from regard.files.safe_open import read_file
from regard.messages import Listed
from regard.text.segmentation import MARK
from regard.text.tokenizer import LARGEST_FILE, Tokenizer
from regard.text.tokenizer_checks import MOST_UNIGRAM_CHARACTERS

Json = dict[str, Any]
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
"""Types of tokens."""

_DIGITS: Json = {"type": "Digits", "individual_digits": True}
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _byte_level(own_split: bool) -> Json:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": own_split}


def _split(pattern: str) -> list[Json]:
    rule = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return [rule, _byte_level(False)]


_GPT2 = [_byte_level(True)]
_LLAMA3, _QWEN2 = (_split(f"{_CONTRACTIONS}{digits}{_REST}") for digits in (r"\p{N}{1,3}", r"\p{N}"))
_SMOLLM = [_DIGITS, _byte_level(True)]
SPLITS: dict[str, list[Json]] = {
    **dict.fromkeys(("default", "gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion"), _GPT2),
    **dict.fromkeys(("roberta-bpe", "jina-v1-en", "jina-v2-code", "jina-v2-es", "jina-v2-de"), _GPT2),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "dbrx", "smaug-bpe"), _LLAMA3),
    **dict.fromkeys(("qwen2", "stablelm2", "megrez", "deepseek-r1-qwen"), _QWEN2),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell"), _SMOLLM),
}
"""How each name in `tokenizer.ggml.pre` splits a text."""


def gguf_tokenizer(path: Path, metadata: Mapping[str, Any]) -> Tokenizer | None:
    """The tokenizer of a file, tried in a separate process as any other one; None where the file has none."""
    if "tokenizer.ggml.model" not in metadata:
        return None
    try:
        tree = _tree(path, metadata)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise FileError("tokenizer-garbled", path=str(path), reason=f"tokenizer.ggml.*: {error}"[:200]) from error
    names = {"bos": "bos", "eos": "eos", "pad": "padding", "unknown": "unknown"}
    count = len(metadata["tokenizer.ggml.tokens"])
    ids = {ours: metadata.get(f"tokenizer.ggml.{theirs}_token_id") for ours, theirs in names.items()}
    named = {ours: number for ours, number in ids.items() if type(number) is int and number < count}
    return Tokenizer.from_content(path, json.dumps(tree, ensure_ascii=False).encode(), named=named, gaps=True)


def _tree(path: Path, metadata: Mapping[str, Any]) -> Json:
    """The content of a tokenizer.json."""
    kind = metadata["tokenizer.ggml.model"]
    builders: dict[str, Callable[[Path, Mapping[str, Any], list[str]], Json]] = {
        "gpt2": _byte_pairs,
        "llama": _sentence_pieces,
        "bert": _word_pieces,
        "t5": _unigrams,
    }
    tokens = metadata["tokenizer.ggml.tokens"]
    if kind not in builders:
        raise FileError("gguf-tokenizer", path=str(path), found=str(kind)[:80], names=Listed(builders))
    if not isinstance(tokens, list) or not tokens:
        raise ValueError("tokens")
    types = metadata.get("tokenizer.ggml.token_type")
    kinds = [NORMAL] * len(tokens) if types is None else types.tolist()
    if len(kinds) != len(tokens):
        raise ValueError(f"{len(tokens)} tokens, {len(kinds)} types")
    tree: Json = {"version": "1.0", "normalizer": None, "truncation": None, "padding": None}
    tree |= builders[kind](path, metadata, tokens)
    tree["added_tokens"] = [
        _added(number, token, special=kinds[number] != USER_DEFINED)
        for number, token in _unique(tokens, kinds)
        if token
    ]
    return tree | {"post_processor": _template(kind, metadata, tokens, tree.get("post_processor"))}


def _unique(tokens: list[str], kinds: list[int]) -> Iterable[tuple[int, str]]:
    """The control tokens and those that the user defined, each text once."""
    known: set[str] = set()
    for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True)):
        if kind in (UNKNOWN, CONTROL, USER_DEFINED) and token not in known:
            known.add(token)
            yield number, token


def _added(number: int, token: str, *, special: bool) -> Json:
    about = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": token, **about, "special": special}


def _vocabulary(tokens: list[str]) -> dict[str, int]:
    """The id of each token; of equal ones, which files have as padding, the first is kept."""
    return {token: number for number, token in reversed(list(enumerate(tokens)))}


# --- the four models -------------------------------------------------------------------------------------


def _byte_pairs(path: Path, metadata: Mapping[str, Any], tokens: list[str]) -> Json:
    name = metadata.get("tokenizer.ggml.pre", "default")
    if name not in SPLITS:
        raise FileError("gguf-tokenizer", path=str(path), found=f"gpt2, {name}"[:80], names=Listed(sorted(SPLITS)))
    vocabulary = _vocabulary(tokens)
    merges = [tuple(merge.split(" ", 1)) for merge in metadata["tokenizer.ggml.merges"]]
    for pair in merges:
        if len(pair) != 2 or any(part not in vocabulary for part in (*pair, "".join(pair))):
            raise ValueError(f"merges: {' '.join(pair)[:40]}")
    parts = SPLITS[name]
    return {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": parts},
        "decoder": _byte_level(True),
        "model": {
            "type": "BPE",
            "vocab": vocabulary,
            "merges": merges,
            "ignore_merges": parts is _LLAMA3,
            "byte_fallback": False,
        },
    }


def _sentence_pieces(path: Path, metadata: Mapping[str, Any], tokens: list[str]) -> Json:
    """SentencePiece's BPE: of two neighbours that form a token, those with the best score are merged first."""
    vocabulary = _vocabulary(tokens)
    scores = metadata["tokenizer.ggml.scores"].tolist()
    if len(scores) != len(tokens):
        raise ValueError(f"{len(tokens)} tokens, {len(scores)} scores")
    if sum(map(len, tokens)) > MOST_UNIGRAM_CHARACTERS:
        raise ValueError("tokens")
    pairs: list[tuple[float, int, int, str, str]] = []
    for token, number in vocabulary.items():
        for at in range(1, min(len(token), _LONGEST_MERGE)):
            left, right = token[:at], token[at:]
            if left in vocabulary and right in vocabulary:
                pairs.append((-scores[number], vocabulary[left], vocabulary[right], left, right))
    prefix = bool(metadata.get("tokenizer.ggml.add_space_prefix", True))
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    before: list[Json] = [{"type": "Prepend", "prepend": MARK}] if prefix else []
    back = {"type": "Replace", "pattern": {"String": MARK}, "content": " "}
    after: list[Json] = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    unknown = metadata.get("tokenizer.ggml.unknown_token_id", 0)
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*before, replace]},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": [back, {"type": "ByteFallback"}, {"type": "Fuse"}, *after]},
        "model": {
            "type": "BPE",
            "vocab": vocabulary,
            "merges": [pair[3:] for pair in sorted(pairs)],
            "unk_token": tokens[unknown],
            "fuse_unk": True,
            "byte_fallback": True,
        },
    }


_LONGEST_MERGE = 256
_WORD_START = "\u2581"


def _word_pieces(path: Path, metadata: Mapping[str, Any], tokens: list[str]) -> Json:
    """WordPiece; files mark the beginning of a word with ▁, where BERT marks its continuation with ##."""

    def original(token: str) -> str:
        if token.startswith("[") and token.endswith("]"):
            return token
        return token[1:] if token.startswith(_WORD_START) else f"##{token}"

    vocabulary = _vocabulary([original(token) for token in tokens])
    numbers = {name: metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("cls", "seperator", "unknown")}
    wanted = {"cls": "[CLS]", "seperator": "[SEP]", "unknown": "[UNK]"}
    marks = {name: tokens[number] if number is not None else wanted[name] for name, number in numbers.items()}
    pair = [[marks[name], vocabulary[marks[name]]] for name in ("seperator", "cls")]
    lower = not any(token != token.lower() for token in tokens if not token.startswith("["))
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": lower,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": pair[0], "cls": pair[1]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": marks["unknown"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    }


def _unigrams(path: Path, metadata: Mapping[str, Any], tokens: list[str]) -> Json:
    import base64

    scores = metadata["tokenizer.ggml.scores"].tolist()
    marks = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True}
    table = metadata.get("tokenizer.ggml.precompiled_charsmap")
    normalizer = None
    if table is not None and table.size:
        map_text = base64.b64encode(table.astype("u1").tobytes()).decode()
        normalizer = {"type": "Precompiled", "precompiled_charsmap": map_text}
    return {
        "normalizer": normalizer,
        "pre_tokenizer": marks,
        "decoder": marks,
        "model": {
            "type": "Unigram",
            "unk_id": metadata.get("tokenizer.ggml.unknown_token_id", 2),
            "vocab": [list(pair) for pair in zip(tokens, scores, strict=True)],
            "byte_fallback": False,
        },
    }


def _template(kind: str, metadata: Mapping[str, Any], tokens: list[str], own: Json | None) -> Json | None:
    """The control tokens around a text, as the file asks for them."""
    if own is not None:
        return own
    defaults = {"bos": kind == "llama", "eos": kind == "t5"}
    found: dict[str, tuple[str, int]] = {}
    for name, default in defaults.items():
        number = metadata.get(f"tokenizer.ggml.{name}_token_id")
        if metadata.get(f"tokenizer.ggml.add_{name}_token", default) and number is not None:
            found[name] = tokens[number], int(number)
    if not found:
        return None

    def items(text: str, segment: int) -> list[Json]:
        around = {name: [{"SpecialToken": {"id": token, "type_id": segment}}] for name, (token, _) in found.items()}
        return [*around.get("bos", []), {"Sequence": {"id": text, "type_id": segment}}, *around.get("eos", [])]

    special = {token: {"id": token, "ids": [number], "tokens": [token]} for token, number in found.values()}
    return {
        "type": "TemplateProcessing",
        "single": items("A", 0),
        "pair": [*items("A", 0), *items("B", 1)],
        "special_tokens": special,
    }


# --- vocab.txt, vocab.json and merges.txt ----------------------------------------------------------------

MOST_TOKENS = 2**22
_BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def word_piece_tokenizer(path: Path, *, lower_case: bool, named: Mapping[str, int]) -> Tokenizer:
    """The tokenizer of a vocab.txt: one token per line, whose number is the id. FileError if it is invalid."""
    vocabulary = {token: number for number, token in enumerate(_lines(path))}
    missing = [token for token in ("[UNK]", "[CLS]", "[SEP]") if token not in vocabulary]
    if missing:
        raise FileError("model-garbled", path=str(path), place=Listed(missing))
    inner = RustTokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    pair = [(token, vocabulary[token]) for token in ("[SEP]", "[CLS]")]
    inner.post_processor = processors.BertProcessing(*pair)
    inner.add_special_tokens([token for token in _BERT_SPECIAL if token in vocabulary])
    return Tokenizer(inner, named=named)


def byte_pair_tokenizer(
    vocabulary: Path,
    merges: Path,
    *,
    named: Mapping[str, int],
    around: tuple[str | None, str | None] = (None, None),
    prefix: bool = False,
    special: Iterable[str] = (),
) -> Tokenizer:
    """The byte-level tokenizer of a vocab.json and its merges.txt. FileError if one is invalid or they do not fit.

    around    the control tokens before and after a text, as RoBERTa's <s> and </s>
    prefix    put a space before a text
    special   control tokens besides those of `named` and `around`
    """
    try:
        tokens = parse_json(read_file(vocabulary, most=LARGEST_FILE))
    except JsonError as error:
        raise FileError("model-garbled", path=str(vocabulary), place=str(error)) from error
    if not isinstance(tokens, dict) or not all(type(number) is int and number >= 0 for number in tokens.values()):
        raise FileError("model-garbled", path=str(vocabulary), place="{…}")
    pairs = []
    for number, line in enumerate(_lines(merges), 1):
        if line.startswith("#version") or not line:
            continue
        pair = tuple(line.split(" "))
        if len(pair) != 2 or any(part not in tokens for part in (*pair, "".join(pair))):
            raise FileError("model-garbled", path=str(merges), place=f"{number}: {line[:80]}")
        pairs.append(pair)
    try:
        inner = RustTokenizer(models.BPE(tokens, pairs))
    except Exception as error:
        raise FileError("tokenizer-garbled", path=str(merges), reason=reason_of(error)) from error
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    inner.decoder = decoders.ByteLevel()
    before, after = (name if name in tokens else None for name in around)
    known = {token for token, number in tokens.items() if number in set(named.values())}
    known |= {name for name in (before, after, *special) if name is not None and name in tokens}
    inner.add_special_tokens(sorted(known, key=tokens.__getitem__))
    if before or after:
        marks = sorted({name for name in (before, after) if name})
        inner.post_processor = processors.TemplateProcessing(
            single=[*([before] if before else []), "$A", *([after] if after else [])],
            special_tokens=[(name, tokens[name]) for name in marks],
        )
    return Tokenizer(inner, named=named)


def _lines(path: Path) -> list[str]:
    try:
        lines = read_file(path, most=LARGEST_FILE).decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise FileError("model-unreadable", path=str(path), reason=reason_of(error)) from error
    if len(lines) > MOST_TOKENS:
        raise FileError("model-garbled", path=str(path), place=f"> {MOST_TOKENS}")
    return lines[:-1] if lines and not lines[-1] else lines
