"""The loss compared with PyTorch's and with formulas in NumPy; two passes compared with the R-Drop paper."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present
from tiny_runs import VOCAB, Numbers, Tiny, predict
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from regard.config import TransformerConfig
from regard.errors import ArgumentError, FileError
from regard.evaluation.scores import translation_logits
from regard.masks import Mask
from regard.messages import use_language
from regard.models import Transformer
from regard.records import See
from regard.trace import Recorder
from regard.training.batches import IGNORED, Batch, PairBatches
from regard.training.plan import HeadAlignment, Plan
from regard.training.step import (
    HeadWeights,
    Objective,
    adamw,
    alignment_loss,
    cross_entropy,
    load_optimizer_state,
    mean_divergence,
    optimizer_state,
    skip_unless,
)


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


PLAN = Plan(steps=10, lr=0.03, weight_decay=0.2, betas=(0.8, 0.95), eps=1e-6)


def backward(model: nn.Module, index: int) -> None:
    """Compute the gradients of one batch."""
    model.zero_grad()
    batch = Numbers().batch(0, index)
    cross_entropy(predict(model, **batch.inputs), batch.targets).backward()


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def trained(steps: int) -> tuple[Tiny, torch.optim.AdamW]:
    model = Tiny(dropout=0.0)
    optimizer = adamw(model, PLAN)
    for index in range(steps):
        backward(model, index)
        skip_unless(optimizer, torch.tensor(True))
        optimizer.step()
    return model, optimizer


def test_equals_torch_adamw_with_decay_on_matrices_only() -> None:
    ours, _ = trained(5)
    theirs = Tiny(dropout=0.0)
    groups: list[dict[str, Any]] = [
        {"params": [theirs.embedding.weight, theirs.output.weight], "weight_decay": 0.2},
        {"params": [theirs.output.bias], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.03, betas=(0.8, 0.95), eps=1e-6)
    for index in range(5):
        backward(theirs, index)
        optimizer.step()
    for mine, weight in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(mine.detach(), weight.detach())


def test_learning_rate_is_a_tensor_only_for_captured_steps() -> None:
    for optimizer in (adamw(Tiny(), PLAN), adamw(Tiny(), replace(PLAN, capture=True))):  # never captured on the CPU
        assert {group["lr"] for group in optimizer.param_groups} == {0.03}
        assert not any(group["capturable"] for group in optimizer.param_groups)


def test_one_step_matches_the_paper() -> None:
    # Loshchilov & Hutter 2019, algorithm 2; at the first step both moments, bias corrected, are those of the gradient.
    model = Tiny(dropout=0.0)
    before = weights_of(model)
    backward(model, 0)
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    adamw(model, PLAN).step()
    for name, weight in model.named_parameters():
        decay = 0.2 if weight.ndim == 2 else 0.0
        g = gradients[name]
        expected = before[name] * (1 - 0.03 * decay) - 0.03 * g / (g.abs() + 1e-6)
        assert_close(weight.detach(), expected)


def test_frozen_weights_are_not_changed() -> None:
    model = Tiny()
    model.embedding.weight.requires_grad_(False)
    model.output.weight.requires_grad_(False)
    optimizer = adamw(model, PLAN)
    assert [len(group["params"]) for group in optimizer.param_groups] == [1]


@pytest.mark.parametrize("steps_before", [0, 3])
def test_skipped_step_changes_no_weight_or_state(steps_before: int) -> None:
    model, optimizer = trained(steps_before)
    weights, state = (
        weights_of(model),
        {name: value.clone() for name, value in optimizer_state(optimizer, model).items()},
    )
    backward(model, 7)
    for weight in model.parameters():
        assert weight.grad is not None
        weight.grad[...] = torch.nan
    skip_unless(optimizer, torch.tensor(False))
    optimizer.step()
    for name, weight in model.named_parameters():
        assert_same_bits(weight.detach(), weights[name])
    for place, value in optimizer_state(optimizer, model).items():
        assert_same_bits(value, state.get(place, torch.zeros_like(value)))
    backward(model, 8)  # the next step continues as if nothing had happened
    skip_unless(optimizer, torch.tensor(True))
    optimizer.step()
    unbroken, others = trained(steps_before)
    backward(unbroken, 8)
    others.step()
    for weight, expected in zip(model.parameters(), unbroken.parameters(), strict=True):
        assert_same_bits(weight.detach(), expected.detach())


def test_state_is_named_after_weights_and_restored_bit_for_bit() -> None:
    model, optimizer = trained(3)
    state = {place: value.clone() for place, value in optimizer_state(optimizer, model).items()}
    fields = ("step", "exp_avg", "exp_avg_sq")
    assert state.keys() == {f"{name}/{field}" for name, _ in model.named_parameters() for field in fields}
    other = Tiny(dropout=0.0)
    other.load_state_dict(model.state_dict())
    resumed = adamw(other, PLAN)
    load_optimizer_state(resumed, other, state)
    for net, mind in ((model, optimizer), (other, resumed)):
        backward(net, 3)
        mind.step()
    for weight, expected in zip(other.parameters(), model.parameters(), strict=True):
        assert_same_bits(weight.detach(), expected.detach())
    assert state["output.bias/step"].item() == 3  # the given tensors are not changed


def test_no_state_before_the_first_step() -> None:
    model = Tiny()
    optimizer = adamw(model, PLAN)
    assert optimizer_state(optimizer, model) == {}
    load_optimizer_state(optimizer, model, {})
    assert optimizer_state(optimizer, model) == {}


def test_weight_without_gradient_has_no_state() -> None:
    model, optimizer = trained(0)
    model.register_parameter("unused", nn.Parameter(torch.ones(2)))
    optimizer = adamw(model, PLAN)
    backward(model, 0)
    optimizer.step()
    state = optimizer_state(optimizer, model)
    assert not any(place.startswith("unused") for place in state)
    load_optimizer_state(adamw(model, PLAN), model, state)


@pytest.mark.parametrize(
    ("place", "shape", "wanted"),
    [("output.bias/exp_avg", (3,), "(11,)"), ("gone.weight/exp_avg", (11,), "None"), ("nonsense", (1,), "None")],
)
def test_state_of_another_model_raises(place: str, shape: tuple[int, ...], wanted: str) -> None:
    model, optimizer = trained(1)
    state = optimizer_state(optimizer, model) | {place: torch.zeros(shape)}
    fresh = adamw(model, PLAN)
    with pytest.raises(FileError) as caught:
        load_optimizer_state(fresh, model, state)
    assert caught.value.key == "run-optimizer"
    assert f"{place} has shape {shape}, expected {wanted}" in str(caught.value)
    assert optimizer_state(fresh, model) == {}  # nothing was loaded


def test_state_of_a_frozen_weight_raises() -> None:
    model, optimizer = trained(1)
    state = optimizer_state(optimizer, model)
    model.output.bias.requires_grad_(False)
    with pytest.raises(FileError, match=r"output\.bias"):
        load_optimizer_state(adamw(model, PLAN), model, state)


LAYER = "decoder.layers.1.cross_attention"
CONFIG = {"vocab_size": 12, "d_model": 8, "n_heads": 2, "d_ff": 8, "n_layers": 2, "dropout": 0.0}
MARKS: dict[str, Any] = {"pad": 0, "bos": 1, "eos": 2}


def make_model(dropout: float = 0.0, **changes: Any) -> Transformer:
    torch.manual_seed(0)
    return Transformer(TransformerConfig.paper_2017(**CONFIG | {"dropout": dropout} | changes)).double()


def make_batch() -> Batch:
    links = [[(0, 0), (1, 0), (2, 1)], [(1, 2), (0, 1)]]
    return PairBatches([[5, 6], [7]], [[8], [9, 4]], tokens_per_batch=6, seed=0, links=links, **MARKS).batch(0, 0)


def objective_of(model: Transformer, head: int = 1, layer: str = LAYER, **options: Any) -> Objective:
    alignment = HeadAlignment(layer=layer, head=head, weight=0.5)
    return Objective(model, translation_logits, alignment=alignment, **options)


# --- value ------------------------------------------------------------------------------------------------


def test_loss_is_the_cross_entropy_of_the_recorded_weights() -> None:
    model, batch = make_model(), make_batch()
    inputs = {name: each for name, each in batch.inputs.items() if name != "alignment"}
    recorder = Recorder(See())
    with torch.no_grad():
        translation_logits(model, **inputs, attend=recorder)
    weights = present(recorder.trace[LAYER].map)[:, 1]
    expected = -(batch.inputs["alignment"] * weights.log()).nan_to_num().sum()
    plain = Objective(model, translation_logits)(batch.inputs, batch.targets)
    assert_close(objective_of(model)(batch.inputs, batch.targets), plain + 0.5 * expected)


def test_two_passes_with_an_aligned_head_equal_one() -> None:
    model, batch = make_model(), make_batch()
    once = objective_of(model)(batch.inputs, batch.targets)
    assert_close(objective_of(model, agreement=3.0)(batch.inputs, batch.targets), once)


def test_training_without_alignment_ignores_the_links() -> None:
    model, batch = make_model(), make_batch()
    without = {name: each for name, each in batch.inputs.items() if name != "alignment"}
    objective = Objective(model, translation_logits, agreement=2.0)
    assert_close(objective(batch.inputs, batch.targets), objective(without, batch.targets))


def test_the_output_does_not_depend_on_the_aligned_head() -> None:
    model, batch = make_model(), make_batch()
    inputs = {name: each for name, each in batch.inputs.items() if name != "alignment"}
    kept = translation_logits(model, **inputs, attend=HeadWeights(LAYER, 0))
    assert_close(kept, translation_logits(model, **inputs))


def test_a_row_without_links_has_no_loss() -> None:
    weights = torch.tensor([[[0.0, 1.0], [0.5, 0.5]]])
    assert alignment_loss(weights, torch.zeros(1, 2, 2)).item() == 0.0


def test_a_weight_of_zero_has_a_finite_loss() -> None:
    weights = torch.tensor([[[0.0, 1.0]]], requires_grad=True)
    loss = alignment_loss(weights, torch.tensor([[[1.0, 0.0]]]))
    loss.backward()
    assert loss.isfinite()
    assert weights.grad is not None
    assert weights.grad.isfinite().all()


# --- gradient ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [f"{LAYER}.q_proj.weight", f"{LAYER}.k_proj.weight", "encoder.layers.0.self_attention_norm.weight"]
)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    model, batch = make_model(), make_batch()
    inputs = {key: each for key, each in batch.inputs.items() if key != "alignment"}

    def loss(moved: Tensor) -> Tensor:
        attend = HeadWeights(LAYER, 1)
        torch.func.functional_call(
            model,
            {name: moved},
            (inputs["ids"], inputs["source"]),
            {"source_mask": Mask.from_keep(inputs["source_keep"]), "attend": attend},
        )
        return alignment_loss(attend.weights, batch.inputs["alignment"])

    assert torch.autograd.gradcheck(loss, [model.get_parameter(name).detach().clone().requires_grad_()])


def test_only_the_aligned_head_gets_a_gradient_from_the_links() -> None:
    model, batch = make_model(), make_batch()
    inputs = {name: each for name, each in batch.inputs.items() if name != "alignment"}
    attend = HeadWeights(LAYER, 1)
    translation_logits(model, **inputs, attend=attend)
    alignment_loss(attend.weights, batch.inputs["alignment"]).backward()
    one, other = model.get_parameter(f"{LAYER}.q_proj.weight").grad.chunk(2)  # type: ignore[union-attr]
    assert not one.any()
    assert other.any()


# --- on a GPU -------------------------------------------------------------------------------------------


class Waits(TorchDispatchMode):
    """Counts the operations for whose result Python would wait on a GPU, which no CUDA graph may contain."""

    found: int = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found += any(word in str(func) for word in ("_local_scalar_dense", "nonzero", "masked_select"))
        return func(*args, **(kwargs or {}))


def test_a_captured_step_reads_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a capture: the guards know that they may not branch on values, and ids are not checked on a GPU."""
    model, batch = make_model(), make_batch()
    monkeypatch.setattr("regard.models.inputs._check_range", lambda *_: None)
    monkeypatch.setattr("regard.dispatch.overflow.may_branch", lambda _: False)
    objective = objective_of(model, agreement=3.0, smoothing=0.1)
    with Waits() as without:
        objective(batch.inputs, batch.targets).backward()
    monkeypatch.setattr("regard.functional.attention._in_graph", lambda _: True)
    with Waits() as captured:
        objective(batch.inputs, batch.targets).backward()
    assert without.found > captured.found == 0


# --- errors -----------------------------------------------------------------------------------------------


def test_an_unknown_layer_is_named_with_the_known_ones() -> None:
    model, batch = make_model(), make_batch()
    with pytest.raises(ArgumentError, match=r"no attention layer 'decoder\.7'; it has encoder\.layers\.0.*cross_att"):
        objective_of(model, layer="decoder.7")(batch.inputs, batch.targets)


@pytest.mark.parametrize(("language", "message"), [("en", r"numbered 0 to 1"), ("zh", "的头编号为 0 到 1")])
def test_an_unknown_head_is_named(language: Any, message: str) -> None:
    model, batch = make_model(), make_batch()
    with use_language(language), pytest.raises(ArgumentError) as error:
        objective_of(model, head=2)(batch.inputs, batch.targets)
    with use_language(language):
        assert message in str(error.value)


def test_data_without_links_is_refused() -> None:
    model, batch = make_model(), make_batch()
    del batch.inputs["alignment"]
    with pytest.raises(ArgumentError, match="needs word links"):
        objective_of(model)(batch.inputs, batch.targets)


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan")])
def test_the_weight_is_above_zero(weight: float) -> None:
    with pytest.raises(ArgumentError, match=r"training\.alignment\.weight must be above 0"):
        HeadAlignment(layer=LAYER, head=0, weight=weight)


def test_a_link_outside_of_the_pair_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"pair 1: the link \(2, 0\) is outside of 2 source and 3 target tokens"):
        PairBatches([[5], [7]], [[8], [9, 4]], tokens_per_batch=6, seed=0, links=[[(1, 1)], [(2, 0)]], **MARKS)
    with pytest.raises(ArgumentError, match="links are given for 1 pairs, and there are 2 pairs"):
        PairBatches([[5], [7]], [[8], [9, 4]], tokens_per_batch=6, seed=0, links=[[]], **MARKS)


# --- batches ----------------------------------------------------------------------------------------------


def test_wanted_weights_are_rows_of_the_tokens_to_write() -> None:
    batch = make_batch()
    rows = {example: wanted.tolist() for example, wanted in zip(batch.examples, batch.inputs["alignment"], strict=True)}
    assert batch.inputs["alignment"].dtype == torch.float32
    assert rows[0] == [[0.5, 0.5, 0], [0, 0, 1], [0, 0, 0]]
    assert rows[1] == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_links_change_the_fingerprint() -> None:
    def made(links: Any) -> str:
        return PairBatches([[5]], [[8]], tokens_per_batch=6, seed=0, links=links, **MARKS).fingerprint

    assert len({made(None), made([[(0, 0)]]), made([[(1, 0)]])}) == 3
