"""Tokenizers of files other than tokenizer.json: GGUF, SentencePiece, BERT's vocab.txt, GPT-2's vocab.json and merges.

A SentencePiece model is a protocol buffer, read here without the package: it holds what a GGUF file says of its
tokenizer, so both become a tokenizer.json by the same functions.
"""

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regard.errors import FileError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.output import reason_of
from regard.files.safe_open import read_file
from regard.messages import Listed
from regard.text.segmentation import MARK, WRITTEN_ONLY
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
    return None if "tokenizer.ggml.model" not in metadata else _from_metadata(path, metadata, {})


def _from_metadata(path: Path, metadata: Mapping[str, Any], more: Mapping[str, int]) -> Tokenizer:
    """The tokenizer that these keys describe; `more` are ids of control tokens that another file names."""
    try:
        tree = _tree(path, metadata)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise FileError("tokenizer-garbled", path=str(path), reason=f"tokenizer.ggml.*: {error}"[:200]) from error
    names = {"bos": "bos", "eos": "eos", "pad": "padding", "unknown": "unknown"}
    count = len(metadata["tokenizer.ggml.tokens"])
    ids = {ours: metadata.get(f"tokenizer.ggml.{theirs}_token_id") for ours, theirs in names.items()}
    named = {ours: number for ours, number in ids.items() if type(number) is int and number < count}
    content = json.dumps(tree, ensure_ascii=False).encode()
    return Tokenizer.from_content(path, content, named=named | dict(more), gaps=True)


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
    steps: list[Json] = []
    if table is not None and table.size:
        map_text = base64.b64encode(table.astype("u1").tobytes()).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": map_text})
    if metadata.get("tokenizer.ggml.remove_extra_whitespaces", False):
        steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    written = {"type": "Replace", "pattern": {"String": WRITTEN_ONLY}, "content": ""}
    return {
        "normalizer": {"type": "Sequence", "normalizers": steps} if steps else None,
        "pre_tokenizer": marks,
        "decoder": {"type": "Sequence", "decoders": [written, marks]},
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


# --- SentencePiece ---------------------------------------------------------------------------------------

_BPE, _UNIGRAM = 2, 1
_DEFAULT_IDS = {"unknown": 0, "bos": 1, "eos": 2, "padding": -1}
_OWN_MARK = "<unk>"


def sentence_piece_tokenizer(
    path: Path,
    *,
    named: Mapping[str, int],
    added: Mapping[int, tuple[str, bool]] | None = None,
    around: tuple[bool, bool] | None = None,
) -> Tokenizer:
    """The tokenizer of a SentencePiece model, as tokenizer.model or spiece.model. FileError if it is invalid.

    added    tokens beyond those of the file: their text, and whether each is a control token
    around   whether <s> comes before a text, and </s> after it; by default as Llama (<s>) and T5 (</s>) have it
    """
    metadata = _sentence_piece_metadata(path)
    tokens, kinds = list(metadata["tokenizer.ggml.tokens"]), metadata["tokenizer.ggml.token_type"].tolist()
    for number, (text, special) in sorted((added or {}).items()):
        if len(tokens) <= number < MOST_TOKENS:
            tokens += [f"<unused {at}>" for at in range(len(tokens), number + 1)]
            kinds += [CONTROL] * (len(tokens) - len(kinds))
            tokens[number], kinds[number] = text, CONTROL if special else USER_DEFINED
    scores = np.zeros(len(tokens), np.float32)
    scores[: len(metadata["tokenizer.ggml.scores"])] = metadata["tokenizer.ggml.scores"]
    more = {"tokens": tokens, "token_type": np.array(kinds), "scores": scores}
    if around is not None:
        more |= {"add_bos_token": around[0], "add_eos_token": around[1]}
    return _from_metadata(path, metadata | {f"tokenizer.ggml.{name}": value for name, value in more.items()}, named)


def marian_tokenizer(source: Path, vocabulary: Path, *, named: Mapping[str, int]) -> Tokenizer:
    """The tokenizer of a Marian model: source.spm divides a text, and vocab.json numbers the pieces of both languages.

    A piece of the other language is only written, never found in a text: its spelling begins with `WRITTEN_ONLY`. A
    character that source.spm does not know is <unk>.
    """
    ids = _read_vocabulary(vocabulary)
    metadata = _sentence_piece_metadata(source)
    scores = dict(zip(metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.scores"].tolist(), strict=True))
    if sorted(ids.values()) != list(range(len(ids))) or _OWN_MARK not in ids:
        raise FileError("model-garbled", path=str(vocabulary), place="0 … n - 1")
    controls = {"<pad>": CONTROL, "</s>": CONTROL, _OWN_MARK: UNKNOWN}
    tokens, kinds, found = [""] * len(ids), [NORMAL] * len(ids), [0.0] * len(ids)
    for token, number in ids.items():
        is_language = token.startswith(">>") and token.endswith("<<")  # >>cmn_Hans<< before a text
        kinds[number] = USER_DEFINED if is_language else controls.get(token, NORMAL)
        known = token in scores or kinds[number] != NORMAL
        tokens[number], found[number] = token if known else WRITTEN_ONLY + token, scores.get(token, 0.0)
    more: Json = {"tokens": tokens, "token_type": np.array(kinds), "scores": np.array(found, np.float32)}
    more |= {"unknown_token_id": ids[_OWN_MARK], "eos_token_id": ids.get("</s>"), "model": "t5", "add_bos_token": False}
    more["padding_token_id"] = ids.get("<pad>")
    return _from_metadata(source, metadata | {f"tokenizer.ggml.{name}": value for name, value in more.items()}, named)


def _sentence_piece_metadata(path: Path) -> Json:
    """What a GGUF file would say of this SentencePiece model."""
    try:
        return _parsed_pieces(memoryview(read_file(path, most=LARGEST_FILE)))
    except (ValueError, IndexError, struct.error) as error:
        raise FileError("tokenizer-garbled", path=str(path), reason=reason_of(error)) from error


def _parsed_pieces(content: memoryview) -> Json:
    tokens: list[str] = []
    scores: list[float] = []
    kinds: list[int] = []
    normal: dict[int, Any] = {2: b"", 3: 1, 4: 1}
    model, ids = _UNIGRAM, dict(_DEFAULT_IDS)
    numbers = {40: "unknown", 41: "bos", 42: "eos", 43: "padding"}
    for field, value in _fields(content):
        if field == 1:
            piece: dict[int, Any] = {1: b"", 2: b"\0\0\0\0", 3: NORMAL} | dict(_fields(value))
            tokens.append(bytes(piece[1]).decode())
            scores.append(struct.unpack("<f", piece[2])[0])
            kinds.append(int(piece[3]))
        elif field == 2:
            about = dict(_fields(value))
            model = about.get(3, _UNIGRAM)
            ids |= {name: _signed(about[number]) for number, name in numbers.items() if number in about}
        elif field == 3:
            normal |= dict(_fields(value))
    if model not in (_BPE, _UNIGRAM):
        raise ValueError(f"model_type {model}")
    if not tokens or len(tokens) > MOST_TOKENS:
        raise ValueError(f"{len(tokens)} pieces")
    found: Json = {
        "model": "llama" if model == _BPE else "t5",
        "tokens": tokens,
        "scores": np.array(scores, np.float32),
        "token_type": np.array(kinds),
        "add_space_prefix": bool(normal[3]),
        "remove_extra_whitespaces": bool(normal[4]),
        "precompiled_charsmap": np.frombuffer(normal[2], np.uint8),
    }
    found |= {f"{name}_token_id": number for name, number in ids.items() if 0 <= number < len(tokens)}
    return {f"tokenizer.ggml.{name}": value for name, value in found.items()}


def _fields(content: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a message of protocol buffers: numbers as they are, everything else as bytes."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _varint(content, at)
        else:
            length = {1: 8, 5: 4}.get(kind, -1)
        if length < 0 or at + length > len(content):
            raise ValueError(f"{at}")
        yield key >> 3, content[at : at + length]
        at += length


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    """A number of one to ten bytes, and the place after it."""
    found = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
    raise ValueError(f"{at}")


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


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
    tokens = _read_vocabulary(vocabulary)
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


def _read_vocabulary(path: Path) -> dict[str, int]:
    """The id of each token."""
    try:
        tokens = parse_json(read_file(path, most=LARGEST_FILE))
    except JsonError as error:
        raise FileError("model-garbled", path=str(path), place=str(error)) from error
    if not isinstance(tokens, dict) or not all(type(number) is int and number >= 0 for number in tokens.values()):
        raise FileError("model-garbled", path=str(path), place="{…}")
    return tokens


def _lines(path: Path) -> list[str]:
    try:
        lines = read_file(path, most=LARGEST_FILE).decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise FileError("model-unreadable", path=str(path), reason=reason_of(error)) from error
    if len(lines) > MOST_TOKENS:
        raise FileError("model-garbled", path=str(path), place=f"> {MOST_TOKENS}")
    return lines[:-1] if lines and not lines[-1] else lines
