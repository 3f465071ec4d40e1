"""Typical wrong PyTorch modules: none passes. See test_wrong_numpy_programs.py."""

import pytest

from wrong_programs import Swaps, each, passes

FILL = "scores = scores.masked_fill(mask == 0, -math.inf)"
WEIGHTS = "weights = torch.softmax(scores, dim=-1)"
BY_HAND = "weights = torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)"
LATE = f"{WEIGHTS}\n        if mask is not None:\n            weights = weights * (mask != 0)\n"
AGAIN = "            weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)"


def softmax_of(scores: str) -> Swaps:
    return ((WEIGHTS, WEIGHTS.replace("scores", scores)),)


PLAIN: dict[str, Swaps] = {
    "a score of 0 gets no weight": softmax_of("scores.masked_fill(scores == 0, -math.inf)"),
    "exp without the maximum": ((WEIGHTS, BY_HAND),),
    "exp, and NaN made 0": ((WEIGHTS, f"{BY_HAND}\n        weights = weights.nan_to_num(0.0)"),),
    "scores cut off at 80": softmax_of("scores.clamp(-80, 80)"),
    "negative scores are 0": softmax_of("scores.clamp(min=0)"),
    "absolute scores": softmax_of("scores.abs()"),
    "eps in the denominator": (
        (WEIGHTS, f"{WEIGHTS}\n        weights = weights / (weights.sum(-1, keepdim=True) + 1e-3)"),
    ),
    "half precision": ((WEIGHTS, "weights = torch.softmax(scores.half(), dim=-1).float()"),),
    "bfloat16": ((WEIGHTS, "weights = torch.softmax(scores.bfloat16(), dim=-1).float()"),),
    "a causal mask": (
        (WEIGHTS, f"scores = scores + torch.full(scores.shape[-2:], -math.inf).triu(1)\n        {WEIGHTS}"),
    ),
}
MASKED: dict[str, Swaps] = {
    **{f"{fill} for -inf": ((FILL, FILL.replace("-math.inf", fill)),) for fill in ("-20", "-100.0", "-1e4", "-15000")},
    "-1e4 added": ((FILL, "scores = scores + (mask == 0) * -1e4"),),
    "masked late and divided again": ((FILL, "pass"), (WEIGHTS, LATE + AGAIN)),
    "the mask of the first query": ((FILL, FILL.replace("mask ==", "mask[..., :1, :] ==")),),
    "the mask of the first sample": ((FILL, FILL.replace("mask ==", "mask[:1] ==")),),
    "keys that any query sees": (
        (FILL, "scores = scores.masked_fill((mask != 0).sum(-2, keepdim=True) == 0, -math.inf)"),
    ),
    "an all-true mask is no mask, others transposed": ((FILL, FILL.replace("mask ==", "mask.mT ==")),),
    "a mask with one key a row is ignored": (
        ("if mask is not None:", "if mask is not None and (mask != 0).sum() != mask.numel() / mask.shape[-1]:"),
    ),
    "hidden where the score is 0 too": ((FILL, FILL.replace("mask == 0", "(mask == 0) | (scores == 0)")),),
}
HEADS: dict[str, Swaps] = {
    "scale of the number of heads": (("math.sqrt(self.d_k)", "math.sqrt(self.{heads})"),),
    "scale of two": (("math.sqrt(self.d_k)", "math.sqrt(2)"),),
    "scale of the model": (("math.sqrt(self.d_k)", "math.sqrt(self.d_model)"),),
}


def named(programs: dict[str, Swaps], heads: str) -> dict[str, Swaps]:
    return {what: tuple((old, new.replace("{heads}", heads)) for old, new in swaps) for what, swaps in programs.items()}


BIASES: dict[str, Swaps] = {f"without b_{letter}": ((f" + self.b_{letter}", ""),) for letter in "QVO"}
"""b_K is not in this list: it shifts all scores of a query equally, which softmax ignores."""

MODULE_FILL = "scores = scores.masked_fill(hidden, -math.inf)"
CLEAN = "weights = weights.masked_fill(hidden, 0.0)  # where all is hidden, softmax gives NaN"
MODULE: dict[str, Swaps] = {
    **PLAIN,
    **{
        f"{fill} for -inf": ((MODULE_FILL, MODULE_FILL.replace("-math.inf", fill)),)
        for fill in ("-20", "-1e4", "-15000")
    },
    "a padding mask straight onto heads": (("if mask.ndim == 3 and scores.ndim == 4:", "if False:"),),
    "a padding mask for each head": (("mask = mask.unsqueeze(1)", "mask = mask.transpose(0, 1).unsqueeze(0)"),),
    "the padding of the first sample": (
        ("hidden | mask.bool()", "hidden | mask[..., :1, :, :].bool() if mask.ndim > 2 else hidden | mask.bool()"),
    ),
    "masked late and divided again": (
        (MODULE_FILL, ""),
        (
            CLEAN,
            "weights = weights.masked_fill(hidden, 0.0)\n"
            "        weights = (weights / weights.sum(-1, keepdim=True)).nan_to_num(0.0)",
        ),
    ),
    "everything hidden is no mask": (("if mask is not None:", "if mask is not None and not mask.bool().all():"),),
    "the causal mask of the notes": (
        (".triu(S - T + 1)", "[-T:].triu(1)"),
        ("torch.ones(T, S, dtype=torch.bool)", "torch.ones(S, S, dtype=torch.bool)"),
    ),
    "a width written down": (("d_k = Q.shape[-1]", "d_k = 5"),),
    "the width that was noted": (("d_k = Q.shape[-1]", "d_k = self.d_k or 5"),),
    "the width of the values": (("d_k = Q.shape[-1]", "d_k = V.shape[-1]"),),
    "axis 1 for the heads": (("d_k = Q.shape[-1]", "d_k = Q.shape[1] if Q.ndim == 4 else Q.shape[-1]"),),
}

NORM = "self.norm1(x + attended)"
ENCODER: dict[str, Swaps] = {
    **PLAIN,
    **{
        what: swaps
        for what, swaps in MASKED.items()
        if "query" not in what and "transposed" not in what and "row" not in what and "any" not in what
    },
    **named(HEADS, "n_heads"),
    "ReLU left out where it is all positive": (("torch.relu(", "torch.nn.functional.leaky_relu("),),
    "the biased variance": (
        (
            NORM,
            "(x + attended - (x + attended).mean(-1, keepdim=True)) / (x + attended).std(-1, keepdim=True)"
            " * self.norm1.weight + self.norm1.bias",
        ),
    ),
    "the norm of the width": (("self.norm2(x +", "self.norm1(x +"),),
    "padding as an additive mask": (("mask = mask[:, None, None, :]", "mask = 1.0 - mask[:, None, None, :].float()"),),
    "the bias of W_o left out": (
        (
            "return self.W_o((weights @ V).transpose(1, 2).flatten(2))",
            "return (weights @ V).transpose(1, 2).flatten(2) @ self.W_o.weight.T",
        ),
    ),
    "heads merged by reshape": (
        (".transpose(1, 2).flatten(2)), weights", ".reshape(x.shape[0], -1, self.d_model)), weights"),
    ),
    "heads interleaved": (
        (
            "x.unflatten(-1, (self.n_heads, self.d_k)).transpose(1, 2)",
            "x.unflatten(-1, (self.d_k, self.n_heads)).permute(0, 3, 1, 2)",
        ),
    ),
    "x changed in place": (("x = self.norm1(x + attended)", "x += attended\n        x = self.norm1(x)"),),
}
DECODER: dict[str, Swaps] = {
    **{what: swaps for what, swaps in PLAIN.items() if what != "a causal mask"},
    "-20 for -inf": ((FILL, FILL.replace("-math.inf", "-20")),),
    "-1e4 for -inf": ((FILL, FILL.replace("-math.inf", "-1e4")),),
    "masked late and divided again": ((FILL, "pass"), (WEIGHTS, LATE + AGAIN)),
    **named(HEADS, "n_heads"),
    "a causal mask across too": (
        (
            "(x, memory, memory_mask)",
            "(x, memory, torch.ones(T, memory.shape[1]).tril() if memory_mask is None else memory_mask)",
        ),
    ),
    "padding ignored where lengths agree": (
        ("if memory_mask is not None:", "if memory_mask is not None and memory.shape[1] != T:"),
        ("(x, memory, memory_mask)", "(x, memory, memory_mask if memory.shape[1] != T else None)"),
    ),
    "the causal mask of the memory's length": (
        ("torch.ones(T, T).tril()", "torch.ones(T, T).tril(max(memory.shape[1] - T, 0))"),
    ),
    "norm3 in the place of norm2": (("self.norm2(x +", "self.norm3(x +"),),
}

PROGRAMS: dict[str, dict[str, Swaps]] = {
    "scaled-dot-product-module": {what: swaps for what, swaps in MODULE.items() if what != "a causal mask"},
    "single-head-manual": {**PLAIN, **BIASES},
    "masked-self-attention-module": {**PLAIN, **MASKED, **BIASES},
    "self-attention-module": {**PLAIN, **MASKED, **named(HEADS, "n_heads")},
    "multi-head-self-attention-module": {**PLAIN, **MASKED, **named(HEADS, "num_heads"), **BIASES},
    "encoder-layer": ENCODER,
    "decoder-layer": DECODER,
}


@pytest.mark.parametrize(("name", "swaps"), each(PROGRAMS))
def test_a_wrong_module_does_not_pass(name: str, swaps: Swaps) -> None:
    assert not passes(name, swaps, seed=0)


def test_a_key_bias_does_not_change_the_result() -> None:
    """It adds the same number to all scores of a query, so omitting it does not change the result."""
    assert passes("single-head-manual", ((" + self.b_K", ""),), seed=0)
