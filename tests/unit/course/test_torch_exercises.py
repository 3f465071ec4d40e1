"""The PyTorch exercises: their solutions against our own classes and PyTorch's layers, and what modules alone can get
wrong. Stubs, right answers and mistakes of all exercises are tested in test_exercises.py.
"""

from typing import Any

import numpy as np
import pytest
import torch
from tolerances import assert_close
from torch import nn

import deep_learning.nn as ours
from regard.course.catalogue import exercise
from regard.course.exercise import Call
from regard.course.exercises import edge_inputs
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process

TARGETS = {
    "scaled-dot-product-module": ours.ScaledDotProductAttention,
    "self-attention-module": ours.SelfAttention,
    "single-head-manual": ours.SingleHeadSelfAttention_Manual,
    "masked-self-attention-module": ours.SingleHeadSelfAttentionWithMask,
    "multi-head-self-attention-module": ours.MultiHeadSelfAttention,
}
LAYERS = {"encoder-layer": nn.TransformerEncoderLayer, "decoder-layer": nn.TransformerDecoderLayer}
ALL = [*TARGETS, *LAYERS]


def cases(name: str, seed: int = 0) -> list[Call]:
    grader = exercise(name).grader
    assert grader is not None
    return list(grader.cases(np.random.default_rng(seed)))


def tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return torch.from_numpy(value.astype(np.float32) if value.dtype == np.float64 else value)


def expected(name: str, call: Call) -> tuple[np.ndarray, np.ndarray]:
    """Output and weights of the solution."""
    (answer,) = in_process(exercise(name).solution, [call], "torch").answers
    out, weights = answer.value
    return out, weights


@pytest.mark.parametrize("name", TARGETS)
def test_the_solutions_equal_our_classes_with_the_same_weights(name: str) -> None:
    for call in cases(name):
        assert call.instance is not None
        module = TARGETS[name](*call.instance.args, **call.instance.kwargs)
        module.load_state_dict({key: tensor(value) for key, value in call.instance.state.items()})
        with torch.no_grad():
            found = module(*map(tensor, call.args), **{key: tensor(value) for key, value in call.kwargs.items()})
        for right, got, kind in zip(expected(name, call), found, ("output", "weights"), strict=True):
            assert_close(got.numpy(), right, kind)


# Parameter names of PyTorch's layers; q, k and v are stacked in one matrix.
NAMES = {"W_o.weight": "out_proj.weight", "W_o.bias": "out_proj.bias"}
ATTENTION = {"attention": "self_attn", "self_attention": "self_attn", "cross_attention": "multihead_attn"}


def theirs(state: dict[str, Any]) -> dict[str, torch.Tensor]:
    renamed = {key: tensor(value) for key, value in state.items() if "attention" not in key}
    for mine, their in ATTENTION.items():
        if f"{mine}.W_q.weight" in state:
            for part in ("weight", "bias"):
                parts = [tensor(state[f"{mine}.{name}.{part}"]) for name in ("W_q", "W_k", "W_v")]
                renamed[f"{their}.in_proj_{part}"] = torch.cat(parts)
            renamed |= {f"{their}.{there}": tensor(state[f"{mine}.{here}"]) for here, there in NAMES.items()}
    return renamed


@pytest.mark.parametrize("name", LAYERS)
def test_the_layers_equal_those_of_pytorch_with_the_same_weights(name: str) -> None:
    for call in cases(name):
        assert call.instance is not None
        d_model, n_heads, d_ff = call.instance.args
        layer = LAYERS[name](d_model, n_heads, d_ff, dropout=0.0, batch_first=True)  # post-norm, ReLU by itself
        layer.load_state_dict(theirs(dict(call.instance.state)))
        *inputs, mask = (*map(tensor, call.args), None)[: 2 if name == "encoder-layer" else 3]
        hidden = None if mask is None else mask == 0
        with torch.no_grad():
            if name == "encoder-layer":
                out = layer(*inputs, src_key_padding_mask=hidden)
            else:
                T = inputs[0].shape[1]
                causal = torch.ones(T, T, dtype=torch.bool).triu(1)
                out = layer(*inputs, tgt_mask=causal, memory_key_padding_mask=hidden)
        assert_close(out.numpy(), expected(name, call)[0], "output")


def test_the_example_of_the_task_is_correct() -> None:
    Q = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    call = next(call for call in cases("scaled-dot-product-module") if call.about == "causal")
    made = Call(call.target, (Q, Q, np.array([[[1.0], [2.0]]])), instance=call.instance)
    out, weights = expected("scaled-dot-product-module", made)
    np.testing.assert_allclose(weights, [[[1.0, 0.0], [0.3302, 0.6698]]], atol=5e-5)
    np.testing.assert_allclose(out, [[[1.0], [1.6698]]], atol=5e-5)


# --- what a module can get wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_returning_only_the_output_is_enough(name: str) -> None:
    tried = exercise(name)
    alone = tried.solution + "\n\nboth = {0}.forward\n{0}.forward = lambda *given, **more: both(*given, **more)[0]\n"
    verdict = grade(tried, alone.format(cases(name)[0].target), seed=0, run=in_process)
    assert verdict.passed, str(verdict)


SHORT = ("scaled-dot-product-module", "decoder-layer")
SOME = [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in ALL]
"""The smallest and the largest, as the search for two mistakes takes half a second; the others in `make test-long`."""


@pytest.mark.parametrize("name", SOME)
def test_an_answer_computed_in_numpy_is_diagnosed_as_no_gradient(name: str) -> None:
    tried = exercise(name)
    target = cases(name)[0].target
    cut = "\n\nboth = {0}.forward\n{0}.forward = lambda *given, **more: both(*given, **more)[0].detach()\n"
    verdict = grade(tried, tried.solution + cut.format(target), seed=0, run=in_process)
    assert (verdict.passed, verdict.mistake) == (False, "no-gradient"), str(verdict)


@pytest.mark.parametrize("name", [name for name in ALL if cases(name)[0].instance.state])  # type: ignore[union-attr]
def test_a_renamed_parameter_is_reported(name: str) -> None:
    tried = exercise(name)
    made = cases(name)[0].instance
    assert made is not None
    last = list(made.state)[-1].removesuffix(".bias")  # b_O, W_o, norm2 or norm3
    verdict = grade(tried, tried.solution.replace(f"self.{last}", "self.mine"), seed=0, run=in_process)
    assert (verdict.passed, verdict.mistake) == (False, "missing-parameter"), str(verdict)


@pytest.mark.parametrize(
    ("written", "mistake"),
    [
        ("torch.zeros(d_model)", "plain-tensor"),
        ("nn.Linear(d_model, d_model)", "layer-for-parameter"),
    ],
)
def test_a_tensor_or_a_layer_in_the_place_of_a_parameter_is_named(written: str, mistake: str) -> None:
    tried = exercise("single-head-manual")
    source = tried.solution.replace("self.b_Q = nn.Parameter(torch.zeros(d_model))", f"self.b_Q = {written}")
    verdict = grade(tried, source, seed=0, run=in_process)
    assert (verdict.passed, verdict.mistake) == (False, mistake), str(verdict)
    assert "b_Q" in str(verdict.diagnosis)


@pytest.mark.parametrize("name", SOME)
def test_an_array_in_the_place_of_a_tensor_is_named(name: str) -> None:
    """The message asked for a tuple, although the output alone is enough."""
    tried = exercise(name)
    target = cases(name)[0].target
    cut = "\n\nboth = {0}.forward\n{0}.forward = lambda *given, **more: both(*given, **more)[0].detach().numpy()\n"
    verdict = grade(tried, tried.solution + cut.format(target), seed=0, run=in_process)
    assert (verdict.passed, verdict.mistake) == (False, "wrong-type"), str(verdict)
    assert "torch.Tensor, not numpy.ndarray" in str(verdict.diagnosis)


def test_a_hidden_parameter_is_not_called_a_tensor() -> None:
    tried = exercise("single-head-manual")
    source = f"{tried.solution}\nSingleHeadSelfAttention_Manual.named_parameters = lambda *given, **more: iter(())\n"
    assert grade(tried, source, seed=0, run=in_process).mistake == "missing-parameter"


def test_dropout_is_found_by_repeating_a_call() -> None:
    """PyTorch was seeded alike before each call, so that the same numbers were dropped."""
    tried = exercise("multi-head-self-attention-module")
    line = "weights = torch.softmax(scores, dim=-1)"
    source = tried.solution.replace(line, f"{line}\n        weights = nn.functional.dropout(weights, 0.1)")
    verdict = grade(tried, source, seed=0, run=in_process)
    assert (verdict.passed, verdict.mistake) == (False, "not-repeatable"), str(verdict)


@pytest.mark.parametrize("name", ALL)
def test_the_data_distinguish_lengths_from_widths_and_include_gradients(name: str) -> None:
    """Calls with equal sizes are named; in all others no length equals a width."""
    coincide = {"example", "all-the-same", "one-visible", "nothing-hidden", *edge_inputs.SCORES, *edge_inputs.MASKED}
    others = [call for call in cases(name) if call.about not in coincide]
    assert len(others) >= 4
    for call in others:
        length, width = call.args[0].shape[-2:]
        assert length != width
    assert any(call.gradients for call in cases(name))


@pytest.mark.parametrize("name", ["self-attention-module", "encoder-layer", "decoder-layer"])
def test_masks_are_tested_with_as_many_samples_as_heads_and_with_more(name: str) -> None:
    """A mask without a head axis raises no error with B = H, and raises with B > H."""
    masked = [call.args[-1] for call in cases(name) if call.args[-1].dtype.kind in "bi"]
    assert {2, 3} <= {len(mask) for mask in masked}
