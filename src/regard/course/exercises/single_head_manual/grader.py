"""Calls and known mistakes of `single-head-manual`: parameters by name, none of them symmetric or zero."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Instance, Mistake
from regard.course.exercises.edge_inputs import Embedded, embedded_edges
from regard.course.exercises.random_inputs import matrices, numbers
from regard.course.exercises.shared_mistakes import BIAS_MISTAKES, TORCH_MISTAKES


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def attend(about: str, B: int, T: int, d_model: int, gradients: bool = False) -> Call:
        instance = Instance((d_model,), state=matrices(rng, d_model))
        x = numbers(rng, B, T, d_model)
        return Call("SingleHeadSelfAttention_Manual", (x,), about=about, instance=instance, gradients=gradients)

    def one_hot(about: str, edge: Embedded) -> Call:
        state = matrices(rng, 4) | {"W_Q": edge.W_q, "W_K": edge.W_k, "b_Q": np.zeros(4), "b_K": np.zeros(4)}
        return Call("SingleHeadSelfAttention_Manual", (edge.x,), about=about, instance=Instance((4,), state=state))

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

MISTAKES = (
    Mistake("bias-forgotten", ((" + self.b_Q", ""), (" + self.b_K", ""), (" + self.b_V", ""), (" + self.b_O", ""))),
    Mistake("input-biases-forgotten", ((" + self.b_Q", ""), (" + self.b_K", ""), (" + self.b_V", ""))),
    *BIAS_MISTAKES,
    Mistake("output-bias-forgotten", ((" + self.b_O", ""),)),
    Mistake("weight-transposed", tuple((f" @ self.W_{letter}", f" @ self.W_{letter}.T") for letter in "QKVO")),
    Mistake("input-weights-transposed", tuple((f" @ self.W_{letter}", f" @ self.W_{letter}.T") for letter in "QKV")),
    Mistake("keys-like-queries", (("x @ self.W_K + self.b_K", "x @ self.W_Q + self.b_Q"),)),
    Mistake("values-like-keys", (("x @ self.W_V + self.b_V", "x @ self.W_K + self.b_K"),)),
    Mistake("residual", (("return out @", "return x + out @"),)),
    Mistake("no-scale", ((f" / {ROOT}", ""),)),
    Mistake("divided-by-d-k", ((ROOT, "self.d_model"),)),
    Mistake("sqrt-length", ((ROOT, "math.sqrt(x.shape[1])"),)),
    Mistake("over-queries", ((WEIGHTS, "weights = torch.softmax(scores, dim=1)"),)),
    Mistake("over-samples", ((WEIGHTS, "weights = torch.softmax(scores, dim=0)"),)),
    Mistake("no-softmax", ((WEIGHTS, "weights = scores"),)),
    Mistake("keys-ask-queries", (("Q @ K.transpose(-2, -1)", "K @ Q.transpose(-2, -1)"),)),
    Mistake("x-for-values", (("out = weights @ V", "out = weights @ x"),)),
    Mistake("no-output-matrix", (("out @ self.W_O + self.b_O", "out"),)),
    *TORCH_MISTAKES,
    Mistake("detached", ((WEIGHTS, f"{WEIGHTS}.detach()"),)),
)

GRADER = Grader(cases, MISTAKES, weights_optional=True)
