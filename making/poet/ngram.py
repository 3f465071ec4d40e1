"""python -m making.poet.ngram --data FOLDER: scores 5-gram models of the poet's training poems.

Interpolated, modified Kneser–Ney over characters (Chen and Goodman 1999, section 3): a baseline for models that learn
more than short character sequences. Reads train.txt and heldout.txt of `making.poet.data`; headers are context, never
predicted; the end of a poem is predicted.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from making.poet.data import SEPARATOR
from regard.generation import Sampling

START, END, UNKNOWN = 0, 1, 2
LONGEST = 300  # the largest number of characters of a generated poem


class Level(NamedTuple):
    """All n-grams of length n. Each is `context · V + symbol`, where `context` is an index into the level below.

    gain   (N,)   its contribution to the probability of its last symbol after its context
    rest   (C,)   the probability mass that each context leaves to shorter ones
    """

    grams: np.ndarray
    gain: np.ndarray
    rest: np.ndarray

    def places(self, grams: np.ndarray) -> np.ndarray:
        """The indices of these n-grams, -1 for unknown ones."""
        places = np.searchsorted(self.grams, grams).clip(max=len(self.grams) - 1)
        return np.where(self.grams[places] == grams, places, -1)


class KneserNey:
    """A character model of poems, each a header up to ｜ and a text.

    >>> model = KneserNey(["五绝｜山高月小。", "五绝｜山高水长。"], order=3)
    >>> model.bits("五绝｜山高月小。").argmax().item(), model.write("五绝｜", Sampling(top_p=0.5, seed=0))
    (2, '山高月小。')
    """

    def __init__(self, poems: Sequence[str], order: int = 5) -> None:
        self.order = order
        self.symbols = ["", "", "", *sorted(set().union(*poems))]
        self.ids = {symbol: place for place, symbol in enumerate(self.symbols) if symbol}
        stream = np.concatenate([self._read(poem) for poem in poems])
        predicted = np.concatenate([self._predicted(poem) for poem in poems])
        self.levels = self._levels(stream, predicted)

    def _read(self, poem: str) -> np.ndarray:
        """A poem's symbols after order − 1 STARTs, so that every symbol has a full context."""
        return np.array([START] * (self.order - 1) + [self.ids.get(sign, UNKNOWN) for sign in poem] + [END])

    def _predicted(self, poem: str) -> np.ndarray:
        """Which of these symbols are predicted: not the STARTs, not the header."""
        header = self.order - 1 + poem.index(SEPARATOR) + 1
        return np.arange(self.order + len(poem)) >= header

    def _levels(self, stream: np.ndarray, predicted: np.ndarray) -> list[Level]:
        """Level n for n = 1, 2, …: indices are computed from short to long n-grams, counts from long to short."""
        grams: list[np.ndarray] = []
        places = [np.zeros_like(stream)]  # the index of the n-gram that ends at each symbol
        for _ in range(self.order):
            # The n-gram before the first symbol wraps around to the last one, which is harmless: it is not predicted.
            found, place = np.unique(np.roll(places[-1], 1) * len(self.symbols) + stream, return_inverse=True)
            grams.append(found)
            places.append(place)
        counts = np.bincount(places[-1][predicted], minlength=len(grams[-1]))
        levels = [self._level(grams[-1], counts, contexts=len(grams[-2]) if self.order > 1 else 1)]
        for n in range(self.order - 1, 0, -1):
            # A shorter n-gram counts once for each symbol that precedes it: "Francisco" follows only "San".
            shorter = np.zeros(len(grams[n]), int)
            shorter[places[n + 1]] = places[n]
            counts = np.bincount(shorter[counts > 0], minlength=len(grams[n - 1]))
            levels.append(self._level(grams[n - 1], counts, contexts=len(grams[n - 2]) if n > 1 else 1))
        return levels[::-1]

    def _level(self, grams: np.ndarray, counts: np.ndarray, contexts: int) -> Level:
        discounts = _discounts(counts)[counts.clip(max=3)]
        context = grams // len(self.symbols)
        total = np.bincount(context, counts, contexts)
        taken = np.bincount(context, discounts, contexts)
        gain = (counts - discounts) / total[context].clip(min=1)
        # A context without predictions, such as the middle of a header, leaves all mass to shorter ones.
        return Level(grams, gain, np.where(total > 0, taken / total.clip(min=1), 1.0))

    def bits(self, poem: str) -> np.ndarray:
        """−log₂ of the probability of each character after the header, and of the end. Unknown ones are one symbol."""
        stream = self._read(poem)
        chances = np.full(len(stream), 1 / (len(self.symbols) - 1))  # START is never predicted
        before = np.zeros_like(stream)
        for level in self.levels:
            place = level.places(np.where(before >= 0, before * len(self.symbols) + stream, -1))
            chances *= np.where(before >= 0, level.rest[before], 1.0)
            chances += np.where(place >= 0, level.gain[place], 0.0)
            before = np.roll(place, 1)
        bits: np.ndarray = -np.log2(chances[self._predicted(poem)])
        return bits

    def chances(self, beginning: str) -> np.ndarray:
        """The probability of each next symbol, (V,)."""
        stream = self._read(beginning)[:-1]
        chances = np.full(len(self.symbols), 1 / (len(self.symbols) - 1))
        chances[START] = 0
        for n, level in enumerate(self.levels):
            context = np.array(0)
            for below, symbol in zip(self.levels, stream[len(stream) - n :], strict=False):
                context = below.places(context * len(self.symbols) + symbol)
                if context < 0:
                    return chances  # longer contexts are unknown too
            first, last = np.searchsorted(level.grams, (context + np.arange(2)) * len(self.symbols))
            chances *= level.rest[context]
            chances[level.grams[first:last] % len(self.symbols)] += level.gain[first:last]
        return chances

    def write(self, header: str, pick: Sampling) -> str:
        """A sampled poem, without its header."""
        picker = pick.start([[]], len(self.symbols))
        text = ""
        while len(text) < LONGEST:
            chances = self.chances(header + text)
            chances[UNKNOWN] = 0
            with np.errstate(divide="ignore"):
                symbol = int(picker(np.log(chances)[None])[0])
            if symbol == END:
                break
            text += self.symbols[symbol]
        return text


def _discounts(counts: np.ndarray) -> np.ndarray:
    """The discounts of n-grams that occur 0, 1, 2, and more times: (4,)."""
    seen = np.array([max(1, int((counts == times).sum())) for times in (1, 2, 3, 4)])
    times = np.array([1, 2, 3])
    found = times - (times + 1) * seen[0] / (seen[0] + 2 * seen[1]) * seen[1:] / seen[:-1]
    # For little text the estimates may be out of range.
    return np.array([0.0, *np.where((found > 0) & (found < times), found, times / 2)])


def read(folder: Path, name: str) -> list[str]:
    """The poems of a file, with their headers."""
    return (folder / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m making.poet.ngram", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder that making.poet.data wrote")
    options = parser.parse_args()
    train, heldout = read(options.data, "train"), read(options.data, "heldout")
    for order in range(1, 6):
        model = KneserNey(train, order)
        print(f"{order}-gram: {np.concatenate([model.bits(poem) for poem in heldout]).mean():.3f} bits per character")
    for form in ("五绝｜", "七绝｜"):
        print(form + model.write(form, Sampling(seed=0)))


if __name__ == "__main__":
    main()
