"""Softmaxes that models compute themselves: which are attention, which are not, and what their weights are."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from capturing import assert_unchanged, captured_in, records_of
from narrowing import present
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from regard import See
from regard.capture.dispatch_mode import CaptureMode
from regard.capture.operators import CapturedWeights

Q, K, V = torch.randn(3, 2, 4, 5, 8).unbind()
SCORES = Q @ K.mT
WEIGHTS = SCORES.softmax(-1)
NOTHING = nn.Identity()


def einsum_swapped() -> Tensor:
    return torch.einsum("bshd,bhts->bthd", V.transpose(1, 2), SCORES.softmax(-1))


def value_on_the_left() -> Tensor:
    return V.mT @ SCORES.softmax(-1).mT


def cast() -> Tensor:
    return SCORES.softmax(-1, dtype=torch.float64).float() @ V


def many_steps_in_between() -> Tensor:
    weights, v = SCORES.softmax(-1), V
    for _ in range(30):
        v = v + 0
    return weights @ v


def transposed_before_the_softmax() -> Tensor:
    return SCORES.mT.softmax(-2).mT @ V


ATTENTION: dict[str, Callable[[], Tensor]] = {
    "matmul": lambda: SCORES.softmax(-1) @ V,
    "bmm": lambda: torch.bmm(SCORES.flatten(0, 1).softmax(-1), V.flatten(0, 1)),
    "einsum": lambda: torch.einsum("bhts,bhsd->bthd", SCORES.softmax(-1), V),
    "einsum swapped": einsum_swapped,
    "value on the left": value_on_the_left,
    "cast": cast,
    "many steps in between": many_steps_in_between,
    "grouped": lambda: SCORES.unflatten(1, (2, 2)).softmax(-1) @ V.unflatten(1, (2, 2)),
    "copied": lambda: SCORES.softmax(-1).transpose(0, 1).contiguous() @ V.transpose(0, 1),
    "transposed": transposed_before_the_softmax,
}


@pytest.mark.parametrize("how", ATTENTION)
def test_attention_is_recognised_by_its_product(how: str) -> None:
    (found,) = captured_in(ATTENTION[how])
    assert isinstance(found, CapturedWeights)
    assert_close(found.weights.reshape(WEIGHTS.shape).float(), WEIGHTS, "weights")
    assert_close(present(found.lse).reshape(2, 4, 5).float(), SCORES.logsumexp(-1), "statistic")


@pytest.mark.parametrize("product", ["bhts,bhsd->bhtd", "bhts,bhsd->bthd"])
@pytest.mark.parametrize("T", [1, 5])
@pytest.mark.parametrize("B", [1, 2])
def test_einsum_of_a_single_key(B: int, T: int, product: str) -> None:
    """There einsum multiplies number by number."""
    scores, v = (Q @ K.mT)[:B, :, :T, :1], V[:B, :, :1]
    (found,) = captured_in(lambda: torch.einsum(product, scores.softmax(-1), v))
    assert isinstance(found, CapturedWeights)
    assert_same_bits(found.weights, torch.ones(B, 4, T, 1))
    assert_same_bits(present(found.v), v)
    assert_close(present(found.lse), scores[..., 0], "statistic")


def test_one_head_of_one_sample() -> None:
    q, k, v = torch.randn(3, 5, 8)
    (record,) = records_of(lambda: (q @ k.T).softmax(-1) @ v, NOTHING)
    assert_same_bits(record.weights(), (q @ k.T).softmax(-1)[None, None])


def dropped_tensor() -> None:
    weights, v = SCORES.softmax(-1), V
    for _ in range(300):
        v = v + 0
    weights @ v


OTHER: dict[str, Callable[[], object]] = {
    "a choice of experts": lambda: (SCORES.softmax(-1)[..., None] * V[..., None, :]).sum(-1),
    "the next token": lambda: torch.multinomial(SCORES[0, 0].softmax(-1), 1),
    "a mean of embeddings": lambda: SCORES[0].softmax(-1) @ nn.Parameter(torch.randn(5, 8)),
    "a mean of a layer's columns": lambda: F.linear(SCORES[0].softmax(-1), nn.Parameter(torch.randn(8, 5))),
    "a table that all samples share": lambda: SCORES[0].softmax(-1) @ torch.randn(5, 8),
    "a softmax over the queries": lambda: Q[..., :3, :].softmax(-2) @ V[..., :8, :].mT,
    "nothing at all": lambda: torch.zeros(2, 0, 5).softmax(-1) @ torch.zeros(2, 5, 3),
    "a gate of one number": lambda: SCORES[..., :1].softmax(-1) * V,
    "a loss": lambda: F.cross_entropy(SCORES[0, 0], torch.arange(5)),
    "a product of something else": lambda: (SCORES.softmax(-1), Q @ K.mT),
    "one that was let go": dropped_tensor,
}


@pytest.mark.parametrize("what", OTHER)
def test_other_softmaxes_are_not_attention(what: str) -> None:
    assert captured_in(OTHER[what]) == []


class Dropping(nn.Module):
    """Attention written by hand, with dropout of some kind."""

    def __init__(self, drop: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.project, self.drop = nn.Linear(8, 24), drop
        self.computed: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x).chunk(3, -1)
        weights = (q @ k.mT).softmax(-1)
        self.computed.append(weights.detach().clone())
        return self.drop(weights) @ v


DROPOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda weights: F.dropout(weights, 0.5),
    "in place": lambda weights: F.dropout(weights.clone(), 0.5, inplace=True),
    "native": lambda weights: torch.native_dropout(weights, 0.5, True)[0],
    "cast first": lambda weights: F.dropout(weights.double(), 0.5).float(),
    "cast and masked after": lambda weights: F.dropout(weights, 0.5).masked_fill(weights > 2, 0).double().float(),
}


@pytest.mark.parametrize("how", DROPOUTS)
def test_weights_are_those_before_dropout(how: str) -> None:
    model = Dropping(DROPOUTS[how])
    (record,) = assert_unchanged(lambda: model(X), model)
    assert_same_bits(record.weights()[:, 0], model.computed[-1])


X = torch.randn(2, 5, 8)


def test_dropout_in_place_on_the_weights() -> None:
    def run() -> Tensor:
        with torch.no_grad():
            return F.dropout(SCORES.softmax(-1), 0.5, inplace=True) @ V

    (record,) = assert_unchanged(run, NOTHING)
    assert_same_bits(record.weights(), WEIGHTS)


def test_a_sliced_off_sink_leaves_row_sums_below_one() -> None:
    with_sink = torch.cat([SCORES, torch.ones(2, 4, 5, 1)], -1).softmax(-1)
    (record,) = records_of(lambda: torch.cat([SCORES, torch.ones(2, 4, 5, 1)], -1).softmax(-1)[..., :-1] @ V, NOTHING)
    assert_same_bits(record.weights(), with_sink[..., :-1])


def test_rows_masked_after_the_softmax_are_masked() -> None:
    hidden = torch.zeros(2, 1, 5, 1, dtype=torch.bool)
    hidden[0, 0, 3] = True
    (record,) = records_of(lambda: SCORES.softmax(-1).masked_fill(hidden, 0.0) @ V, NOTHING)
    assert_same_bits(record.weights(), WEIGHTS.masked_fill(hidden, 0.0))


def test_rows_masked_in_place_are_masked() -> None:
    hidden = torch.zeros(5, 5, dtype=torch.bool)
    hidden[3] = True

    def run() -> Tensor:
        copy = SCORES.softmax(-1).double()
        return copy.masked_fill_(hidden, 0.0).float() @ V

    (record,) = records_of(run, NOTHING)
    assert_same_bits(record.weights(), WEIGHTS.double().masked_fill(hidden, 0.0))


def test_two_softmaxes_are_recorded_in_the_order_of_their_products() -> None:
    def run() -> None:
        first, second = SCORES.softmax(-1), (2 * SCORES).softmax(-1)
        second @ V
        first @ V

    first, second = records_of(run, NOTHING)
    assert_same_bits(first.weights(), (2 * SCORES).softmax(-1))
    assert_same_bits(second.weights(), WEIGHTS)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_in_float32(dtype: torch.dtype) -> None:
    scores, v = SCORES.to(dtype), V.to(dtype)
    (record,) = records_of(lambda: scores.softmax(-1) @ v, NOTHING, See(map=99, entropy=True))
    assert present(record.map).dtype == present(record.lse).dtype == torch.float32
    assert_close(record.lse, scores.float().logsumexp(-1), "statistic")


def test_backward_is_not_captured() -> None:
    x = Q.clone().requires_grad_()
    assert len(captured_in(lambda: ((x @ x.mT).softmax(-1) @ x).sum().backward())) == 1


class TalkingHeads(nn.Module):
    """Heads mixed by a layer after the softmax, as CaiT does."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.num_heads, self.dropout = 4, dropout
        self.mix = nn.Linear(4, 4)
        self.computed: list[Tensor] = []

    def forward(self) -> Tensor:
        weights = self.mix(SCORES.softmax(-1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        self.computed.append(weights.detach().clone())
        return F.dropout(weights, self.dropout, self.dropout > 0) @ V


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_heads_mixed_after_the_softmax(dropout: float) -> None:
    model = TalkingHeads(dropout)
    (record,) = assert_unchanged(model, model)
    assert_same_bits(record.weights(), model.computed[-1])
    assert record.lse is None


def test_one_softmax_minus_another() -> None:
    def run() -> Tensor:
        first, second = torch.cat([SCORES, -SCORES], 1).softmax(-1).unflatten(1, (2, 4)).unbind(1)
        return (first - 0.3 * second) @ V

    (record,) = records_of(run, NOTHING)
    assert_close(record.weights(), WEIGHTS - 0.3 * (-SCORES).softmax(-1), "weights")


def test_tensors_without_storage_are_skipped() -> None:
    def run() -> Tensor:
        weights = SCORES.softmax(-1)
        torch.eye(5).to_sparse() * 2
        return weights @ V

    assert len(captured_in(run)) == 1


LOGGED: dict[str, Callable[[Tensor], object]] = {
    "entropy": lambda weights: -(weights * (weights + 1e-9).log()).sum(-1).mean(),
    "distance": lambda weights: (weights * torch.arange(5.0)).sum(-1).mean(),
    "first key": lambda weights: weights[..., :1].mean(),
    "last query": lambda weights: weights[..., -1:, :] * 1,
    "one head": lambda weights: (weights[:, 0] * 2).max(),
    "hidden": lambda weights: weights.masked_fill(torch.eye(5, dtype=torch.bool), 0.0).sum(-1),
    "half": lambda weights: weights.half() * 2,
    "a copy, dropped": lambda weights: F.dropout(weights, 0.5),
    "a copy, doubled in place": lambda weights: weights.clone().mul_(2.0),
}


@pytest.mark.parametrize("what", LOGGED)
def test_values_computed_for_logging_are_not_recorded(what: str) -> None:
    def run() -> Tensor:
        weights = SCORES.softmax(-1)
        LOGGED[what](weights)
        return weights @ V

    (record,) = assert_unchanged(run, NOTHING)
    assert_same_bits(record.weights(), WEIGHTS)
    assert_close(record.lse, SCORES.logsumexp(-1), "statistic")


def test_changed_weights_are_recorded_despite_logging() -> None:
    def run() -> Tensor:
        weights = SCORES.softmax(-1)
        used = weights * 0.5
        (weights * 3).sum()
        (used + 1).log().mean()
        return used @ V

    (record,) = records_of(run, NOTHING)
    assert_same_bits(record.weights(), WEIGHTS * 0.5)


def test_weights_changed_after_a_softmax_along_another_axis() -> None:
    def run() -> Tensor:
        return (SCORES.mT.softmax(-2) * 0.5).mT @ V

    (record,) = records_of(run, NOTHING)
    assert_close(record.weights(), WEIGHTS * 0.5, "weights")


def test_one_head_silenced_in_place() -> None:
    def run() -> Tensor:
        weights = SCORES.softmax(-1)
        weights[:, 1].mul_(0.0)
        return weights @ V

    (record,) = records_of(run, NOTHING)
    assert not record.weights()[:, 1].any()
    assert_same_bits(record.weights()[:, 2], WEIGHTS[:, 2])


def test_heads_multiplied_separately_are_all_recorded() -> None:
    def run() -> None:
        weights = SCORES.softmax(-1)
        for head in range(4):
            (weights[:, head] * (head + 1.0)) @ V[:, head]

    records = records_of(run, NOTHING)
    for head, record in enumerate(records):
        assert_same_bits(record.weights()[:, 0], WEIGHTS[:, head] * (head + 1.0))
    assert len(records) == 4


def test_queries_in_pieces_are_all_recorded() -> None:
    def run() -> None:
        weights = SCORES.softmax(-1)
        weights[..., :3, :] @ V
        weights[..., 3:, :] @ V

    first, second = records_of(run, NOTHING)
    assert_same_bits(first.weights(), WEIGHTS[..., :3, :])
    assert_same_bits(second.weights(), WEIGHTS[..., 3:, :])


def test_two_softmaxes_in_one_matrix_have_no_lse() -> None:
    def run() -> Tensor:
        first, second = SCORES.softmax(-1), (2 * SCORES).softmax(-1)
        return (first - 0.3 * second) @ V

    (found,) = captured_in(run)
    assert isinstance(found, CapturedWeights)
    assert_close(found.weights, WEIGHTS - 0.3 * (2 * SCORES).softmax(-1), "weights")
    assert found.lse is None


def test_no_tensor_is_kept_alive() -> None:
    def run() -> bool:
        weights = SCORES.softmax(-1)
        changed = weights * 2
        gone = StorageWeakRef(changed.untyped_storage()), StorageWeakRef(weights.untyped_storage())
        del weights, changed
        return all(storage.expired() for storage in gone)

    with CaptureMode(print):
        assert run()
