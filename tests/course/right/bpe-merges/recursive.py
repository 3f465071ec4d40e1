from functools import reduce
from itertools import pairwise


def _join(pieces, pair):
    def add(done, piece):
        if done and not done[-1][1] and (done[-1][0], piece) == pair:
            return [*done[:-1], (done[-1][0] + piece, True)]
        return [*done, (piece, False)]

    return tuple(piece for piece, _ in reduce(add, pieces, []))


def _learn(corpus, n):
    pairs = {pair for pieces, _ in corpus for pair in pairwise(pieces)}
    if n == 0 or not pairs:
        return []

    def count(pair):
        return sum(times * sum(p == pair for p in pairwise(pieces)) for pieces, times in corpus)

    best = sorted(pairs, key=lambda pair: (-count(pair), pair))[0]
    return [best, *_learn([(_join(pieces, best), times) for pieces, times in corpus], n - 1)]


def learn_merges(words, n_merges):
    return _learn([(tuple(word), times) for word, times in words.items()], n_merges)
