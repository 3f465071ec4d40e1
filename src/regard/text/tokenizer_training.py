"""Training of tokenizers from text: characters, words, pieces of mixed Chinese and English, and bytes.

    characters   each character a token
    words        text already split by spaces (Moses tokenisation): pairs are merged inside words
    pieces       raw text, Chinese and English mixed: the same, but each Han character and punctuation mark is a token,
                 and numbers are split after every second digit
    bytes        any text, as bytes: no text is unknown

The last three are byte-pair encoding (Sennrich et al. 2016). The same texts give the same file, byte for byte.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, get_args

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from regard.errors import ArgumentError
from regard.messages import Listed
from regard.text.segmentation import MARK
from regard.text.tokenizer import Tokenizer

Kind = Literal["characters", "words", "pieces", "bytes"]
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
UNKNOWN = SPECIALS[3]
MIN_FREQUENCY = 2  # a pair that occurs once is not a pattern

# Written without spaces: Han, kana, their punctuation, full-width forms.
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303F\uFF00-\uFFEF]"
# Each with the space before it: a word (don't is one), punctuation; then the remaining space. Digits are without the
# space, so that a number is the same in scripts with and without spaces; in twos, since models that copy digit by digit
# lose count of the nines in 1990.
LETTER = r"[\p{L}\p{M}]"
WORD = "|".join(
    (
        rf"{MARK}?{LETTER}+(?:['’]{LETTER}+)*",
        r"\p{N}{1,2}",
        rf"{MARK}?[^\p{{L}}\p{{M}}\p{{N}}\s{MARK}]+",
        rf"[\s{MARK}]",
    )
)


def learn_tokenizer(
    texts: Iterable[str], kind: Kind, vocab_size: int | None = None, specials: Sequence[str] = SPECIALS
) -> Tokenizer:
    """Learn a tokenizer of at most `vocab_size` tokens, the `specials` first.

    "characters" needs no size; with one, it keeps the most frequent. Raises ArgumentError where the size is too small
    for the single characters of the text, or there is no text.

    >>> learn_tokenizer(["low lower lowest"] * 2, "words", 16).pieces([12, 13, 14, 15])
    ['lo', ' lo', ' low', ' lowe']
    """
    if kind not in get_args(Kind):
        raise ArgumentError("unknown-choice", name="kind", value=kind, choices=Listed(get_args(Kind)))
    if len(set(specials)) != len(specials) or "" in specials:
        raise ArgumentError("learn-specials", found=list(specials))
    if kind in ("words", "pieces") and UNKNOWN not in specials:
        raise ArgumentError("learn-no-unknown", kind=kind, unknown=UNKNOWN)
    if vocab_size is None and kind != "characters":
        raise ArgumentError("learn-no-size", kind=kind)
    if kind == "characters":
        return _characters(texts, vocab_size, specials)
    assert vocab_size is not None
    inner = _untrained(kind, UNKNOWN if UNKNOWN in specials else None)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if kind == "bytes" else []
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=[AddedToken(name, special=True, normalized=False) for name in specials],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    inner.train_from_iterator(_not_empty(texts), trainer)
    if (needed := inner.get_vocab_size()) > vocab_size:
        raise ArgumentError("learn-vocab-size", vocab_size=vocab_size, needed=needed)
    return Tokenizer(_without_text_specials(inner, set(specials)))


def _untrained(kind: Kind, unknown: str | None) -> tokenizers.Tokenizer:
    """An untrained byte-pair encoding."""
    inner = tokenizers.Tokenizer(models.BPE(unk_token=unknown))
    if kind == "bytes":
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = decoders.ByteLevel()
        return inner
    # A marker instead of every space, and one before the first word, so that a word is the same token everywhere.
    # A marker, not a suffix: the ids that `tokenizers` gives to suffixed characters differ from run to run.
    normalisers = [normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]
    splits: list[Any] = [pre_tokenizers.Split(MARK, "merged_with_next")]
    if kind == "pieces":
        # No marker before text that is written without spaces.
        normalisers.insert(1, normalizers.Replace(Regex(rf"\A{MARK}(?={UNSPACED})"), ""))
        splits = [pre_tokenizers.Split(Regex(UNSPACED), "isolated"), pre_tokenizers.Split(Regex(WORD), "isolated")]
    inner.normalizer = normalizers.Sequence(normalisers)
    inner.pre_tokenizer = pre_tokenizers.Sequence(splits)
    inner.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return inner


def _characters(texts: Iterable[str], vocab_size: int | None, specials: Sequence[str]) -> Tokenizer:
    """Byte-pair encoding without merges."""
    counts: Counter[str] = Counter()
    for text in _not_empty(texts):
        counts.update(text)
    n_kept = len(counts) if vocab_size is None else vocab_size - len(specials)
    if n_kept < 1 or (n_kept < len(counts) and UNKNOWN not in specials):
        raise ArgumentError("learn-vocab-size", vocab_size=vocab_size, needed=len(specials) + len(counts))
    kept = sorted(counts, key=lambda character: (-counts[character], character))[:n_kept]
    vocab = {name: i for i, name in enumerate([*specials, *sorted(kept)])}
    inner = tokenizers.Tokenizer(models.BPE(vocab, [], unk_token=UNKNOWN if UNKNOWN in specials else None))
    inner.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in specials])
    inner.decoder = decoders.Fuse()
    return Tokenizer(inner)


def _not_empty(texts: Iterable[str]) -> Iterator[str]:
    """The texts; raises ArgumentError at their end if all were empty."""
    has_text = False
    for text in texts:
        has_text = has_text or bool(text)
        yield text
    if not has_text:
        raise ArgumentError("learn-nothing")


def _without_text_specials(inner: tokenizers.Tokenizer, specials: set[str]) -> tokenizers.Tokenizer:
    """The tokenizer without merges that produce a special token, which it learns from a text with many "<unk>"."""
    tree = json.loads(inner.to_str())
    merges = tree["model"]["merges"]
    kept = [pair for pair in merges if not specials & {*pair, "".join(pair)}]
    if len(kept) == len(merges):
        return inner
    tree["model"]["merges"] = kept
    return tokenizers.Tokenizer.from_str(json.dumps(tree))
