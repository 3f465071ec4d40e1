"""The stored results that pictures show: complete, and in range."""

import numpy as np

from regard.course.drawings.lesson_08 import BEST, GREEDY, SEARCHED, step_probabilities
from regard.course.drawings.measured import measured


def test_the_film_ends_with_a_diagonal() -> None:
    film = measured("copy-film")
    frames = {int(step): np.array(weights) for step, weights in film["frames"].items()}
    assert all(np.allclose(weights.sum(-1), 1, atol=0.01) for weights in frames.values())
    first, last = frames[min(frames)], frames[max(frames)]
    letters = np.arange(len(film["columns"]) - 1)
    assert (last.argmax(-1)[letters] == letters).all()
    assert first[letters, letters].mean() < 0.3 < 0.9 < last[letters, letters].mean()


def test_beam_search_finds_what_greedy_misses() -> None:
    greedy, best = (np.log(step_probabilities(SEARCHED, output)) for output in (GREEDY, BEST))
    shared = min(len(greedy), len(best))
    # Two runs of different length round the same probability differently.
    apart = int(np.argmax(~np.isclose(greedy[:shared], best[:shared], atol=1e-4)))
    assert greedy[apart] > best[apart]
    assert greedy.sum() < best.sum()
