"""The stored results that pictures show: complete, and in range."""

import numpy as np

from regard.course.drawings import measured
from regard.course.drawings.lesson_08 import BEST, GREEDY, SEARCHED, step_probabilities


def test_the_film_ends_with_a_diagonal() -> None:
    film = measured("copy-film")
    (stored,) = film["frames"].values()
    frames = {int(step): np.array(weights) for step, weights in stored.items()}
    assert all(np.allclose(weights.sum(-1), 1, atol=0.01) for weights in frames.values())
    first, last = frames[min(frames)], frames[max(frames)]
    letters = np.arange(len(film["columns"]) - 1)
    assert (last.argmax(-1)[letters] == letters).all()
    assert first[letters, letters].mean() < 0.3 < 0.9 < last[letters, letters].mean()


def test_the_film_of_an_induction_head_ends_with_both_heads() -> None:
    film = measured("induction-film")
    first, second = ([np.array(weights) for weights in frames.values()] for frames in film["frames"].values())
    assert all(np.allclose(weights.sum(-1), 1, atol=0.01) for weights in first + second)
    half = len(set(film["rows"]))
    again = np.arange(half, len(film["rows"]))  # rows of the second copy
    assert (first[-1].argmax(-1)[1:] == np.arange(len(film["rows"]) - 1)).all()
    assert (second[-1].argmax(-1)[again] == again - half + 1).all()
    assert second[0][again, again - half + 1].mean() < 0.3
    losses = {int(step): loss for step, loss in film["loss"].items()}
    assert losses[100] > 2.5
    assert losses[180] < 0.1


def test_one_head_carries_the_rhyme_of_unread_poems() -> None:
    found = measured("rhyme-heads")
    falls, errors = np.array(found["falls"]), np.array(found["errors"])
    assert (found["poems"], len(falls), len(errors)) == (262, 48, 48)
    best, second = falls.argsort()[:-3:-1]
    assert best == 8 * 5 + 6
    assert 0.2 < falls[best] / found["whole"] < 0.3
    assert falls[best] - 5 * errors[best] > 2 * falls[second]


def test_beam_search_finds_what_greedy_misses() -> None:
    greedy, best = (np.log(step_probabilities(SEARCHED, output)) for output in (GREEDY, BEST))
    shared = min(len(greedy), len(best))
    # Two runs of different length round the same probability differently.
    apart = int(np.argmax(~np.isclose(greedy[:shared], best[:shared], atol=1e-4)))
    assert greedy[apart] > best[apart]
    assert greedy.sum() < best.sum()
