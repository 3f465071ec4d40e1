"""Calls and known mistakes of `positional-encoding`: the meaning of i, its start, the order of sine and cosine."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call


def cases(rng: np.random.Generator) -> Sequence[Call]:
    length, width = (int(rng.integers(3, 6)) for _ in range(2))
    return [
        call("positional_encoding", 3, 8),
        call("positional_encoding", 5, 4),
        call("positional_encoding", length, 2 * width),
        call("positional_encoding", 12, 4, about="further"),
        call("positional_encoding", 4, 2, about="one-pair"),
        call("positional_encoding", 1, 6, about="one-position"),
        call("positional_encoding", 4, 4, about="all-the-same"),
        call("positional_encoding", 70, 6, about="long"),
        call("positional_encoding", 3, 22, about="wide"),
    ]


EXPONENT = "(2 * i / d_model)"
ANGLE = f"position / 10000 ** {EXPONENT}"
COLUMNS = "table[:, 0::2] = np.sin(angle)\n    table[:, 1::2] = np.cos(angle)"

MISTAKES = (
    Mistake("halves", ((COLUMNS, "table[:] = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)"),)),
    Mistake("cosine-first", (("np.sin", "np.tan"), ("np.cos", "np.sin"), ("np.tan", "np.cos"))),
    Mistake("sine-only", (("np.cos", "np.sin"),)),
    Mistake("cosine-only", (("np.sin", "np.cos"),)),
    Mistake("no-two", ((EXPONENT, "(i / d_model)"),)),
    Mistake("column-for-pair", ((EXPONENT, "(4 * i / d_model)"),)),
    Mistake(
        "column-for-pair",
        ((EXPONENT, "(4 * i / d_model)"), ("np.cos(angle)", "np.cos(angle / 10000 ** (2 / d_model))")),
    ),
    Mistake(
        "odd-columns-faster",
        (("np.cos(angle)", "np.cos(position / 10000 ** ((2 * i + 1) / d_model))"),),
    ),
    Mistake("last-is-full", ((EXPONENT, "(2 * i / max(d_model - 2, 1))"),)),
    Mistake("from-one", (("np.arange(length)", "np.arange(1, length + 1)"),)),
    Mistake("pairs-from-one", (("np.arange(d_model // 2)", "np.arange(1, d_model // 2 + 1)"),)),
    *(Mistake("other-base", (("10000", base),)) for base in ("1000", "1e5", "1e6", "np.e")),
    Mistake("times", ((ANGLE, f"position * 10000 ** {EXPONENT}"),)),
    Mistake("no-brackets", ((ANGLE, "position / 10000**2 * i / d_model"),)),
    Mistake("no-width", ((EXPONENT, "(2.0 * i)"),)),
    Mistake("one-speed", ((ANGLE, "position * np.ones(d_model // 2)"),)),
    Mistake("whole-turns", ((ANGLE, f"2 * np.pi * {ANGLE}"),)),
    Mistake("angles-only", ((COLUMNS, "table[:, 0::2] = angle\n    table[:, 1::2] = angle"),)),
    Mistake("columns-first", (("return table", "return table.T"),)),
    Mistake("rounded", (("return table", "return np.round(table, 4)"),)),
    Mistake("low-precision", (("return table", "return table.astype(np.float16)"),)),
    Mistake("hard-coded", (("return table", "return np.array([[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]])"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
