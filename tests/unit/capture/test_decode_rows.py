"""What is kept of a text that is written: each step's own, and exact weights from it."""

import pytest
import torch
from tolerances import assert_close
from torch import Tensor

from regard.capture.cache_tracking import Keys
from regard.capture.captured import Caught
from regard.capture.decode_rows import Steps
from regard.masks import Mask
from regard.records import Record, Step


def attention(q: Tensor, k: Tensor, mask: Mask | None = None) -> tuple[Caught, Record, Tensor]:
    """A call, its record without weights, and the weights."""
    scores = q @ k.mT
    if mask is not None:
        seen = mask.dense(q.shape[2], k.shape[2], like=q)
        scores = scores.masked_fill(~seen, -torch.inf)
    caught = Caught(q=q, k=k, v=k, scale=1.0, mask=mask)
    return caught, Record(shape=tuple(scores.shape), lse=scores.logsumexp(-1)), scores.softmax(-1)


def parts() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(2, 2, 6, 4), torch.randn(2, 2, 6, 4)


@pytest.mark.parametrize("in_place", [False, True])
def test_weights_of_every_step(in_place: bool) -> None:
    q, k = parts()
    steps, found = Steps(), []
    for start, stop in ((0, 3), (3, 4), (4, 6)):
        own_q, own_k = q[:, :, start:stop].clone(), k[:, :, :stop].clone()
        caught, record, weights = attention(own_q, own_k, Mask.causal())
        step = Step(start, (0, 1)) if start else None
        found.append((steps.remembered("h.0", caught, record, step), weights))
        if in_place:  # a cache may be written over
            own_q.zero_()
            own_k.zero_()
    for record, weights in found:
        assert_close(record.weights(), weights, "weights")
        assert_close(record.weights(slice(0, 1), slice(1, 3)), weights[..., :1, 1:3], "weights")


def test_what_came_before_is_taken_from_the_cache() -> None:
    """The prompt's call was not kept; the first step's cache still has its keys."""
    q, k = parts()
    steps = Steps()
    for stop in (5, 6):
        caught, record, weights = attention(q[:, :, stop - 1 : stop], k[:, :, :stop])
        record = steps.remembered("h.0", caught, record, Step(stop - 1, (0, 1)))
        assert_close(record.weights(), weights, "weights")


def test_beams() -> None:
    q, k = parts()
    steps = Steps()
    caught, record, first = attention(q[:, :, :3], k[:, :, :3])
    one = steps.remembered("h.0", caught, record, None)
    swapped = torch.cat([k[[1, 1], :, :3], k[:, :, 3:4]], 2)
    caught, record, second = attention(q[:, :, 3:4], swapped)
    two = steps.remembered("h.0", caught, record, Step(3, (1, 1)))
    assert_close(one.weights(), first, "weights")
    assert_close(two.weights(), second, "weights")


def test_a_cache_with_room_and_one_that_forgets() -> None:
    q, k = parts()
    steps = Steps()
    caught, record, _ = attention(q[:, :, :3], k[:, :, :3])
    steps.remembered("h.0", caught, record, None)
    room = torch.cat([k[:, :, :4], torch.full((2, 2, 2, 4), 9.0)], 2)
    caught, record, weights = attention(q[:, :, 3:4], room, Mask.from_keep(torch.tensor([[1, 1, 1, 1, 0, 0]] * 2)))
    assert_close(steps.remembered("h.0", caught, record, Step(3, (0, 1))).weights(), weights, "weights")
    caught, record, weights = attention(q[:, :, 4:5], k[:, :, 2:5])
    assert_close(steps.remembered("h.0", caught, record, Step(4, (0, 1))).weights(), weights, "weights")


def test_another_text_begins_anew() -> None:
    q, k = parts()
    steps = Steps()
    caught, record, _ = attention(q[:, :, :3], k[:, :, :3])
    steps.remembered("h.0", caught, record, None)
    steps.begin("h.0")
    caught, record, weights = attention(q[:, :, 3:], k[:, :, 3:])
    assert_close(steps.remembered("h.0", caught, record, None).weights(), weights, "weights")


def test_a_source_is_kept_once() -> None:
    q, k = parts()
    steps, records = Steps(), []
    for at in range(3):
        caught, record, weights = attention(q[:, :, at : at + 1], k)
        records.append(steps.across("h.0", caught, record))
        assert_close(records[-1].weights(), weights, "weights")
    held = [cell.cell_contents for record in records for cell in record.rectangle.__closure__ or ()]  # type: ignore[union-attr]
    assert len({id(keys) for keys in held if isinstance(keys, Keys)}) == 1


def test_maps_that_are_weights_need_nothing_more() -> None:
    q, k = parts()
    caught, record, weights = attention(q, k)
    fine = Record(shape=record.shape, lse=record.lse, map=weights)
    assert Steps().remembered("h.0", caught, fine, None).rectangle is None
