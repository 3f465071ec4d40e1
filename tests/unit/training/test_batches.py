"""Batches are a pure function of (seed, epoch, index); an epoch contains all data once."""

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ArgumentError
from regard.training.batches import IGNORED, Batch, BlockBatches, Data, PairBatches, cut_by_budget, noise, permutation

PAD, BOS, EOS = 0, 1, 2
SEEDS = st.integers(0, 2**40)


@st.composite
def pairs(draw: st.DrawFn, /, **changes: Any) -> PairBatches:
    """Pairs of random lengths, also empty and very long ones."""
    lengths = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40))
    sources = [[10 + i] * a for i, (a, _) in enumerate(lengths)]
    targets = [[100 + i] * b for i, (_, b) in enumerate(lengths)]
    options = {"tokens_per_batch": draw(st.integers(1, 60)), "seed": draw(SEEDS), **changes}
    return PairBatches(sources, targets, pad=PAD, bos=BOS, eos=EOS, **options)


@st.composite
def blocks(draw: st.DrawFn, /, **changes: Any) -> BlockBatches:
    """A text whose ids are their own positions."""
    block = draw(st.integers(1, 9))
    ids = np.arange(block + 1 + draw(st.integers(0, 60)), dtype=draw(st.sampled_from(("uint16", "uint32", "int64"))))
    return BlockBatches(ids, block=block, batch_size=draw(st.integers(1, 5)), **{"seed": draw(SEEDS), **changes})


def epoch_of(data: Data, epoch: int) -> list[Batch]:
    return [data.batch(epoch, index) for index in range(data.batches_per_epoch)]


def same(a: Batch, b: Batch) -> bool:
    return (
        a.examples == b.examples
        and torch.equal(a.targets, b.targets)
        and all(torch.equal(a.inputs[name], b.inputs[name]) for name in a.inputs | b.inputs)
    )


# --- any data --------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(data=pairs() | blocks(), places=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), max_size=6))
def test_batch_does_not_depend_on_earlier_calls(data: Data, places: list[tuple[int, int]]) -> None:
    first = [epoch_of(data, epoch) for epoch in range(4)]
    for epoch, index in places:
        index %= data.batches_per_epoch
        assert same(data.batch(epoch, index), first[epoch][index])


@settings(max_examples=50)
@given(data=pairs() | blocks(), world=st.integers(1, 4))
def test_shards_are_disjoint_and_complete(data: Data, world: int) -> None:
    whole = data.batch(0, data.batches_per_epoch - 1)
    shards = [whole.shard(rank, world) for rank in range(world)]
    assert sorted(example for shard in shards for example in shard.examples) == sorted(whole.examples)
    assert sum(shard.n_targets for shard in shards) == whole.n_targets
    assert sum(shard.n_tokens for shard in shards) == whole.n_tokens
    assert all(len(shard.targets) == len(shard.examples) == len(shard.inputs["ids"]) for shard in shards)


def test_shard_may_be_empty() -> None:
    shard = BlockBatches(np.arange(5), block=4, batch_size=1, seed=0).batch(0, 0).shard(1, 2)
    assert shard.targets.shape == (0, 4)
    assert (shard.n_targets, shard.n_tokens, shard.examples) == (0, 0, ())


@pytest.mark.parametrize("place", [(0, -1), (0, 1), (-1, 0)])
def test_batch_index_out_of_range_raises(place: tuple[int, int]) -> None:
    data = BlockBatches(np.arange(5), block=4, batch_size=1, seed=0)
    with pytest.raises(ArgumentError, match="an epoch has 1 batches"):
        data.batch(*place)


def test_threads_read_the_plan_atomically() -> None:
    data = PairBatches(
        [[9] * (i % 7) for i in range(300)], [[8]] * 300, tokens_per_batch=40, seed=3, pad=0, bos=1, eos=2
    )
    wanted = [epoch_of(data, epoch) for epoch in range(3)]
    wrong: list[int] = []

    def read(epoch: int) -> None:
        for _ in range(5):
            wrong.extend(i for i, batch in enumerate(epoch_of(data, epoch)) if not same(batch, wanted[epoch][i]))

    threads = [threading.Thread(target=read, args=(epoch,)) for epoch in (0, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- pairs -----------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(data=pairs() | pairs(shuffle=False), epoch=st.integers(0, 5))
def test_every_pair_once_within_the_budget(data: PairBatches, epoch: int) -> None:
    batches = epoch_of(data, epoch)
    seen = [example for batch in batches for example in batch.examples]
    assert sorted(seen) == list(range(len(seen)))
    assert len(seen) == len(data._longest)
    for batch in batches:
        shapes = [batch.inputs["ids"].shape, batch.inputs["source"].shape]
        assert max(rows * width for rows, width in shapes) <= data.tokens_per_batch or len(batch.examples) == 1


@settings(max_examples=40)
@given(data=pairs())
def test_pairs_are_unchanged(data: PairBatches) -> None:
    for batch in epoch_of(data, 0):
        for row, i in enumerate(batch.examples):
            source = batch.inputs["source"][row][batch.inputs["source_keep"][row]].tolist()
            target = [each for each in batch.targets[row].tolist() if each != IGNORED]
            assert set(source[:-1]) <= {10 + i}
            assert set(target[:-1]) <= {100 + i}
            assert source[-1] == target[-1] == EOS
            length = len(target)
            assert batch.inputs["ids"][row].tolist() == [BOS, *target[:-1], *[PAD] * (len(batch.targets[row]) - length)]
            assert not batch.inputs["source"][row][~batch.inputs["source_keep"][row]].any()
        lengths = [len(data._targets.flat[slice(*data._targets.starts[i : i + 2])]) for i in batch.examples]
        assert batch.n_targets == sum(lengths)
        assert batch.n_tokens == batch.n_targets + int(batch.inputs["source_keep"].sum())


def test_epochs_differ_but_boundaries_do_not() -> None:
    sources = [[9] * (i % 5) for i in range(200)]
    data = PairBatches(sources, sources, tokens_per_batch=30, seed=0, pad=PAD, bos=BOS, eos=EOS)
    first, second = epoch_of(data, 0), epoch_of(data, 1)
    assert sorted(len(batch.examples) for batch in first) == sorted(len(batch.examples) for batch in second)
    assert {frozenset(batch.examples) for batch in first} != {frozenset(batch.examples) for batch in second}
    widths = [batch.targets.shape[1] for batch in first]
    assert widths != sorted(widths), "short and long batches are mixed"
    fixed = PairBatches(sources, sources, tokens_per_batch=30, seed=0, pad=PAD, bos=BOS, eos=EOS, shuffle=False)
    assert all(same(a, b) for a, b in zip(epoch_of(fixed, 0), epoch_of(fixed, 1), strict=True))
    widths = [batch.targets.shape[1] for batch in epoch_of(fixed, 0)]
    assert widths == sorted(widths)


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=50), budget=st.integers(1, 60))
def test_batches_fill_the_budget(lengths: list[int], budget: int) -> None:
    lengths.sort()
    cuts = cut_by_budget(np.array(lengths), budget).tolist()
    assert cuts[0] == 0
    assert cuts[-1] == len(lengths)
    for start, end in pairwise(cuts):
        assert (end - start) * lengths[end - 1] <= budget or end == start + 1
        assert end == len(lengths) or (end + 1 - start) * lengths[end] > budget


def test_fingerprint_changes_with_every_argument() -> None:
    usual: dict[str, Any] = {"tokens_per_batch": 9, "seed": 0, "pad": PAD, "bos": BOS, "eos": EOS}
    marks = {PairBatches([[5, 6], [7]], [[8], [9]], **usual).fingerprint}
    marks |= {PairBatches([[5], [6, 7]], [[8], [9]], **usual).fingerprint}  # the same ids, split at another place
    marks |= {PairBatches([[5, 6], [7]], [[8], [4]], **usual).fingerprint}
    marks |= {PairBatches([[5, 6], [7]], [[8], [9]], **usual | {name: 3}).fingerprint for name in usual}
    assert len(marks) == 3 + len(usual)
    assert PairBatches([[5, 6], [7]], [[8], [9]], **usual).fingerprint in marks


def test_invalid_pairs_raise() -> None:
    usual: dict[str, Any] = {"tokens_per_batch": 9, "seed": 0, "pad": PAD, "bos": BOS, "eos": EOS}
    with pytest.raises(ArgumentError, match="2 sources and 1 targets"):
        PairBatches([[5], [6]], [[7]], **usual)
    for wrong in ({"seed": -1}, {"tokens_per_batch": 0}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            PairBatches([[5]], [[7]], **usual | wrong)
    with pytest.raises(ArgumentError, match="sources"):
        PairBatches([], [], **usual)


# --- blocks ----------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(data=blocks(), epoch=st.integers(0, 5))
def test_blocks_of_an_epoch_are_complete_and_adjacent(data: BlockBatches, epoch: int) -> None:
    batches = epoch_of(data, epoch)
    rows = torch.cat([batch.inputs["ids"] for batch in batches])
    assert torch.equal(torch.cat([batch.targets for batch in batches]), rows + 1)
    seen = rows.flatten().sort().values
    assert torch.equal(seen, torch.arange(len(seen)) + seen[0])
    assert 0 <= int(seen[0]) < 2 * data.block
    assert sorted(i for batch in batches for i in batch.examples) == list(range(len(rows)))
    assert len(data.ids) - len(seen) < 2 * data.block, "fewer ids than two blocks are left out"


@settings(max_examples=60)
@given(data=blocks(shuffle=False, pad=7))
def test_validation_predicts_every_token_once(data: BlockBatches) -> None:
    batches = epoch_of(data, 3)
    targets = torch.cat([batch.targets.flatten() for batch in batches])
    ids = torch.cat([batch.inputs["ids"].flatten() for batch in batches])
    predicted = targets[targets != IGNORED]
    assert predicted.tolist() == list(range(1, len(data.ids)))
    assert ids[: len(predicted)].tolist() == list(range(len(data.ids) - 1))
    assert set(ids[len(predicted) :].tolist()) <= {7}
    assert sum(batch.n_targets for batch in batches) == sum(batch.n_tokens for batch in batches) == len(predicted)


def test_every_token_occurs_in_some_epoch() -> None:
    for n in range(9, 60):  # with any remainder at the end of the text
        data = BlockBatches(np.arange(n), block=8, batch_size=2, seed=0)
        seen = {i for epoch in range(99) for batch in epoch_of(data, epoch) for i in batch.targets.flatten().tolist()}
        assert seen == set(range(1, n)), n


def test_memmap_is_not_copied(tmp_path: Any) -> None:
    np.arange(1000, dtype=np.uint16).tofile(tmp_path / "ids.bin")
    mapped = np.memmap(tmp_path / "ids.bin", dtype=np.uint16, mode="r")
    here = np.arange(1000, dtype=np.uint16)
    a, b = (BlockBatches(ids, block=16, batch_size=4, seed=1) for ids in (mapped, here))
    assert same(a.batch(2, 3), b.batch(2, 3))
    assert a.fingerprint == b.fingerprint
    here[999] = 0
    assert BlockBatches(here, block=16, batch_size=4, seed=1).fingerprint != a.fingerprint


@pytest.mark.parametrize(
    ("ids", "message"), [(np.zeros(4), "float64"), (np.zeros((2, 9), int), r"\(2, 9\)"), (np.arange(4), "has 4 tokens")]
)
def test_invalid_ids_raise(ids: np.ndarray, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        BlockBatches(ids, block=4, batch_size=1, seed=0)


# --- batches and order -----------------------------------------------------------------------------------


def test_ignored_prompt_counts_as_input() -> None:
    targets = torch.tensor([[IGNORED, 5, 6, IGNORED], [IGNORED] * 4])
    batch = Batch({"ids": torch.ones(2, 4, dtype=torch.long)}, targets, (0, 1))
    assert (batch.n_targets, batch.n_tokens) == (2, 3)


@given(n=st.integers(0, 50), key=st.lists(st.integers(0, 2**70), min_size=1, max_size=3))
def test_permutation_depends_only_on_its_key(n: int, key: list[int]) -> None:
    assert sorted(permutation(n, *key).tolist()) == list(range(n))
    assert permutation(n, *key).tolist() == permutation(n, *key).tolist()


def test_order_is_the_same_in_every_version() -> None:
    """Recorded numbers: a run started with another NumPy version continues in the same order."""
    assert permutation(8, 5, 1, 1).tolist() == [7, 2, 1, 5, 0, 6, 3, 4]
    assert noise(1, 0)[0] == 11749869230777074271
