"""Each head attends to what its name says, for any text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard import See
from regard.language.handmade import HEADS, NAME, projections, run_layer, step_back, word_vector
from regard.reference import multi_head_attention
from regard.reference.positions import sinusoidal_positions
from regard.text import split_words

SENTENCES = [
    "the cat sat on the mat and the dog sat on the cat",
    "小明去商店买了苹果，然后他回家了",
    "我来到，我看见，我征服。",
    "Buffalo buffalo Buffalo buffalo buffalo buffalo Buffalo buffalo",
    "one",
    "a a a a a a",
    " ".join(f"w{n}" for n in range(60)),
    "👍🏽 👍 é e\u0301 ε",
]

texts = st.lists(
    st.sampled_from([*"的一是在不了有和人这", "the", "The", "cat", "love", "you", "，", "😀", "x" * 40]),
    min_size=1,
    max_size=60,
)


def weights(words: list[str]) -> dict[str, np.ndarray]:
    record = run_layer(words).trace[0]
    return dict(zip(HEADS, record.weights()[0], strict=True))


def assert_heads_match_their_names(words: list[str]) -> None:
    heads, T = weights(words), len(words)
    for i in range(T):
        # Nearly all of the weight, not just the largest.
        assert heads["previous-word"][i, max(0, i - 1)] > 0.99
        assert heads["first-word"][i, 0] > 0.99
        assert heads["all-so-far"][i, : i + 1] == pytest.approx(1 / (i + 1))
        same = [j for j in range(i + 1) if words[j].casefold() == words[i].casefold()]
        assert heads["same-word"][i, same] == pytest.approx(1 / len(same), abs=0.01)
    assert all(not np.triu(head, 1).any() for head in heads.values())


@pytest.mark.parametrize("text", SENTENCES)
def test_every_head_does_what_its_name_says(text: str) -> None:
    assert_heads_match_their_names(split_words(text))


@given(texts)
def test_every_head_does_what_its_name_says_for_random_texts(words: list[str]) -> None:
    assert_heads_match_their_names(words)


def test_heads_are_exact_in_a_long_text() -> None:
    record = run_layer([f"w{n}" for n in range(3000)], See(map=None, top=1)).trace[0]
    assert record.top is not None
    top = record.top.indices[0, :, :, 0]
    assert top[HEADS.index("previous-word")].tolist() == [0, *range(2999)]
    assert not top[HEADS.index("first-word")].any()
    assert top[HEADS.index("same-word")].tolist() == list(range(3000))


def test_one_step_back_is_exact() -> None:
    positions = sinusoidal_positions(100, 64)
    assert np.allclose(positions[1:] @ step_back(), positions[:-1], atol=1e-13)
    assert np.allclose(step_back() @ step_back().T, np.eye(64), atol=1e-15)


def test_the_layer_is_multi_head_attention() -> None:
    from regard import Mask
    from regard.language.handmade import embed

    words = split_words(SENTENCES[0])
    result = run_layer(words)
    x = embed(words)
    output, expected = multi_head_attention(x, x, x, projections(), len(HEADS), mask=Mask.causal())
    assert np.allclose(result.trace[0].weights()[0], expected, atol=1e-12)
    assert np.allclose(result.x, x + output, atol=1e-12)


def test_the_record_holds_its_words() -> None:
    record = run_layer(["我", "爱", "你"]).trace[NAME]
    assert record.kind == "decoder"
    assert record.shape == (1, 4, 3, 3)
    assert record.query_tokens == record.key_tokens == (("我", "爱", "你"),)


def test_word_vectors_ignore_case_and_differ_by_word() -> None:
    assert (word_vector("The") == word_vector("the")).all()
    assert abs(word_vector("cat") @ word_vector("mat")) < 0.5
    assert word_vector("cat") @ word_vector("cat") == pytest.approx(1)
