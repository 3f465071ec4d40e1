"""Calls and known slips of `decoder-layer`: causal self-attention, cross-attention, feed-forward, post-norm."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Made, Slip
from regard.course.exercises.drawing import State, linear, norm, numbers, projections

D_MODEL, D_FF = 4, 5


def weights(rng: np.random.Generator) -> State:
    """Every parameter of the layer, by name."""
    attention = projections(rng, D_MODEL, "self_attention.") | projections(rng, D_MODEL, "cross_attention.")
    feed_forward = linear(rng, "linear1", D_MODEL, D_FF) | linear(rng, "linear2", D_FF, D_MODEL)
    norms = norm(rng, "norm1", D_MODEL) | norm(rng, "norm2", D_MODEL) | norm(rng, "norm3", D_MODEL)
    return attention | feed_forward | norms


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def decode(about: str, B: int, T: int, S: int, mask: np.ndarray | None = None, gradients: bool = False) -> Call:
        made = Made((D_MODEL, 2, D_FF), state=weights(rng))
        args: tuple[np.ndarray, ...] = (numbers(rng, B, T, D_MODEL), numbers(rng, B, S, D_MODEL))
        if mask is not None:
            args += (mask,)
        return Call("DecoderLayer", args, about=about, made=made, gradients=gradients)

    return [
        decode("plain", 1, 3, 2, gradients=True),
        decode("as-long", 3, 3, 3),
        decode("longer", 2, 2, 5),
        decode("padding", 3, 2, 5, np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]), gradients=True),
        decode("as-many-as-heads", 2, 3, 3, np.array([[True, True, False], [True, False, False]])),
    ]


KEYS = "memory_mask = memory_mask[:, None, None, :]"
BACK = "looked_back, _ = self.self_attention(x, x, causal)"
ACROSS = "looked_across, weights = self.cross_attention(x, memory, memory_mask)"
FIRST = "x = self.norm1(x + looked_back)"
SECOND = "x = self.norm2(x + looked_across)"
THIRD = "x = self.norm3(x + self.feed_forward(x))"
TRIL = "torch.ones(T, T).tril()"
ACTIVATE = "self.linear2(torch.relu(self.linear1(x)))"


def body(slip: str, *lines: str) -> Slip:
    """A slip that does the three sub-layers in lines of its own."""
    indent = "\n        "
    return Slip(slip, ((indent.join((BACK, FIRST, ACROSS, SECOND, THIRD)), indent.join(lines)),))


SLIPS = (
    Slip("causal-missing", (("(x, x, causal)", "(x, x, None)"),)),
    Slip("causal-strict", ((TRIL, "torch.ones(T, T).tril(-1)"),)),
    Slip("causal-upside-down", ((TRIL, "torch.ones(T, T).triu()"),)),
    Slip("causal-other-way", ((TRIL, "torch.ones(T, T).triu(1)"),)),
    Slip("one-too-far", ((TRIL, "torch.ones(T, T).tril(1)"),)),
    Slip("causal-across", (("(x, memory, memory_mask)", "(x, memory, torch.ones(T, memory.shape[1]).tril())"),)),
    Slip("looks-at-itself", (("(x, memory, memory_mask)", "(x, x, None)"),)),
    Slip("memory-asks", (("(x, memory, memory_mask)", "(memory, x, None)"),)),
    Slip("keys-from-x", (("self.W_k(memory)", "self.W_k(x)"),)),
    body("asks-with-the-input", "start = x", BACK, FIRST, ACROSS.replace("(x, m", "(start, m"), SECOND, THIRD),
    Slip("one-attention", (("self.cross_attention(x, memory", "self.self_attention(x, memory"),)),
    body("cross-first", ACROSS, "x = self.norm1(x + looked_across)", BACK, "x = self.norm2(x + looked_back)", THIRD),
    body(
        "feed-forward-second",
        *(BACK, FIRST, "x = self.norm2(x + self.feed_forward(x))", ACROSS, "x = self.norm3(x + looked_across)"),
    ),
    Slip("no-cross-attention", ((SECOND, "x = self.norm2(x)"),)),
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
    Slip("shared-norm", (("self.norm2(x +", "self.norm1(x +"), ("self.norm3(x +", "self.norm1(x +"))),
    Slip("no-norm", ((FIRST, "x = x + looked_back"), (SECOND, "x = x + looked_across"), ("self.norm3(x +", "(x +"))),
    Slip(
        "no-residual",
        ((FIRST, "x = self.norm1(looked_back)"), (SECOND, "x = self.norm2(looked_across)"), ("norm3(x + ", "norm3(")),
    ),
    Slip("no-residual-back", ((FIRST, "x = self.norm1(looked_back)"),)),
    Slip("no-residual-across", ((SECOND, "x = self.norm2(looked_across)"),)),
    Slip("no-residual-around-feed-forward", (("norm3(x + ", "norm3("),)),
    Slip("no-relu", ((ACTIVATE, "self.linear2(self.linear1(x))"),)),
    Slip("gelu", (("torch.relu", "nn.functional.gelu"),)),
    Slip("no-scale", ((" / math.sqrt(self.d_k)", ""),)),
    Slip("mask-ignored", ((KEYS, "memory_mask = None"),)),
    Slip("polarity", ((KEYS, "memory_mask = memory_mask[:, None, None, :] == 0"),)),
    Slip("memory-zeroed", ((KEYS, "memory, memory_mask = memory * memory_mask[:, :, None], None"),)),
    Slip("mask-beside-heads", ((KEYS, "memory_mask = memory_mask[:, None, :]"),)),
    Slip(
        "weights-of-self-attention", (("looked_back, _", "looked_back, back"), ("return x, weights", "return x, back"))
    ),
    Slip("detached", ((FIRST, "x = self.norm1(x + looked_back.detach())"),)),
)

GRADER = Grader(cases, SLIPS, weights_too=True)
