"""Tokenizers from older files: BERT's vocab.txt, and GPT-2's vocab.json with merges.txt."""

from collections.abc import Mapping
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regard.errors import FileError
from regard.files.input import read_file
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.output import reason_of
from regard.messages import Listed
from regard.text.tokenizer import LARGEST_FILE, Tokenizer

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


def byte_pair_tokenizer(vocabulary: Path, merges: Path, *, named: Mapping[str, int]) -> Tokenizer:
    """The byte-level tokenizer of a vocab.json and its merges.txt. FileError if one is invalid or they do not fit."""
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
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = [token for token, number in tokens.items() if number in set(named.values())]
    inner.add_special_tokens(special)
    return Tokenizer(inner, named=named)


def _lines(path: Path) -> list[str]:
    try:
        lines = read_file(path, most=LARGEST_FILE).decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise FileError("model-unreadable", path=str(path), reason=reason_of(error)) from error
    if len(lines) > MOST_TOKENS:
        raise FileError("model-garbled", path=str(path), place=f"> {MOST_TOKENS}")
    return lines[:-1] if lines and not lines[-1] else lines
