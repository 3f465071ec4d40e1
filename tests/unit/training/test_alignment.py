"""The loss on a head's attention weights: its value, its gradient, and its errors."""

from typing import Any

import pytest
import torch
from narrowing import present
from tolerances import assert_close
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from regard.config import TransformerConfig
from regard.errors import ArgumentError
from regard.evaluation.scores import translation_logits
from regard.masks import Mask
from regard.messages import use_language
from regard.models import Transformer
from regard.records import See
from regard.trace import Recorder
from regard.training.alignment import HeadWeights, alignment_loss
from regard.training.batches import Batch, PairBatches
from regard.training.plan import HeadAlignment
from regard.training.step import Objective

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


def test_two_passes_without_dropout_equal_one() -> None:
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
