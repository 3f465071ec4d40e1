"""The loss compared with PyTorch's and with formulas in NumPy; two passes compared with the R-Drop paper."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import VOCAB, Numbers, Tiny, predict
from tolerances import assert_close
from torch import Tensor

from regard.training.batches import IGNORED
from regard.training.step import Objective, cross_entropy, mean_divergence


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@st.composite
def predictions(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Logits (B, T, W) and targets, some of them IGNORED; also without rows."""
    B, T, W = draw(st.integers(0, 3)), draw(st.integers(1, 5)), draw(st.integers(2, 7))
    draws = np.random.default_rng(draw(st.integers(0, 2**16)))
    targets = draws.integers(0, W, (B, T))
    targets[draws.random((B, T)) < draw(st.sampled_from([0.0, 0.4, 1.0]))] = IGNORED
    return torch.from_numpy(3 * draws.standard_normal((B, T, W))).float(), torch.from_numpy(targets)


@given(predictions(), st.sampled_from([0.0, 0.1, 0.9]))
def test_cross_entropy_is_a_sum_over_targets_with_smoothed_probabilities(
    case: tuple[Tensor, Tensor], smoothing: float
) -> None:
    logits, targets = case
    W = logits.shape[-1]
    log_p = log_softmax(logits.double().numpy())
    expected = 0.0
    for place in zip(*np.nonzero(targets.numpy() != IGNORED), strict=True):
        wanted = np.full(W, smoothing / W)
        wanted[targets[place]] += 1 - smoothing
        expected -= float((wanted * log_p[place]).sum())
    found = cross_entropy(logits, targets, smoothing)
    np.testing.assert_allclose(found.item(), expected, rtol=1e-5, atol=1e-5)
    torchs = F.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=IGNORED, label_smoothing=smoothing, reduction="none"
    )
    np.testing.assert_allclose(found.item(), torchs.double().sum().item(), rtol=1e-5, atol=1e-5)


def test_half_precision_is_summed_in_float32() -> None:
    logits = torch.zeros(1, 3000, 2, dtype=torch.bfloat16)
    loss = cross_entropy(logits, torch.zeros(1, 3000, dtype=torch.long))
    assert loss.dtype == torch.float32
    np.testing.assert_allclose(loss.item(), 3000 * np.log(2), rtol=1e-5)


@given(predictions(), st.integers(0, 100))
def test_mean_divergence_is_half_of_both_divergences(case: tuple[Tensor, Tensor], seed: int) -> None:
    one, targets = case
    other = torch.randn(one.shape, generator=torch.Generator().manual_seed(seed))
    log_p, log_q = log_softmax(one.double().numpy()), log_softmax(other.double().numpy())
    there = (log_p - log_q) * np.exp(log_p)
    back = (log_q - log_p) * np.exp(log_q)
    expected = ((there + back).sum(-1) / 2)[targets.numpy() != IGNORED].sum()
    np.testing.assert_allclose(mean_divergence(one, other, targets).item(), expected, rtol=1e-4, atol=1e-5)
    assert mean_divergence(one, one, targets).item() == 0.0


def test_two_passes_add_the_mean_divergence() -> None:
    batch = Numbers().batch(0, 0)
    seen: list[Tensor] = []

    def forward(model: Any, ids: Tensor) -> Tensor:
        seen.append(predict(model, ids))
        return seen[-1]

    model = Tiny(dropout=0.5)
    loss = Objective(model, forward, smoothing=0.1, agreement=3.0)(batch.inputs, batch.targets)
    B = len(batch.targets)
    one, other = seen[0][:B], seen[0][B:]
    assert len(seen) == 1
    assert not torch.equal(one, other)
    mean = (cross_entropy(one, batch.targets, 0.1) + cross_entropy(other, batch.targets, 0.1)) / 2
    # Wu et al. 2021: NLL(p) + NLL(q) + α · (KL(p‖q) + KL(q‖p)) / 2; all halved, to be a mean.
    assert_close(loss, mean + 3.0 * mean_divergence(one, other, batch.targets) / 2)


def test_two_passes_without_dropout_equal_one() -> None:
    batch, model = Numbers().batch(0, 0), Tiny(dropout=0.0)
    once = Objective(model, predict, smoothing=0.1)(batch.inputs, batch.targets)
    twice = Objective(model, predict, smoothing=0.1, agreement=5.0)(batch.inputs, batch.targets)
    assert_close(twice, once)


@pytest.mark.parametrize("agreement", [None, 2.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_no_rows_or_targets_give_zero_loss_and_gradient(agreement: float | None, smoothing: float) -> None:
    for rows, fill in ((0, 1), (2, IGNORED)):
        model = Tiny()
        ids = torch.ones(rows, 3, dtype=torch.long)
        objective = Objective(model, predict, smoothing=smoothing, agreement=agreement)
        loss = objective({"ids": ids}, torch.full_like(ids, fill))
        loss.backward()
        assert loss.item() == 0.0
        assert all(weight.grad is not None and not weight.grad.any() for weight in model.parameters())


def test_gradients_match_the_formula() -> None:
    logits = torch.randn(2, 3, VOCAB, requires_grad=True)
    targets = torch.tensor([[1, IGNORED, 3], [0, 2, IGNORED]])
    cross_entropy(logits, targets, 0.1).backward()
    wanted = 0.9 * F.one_hot(targets.clamp(min=0), VOCAB) + 0.1 / VOCAB
    expected = (logits.softmax(-1) - wanted) * (targets != IGNORED)[..., None]
    assert logits.grad is not None
    assert_close(logits.grad, expected.detach(), "gradient")
