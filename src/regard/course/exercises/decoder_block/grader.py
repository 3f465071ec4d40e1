"""Calls and known mistakes of `decoder-block`: causal self-attention, cross-attention, feed-forward, all pre-norm."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.block_inputs import (
    Sizes,
    block_weights,
    cross_attention_scores,
    drawn,
    masked_scored,
    scored,
)
from regard.course.exercises.edge_inputs import MASKED, SCORES
from regard.course.exercises.random_inputs import State
from regard.course.exercises.shared_mistakes import FILLS

ATTENTIONS = ("self_attention", "cross_attention")


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def decode(
        about: str,
        B: int,
        T: int,
        S: int,
        mask: np.ndarray | None = None,
        sizes: Sizes = (6, 2, 5),
        spread: float = 1.0,
    ) -> Call:
        weights = block_weights(rng, sizes, ATTENTIONS)
        weights["feed_forward_norm.weight"] *= max(1.0, spread / 3)  # a large x stays large for the feed-forward
        args = (drawn(rng, B, T, sizes[0], spread), drawn(rng, B, S, sizes[0]), weights, sizes[1])
        return call("decoder_block", *args, *([] if mask is None else [mask]), about=about)

    def edge(about: str, x: np.ndarray, memory: np.ndarray, given: State, *mask: np.ndarray) -> Call:
        return call(
            "decoder_block", x, memory, block_weights(rng, (8, 2, 5), ATTENTIONS) | given, 2, *mask, about=about
        )

    def back(about: str, x: np.ndarray, given: State) -> Call:
        return edge(about, x, drawn(rng, len(x), 3, 8), given)

    def across(about: str, scores: np.ndarray, *mask: np.ndarray) -> Call:
        return edge(about, drawn(rng, 1, 3, 8), *cross_attention_scores(rng, scores), *mask)

    real = np.array([[True, True, False, True]])
    before = np.tri(4, dtype=bool)[None]
    return [
        decode("plain", 1, 3, 2),
        decode("as-long", 3, 3, 3),
        decode("longer", 2, 2, 5),
        decode("padding", 3, 2, 5, np.arange(5) < np.array([[4], [2], [3]])),
        decode("as-many-as-heads", 2, 3, 3, np.array([[True, True, False], [True, False, False]])),
        decode("as-many-as-tokens", 4, 4, 4, rng.permuted(np.tile([True, True, False, False], (4, 1)), axis=1)),
        decode("all-different", 4, 5, 7, rng.permuted(np.tile(np.arange(7) < 4, (4, 1)), axis=1), (6, 2, 9)),
        decode("three-heads", 2, 4, 5, sizes=(6, 3, 5)),
        decode("one-head", 2, 3, 4, np.array([[True, True, False, True], [False, True, False, False]]), (4, 1, 3)),
        decode("all-the-same", 3, 3, 3, ~np.eye(3, dtype=bool), (9, 3, 9)),
        decode("one-token", 2, 1, 3),
        decode("one-key", 2, 3, 1, np.array([[True], [True]])),
        decode("nothing-hidden", 2, 4, 3, np.ones((2, 3), dtype=bool), (6, 3, 4)),
        decode("small", 2, 3, 4, spread=0.02),
        decode("large", 2, 3, 4, spread=30.0),
        *(back(*one) for one in scored(rng)),
        *(back(*one) for one in masked_scored(rng, before)),
        *(across(about, scores(rng, 1, 4)) for about, scores in SCORES.items()),
        *(across(about, scores(rng, real), real) for about, scores in MASKED.items()),
    ]


VISIBLE = "visible = None if memory_mask is None else memory_mask[:, None, None, :]"
NORM_1 = 'normed = layer_norm(x, weights, "self_attention_norm")'
NORM_2 = 'normed = layer_norm(x, weights, "cross_attention_norm")'
NORM_3 = 'normed = layer_norm(x, weights, "feed_forward_norm")'
BACK = 'x = x + multi_head_attention(normed, normed, weights, "self_attention", n_heads, causal)'
ACROSS = 'x = x + multi_head_attention(normed, memory, weights, "cross_attention", n_heads, visible)'
LAST = "return x + feed_forward(normed, weights)"
BODY = "\n    ".join((NORM_1, BACK, NORM_2, ACROSS, NORM_3, LAST))
CAUSAL = "np.tri(T, dtype=bool)"
RELU = 'np.maximum(linear(x, weights, "feed_forward.up"), 0)'
SPLIT = "x.reshape(B, T, n_heads, d_model // n_heads).transpose(0, 2, 1, 3)"
MERGED = "heads.transpose(0, 2, 1, 3).reshape(x.shape)"
SCALE = " / np.sqrt(q.shape[-1])"
HIDE = "scores = np.where(visible, scores, -np.inf)"
POWERS = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
GELU = "0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))"


def norm(of: str, name: str) -> str:
    return f'layer_norm({of}, weights, "{name}_norm")'


def sum_of(line: str) -> str:
    """The right side of a line x = x + …, or of the return."""
    return line.removeprefix("return ").removeprefix("x = ").replace("normed", "x")


def body(mistake: str, *lines: str) -> Mistake:
    """A mistake that replaces the lines of all three sub-layers."""
    return Mistake(mistake, ((BODY, "\n    ".join(lines)),))


def without(start: str) -> tuple[tuple[str, str], ...]:
    """The swaps that begin each residual with `start` in the place of "x + "."""
    sums = ((BACK, BACK.replace("x + ", start)), (ACROSS, ACROSS.replace("x + ", start)))
    return (*sums, (LAST, LAST.replace("x + ", start)))


MISTAKES = (
    Mistake("causal-missing", ((CAUSAL, "np.ones((T, T), dtype=bool)"),)),
    Mistake("causal-strict", ((CAUSAL, "np.tri(T, k=-1, dtype=bool)"),)),
    Mistake("causal-upside-down", ((CAUSAL, "np.tri(T, dtype=bool).T"),)),
    Mistake("causal-other-way", ((CAUSAL, "~np.tri(T, dtype=bool)"),)),
    Mistake("one-too-far", ((CAUSAL, "np.tri(T, k=1, dtype=bool)"),)),
    Mistake(
        "causal-across",
        (
            (
                VISIBLE,
                f"{VISIBLE}\n    earlier = np.tri(T, memory.shape[1], dtype=bool)\n"
                "    visible = earlier if visible is None else earlier & visible",
            ),
        ),
    ),
    Mistake("looks-at-itself", ((ACROSS, ACROSS.replace("memory", "normed").replace("visible", "None")),)),
    Mistake("looks-at-itself", ((ACROSS, ACROSS.replace("memory", "normed").replace("visible", "causal")),)),
    Mistake("memory-normed", ((ACROSS, ACROSS.replace("memory", norm("memory", "cross_attention"))),)),
    Mistake("asks-with-the-input", ((NORM_1, f"start = x\n    {NORM_1}"), (NORM_2, NORM_2.replace("(x", "(start")))),
    Mistake("query-not-normed", ((ACROSS, ACROSS.replace("normed", "x")),)),
    Mistake("one-attention", ((ACROSS, ACROSS.replace('"cross_attention"', '"self_attention"')),)),
    Mistake(
        "attentions-swapped",
        ((BACK, "B1"), (ACROSS, ACROSS.replace('"cross', '"self')), ("B1", BACK.replace('"self', '"cross'))),
    ),
    body("cross-first", NORM_2, ACROSS, NORM_1, BACK, NORM_3, LAST),
    body(
        "feed-forward-second",
        NORM_1,
        BACK,
        NORM_3,
        LAST.replace("return x", "x = x"),
        NORM_2,
        ACROSS.replace("x = x", "return x"),
    ),
    body("no-cross-attention", NORM_1, BACK, NORM_3, LAST),
    body(
        "post-norm",
        f"x = {norm(sum_of(BACK), 'self_attention')}",
        f"x = {norm(sum_of(ACROSS), 'cross_attention')}",
        f"return {norm(sum_of(LAST), 'feed_forward')}",
    ),
    body(
        "norm-after-sublayer",
        f"x = x + {norm(sum_of(BACK)[4:], 'self_attention')}",
        f"x = x + {norm(sum_of(ACROSS)[4:], 'cross_attention')}",
        f"return x + {norm(sum_of(LAST)[4:], 'feed_forward')}",
    ),
    Mistake("residual-from-normed", without("normed + ")),
    Mistake("no-residual", without("")),
    Mistake("no-residual-back", ((BACK, BACK.replace("x + ", "")),)),
    Mistake("no-residual-across", ((ACROSS, ACROSS.replace("x + ", "")),)),
    Mistake("no-residual-around-feed-forward", ((LAST, LAST.replace("x + ", "")),)),
    Mistake("residual-from-the-start", ((NORM_1, f"start = x\n    {NORM_1}"), (LAST, LAST.replace("x +", "start +")))),
    body("no-norm", *(line.replace("normed", "x") for line in (BACK, ACROSS, LAST))),
    Mistake("cross-norm-unused", ((NORM_2, NORM_1),)),
    Mistake("normed-once", ((f"{NORM_2}\n    ", ""),)),
    Mistake("shared-norm", ((NORM_2, NORM_1), (NORM_3, NORM_1))),
    Mistake("norms-swapped", ((NORM_2, "N2"), (NORM_3, NORM_2), ("N2", NORM_3))),
    Mistake("normed-at-the-end", ((LAST, f"return {norm(LAST.removeprefix('return '), 'feed_forward')}"),)),
    Mistake("no-feed-forward", ((LAST, "return x"),)),
    Mistake("no-relu", ((RELU, 'linear(x, weights, "feed_forward.up")'),)),
    Mistake("gelu", ((RELU, f'(lambda h: {GELU})(linear(x, weights, "feed_forward.up"))'),)),
    Mistake("split-by-reshape", ((SPLIT, "x.reshape(B, n_heads, T, d_model // n_heads)"),)),
    Mistake("merged-by-reshape", ((MERGED, "heads.reshape(x.shape)"),)),
    Mistake(
        "interleaved",
        (
            (SPLIT, "x.reshape(B, T, d_model // n_heads, n_heads).transpose(0, 3, 1, 2)"),
            (MERGED, "heads.transpose(0, 2, 3, 1).reshape(x.shape)"),
        ),
    ),
    Mistake("one-big-head", (("B, T, d_model = x.shape", "B, T, d_model = x.shape\n    n_heads = 1"),)),
    Mistake("no-output-projection", (('return linear(merged, weights, f"{name}.o_proj")', "return merged"),)),
    Mistake("queries-for-keys", (('f"{name}.k_proj"', 'f"{name}.q_proj"'),)),
    Mistake("key-projection-for-values", (('f"{name}.v_proj"', 'f"{name}.k_proj"'),)),
    Mistake("keys-for-values", (("attention(q, k, v, visible)", "attention(q, v, k, visible)"),)),
    Mistake("no-biases", ((' + weights[f"{name}.bias"]\n\n\ndef layer_norm', "\n\n\ndef layer_norm"),)),
    Mistake("no-scale", ((SCALE, ""),)),
    Mistake("root-of-model", ((SCALE, " / np.sqrt(q.shape[-1] * q.shape[1])"),)),
    Mistake("heads-for-width", ((SCALE, " / np.sqrt(q.shape[1])"),)),
    Mistake("mask-ignored", ((VISIBLE, "visible = None"),)),
    Mistake("polarity", ((VISIBLE, VISIBLE.replace("memory_mask[", "~memory_mask[")),)),
    Mistake(
        "memory-zeroed",
        (
            (
                VISIBLE,
                "visible = None\n    memory = memory if memory_mask is None else memory * memory_mask[:, :, None]",
            ),
        ),
    ),
    Mistake("mask-beside-heads", ((VISIBLE, VISIBLE.replace("None, None, :]", "None, :]")),)),
    Mistake("mask-beside-queries", ((VISIBLE, "visible = memory_mask"),)),
    *(Mistake("fill-too-high", ((HIDE, HIDE.replace("-np.inf", fill)),)) for fill in FILLS[1::3]),
    Mistake("masked-too-late", ((HIDE, "pass"), (POWERS, f"{POWERS} * (True if visible is None else visible)"))),
    Mistake("zero-score-zero-weight", ((POWERS, f"np.where(scores == 0, 0, {POWERS})"),)),
    Mistake("unstable-softmax", ((POWERS, "np.exp(scores)"),)),
    Mistake(
        "side-by-side",
        ((NORM_1, f"start = x\n    {NORM_1}"), *((line, line.replace("(x", "(start")) for line in (NORM_2, NORM_3))),
    ),
    Mistake(
        "feed-forward-gets-the-input", ((NORM_1, f"start = x\n    {NORM_1}"), (NORM_3, NORM_3.replace("(x", "(start")))
    ),
    Mistake(
        "leaky-relu",
        (
            (
                'hidden = np.maximum(linear(x, weights, "feed_forward.up"), 0)',
                'hidden = linear(x, weights, "feed_forward.up")\n'
                "    hidden = np.where(hidden > 0, hidden, 0.01 * hidden)",
            ),
        ),
    ),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-5))
