"""Batches in order from any cursor, made ready ahead by one thread that never outlives its feed."""

import threading
from contextlib import closing
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import ALONE, Numbers
from tolerances import assert_same_bits

from regard.training.batches import Batch, feed, part_of
from regard.training.ranks import Ranks


def feeders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("feed")]


@given(st.integers(0, 23), st.integers(1, 7), st.integers(0, 9))
def test_from_any_cursor_it_goes_on_epoch_after_epoch(cursor: int, batches: int, count: int) -> None:
    data = Numbers(batches=batches)
    with closing(feed(data, cursor, ALONE)) as parts:
        found = list(islice(parts, count))
    wanted = [divmod(cursor + k, batches) for k in range(count)]
    assert data.asked[:count] == wanted
    assert len(data.asked) <= count + 1  # one ahead, never more
    for part, place in zip(found, wanted, strict=True):
        batch = Numbers(batches=batches).batch(*place)
        assert part.examples == batch.examples
        assert_same_bits(part.targets, batch.targets)
        assert_same_bits(part.inputs["ids"], batch.inputs["ids"])


@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_the_parts_of_all_processes_are_the_batch_and_each_knows_the_whole(world: int) -> None:
    batch = next(found for index in range(9) if len((found := Numbers().batch(0, index)).targets) == 3)
    parts = [part_of(batch, Ranks(rank, world, torch.device("cpu"))) for rank in range(world)]
    assert [len(part.targets) for part in parts] == [len(range(rank, 3, world)) for rank in range(world)]
    assert {(part.n_targets, part.n_tokens, part.examples) for part in parts} == {
        (batch.n_targets, batch.n_tokens, batch.examples)
    }
    together = torch.empty_like(batch.targets)
    for rank, part in enumerate(parts):
        together[rank::world] = part.targets
    assert_same_bits(together, batch.targets)


class Broken(Numbers):
    """Its third batch cannot be read."""

    def batch(self, epoch: int, index: int) -> Batch:
        if index == 2:
            raise OSError("the file is gone")
        return super().batch(epoch, index)


def test_an_error_comes_with_its_own_batch_and_not_before() -> None:
    with closing(feed(Broken(), 0, ALONE)) as parts:
        assert len(list(islice(parts, 2))) == 2
        with pytest.raises(OSError, match="the file is gone"):
            next(parts)
    assert feeders() == []


def test_an_error_in_a_batch_that_nobody_asked_for_is_nobodys() -> None:
    with closing(feed(Broken(), 0, ALONE)) as parts:
        assert len(list(islice(parts, 2))) == 2
    assert feeders() == []


def test_closing_waits_for_a_batch_that_is_being_made() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Numbers):
        def batch(self, epoch: int, index: int) -> Batch:
            if index == 1:
                begun.set()
                assert go_on.wait(10)
            return super().batch(epoch, index)

    parts = feed(Slow(), 0, ALONE)
    next(parts)
    assert begun.wait(10)
    threading.Timer(0.05, go_on.set).start()
    parts.close()
    assert feeders() == []
