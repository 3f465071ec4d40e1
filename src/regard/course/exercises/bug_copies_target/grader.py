"""Calls and known mistakes of `bug-copies-target`. Only `training_loss` is called; sentences have unequal lengths."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.random_inputs import numbers

PAD, EOS = 0, 2


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def ids(lengths: Sequence[int], words: int, ends: bool) -> np.ndarray:
        """Sentences of different random words, with EOS last if `ends`, filled up with PAD."""
        rows = [[*(3 + rng.permutation(words))[: n - ends], *[EOS] * ends] for n in lengths]
        return np.array([[*row, *[PAD] * (max(lengths) - len(row))] for row in rows], dtype=int)

    def loss(
        sources: Sequence[int], targets: Sequence[int], about: str, d: int = 3, d_k: int = 2, **given: float
    ) -> Call:
        """Sentence pairs with these numbers of tokens; a parameter named in `given` is filled with its number."""
        words = 9
        p = {"embedding": numbers(rng, words + 3, d, spread=0.8)}
        for name in ("self", "cross"):
            p |= {f"{name}_{part}": numbers(rng, d, d_k, spread=0.8) for part in "qk"}
            p[f"{name}_v"] = numbers(rng, d, d, spread=0.8)
        p |= {name: np.full(p[name].shape, value) for name, value in given.items()}
        return call("training_loss", ids(sources, words, False), ids(targets, words, True), p, about=about)

    repeated = loss([3, 3], [3, 3], "repeated", 4, 3)
    repeated.args[1][:, :2] = 5
    return [
        loss([3, 3], [4, 4], "two"),
        loss([4, 2], [5, 3], "unequal"),
        loss([3, 5, 4], [2, 6, 4], "unequal", 4, 3),
        loss([4], [4], "one"),
        loss([2, 3], [1, 1], "only-eos"),
        loss([1, 1, 1], [3, 2, 3], "short", 5, 4),
        repeated,
        loss([3, 2], [4, 3], "zero-scores", self_q=0.0, cross_q=0.0),
        loss([3], [5], "equal-keys", 4, 3, self_k=0.5, cross_k=0.5),
    ]


INPUT = "decoder_input = np.concatenate([start, target[:, :-1]], axis=1)"
CAUSAL = "np.tril(np.ones((x.shape[1], x.shape[1]), dtype=bool))"
RETURN = "return cross_entropy(logits_of(source, decoder_input, p), target)"
AS_IT_CAME = (INPUT, "decoder_input = target")
WHOLE = (INPUT, "decoder_input = np.concatenate([start, target], axis=1)")
REAL = "targets != PAD"

MISTAKES = (
    Mistake("untouched", (AS_IT_CAME,)),
    Mistake(
        "first-token-lost",
        ((INPUT, "decoder_input = target[:, :-1]"), (RETURN, RETURN.replace("p), target", "p), target[:, 1:]"))),
    ),
    Mistake("logits-cut-in-front", (WHOLE, (RETURN, RETURN.replace("p), target", "p)[:, 1:], target")))),
    Mistake(
        "shifted-the-wrong-way", ((INPUT, "decoder_input = np.concatenate([target[:, 1:], start * PAD], axis=1)"),)
    ),
    Mistake("shifted-the-wrong-way", ((INPUT, "decoder_input = np.concatenate([target[:, 1:], start], axis=1)"),)),
    Mistake("shifted-twice", ((RETURN, RETURN.replace("p), target", "p)[:, :-1], target[:, 1:]")),)),
    Mistake("first-token-uncounted", ((RETURN, RETURN.replace("p), target", "p)[:, 1:], target[:, 1:]")),)),
    Mistake("start-is-padding", ((", BOS)", ", PAD)"),)),
    Mistake("start-is-eos", ((", BOS)", ", EOS)"),)),
    Mistake("wrapped-round", ((INPUT, "decoder_input = np.roll(target, 1, axis=1)"),)),
    Mistake("first-token-twice", ((INPUT, "decoder_input = np.concatenate([target[:, :1], target[:, :-1]], axis=1)"),)),
    Mistake("first-token-replaced", ((INPUT, "decoder_input = np.concatenate([start, target[:, 1:]], axis=1)"),)),
    Mistake("only-start", ((INPUT, "decoder_input = np.full_like(target, BOS)"),)),
    Mistake(
        "two-shifts",
        ((INPUT, "decoder_input = np.concatenate([start, start, target[:, :-2]], axis=1)[:, : target.shape[1]]"),),
    ),
    Mistake("targets-shifted", ((RETURN, RETURN.replace("p), target", "p), decoder_input")),)),
    Mistake(
        "hidden-from-itself",
        (
            AS_IT_CAME,
            (CAUSAL, f"{CAUSAL[:-1]}, k=-1)"),
            ("scores = np.where(mask,", "scores = np.where(mask | ~mask.any(-1, keepdims=True),"),
        ),
    ),
    Mistake("hidden-from-itself", (AS_IT_CAME, (CAUSAL, f"{CAUSAL[:-1]}, k=-1)"), ("-np.inf", "-1e9"))),
    Mistake("mask-lost", ((CAUSAL, CAUSAL.replace("np.tril(", "(")),)),
    Mistake("mask-one-too-far", ((CAUSAL, f"{CAUSAL[:-1]}, k=1)"),)),
    Mistake("padding-counted", (("losses[targets != PAD].mean()", "losses.mean()"),)),
    Mistake("eos-not-learned", ((REAL, "targets > EOS"),)),
    Mistake("source-padding-visible", (("(source != PAD)[:, None, :]", "(source >= PAD)[:, None, :]"),)),
    Mistake("summed", (("losses[targets != PAD].mean()", "losses[targets != PAD].sum()"),)),
    Mistake(
        "mean-of-means",
        (
            (
                "return cross_entropy(logits_of(source, decoder_input, p), target)",
                "logits = logits_of(source, decoder_input, p)\n"
                "    each = [cross_entropy(logits[i : i + 1], target[i : i + 1]) for i in range(len(target))]\n"
                "    return float(np.mean(each))",
            ),
        ),
    ),
)

GRADER = Grader(cases, MISTAKES)
