"""Two traces compared: distances by definition, tokens aligned, and one sentence where they cannot be compared."""

from pathlib import Path

import numpy as np
import pytest

from regard.errors import ArgumentError, NotKeptError
from regard.trace import Trace
from regard.trace.comparison import Alignment
from regard.views.explorer.compared import ComparisonSource


def rows(*shape: int, seed: int = 0) -> np.ndarray:
    weights = np.random.default_rng(seed).random(shape)
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> float:
    """By the entropies: √(H((p + q) / 2) − (H(p) + H(q)) / 2), in bits."""
    entropies = [float(-(x * np.log2(x)).sum()) for x in ((p + q) / 2, p, q)]
    return float(np.sqrt(entropies[0] - (entropies[1] + entropies[2]) / 2))


def test_the_distance_is_jensen_shannon() -> None:
    a, b = rows(2, 5, 5), rows(2, 5, 5, seed=1)
    found = Trace.from_weights(a).compare(Trace.from_weights(b))
    for head in (0, 1):
        expected = np.mean([jensen_shannon(a[head, i], b[head, i]) for i in range(5)])
        assert found.heads[head].distance == pytest.approx(expected)
        one = found.heads[head]
        assert one.largest == pytest.approx((b - a)[head].flat[np.abs((b - a)[head]).argmax()])
        assert (b - a)[head, one.query, one.key] == pytest.approx(one.largest)


def test_equal_traces_have_distance_zero() -> None:
    trace = Trace.from_weights(np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None], list("abcd"))
    (one,) = trace.compare(trace).heads
    assert (one.distance, one.largest) == (0.0, 0.0)


def test_tokens_align_texts_of_different_length() -> None:
    left = Trace.from_weights(np.eye(3), ["the", "cat", "sat"])
    weights = np.eye(4)
    weights[3] = [0, 0, 1, 0]  # "sat" attends to "cat" here
    right = Trace.from_weights(weights, ["the", "big", "cat", "sat"])
    comparison = left.compare(right)
    found = comparison.aligned(0, 0)
    assert found.queries.pairs == ((0, 0), (None, 1), (1, 2), (2, 3))
    assert np.isnan(found.left[1]).all()
    np.testing.assert_array_equal(found.right, weights)
    (one,) = comparison.heads
    assert (one.query, abs(one.largest)) == (2, 1.0)
    assert one.distance == pytest.approx(1 / 3)


def test_words_in_place_of_each_other_are_compared() -> None:
    pairs = Alignment.of(("I", "love", "you"), ("I", "hate", "you"), (3, 3)).pairs
    assert pairs == ((0, 0), (1, 1), (2, 2))
    assert Alignment.of(("a", "b", "c"), ("a", "x", "y", "c"), (3, 4)).pairs == (
        *((0, 0), (1, None), (None, 1), (None, 2), (2, 3)),
    )
    love, hate = rows(3, 3), rows(3, 3, seed=1)
    found = Trace.from_weights(love, ["I", "love", "you"]).compare(Trace.from_weights(hate, ["I", "hate", "you"]))
    assert found.heads[0].distance == pytest.approx(np.mean([jensen_shannon(love[i], hate[i]) for i in range(3)]))
    np.testing.assert_allclose(found.aligned(0, 0).difference, hate - love)


def test_attention_to_tokens_of_one_text_alone_counts() -> None:
    left = Trace.from_weights(np.array([[1.0, 0.0], [1.0, 0.0]]), ["a", "b"])
    right = Trace.from_weights(np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 1.0, 0]]), ["a", "x", "b"])
    (one,) = left.compare(right).heads
    assert one.distance == pytest.approx(0.5)  # "a" is equal, "b" has no key in common


def test_the_table_has_the_most_different_head_first() -> None:
    a = np.stack([np.eye(3), np.eye(3)])
    b = np.stack([np.eye(3), np.eye(3)[::-1]])
    found = Trace.from_weights(a, list("abc"), name="h.0").compare(Trace.from_weights(b, list("abc"), name="h.0"))
    lines = found.text(lang="en").splitlines()
    assert lines[1].split()[:4] == ["h.0", "1", "0.667", "−1.000"]
    assert "a 0 → a 0" in lines[1]
    assert "距离" in found.text(lang="zh")
    assert found.text(most=1, lang="en").splitlines()[2] == "… and 1 more"


def test_unequal_heads_are_one_sentence() -> None:
    two, three = Trace.from_weights(rows(2, 4, 4)), Trace.from_weights(rows(3, 4, 4))
    with pytest.raises(ArgumentError, match="this one has 1 × 2 layers × heads, the other 1 × 3"):
        two.compare(three)


def test_lengths_without_tokens_are_one_sentence() -> None:
    with pytest.raises(ArgumentError, match="4 queries in one trace and 5 in the other"):
        Trace.from_weights(rows(4, 4)).compare(Trace.from_weights(rows(5, 5)))


def test_weights_that_were_not_kept_are_one_sentence() -> None:
    trace = Trace.from_weights(rows(300, 300))
    with pytest.raises(NotKeptError, match=r"See\(qk=True\)"):
        trace.compare(Trace(trace[0].changed(exact=None, map=None)))
    with pytest.raises(NotKeptError, match=r"See\(qk=True\)"):  # maps of other lengths have no bins in common
        Trace.from_weights(rows(310, 310)).compare(Trace(trace[0].changed(exact=None)))


def test_maps_are_compared_where_weights_were_not_kept(tmp_path: Path) -> None:
    a, b = (Trace.from_weights(rows(2, 300, 300, seed=seed), map=100) for seed in (0, 1))
    left, right = Trace(a[0].changed(exact=None)), b
    found = left.compare(right)
    maps = [np.asarray(trace[0].map)[0] for trace in (a, b)]
    assert maps[0].shape == (2, 100, 100)
    for head, one in enumerate(found.heads):
        expected = np.mean([jensen_shannon(p, q) for p, q in zip(maps[0][head], maps[1][head], strict=True)])
        assert one.distance == pytest.approx(expected)
        assert (one.query, one.key) == tuple(
            3 * at for at in np.unravel_index(np.abs(maps[1][head] - maps[0][head]).argmax(), (100, 100))
        )
    assert "of 1 of 1 layers the maps were compared" in found.text(lang="en")
    assert found.by_map == {0}
    answer = ComparisonSource(found).compare(0, 1)
    assert (answer.about["R"], answer.about["high"], answer.about["queries"][1]) == (100, 3, ["3", "3"])
    found.html(tmp_path / "difference.html")


def test_layers_that_only_one_trace_has_are_left_out() -> None:
    names = ["h.0", "h.1", "h.2"]
    left = Trace(Trace.from_weights(rows(2, 4, 4, seed=at), name=name)[0] for at, name in enumerate(names))
    right = Trace([left[2].changed(map=left[1].map, exact=None), left[0]])
    found = left.compare(right)
    assert [(one.name, one.head, one.distance > 0) for one in found.heads if one.head == 0] == [
        ("h.0", 0, False),
        ("h.2", 0, True),
    ]
    assert found.text(lang="en").splitlines()[-1] == "not compared, because only one trace has them: h.1"
    with pytest.raises(ArgumentError, match="this one has 3 × 2 layers"):
        left.compare(Trace.from_weights(rows(2, 4, 4), name="other"))


@pytest.mark.parametrize("other", [None, np.eye(3)])
def test_another_type_is_one_sentence(other: object) -> None:
    with pytest.raises(ArgumentError, match="another Trace"):
        Trace.from_weights(np.eye(3)).compare(other)  # type: ignore[arg-type]


def test_alignment_without_tokens_is_by_position() -> None:
    assert Alignment.of(None, ("a", "b"), (2, 2)).pairs == ((0, 0), (1, 1))


def test_the_source_answers_with_both_sides_and_labels() -> None:
    left = Trace.from_weights(np.eye(2), ["the", "cat"])
    right = Trace.from_weights(np.eye(3), ["the", "big", "cat"])
    source = ComparisonSource(left.compare(right), "en")
    assert source.overview().about["compare"]["names"][1] == {"en": "second", "zh": "第二个"}
    answer = source.compare(0, 0)
    assert answer.about["queries"] == [["the", "the"], [None, "big"], ["cat", "cat"]]
    np.testing.assert_array_equal(answer.arrays["other"], np.eye(3))
    assert np.isnan(answer.arrays["cells"][1]).all()


def test_long_texts_are_pooled_for_the_source() -> None:
    source = ComparisonSource(Trace.from_weights(rows(600, 600)).compare(Trace.from_weights(rows(600, 600, seed=1))))
    answer = source.compare(0, 0)
    assert (answer.about["R"], answer.about["high"]) == (300, 2)
    np.testing.assert_allclose(answer.arrays["cells"].sum(-1), 1, rtol=1e-5)
