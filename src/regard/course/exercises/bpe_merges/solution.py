from collections import Counter
from itertools import pairwise

Pair = tuple[str, str]


def merge(pieces: list[str], pair: Pair) -> list[str]:
    """Join every occurrence of the pair, from left to right."""
    joined: list[str] = []
    place = 0
    while place < len(pieces):
        if tuple(pieces[place : place + 2]) == pair:
            joined.append(pair[0] + pair[1])
            place += 2
        else:
            joined.append(pieces[place])
            place += 1
    return joined


def learn_merges(words: dict[str, int], n_merges: int) -> list[Pair]:
    split = {word: list(word) for word in words}
    merges: list[Pair] = []
    for _ in range(n_merges):
        counts: Counter[Pair] = Counter()
        for word, count in words.items():
            pieces = split[word]
            for pair in pairwise(pieces):
                counts[pair] += count
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        split = {word: merge(pieces, best) for word, pieces in split.items()}
    return merges
