"""Calls and known slips of `single-head-manual`: parameters by name, none of them symmetric or zero."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Made, Slip
from regard.course.exercises.edge_inputs import Embedded, embedded_edges
from regard.course.exercises.random_inputs import matrices, numbers
from regard.course.exercises.shared_slips import BIAS_SLIPS, TORCH_SLIPS


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def attend(about: str, B: int, T: int, d_model: int, gradients: bool = False) -> Call:
        made = Made((d_model,), state=matrices(rng, d_model))
        x = numbers(rng, B, T, d_model)
        return Call("SingleHeadSelfAttention_Manual", (x,), about=about, made=made, gradients=gradients)

    def one_hot(about: str, made: Embedded) -> Call:
        state = matrices(rng, 4) | {"W_Q": made.W_q, "W_K": made.W_k, "b_Q": np.zeros(4), "b_K": np.zeros(4)}
        return Call("SingleHeadSelfAttention_Manual", (made.x,), about=about, made=Made((4,), state=state))

    return [
        attend("plain", 1, 2, 3),
        attend("gradients", 2, 3, 4, gradients=True),
        attend("longer", 2, 5, 3),
        attend("one-token", 3, 1, 2),
        attend("all-different", 2, 5, 3),
        attend("all-the-same", 3, 3, 3),
        *(one_hot(*edge) for edge in embedded_edges(rng, 1, 4)),
    ]


WEIGHTS = "weights = torch.softmax(scores, dim=-1)"
ROOT = "math.sqrt(self.d_model)"

SLIPS = (
    Slip("bias-forgotten", ((" + self.b_Q", ""), (" + self.b_K", ""), (" + self.b_V", ""), (" + self.b_O", ""))),
    Slip("input-biases-forgotten", ((" + self.b_Q", ""), (" + self.b_K", ""), (" + self.b_V", ""))),
    *BIAS_SLIPS,
    Slip("output-bias-forgotten", ((" + self.b_O", ""),)),
    Slip("weight-transposed", tuple((f" @ self.W_{letter}", f" @ self.W_{letter}.T") for letter in "QKVO")),
    Slip("no-scale", ((f" / {ROOT}", ""),)),
    Slip("divided-by-d-k", ((ROOT, "self.d_model"),)),
    Slip("sqrt-length", ((ROOT, "math.sqrt(x.shape[1])"),)),
    Slip("over-queries", ((WEIGHTS, "weights = torch.softmax(scores, dim=1)"),)),
    Slip("over-samples", ((WEIGHTS, "weights = torch.softmax(scores, dim=0)"),)),
    Slip("no-softmax", ((WEIGHTS, "weights = scores"),)),
    Slip("keys-ask-queries", (("Q @ K.transpose(-2, -1)", "K @ Q.transpose(-2, -1)"),)),
    Slip("x-for-values", (("out = weights @ V", "out = weights @ x"),)),
    Slip("no-output-matrix", (("out @ self.W_O + self.b_O", "out"),)),
    *TORCH_SLIPS,
    Slip("detached", ((WEIGHTS, f"{WEIGHTS}.detach()"),)),
)

GRADER = Grader(cases, SLIPS, weights_too=True)
