"""Calls and known mistakes of `decoder-layer`: causal self-attention, cross-attention, feed-forward, post-norm."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Instance, Mistake
from regard.course.exercises.edge_inputs import MASKED, SCORES, Embedded, embedded_edges, masked_embedded, with_scores
from regard.course.exercises.encoder_layer.grader import Sizes
from regard.course.exercises.random_inputs import State, linear, norm, numbers, projections
from regard.course.exercises.shared_mistakes import HEADS_FOR_WIDTH, TORCH_MASK_MISTAKES, TORCH_MISTAKES


def weights(rng: np.random.Generator, sizes: Sizes) -> State:
    """Every parameter of the layer, by name."""
    d_model, _, d_ff = sizes
    attention = projections(rng, d_model, "self_attention.") | projections(rng, d_model, "cross_attention.")
    feed_forward = linear(rng, "linear1", d_model, d_ff) | linear(rng, "linear2", d_ff, d_model)
    norms = norm(rng, "norm1", d_model) | norm(rng, "norm2", d_model) | norm(rng, "norm3", d_model)
    return attention | feed_forward | norms


def self_attention_state(edge: Embedded) -> State:
    """Self-attention parameters that give the scores of an edge case."""
    zeros, name = np.zeros(len(edge.W_q)), "self_attention"
    weights = {f"{name}.W_q.weight": edge.W_q.T, f"{name}.W_k.weight": edge.W_k.T}
    return weights | {f"{name}.W_q.bias": zeros, f"{name}.W_k.bias": zeros}


def cross_attention_state(q: np.ndarray, k: np.ndarray) -> State:
    """Cross-attention parameters: every query is q (4,) in every head, and one-hot rows of memory select their keys."""
    (keys, width), name = k.shape, "cross_attention"
    W_k = np.zeros((2 * width, 2 * width))
    W_k[:keys, :width] = W_k[:keys, width:] = k
    weights = {f"{name}.W_q.weight": np.zeros_like(W_k), f"{name}.W_k.weight": W_k.T}
    return weights | {f"{name}.W_q.bias": np.tile(q, 2), f"{name}.W_k.bias": np.zeros(2 * width)}


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def decode(
        about: str,
        B: int,
        T: int,
        S: int,
        mask: np.ndarray | None = None,
        gradients: bool = False,
        sizes: Sizes = (6, 2, 5),
    ) -> Call:
        instance = Instance(sizes, state=weights(rng, sizes))
        args: tuple[np.ndarray, ...] = (numbers(rng, B, T, sizes[0]), numbers(rng, B, S, sizes[0]))
        if mask is not None:
            args += (mask,)
        return Call("DecoderLayer", args, about=about, instance=instance, gradients=gradients)

    def one_hot(about: str, given: State, x: np.ndarray, memory: np.ndarray, *mask: np.ndarray) -> Call:
        instance = Instance((8, 2, 5), state=weights(rng, (8, 2, 5)) | given)
        return Call("DecoderLayer", (x, memory, *mask), about=about, instance=instance)

    def across(about: str, scores: np.ndarray, *mask: np.ndarray) -> Call:
        """Scores (1, 4) of the keys, the same for every query."""
        q, k = with_scores(rng, scores)
        return one_hot(about, cross_attention_state(q[0], k), numbers(rng, 1, 3, 8), np.eye(8)[None, :4], *mask)

    def back(about: str, edge: Embedded) -> Call:
        return one_hot(about, self_attention_state(edge), edge.x, numbers(rng, len(edge.x), 3, 8))

    real = np.array([[True, True, False, True]])
    before = np.tri(4, dtype=bool)[None].repeat(2, axis=0)  # B T T: the visible positions of x
    return [
        decode("plain", 1, 3, 2, gradients=True),
        decode("as-long", 3, 3, 3),
        decode("longer", 2, 2, 5),
        decode("padding", 3, 2, 5, np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]), gradients=True),
        decode("as-many-as-heads", 2, 3, 3, np.array([[True, True, False], [True, False, False]])),
        decode("all-different", 4, 5, 7, rng.permuted(np.tile([1, 1, 1, 0, 0, 1, 0], (4, 1)), axis=1), sizes=(6, 2, 9)),
        decode("three-heads", 2, 4, 5, sizes=(6, 3, 5)),
        decode("one-head", 2, 3, 4, np.array([[1, 1, 0, 1], [0, 1, 0, 0]]), sizes=(4, 1, 3)),
        decode("all-the-same", 3, 3, 3, np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]]), sizes=(9, 3, 9)),
        decode("one-token", 2, 1, 3),
        decode("one-key", 2, 3, 1, np.array([[1], [1]])),
        decode("nothing-hidden", 2, 4, 3, np.ones((2, 3), dtype=bool), sizes=(6, 3, 4)),
        *(back(*edge) for edge in embedded_edges(rng, 2, 4, B=2)),
        *(back(*edge) for edge in masked_embedded(rng, 2, before)),
        *(across(about, scores(rng, 1, 4)) for about, scores in SCORES.items()),
        *(across(about, scores(rng, real), real) for about, scores in MASKED.items()),
    ]


KEYS = "memory_mask = memory_mask[:, None, None, :]"
BACK = "looked_back, _ = self.self_attention(x, x, causal)"
ACROSS = "looked_across, weights = self.cross_attention(x, memory, memory_mask)"
FIRST = "x = self.norm1(x + looked_back)"
SECOND = "x = self.norm2(x + looked_across)"
THIRD = "x = self.norm3(x + self.feed_forward(x))"
TRIL = "torch.ones(T, T).tril()"
ACTIVATE = "self.linear2(torch.relu(self.linear1(x)))"


def body(mistake: str, *lines: str) -> Mistake:
    """A mistake that replaces the lines of all three sub-layers."""
    indent = "\n        "
    return Mistake(mistake, ((indent.join((BACK, FIRST, ACROSS, SECOND, THIRD)), indent.join(lines)),))


BOTH_MASKS = "torch.ones(T, memory.shape[1]).tril() * (1 if memory_mask is None else memory_mask)"

MISTAKES = (
    Mistake("causal-missing", (("(x, x, causal)", "(x, x, None)"),)),
    Mistake("causal-strict", ((TRIL, "torch.ones(T, T).tril(-1)"),)),
    Mistake("causal-upside-down", ((TRIL, "torch.ones(T, T).triu()"),)),
    Mistake("causal-other-way", ((TRIL, "torch.ones(T, T).triu(1)"),)),
    Mistake("one-too-far", ((TRIL, "torch.ones(T, T).tril(1)"),)),
    Mistake("causal-across", (("(x, memory, memory_mask)", "(x, memory, torch.ones(T, memory.shape[1]).tril())"),)),
    Mistake("causal-across", (("(x, memory, memory_mask)", f"(x, memory, {BOTH_MASKS})"),)),
    Mistake("looks-at-itself", (("(x, memory, memory_mask)", "(x, x, None)"),)),
    Mistake("memory-asks", (("(x, memory, memory_mask)", "(memory, x, None)"),)),
    Mistake("keys-from-x", (("self.W_k(memory)", "self.W_k(x)"),)),
    body("asks-with-the-input", "start = x", BACK, FIRST, ACROSS.replace("(x, m", "(start, m"), SECOND, THIRD),
    Mistake("one-attention", (("self.cross_attention(x, memory", "self.self_attention(x, memory"),)),
    body("cross-first", ACROSS, "x = self.norm1(x + looked_across)", BACK, "x = self.norm2(x + looked_back)", THIRD),
    body(
        "feed-forward-second",
        *(BACK, FIRST, "x = self.norm2(x + self.feed_forward(x))", ACROSS, "x = self.norm3(x + looked_across)"),
    ),
    Mistake("no-cross-attention", ((SECOND, "x = self.norm2(x)"),)),
    body(
        "pre-norm",
        *("normed = self.norm1(x)", BACK.replace("(x, x", "(normed, normed"), "x = x + looked_back"),
        *(ACROSS.replace("(x, m", "(self.norm2(x), m"), "x = x + looked_across"),
        "x = x + self.feed_forward(self.norm3(x))",
    ),
    body(
        "residual-from-normed",
        *("x = self.norm1(x)", BACK, "x = self.norm2(x + looked_back)"),
        *(ACROSS, "x = self.norm3(x + looked_across)", "x = x + self.feed_forward(x)"),
    ),
    Mistake("shared-norm", (("self.norm2(x +", "self.norm1(x +"), ("self.norm3(x +", "self.norm1(x +"))),
    Mistake("norm-used-twice", (("self.norm3(x +", "self.norm2(x +"),)),
    Mistake("no-last-norm", ((THIRD, "x = x + self.feed_forward(x)"),)),
    Mistake("no-norm", ((FIRST, "x = x + looked_back"), (SECOND, "x = x + looked_across"), ("self.norm3(x +", "(x +"))),
    Mistake(
        "no-residual",
        ((FIRST, "x = self.norm1(looked_back)"), (SECOND, "x = self.norm2(looked_across)"), ("norm3(x + ", "norm3(")),
    ),
    Mistake("no-residual-back", ((FIRST, "x = self.norm1(looked_back)"),)),
    Mistake("no-residual-across", ((SECOND, "x = self.norm2(looked_across)"),)),
    Mistake("no-residual-around-feed-forward", (("norm3(x + ", "norm3("),)),
    Mistake("no-relu", ((ACTIVATE, "self.linear2(self.linear1(x))"),)),
    Mistake("gelu", (("torch.relu", "nn.functional.gelu"),)),
    Mistake("no-scale", ((" / math.sqrt(self.d_k)", ""),)),
    Mistake("mask-ignored", ((KEYS, "memory_mask = None"),)),
    Mistake("polarity", ((KEYS, "memory_mask = memory_mask[:, None, None, :] == 0"),)),
    Mistake("memory-zeroed", ((KEYS, "memory, memory_mask = memory * memory_mask[:, :, None], None"),)),
    Mistake("mask-beside-heads", ((KEYS, "memory_mask = memory_mask[:, None, :]"),)),
    HEADS_FOR_WIDTH,
    *(mistake for mistake in TORCH_MISTAKES if mistake.id != "causal-not-asked"),  # that is `causal-across`
    *TORCH_MASK_MISTAKES,
    Mistake(
        "weights-of-self-attention", (("looked_back, _", "looked_back, back"), ("return x, weights", "return x, back"))
    ),
    Mistake("detached", ((FIRST, "x = self.norm1(x + looked_back.detach())"),)),
    Mistake("norms-swapped", ((SECOND, SECOND.replace("norm2", "norm3")), (THIRD, THIRD.replace("norm3", "norm2")))),
    body("residual-from-the-start", "start = x", BACK, FIRST, ACROSS, SECOND.replace("(x +", "(start +"), THIRD),
    body("residual-from-the-start", "start = x", BACK, FIRST, ACROSS, SECOND, THIRD.replace("(x +", "(start +")),
)

GRADER = Grader(cases, MISTAKES, weights_optional=True)
