"""What is kept of a generated text: the keys of each step, and exact weights from them."""

import pytest
import torch
from tolerances import assert_close
from torch import Tensor

from regard.capture.operators import CapturedCall
from regard.capture.watched_trace import DecodeHistory
from regard.masks import Mask
from regard.records import DecodeStep, Record


def attention(q: Tensor, k: Tensor, mask: Mask | None = None) -> tuple[CapturedCall, Record, Tensor]:
    """A call, its record without weights, and the weights."""
    scores = q @ k.mT
    if mask is not None:
        visible = mask.dense(q.shape[2], k.shape[2], like=q)
        scores = scores.masked_fill(~visible, -torch.inf)
    captured = CapturedCall(q=q, k=k, v=k, scale=1.0, mask=mask)
    return captured, Record(shape=tuple(scores.shape), lse=scores.logsumexp(-1)), scores.softmax(-1)


def parts() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(2, 2, 6, 4), torch.randn(2, 2, 6, 4)


@pytest.mark.parametrize("in_place", [False, True])
def test_weights_of_every_step(in_place: bool) -> None:
    q, k = parts()
    history, found = DecodeHistory(), []
    for start, stop in ((0, 3), (3, 4), (4, 6)):
        own_q, own_k = q[:, :, start:stop].clone(), k[:, :, :stop].clone()
        captured, record, weights = attention(own_q, own_k, Mask.causal())
        step = DecodeStep(start, (0, 1)) if start else None
        found.append((history.with_history("h.0", captured, record, step), weights))
        if in_place:  # the model may overwrite its cache
            own_q.zero_()
            own_k.zero_()
    for record, weights in found:
        assert_close(record.weights(), weights, "weights")
        assert_close(record.weights(slice(0, 1), slice(1, 3)), weights[..., :1, 1:3], "weights")


def test_earlier_keys_are_read_from_the_cache() -> None:
    """The prompt's call was not kept; the first step's cache still has its keys."""
    q, k = parts()
    history = DecodeHistory()
    for stop in (5, 6):
        captured, record, weights = attention(q[:, :, stop - 1 : stop], k[:, :, :stop])
        record = history.with_history("h.0", captured, record, DecodeStep(stop - 1, (0, 1)))
        assert_close(record.weights(), weights, "weights")


def test_beams() -> None:
    q, k = parts()
    history = DecodeHistory()
    captured, record, first = attention(q[:, :, :3], k[:, :, :3])
    one = history.with_history("h.0", captured, record, None)
    swapped = torch.cat([k[[1, 1], :, :3], k[:, :, 3:4]], 2)
    captured, record, second = attention(q[:, :, 3:4], swapped)
    two = history.with_history("h.0", captured, record, DecodeStep(3, (1, 1)))
    assert_close(one.weights(), first, "weights")
    assert_close(two.weights(), second, "weights")


def test_a_cache_with_unused_positions_and_one_that_drops_keys() -> None:
    q, k = parts()
    history = DecodeHistory()
    captured, record, _ = attention(q[:, :, :3], k[:, :, :3])
    history.with_history("h.0", captured, record, None)
    padded = torch.cat([k[:, :, :4], torch.full((2, 2, 2, 4), 9.0)], 2)
    captured, record, weights = attention(q[:, :, 3:4], padded, Mask.from_keep(torch.tensor([[1, 1, 1, 1, 0, 0]] * 2)))
    assert_close(history.with_history("h.0", captured, record, DecodeStep(3, (0, 1))).weights(), weights, "weights")
    captured, record, weights = attention(q[:, :, 4:5], k[:, :, 2:5])
    assert_close(history.with_history("h.0", captured, record, DecodeStep(4, (0, 1))).weights(), weights, "weights")


def test_another_text_starts_anew() -> None:
    q, k = parts()
    history = DecodeHistory()
    captured, record, _ = attention(q[:, :, :3], k[:, :, :3])
    history.with_history("h.0", captured, record, None)
    history.reset("h.0")
    captured, record, weights = attention(q[:, :, 3:], k[:, :, 3:])
    assert_close(history.with_history("h.0", captured, record, None).weights(), weights, "weights")


def test_source_keys_are_kept_once() -> None:
    q, k = parts()
    history, records = DecodeHistory(), []
    for at in range(3):
        captured, record, weights = attention(q[:, :, at : at + 1], k)
        records.append(history.with_source_keys("h.0", captured, record))
        assert_close(records[-1].weights(), weights, "weights")
    assert len({id(record.exact.keys) for record in records}) == 1  # type: ignore[union-attr]


def test_maps_that_hold_the_weights_need_no_keys() -> None:
    q, k = parts()
    captured, record, weights = attention(q, k)
    fine = Record(shape=record.shape, lse=record.lse, map=weights)
    assert DecodeHistory().with_history("h.0", captured, fine, None).exact is None
