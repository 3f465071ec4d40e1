"""Tokenizers trained, used, saved and read: exact round trips, reproducible files, hostile files refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ArgumentError, FileError
from regard.text import SPECIALS, Tokenizer, learn_tokenizer

TEXTS = [
    "the cat sat on the mat , and the dog sat on the cat .",
    "ein hund &amp; eine katze sitzen auf der matte .",
    "小明 likes the cat。他说：“猫不喜欢他！” It's 1995.",
    "我们喜欢猫。 We don't.",
    "天地玄黄\n\n宇宙洪荒\n",
]
# Any character but the space marker, the only one that "words" and "pieces" cannot decode.
ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁"), max_size=30)
MIXED = st.text(st.sampled_from([*" \n\tabcdeI'’.,:19猫狗。，「カナé\u0301"]), max_size=40)


def learn(kind: Any, texts: list[str] = TEXTS, specials: Any = SPECIALS, size: int | None = 400) -> Tokenizer:
    return learn_tokenizer(texts, kind, None if kind == "characters" else size, specials)


BYTES = learn("bytes")
ALPHABET = [*" \n\tabcdeI'’.,:19猫狗。，「カナé\u0301"]
PIECES = learn("pieces", [*TEXTS, "".join(ALPHABET)])
PIECES_OF_NUMBERS = learn("pieces", [f"a {n} 年{n}" for n in range(1000, 3000)])
CHARACTERS = learn("characters", [*TEXTS, "".join(ALPHABET)])
WORDS = learn("words", [*TEXTS, "".join(ALPHABET)])


# --- round trips -----------------------------------------------------------------------------------------


@given(text=ANY)
def test_bytes_round_trip_any_text(text: str) -> None:
    ids = BYTES.encode(text)
    assert BYTES.decode(ids) == text
    assert not set(ids) & {0, 1, 2, 3}


@settings(max_examples=200)
@given(text=MIXED)
@pytest.mark.parametrize("tokenizer", [PIECES, CHARACTERS, WORDS], ids=["pieces", "characters", "words"])
def test_known_characters_round_trip(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("kind", ["characters", "words", "pieces", "bytes"])
def test_control_tokens_in_a_text_are_text(kind: str) -> None:
    text = "a <eos> b<pad><unk> <unk>s <bos>"
    tokenizer = learn(kind, [text] * 50)
    ids = tokenizer.encode(text)
    assert not set(ids) & {0, 1, 2, 3}
    assert tokenizer.decode([1, *ids, 2, 0]) == text


def test_a_tokenizer_without_specials_has_no_control_tokens() -> None:
    plain = learn("characters", ["abc"], specials=())
    assert (plain.vocab_size, plain.pad, plain.bos, plain.eos, plain.unknown) == (3, None, None, None, None)
    assert plain.encode("cab") == [2, 0, 1]
    with pytest.raises(ArgumentError, match=r"'x' 'é' \(2 such"):
        plain.encode("éxa")


def test_marks_raises_where_a_control_token_is_missing() -> None:
    assert learn_tokenizer(["ab"], "characters").marks() == {"pad": 0, "bos": 1, "eos": 2}
    with pytest.raises(ArgumentError, match="no control token <bos>"):
        learn_tokenizer(["ab"], "characters", specials=["<pad>", "<eos>"]).marks()


def test_specials_come_first() -> None:
    for tokenizer in (BYTES, PIECES, CHARACTERS, WORDS):
        assert (tokenizer.pad, tokenizer.bos, tokenizer.eos, tokenizer.unknown) == (0, 1, 2, 3)
        assert tokenizer.pieces(range(4)) == list(SPECIALS)


def test_unknown_characters_become_unk() -> None:
    for tokenizer in (PIECES, CHARACTERS, WORDS):
        assert tokenizer.encode("cΩ")[-1] == 3


# --- kinds -----------------------------------------------------------------------------------------------


def test_a_word_is_the_same_token_everywhere() -> None:
    assert WORDS.encode("cat cat") == [*WORDS.encode("cat"), *WORDS.encode("cat")]
    assert PIECES.encode("cat the cat") == [i for word in ("cat", "the", "cat") for i in PIECES.encode(word)]


def test_a_piece_never_joins_two_han_characters() -> None:
    tokenizer = learn("pieces", ["喜欢喜欢喜欢，likes likes"] * 20, size=60)
    assert tokenizer.pieces(tokenizer.encode("likes喜欢，")) == [" likes", "喜", "欢", "，"]


def test_numbers_are_split_in_twos_in_both_scripts() -> None:
    english, chinese = "in 1990 I was 7", "我生于1990年，7岁"
    tokenizer = learn("pieces", [english, chinese] * 20, size=80)
    for text in (english, chinese):
        assert [piece for piece in tokenizer.pieces(tokenizer.encode(text)) if piece.isdigit()] == ["19", "90", "7"]
        assert tokenizer.decode(tokenizer.encode(text)) == text


@given(st.integers(0, 10**9))
def test_pieces_of_a_number_have_two_digits_and_no_space(number: int) -> None:
    alone, after = (PIECES_OF_NUMBERS.pieces(PIECES_OF_NUMBERS.encode(text)) for text in (f"年{number}", f"a {number}"))
    assert alone[1:] == after[2:]  # 年; a and the space
    assert all(len(piece) <= 2 for piece in after)
    assert "".join(alone[1:]) == str(number)


def test_part_of_a_character_is_shown_as_its_bytes() -> None:
    assert BYTES.pieces(BYTES.encode("鬱")) == ["⟨E9⟩", "⟨AC⟩", "⟨B1⟩"]
    assert "".join(BYTES.pieces(BYTES.encode("the cat\n"))) == "the cat\n"


def test_the_most_frequent_characters_are_kept() -> None:
    tokenizer = learn_tokenizer(["aaabbc"], "characters", 6)
    assert tokenizer.encode("abc") == [4, 5, 3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "letters"}, "letters"),
        ({"kind": "words"}, "needs vocab_size"),
        ({"kind": "words", "vocab_size": 5}, "of the text are 8"),
        ({"kind": "bytes", "vocab_size": 100}, "of the text are 260"),
        ({"kind": "characters", "vocab_size": 2, "specials": ()}, "of the text are 3"),
        ({"kind": "pieces", "vocab_size": 50, "specials": ()}, "<unk>"),
        ({"kind": "characters", "specials": ("<a>", "<a>")}, "different names"),
        ({"kind": "characters", "texts": ["", ""]}, "no text"),
        ({"kind": "bytes", "vocab_size": 400, "texts": []}, "no text"),
    ],
)
def test_bad_training_arguments_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        learn_tokenizer(**{"texts": ["abc"], **changes})


def test_surrogates_and_ids_out_of_range_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"character 2 .* U\+D800"):
        BYTES.encode("a\ud800")
    for wrong in (-1, BYTES.vocab_size):
        with pytest.raises(ArgumentError, match=str(wrong)):
            BYTES.decode([wrong])


# --- packing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", [BYTES, CHARACTERS, PIECES], ids=["bytes", "characters", "pieces"])
def test_packing_in_parts_equals_encoding_whole_documents(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.text.tokenizer._PART", 5)
    texts = ["the cat\n\n  sat\non a mat\nthe cat \n the cat\n", "", "猫\n猫\n猫\n猫猫猫猫\n猫"]
    packed = tokenizer.pack(texts, end=2)
    assert packed.dtype == np.uint16
    assert packed.tolist() == [i for text in texts for i in [*tokenizer.encode(text), 2]]
    assert tokenizer.decode(tokenizer.pack(texts[:1])) == texts[0]


# --- files -----------------------------------------------------------------------------------------------


def test_the_same_texts_give_the_same_file_in_every_process(tmp_path: Path) -> None:
    """Each process seeds the hash tables of `tokenizers`; with a suffix instead of a marker the ids depended on it."""
    program = (
        "import sys, pathlib; from regard.text import learn_tokenizer\n"
        "texts = pathlib.Path(sys.argv[1]).read_text(encoding='utf-8').splitlines()\n"
        "for kind in ('words', 'pieces', 'bytes', 'characters'):\n"
        "    learn_tokenizer(texts, kind, 500).save(pathlib.Path(sys.argv[2]) / kind)\n"
    )
    (tmp_path / "texts").write_text("\n".join(TEXTS * 3), encoding="utf-8")
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        subprocess.run([sys.executable, "-c", program, tmp_path / "texts", tmp_path / run], check=True)
    for kind in ("words", "pieces", "bytes", "characters"):
        assert (tmp_path / "one" / kind).read_bytes() == (tmp_path / "two" / kind).read_bytes()


@pytest.mark.parametrize(
    "tokenizer", [BYTES, PIECES, CHARACTERS, WORDS], ids=["bytes", "pieces", "characters", "words"]
)
def test_saved_tokenizers_read_back(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    read_back = Tokenizer.read(path)
    assert read_back.encode_all(TEXTS) == tokenizer.encode_all(TEXTS)
    assert (read_back.vocab_size, read_back.eos) == (tokenizer.vocab_size, 2)
    read_back.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def changed(path: Path, change: Any) -> Path:
    PIECES.save(path)
    tree = json.loads(path.read_text(encoding="utf-8"))
    change(tree)
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def replacement(times: int) -> Any:
    one = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}
    return lambda tree: tree.update(normalizer={"type": "Sequence", "normalizers": [one] * times})


def pattern(regex: str) -> Any:
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    return lambda tree: tree.update(normalizer=None, pre_tokenizer=split)


HOSTILE = {
    "growth": (replacement(4), "100,000,000 characters of one"),
    "exponential pattern": (pattern("(a+)+$"), "may never end"),
    "broken pattern": (pattern("(a"), "malformed"),
    "hole in the ids": (lambda tree: tree["model"]["vocab"].update({"zz": 9999}), "must be 0, 1, 2"),
    "one id twice": (lambda tree: tree["model"]["vocab"].update({"zz": 9}), "must be 0, 1, 2"),
    "merge of nothing": (lambda tree: tree["model"]["merges"].append(["☃", "☃"]), "not a tokenizer"),
    "no model": (lambda tree: tree.pop("model"), "not a tokenizer"),
    "unknown model": (lambda tree: tree["model"].update(type="Pickle"), "not a tokenizer"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused(case: str, tmp_path: Path) -> None:
    change, message = HOSTILE[case]
    with pytest.raises(FileError, match=message):
        Tokenizer.read(changed(tmp_path / "tokenizer.json", change))


def test_padding_that_would_take_all_memory_is_ignored(tmp_path: Path) -> None:
    padding: dict[str, Any] = {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}
    path = changed(tmp_path / "tokenizer.json", lambda tree: tree.update(padding=padding))
    assert Tokenizer.read(path).encode("the cat") == PIECES.encode("the cat")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"[" * 10**5, b"\xff", b'{"model": 3}'])
def test_malformed_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(FileError, match=r"tokenizer\.json"):
        Tokenizer.read(tmp_path / "tokenizer.json")


def test_missing_and_oversized_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no file"):
        Tokenizer.read(tmp_path / "tokenizer.json")
    with pytest.raises(FileError, match="is a folder"):
        Tokenizer.read(tmp_path)
    with pytest.raises(FileError, match="no folder"):
        BYTES.save(tmp_path / "nowhere" / "tokenizer.json")
    with (tmp_path / "large").open("wb") as file:
        file.write(b'{"model":')
        file.truncate(2**26 + 1)
    with pytest.raises(FileError, match="the limit is 67,108,864 B"):
        Tokenizer.read(tmp_path / "large")


def test_regard_text_does_not_import_tokenizers() -> None:
    program = "import sys, regard.text; assert 'tokenizers' not in sys.modules; regard.text.Tokenizer"
    subprocess.run([sys.executable, "-c", program], check=True)
