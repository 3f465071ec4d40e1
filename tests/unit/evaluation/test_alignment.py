"""Word weights compared with a character-by-character computation; error rates compared with enumeration."""

import re
from collections.abc import Iterable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from regard.errors import ArgumentError, FileError
from regard.evaluation.alignment import (
    Aligned,
    AlignedHead,
    RowChoice,
    alignment_error_rate,
    best_heads,
    chance_error_rate,
    diagonal,
    head_links,
    links,
    read_aligned,
    word_weights,
)
from regard.records import Kind
from regard.text.word_links import Link
from regard.trace import Trace


def aligned(source: str, target: str, sure: set[Link], possible: Iterable[Link] = ()) -> Aligned:
    return Aligned(tuple(source.split()), tuple(target), frozenset(sure), frozenset({*sure, *possible}))


LOVE = aligned("I love you .", "我爱你。", {(0, 0), (1, 1), (2, 2), (3, 3)})
SANG = aligned("He sang a song", "他唱了歌", {(0, 0), (1, 1), (3, 3)}, {(1, 2), (2, 3)})


# --- from weights to links --------------------------------------------------------------------------------


@st.composite
def seen(draw: st.DrawFn) -> tuple[np.ndarray, list[str], list[str], Aligned]:
    """Two word sequences split into tokens at any place, also across words, with control tokens, and weights."""

    def side() -> tuple[list[str], tuple[str, ...]]:
        words = draw(st.lists(st.text("ab爱", min_size=1, max_size=4), min_size=1, max_size=4))
        text = "".join(words)
        cuts = draw(st.sets(st.integers(1, max(1, len(text) - 1))))
        return [text[i:j] for i, j in pairwise(sorted({0, len(text)} | cuts))], tuple(words)

    (keys, source), (queries, target) = side(), side()
    keys, queries = [*keys, "<eos>"], ["<bos>", *queries]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    pair = Aligned(source, target, frozenset(), frozenset())
    return rng.dirichlet(np.ones(len(keys)), size=(2, len(queries))), queries, keys, pair


def slow_word_weights(
    weights: np.ndarray, queries: list[str], keys: list[str], pair: Aligned, row_choice: RowChoice
) -> np.ndarray:
    """For one head, character by character; the last column is the remainder to 1."""
    columns = [(at, len(piece)) for at, piece in enumerate(keys) if piece != "<eos>" for _ in piece]
    rows = [at for at, piece in enumerate(queries) if piece != "<bos>" for _ in piece]
    found = np.zeros((len(pair.target), len(pair.source) + 1))
    row = 0
    for j, looks in enumerate(pair.target):
        for _ in looks:
            column = 0
            for i, word in enumerate(pair.source):
                for _ in word:
                    at, length = columns[column]
                    found[j, i] += weights[rows[row] - (row_choice == "written"), at] / length / len(looks)
                    column += 1
            row += 1
    found[:, -1] = 1 - found.sum(1)
    return found


@given(seen(), st.sampled_from(["read", "written"]))
def test_word_weights_match_the_slow_computation(
    case: tuple[np.ndarray, list[str], list[str], Aligned], row_choice: RowChoice
) -> None:
    weights, queries, keys, pair = case
    found = word_weights(weights, queries, keys, pair, row_choice)
    for head, each in zip(weights, found, strict=True):
        assert_close(each, slow_word_weights(head, queries, keys, pair, row_choice))


def test_case_width_and_spaces_are_ignored() -> None:
    pair = aligned("Really ?", "真的？", {(0, 0)})
    plain = word_weights(np.eye(4, 3), ["<bos>", *"真的？"], ["Really", "?", "<eos>"], pair)
    folded = word_weights(np.eye(4, 3), ["<s>", "真", "的", "?"], [" really", "？", "</s>"], pair)
    assert_close(folded, plain)


def test_tokens_of_another_text_raise() -> None:
    with pytest.raises(ArgumentError, match=re.escape("'I loved you . <eos>' do not spell the words 'I love you .'")):
        word_weights(np.ones((5, 5)) / 5, ["<bos>", *"我爱你。"], ["I", "loved", "you", ".", "<eos>"], LOVE)


def test_row_without_a_word_has_no_link() -> None:
    """The maximum is at the end of the sentence, or all weights are 0, as for a fully masked query."""
    assert links(np.array([[0.4, 0.1, 0.5], [0.0, 0.0, 0.0], [0.1, 0.6, 0.3]])) == {(1, 2)}


def test_missing_row_has_no_link() -> None:
    """Without <bos>, no row predicts the first token."""
    weights = word_weights(np.eye(4), list("我爱你。"), ["I", "love", "you", "."], LOVE, "written")
    assert links(weights) == {(0, 1), (1, 2), (2, 3)}


# --- from links to a number -------------------------------------------------------------------------------


def test_error_rate_by_hand() -> None:
    found = {(0, 0), (1, 1), (1, 2), (2, 1)}  # two sure, one possible, one wrong; one sure link missed
    assert alignment_error_rate([(SANG, found)]) == pytest.approx(1 - (2 + 3) / (4 + 3))


def test_missing_possible_links_cost_nothing() -> None:
    sure = set(SANG.sure)
    assert alignment_error_rate([(SANG, sure)]) == 0
    assert alignment_error_rate([(SANG, sure | {(1, 2), (2, 3)})]) == 0
    assert alignment_error_rate([(SANG, sure - {(0, 0)})]) > 0
    assert alignment_error_rate([(SANG, sure | {(0, 3)})]) > 0
    assert alignment_error_rate([(SANG, set())]) == 1


def test_error_rate_is_over_all_links() -> None:
    """Not the mean of the pairs' error rates: a long sentence counts more."""
    assert alignment_error_rate([(LOVE, set(LOVE.sure)), (SANG, set())]) == pytest.approx(1 - 8 / 11)


# --- heads ------------------------------------------------------------------------------------------------


def attention(pair: Aligned, *heads: list[int], tokens: bool = True, kind: Kind = "cross") -> Trace:
    """A layer whose heads attend, row by row from <bos> on, to one of the words or (the last) to <eos>."""
    queries, keys = ["<bos>", *pair.target], [*pair.source, "<eos>"]
    weights = np.eye(len(keys))[np.array(heads)]  # H T S
    labels: dict[str, Any] = {"queries": queries, "keys": keys} if tokens else {}
    return Trace.from_weights(weights, **labels, name="decoder.layers.0.cross_attention", kind=kind)


def test_best_head_is_first_for_both_row_choices() -> None:
    reader, writer, sleeper, mixed = [4, 0, 1, 2, 3], [0, 1, 2, 3, 4], [4] * 5, [0, 0, 1, 0, 0]
    layers = Trace([*attention(LOVE, sleeper, mixed), *attention(LOVE, writer, reader)])
    assert [(head.layer, head.head) for head in best_heads([(LOVE, layers)])] == [(1, 1), (0, 1), (0, 0), (1, 0)]
    assert best_heads([(LOVE, layers)])[0] == AlignedHead(1, 1, 0.0)
    assert best_heads([(LOVE, layers)], "written")[0] == AlignedHead(1, 0, 0.0)


def test_heads_are_ranked_over_all_pairs() -> None:
    first, second = attention(LOVE, [4, 0, 1, 2, 3], [4, 4, 4, 2, 3]), attention(SANG, [4] * 5, [4, 0, 1, 1, 3])
    (good, bad) = best_heads([(LOVE, first), (SANG, second)])
    assert (good.head, bad.head) == (1, 0)
    assert good.error == pytest.approx(
        alignment_error_rate([(LOVE, {(2, 2), (3, 3)}), (SANG, {(0, 0), (1, 1), (1, 2), (3, 3)})])
    )
    assert head_links(first[0], LOVE)[1] == {(2, 2), (3, 3)}


@pytest.mark.parametrize("changes", [{"tokens": False}, {"kind": "decoder"}], ids=["no tokens", "no cross-attention"])
def test_trace_without_labels_or_cross_attention_raises(changes: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=r"'I love you\.' has no cross-attention with token labels"):
        best_heads([(LOVE, attention(LOVE, [4] * 5, **changes))])


# --- baselines --------------------------------------------------------------------------------------------


def test_chance_is_the_mean_over_all_links() -> None:
    ways = [{(i, j) for j, i in enumerate(each)} for each in product(range(4), repeat=4)]
    assert chance_error_rate([SANG]) == pytest.approx(np.mean([alignment_error_rate([(SANG, way)]) for way in ways]))
    assert chance_error_rate([LOVE, SANG]) == pytest.approx(1 - (4 + 4 + 3 + 5) / 4 / (4 + 4 + 4 + 3))


@given(st.integers(1, 9), st.integers(1, 9))
def test_diagonal_is_even(n_source: int, n_target: int) -> None:
    source, target = ("a",) * n_source, ("爱",) * n_target
    path = {j: i for i, j in diagonal(Aligned(source, target, frozenset(), frozenset()))}
    assert sorted(path) == list(range(n_target))
    assert all(0 <= path[j + 1] - path[j] <= -(-n_source // n_target) for j in range(n_target - 1))


# --- files ------------------------------------------------------------------------------------------------


def write(folder: Path, text: str) -> Path:
    path = folder / "aligned.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def test_file_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path, "# rules\n\nHe sang a song\t他 唱 了 歌\t0-0 1-1 1?2 2?3 3-3\nNo , thanks .\t不 ， 谢 谢 。\t0-0\n"
    )
    pairs = read_aligned(path)
    assert pairs[0] == SANG
    assert (pairs[1].text, pairs[1].output) == ("No, thanks.", "不，谢谢。")


@pytest.mark.parametrize(
    "line",
    [
        "He sang\t他 唱 了",
        "He sang\t他 唱 了\t0-0\t1-1",
        "He sang\t他 唱 了\t0-0 1-3",
        "He sang\t他 唱 了\t0-0 2-1",
        "He sang\t他 唱 了\t0-0 -1-1",
        "He sang\t他 唱 了\t0-0 1:1",
        "He sang\t他 唱 了\t0-0 0?0",
        "He sang\t他 唱 了\t0?0",
        "He sang\t他 唱 了\t",
    ],
    ids=["two columns", "four", "target short", "source short", "negative", "sign", "twice", "none sure", "no links"],
)
def test_bad_line_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(
        FileError, match=r"aligned\.tsv, line 2: a line must have words, characters and links"
    ) as caught:
        read_aligned(write(tmp_path, f"He sang\t他 唱 了\t0-0\n{line}\n"))
    assert repr(line) in str(caught.value)


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"there is no file .*absent\.tsv"):
        read_aligned(tmp_path / "absent.tsv")
    path = tmp_path / "latin.tsv"
    path.write_bytes(b"caf\xe9\t\t")
    with pytest.raises(FileError, match=r"latin\.tsv could not be read"):
        read_aligned(path)
