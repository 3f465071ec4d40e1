"""`feed`: batches in order from any cursor, prepared one ahead by a thread that ends with the feed."""

import threading
from contextlib import closing
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import ALONE, Numbers
from tolerances import assert_same_bits

from regard.training.batches import Batch, device_batch, feed
from regard.training.processes import Ranks


def feeders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("feed")]


@given(st.integers(0, 23), st.integers(1, 7), st.integers(0, 9))
def test_feed_continues_from_any_cursor(cursor: int, batches: int, count: int) -> None:
    data = Numbers(batches=batches)
    with closing(feed(data, cursor, ALONE)) as fed:
        found = list(islice(fed, count))
    wanted = [divmod(cursor + k, batches) for k in range(count)]
    assert data.requested[:count] == wanted
    assert len(data.requested) <= count + 1  # at most one ahead
    for each, place in zip(found, wanted, strict=True):
        batch = Numbers(batches=batches).batch(*place)
        assert each.examples == batch.examples
        assert_same_bits(each.targets, batch.targets)
        assert_same_bits(each.inputs["ids"], batch.inputs["ids"])


@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_device_batches_of_all_processes_form_the_batch(world: int) -> None:
    batch = next(found for index in range(9) if len((found := Numbers().batch(0, index)).targets) == 3)
    batches = [device_batch(batch, Ranks(rank, world, torch.device("cpu"))) for rank in range(world)]
    assert [len(each.targets) for each in batches] == [len(range(rank, 3, world)) for rank in range(world)]
    assert {(each.n_targets, each.n_tokens, each.examples) for each in batches} == {
        (batch.n_targets, batch.n_tokens, batch.examples)
    }
    combined = torch.empty_like(batch.targets)
    for rank, each in enumerate(batches):
        combined[rank::world] = each.targets
    assert_same_bits(combined, batch.targets)


class Broken(Numbers):
    """Its third batch cannot be read."""

    def batch(self, epoch: int, index: int) -> Batch:
        if index == 2:
            raise OSError("the file is gone")
        return super().batch(epoch, index)


def test_error_is_raised_with_its_own_batch() -> None:
    with closing(feed(Broken(), 0, ALONE)) as batches:
        assert len(list(islice(batches, 2))) == 2
        with pytest.raises(OSError, match="the file is gone"):
            next(batches)
    assert feeders() == []


def test_error_in_an_unused_batch_is_not_raised() -> None:
    with closing(feed(Broken(), 0, ALONE)) as batches:
        assert len(list(islice(batches, 2))) == 2
    assert feeders() == []


def test_closing_waits_for_the_batch_in_preparation() -> None:
    started, proceed = threading.Event(), threading.Event()

    class Slow(Numbers):
        def batch(self, epoch: int, index: int) -> Batch:
            if index == 1:
                started.set()
                assert proceed.wait(10)
            return super().batch(epoch, index)

    batches = feed(Slow(), 0, ALONE)
    next(batches)
    assert started.wait(10)
    threading.Timer(0.05, proceed.set).start()
    batches.close()
    assert feeders() == []
