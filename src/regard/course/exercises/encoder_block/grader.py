"""Calls and known mistakes of `encoder-block`: pre-norm, heads, the feed-forward, and padding hidden as keys."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.block_inputs import Sizes, block_weights, drawn, masked_scored, scored
from regard.course.exercises.random_inputs import State
from regard.course.exercises.shared_mistakes import FILLS


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def encode(
        about: str, B: int, T: int, mask: np.ndarray | None = None, sizes: Sizes = (6, 2, 5), spread: float = 1.0
    ) -> Call:
        weights = block_weights(rng, sizes)
        weights["feed_forward_norm.weight"] *= max(1.0, spread / 3)  # a large x stays large for the feed-forward
        args = (drawn(rng, B, T, sizes[0], spread), weights, sizes[1])
        return (
            call("encoder_block", *args, about=about)
            if mask is None
            else call("encoder_block", *args, mask, about=about)
        )

    def edge(about: str, x: np.ndarray, given: State, *mask: np.ndarray) -> Call:
        return call("encoder_block", x, block_weights(rng, (8, 2, 5)) | given, 2, *mask, about=about)

    real = np.array([[True, True, False], [False, True, False]])
    keys = np.repeat(real[:, None], 3, axis=1)  # B T S: padding hides keys, for every query
    return [
        encode("plain", 1, 3),
        encode("longer", 3, 5),
        encode("padding", 1, 5, np.array([[True, True, True, False, False]])),
        encode("as-many-as-heads", 2, 3, np.array([[True, True, False], [True, False, False]])),
        encode("as-many-as-tokens", 3, 3, np.array([[True, True, False], [False, True, True], [True, False, False]])),
        encode(
            "all-different", 4, 5, rng.permuted(np.tile([True, True, True, False, False], (4, 1)), axis=1), (6, 2, 7)
        ),
        encode("three-heads", 2, 4, sizes=(6, 3, 5)),
        encode("one-head", 2, 3, np.array([[True, True, False], [False, True, False]]), (4, 1, 3)),
        encode(
            "all-the-same", 3, 3, np.array([[True, True, False], [True, False, True], [False, True, True]]), (9, 3, 9)
        ),
        encode("one-token", 2, 1, np.array([[True], [True]])),
        encode("nothing-hidden", 2, 4, np.ones((2, 4), dtype=bool), (6, 3, 4)),
        encode("small", 2, 3, spread=0.02),
        encode("large", 2, 3, spread=30.0),
        *(edge(*one) for one in scored(rng)),
        *(edge(*one, real) for one in masked_scored(rng, keys)),
    ]


VISIBLE = "visible = None if mask is None else mask[:, None, None, :]"
NORM_1 = 'normed = layer_norm(x, weights, "self_attention_norm")'
NORM_2 = 'normed = layer_norm(x, weights, "feed_forward_norm")'
FIRST = "x = x + self_attention(normed, weights, n_heads, visible)"
SECOND = "return x + feed_forward(normed, weights)"
BODY = "\n    ".join((NORM_1, FIRST, NORM_2, SECOND))
RELU = 'np.maximum(linear(x, weights, "feed_forward.up"), 0)'
SPLIT = "x.reshape(B, T, n_heads, d_model // n_heads).transpose(0, 2, 1, 3)"
MERGED = "heads.transpose(0, 2, 1, 3).reshape(x.shape)"
SCALE = " / np.sqrt(q.shape[-1])"
HIDE = "scores = np.where(visible, scores, -np.inf)"
POWERS = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
GELU = "0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))"


def norm(of: str, name: str) -> str:
    return f'layer_norm({of}, weights, "{name}_norm")'


def attended(of: str) -> str:
    return f"self_attention({of}, weights, n_heads, visible)"


def body(mistake: str, *lines: str) -> Mistake:
    """A mistake that replaces the lines of both sub-layers."""
    return Mistake(mistake, ((BODY, "\n    ".join(lines)),))


TWICE = 'return np.maximum(linear(hidden, weights, "feed_forward.down"), 0)'

MISTAKES = (
    body(
        "post-norm",
        f"x = {norm('x + ' + attended('x'), 'self_attention')}",
        f"return {norm('x + feed_forward(x, weights)', 'feed_forward')}",
    ),
    body(
        "norm-after-sublayer",
        f"x = x + {norm(attended('x'), 'self_attention')}",
        f"return x + {norm('feed_forward(x, weights)', 'feed_forward')}",
    ),
    Mistake(
        "residual-from-normed",
        ((FIRST, FIRST.replace("x = x +", "x = normed +")), (SECOND, SECOND.replace("x +", "normed +"))),
    ),
    Mistake("attention-residual-from-normed", ((FIRST, FIRST.replace("x = x +", "x = normed +")),)),
    Mistake("feed-forward-residual-from-normed", ((SECOND, SECOND.replace("x +", "normed +")),)),
    Mistake("no-norm", ((FIRST, FIRST.replace("normed", "x")), (SECOND, SECOND.replace("normed", "x")))),
    Mistake("attention-not-normed", ((FIRST, FIRST.replace("normed", "x")),)),
    Mistake("feed-forward-not-normed", ((SECOND, SECOND.replace("normed", "x")),)),
    Mistake("shared-norm", ((NORM_2, NORM_1),)),
    Mistake("norms-swapped", ((NORM_1, "N1"), (NORM_2, NORM_1), ("N1", NORM_2))),
    Mistake("normed-at-the-end", ((SECOND, f"return {norm('x + feed_forward(normed, weights)', 'feed_forward')}"),)),
    Mistake("no-residual", ((FIRST, FIRST.replace("x = x +", "x =")), (SECOND, SECOND.replace("x + ", "")))),
    Mistake("no-residual-around-attention", ((FIRST, FIRST.replace("x = x +", "x =")),)),
    Mistake("no-residual-around-feed-forward", ((SECOND, SECOND.replace("x + ", "")),)),
    Mistake(
        "residual-from-the-start", ((NORM_1, f"start = x\n    {NORM_1}"), (SECOND, SECOND.replace("x +", "start +")))
    ),
    Mistake("side-by-side", ((NORM_1, f"start = x\n    {NORM_1}"), (NORM_2, NORM_2.replace("(x", "(start")))),
    body(
        "feed-forward-first",
        NORM_2,
        "x = x + feed_forward(normed, weights)",
        NORM_1,
        FIRST.replace("x = x", "return x"),
    ),
    Mistake("no-feed-forward", ((SECOND, "return x"),)),
    Mistake("second-relu", (('return linear(hidden, weights, "feed_forward.down")', TWICE),)),
    Mistake("no-relu", ((RELU, 'linear(x, weights, "feed_forward.up")'),)),
    Mistake("gelu", ((RELU, f'(lambda h: {GELU})(linear(x, weights, "feed_forward.up"))'),)),
    Mistake(
        "relu-too-late",
        (
            (RELU, 'linear(x, weights, "feed_forward.up")'),
            (
                'return linear(hidden, weights, "feed_forward.down")',
                'return np.maximum(linear(hidden, weights, "feed_forward.down"), 0)',
            ),
        ),
    ),
    Mistake("split-by-reshape", ((SPLIT, "x.reshape(B, n_heads, T, d_model // n_heads)"),)),
    Mistake(
        "both-by-reshape", ((SPLIT, "x.reshape(B, n_heads, T, d_model // n_heads)"), (MERGED, "heads.reshape(x.shape)"))
    ),
    Mistake("merged-by-reshape", ((MERGED, "heads.reshape(x.shape)"),)),
    Mistake(
        "interleaved",
        (
            (SPLIT, "x.reshape(B, T, d_model // n_heads, n_heads).transpose(0, 3, 1, 2)"),
            (MERGED, "heads.transpose(0, 2, 3, 1).reshape(x.shape)"),
        ),
    ),
    Mistake("one-big-head", (("B, T, d_model = x.shape", "B, T, d_model = x.shape\n    n_heads = 1"),)),
    Mistake("no-output-projection", (('return linear(merged, weights, "self_attention.o_proj")', "return merged"),)),
    Mistake("queries-for-keys", (('"self_attention.k_proj"', '"self_attention.q_proj"'),)),
    Mistake("key-projection-for-values", (('"self_attention.v_proj"', '"self_attention.k_proj"'),)),
    Mistake("keys-for-values", (("attention(q, k, v, visible)", "attention(q, v, k, visible)"),)),
    Mistake("no-biases", ((' + weights[f"{name}.bias"]\n\n\ndef layer_norm', "\n\n\ndef layer_norm"),)),
    Mistake("no-scale", ((SCALE, ""),)),
    Mistake("root-of-model", ((SCALE, " / np.sqrt(q.shape[-1] * q.shape[1])"),)),
    Mistake("heads-for-width", ((SCALE, " / np.sqrt(q.shape[1])"),)),
    Mistake("mask-ignored", ((VISIBLE, "visible = None"),)),
    Mistake("polarity", ((VISIBLE, VISIBLE.replace("mask[", "~mask[")),)),
    Mistake("padded-queries", ((VISIBLE, VISIBLE.replace("None, None, :]", "None, :, None]")),)),
    Mistake("padded-both", ((VISIBLE, f"{VISIBLE} & mask[:, None, :, None]"),)),
    Mistake(
        "padded-rows-zeroed",
        ((SECOND, f"{SECOND.replace('return ', 'x = ')}\n    return x if mask is None else x * mask[:, :, None]"),),
    ),
    Mistake("input-zeroed", ((VISIBLE, "visible = None\n    x = x if mask is None else x * mask[:, :, None]"),)),
    Mistake("mask-beside-heads", ((VISIBLE, VISIBLE.replace("None, None, :]", "None, :]")),)),
    Mistake("mask-beside-queries", ((VISIBLE, "visible = mask"),)),
    Mistake(
        "causal-not-asked",
        (
            (
                VISIBLE,
                f"{VISIBLE}\n    visible = np.tri(x.shape[1], dtype=bool) & (True if visible is None else visible)",
            ),
        ),
    ),
    *(Mistake("fill-too-high", ((HIDE, HIDE.replace("-np.inf", fill)),)) for fill in FILLS[1::3]),
    Mistake("masked-too-late", ((HIDE, "pass"), (POWERS, f"{POWERS} * (True if visible is None else visible)"))),
    Mistake("zero-score-zero-weight", ((POWERS, f"np.where(scores == 0, 0, {POWERS})"),)),
    Mistake("unstable-softmax", ((POWERS, "np.exp(scores)"),)),
    Mistake("feed-forward-gets-attention-input", ((NORM_2, "pass"),)),
    Mistake(
        "keys-not-normed",
        (
            (FIRST, FIRST.replace("weights,", 'weights | {"raw": x},')),
            *(
                (f'(x, weights, "self_attention.{one}', f'(weights["raw"], weights, "self_attention.{one}')
                for one in "kv"
            ),
        ),
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
