"""What is worth saying about the numbers of each step: sums spelled out, and where people stumble.

Every function takes the calculation and a language and gives lines. Long stories are cut after a few lines,
and the last line then says how many were left out.
"""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from regard.hand_calculation.calculation import Calculation
from regard.hand_calculation.number_format import factor, spell, total, vector
from regard.messages import Language, Listed, say

LINES = 12
"""At most so many sums are spelled out per step."""

Lines = Iterator[str]


def details(key: str, c: Calculation, lang: Language | None) -> tuple[str, ...]:
    """The lines that belong to the step called `key`."""
    return tuple(TELLERS[key](c, lang)) if key in TELLERS else ()


def _scores(c: Calculation, lang: Language | None) -> Lines:
    E = c.q.shape[1]

    def one(i: int, j: int) -> str:
        terms = (f"{factor(a)}·{factor(b)}" for a, b in zip(c.q[i], c.k[j], strict=True))
        return f"q{i}·k{j} = {total(terms, E)} = {spell(c.scores[i, j])}"

    return _each_cell(c, one, lang)


def _scaled(c: Calculation, lang: Language | None) -> Lines:
    if c.scale is None:
        by = f"/ {spell(np.sqrt(c.q.shape[1]))}"
    else:
        by = f"· {factor(c.scale)}"

    def one(i: int, j: int) -> str:
        return f"{spell(c.scores[i, j])} {by} = {spell(c.scaled[i, j])}"

    return _each_cell(c, one, lang)


def _masked(c: Calculation, lang: Language | None) -> Lines:
    blind, broken = c.blind, c.met_nonfinite

    def lines() -> Lines:
        for i, seen in enumerate(c.allowed):
            if blind[i]:
                yield say("hand-blind", lang, row=i)
            elif broken[i]:
                yield say("hand-not-finite", lang, row=i)
            elif seen.all():
                yield say("hand-sees-all", lang, row=i)
            else:
                yield say("hand-sees", lang, row=i, seen=_names(seen), hidden=_names(~seen))

    return _cut(lines(), len(c.allowed), lang)


def _shifted(c: Calculation, lang: Language | None) -> Lines:
    def lines() -> Lines:
        for i, highest in enumerate(c.highest[:, 0]):
            if highest == -np.inf:
                yield say("hand-no-highest", lang, row=i)
            else:
                yield say("hand-highest", lang, row=i, highest=spell(highest))

    return _cut(lines(), len(c.highest), lang)


def _powers(c: Calculation, lang: Language | None) -> Lines:
    def one(i: int, j: int) -> str:
        return f"exp({spell(c.shifted[i, j])}) = {spell(c.powers[i, j])}"

    return _each_cell(c, one, lang)


def _sums(c: Calculation, lang: Language | None) -> Lines:
    S = c.powers.shape[1]

    def lines() -> Lines:
        for i, row in enumerate(c.powers):
            added = f"{total((spell(x) for x in row), S)} = {spell(c.sums[i, 0])}"
            yield say("hand-row", lang, row=i, sum=added)

    return _cut(lines(), len(c.powers), lang)


def _weights(c: Calculation, lang: Language | None) -> Lines:
    S = c.weights.shape[1]
    nothing = c.sums[:, 0] == 0

    def lines() -> Lines:
        for i, row in enumerate(c.weights):
            if nothing[i]:
                yield say("hand-weights-zero", lang, row=i)
            else:
                divided = zip(c.powers[i], row, strict=True)
                yield from (f"{spell(power)} / {spell(c.sums[i, 0])} = {spell(w)}" for power, w in divided)

    yield from _cut(lines(), int(np.where(nothing, 1, S).sum()), lang)
    seen = c.before_softmax > -np.inf
    for i, j in islice(np.argwhere(seen & (c.before_softmax == 0) & (c.weights > 0)), 1):
        yield say("hand-zero-score", lang, row=i, column=j, weight=spell(c.weights[i, j]))
    for i, j in islice(np.argwhere(seen & (c.weights == 0)), 1):
        yield say("hand-underflow", lang, row=i, column=j, score=spell(c.before_softmax[i, j]))


def _output(c: Calculation, lang: Language | None) -> Lines:
    S, blind = c.v.shape[0], c.blind

    def lines() -> Lines:
        for i, row in enumerate(c.weights):
            if c.sums[i, 0] == 0:
                # Scores can also be -inf because they overflowed; then the query may look, and finds nothing.
                yield say("hand-output-zero" if blind[i] else "hand-output-nothing", lang, row=i)
            else:
                terms = (f"{spell(weight)}·{vector(c.v[j])}" for j, weight in enumerate(row))
                yield say("hand-row", lang, row=i, sum=f"{total(terms, S)} = {vector(c.output[i])}")

    return _cut(lines(), len(c.weights), lang)


TELLERS: dict[str, Callable[[Calculation, Language | None], Lines]] = {
    "scores": _scores,
    "scaled": _scaled,
    "masked": _masked,
    "shifted": _shifted,
    "powers": _powers,
    "sums": _sums,
    "weights": _weights,
    "output": _output,
}


def _each_cell(c: Calculation, one: Callable[[int, int], str], lang: Language | None) -> Lines:
    """One line for each query and key, as far as there is room."""
    T, S = c.scores.shape
    return _cut((one(i, j) for i in range(T) for j in range(S)), T * S, lang)


def _cut(lines: Lines, count: int, lang: Language | None) -> Lines:
    """The first lines of `count`, and how many more there are."""
    shown = count if count <= LINES else LINES // 2
    yield from islice(lines, shown)
    if count > shown:
        yield say("hand-more", lang, count=count - shown)


def _names(chosen: np.ndarray) -> Listed:
    """The chosen keys by name; of many, the first ones.

    >>> _names(np.array([True, False, True]))
    ('k0', 'k2')
    """
    return Listed.few((f"k{j}" for j in np.flatnonzero(chosen)), 8)
