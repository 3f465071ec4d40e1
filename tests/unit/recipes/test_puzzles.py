"""Puzzles: correct answers, disjoint training and validation sets, reproducible batches, and expected attention."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from regard.config import TransformerConfig
from regard.masks import Mask
from regard.models import Transformer
from regard.recipes.puzzles import (
    EPOCH,
    Example,
    PuzzleBatches,
    agreement,
    batch_of,
    examples,
    expected,
    held_out,
    puzzle_tokenizer,
    solve,
)
from regard.recipes.recipe import Puzzle, PuzzleKind, read_recipe
from regard.trace import Recorder, Trace
from regard.training.batches import IGNORED, Batch

KINDS: tuple[PuzzleKind, ...] = ("copy", "reverse", "sort", "addition", "induction")
sizes = st.tuples(st.integers(2, 26), st.integers(2, 26)).map(sorted)


def batches(kind: PuzzleKind, split: str = "train", seed: int = 0, size: int = 5) -> PuzzleBatches:
    puzzle = Puzzle(kind=kind, shortest=2, longest=4, valid_examples=12)
    return PuzzleBatches(puzzle, puzzle_tokenizer(kind), batch_size=size, seed=seed, split=split)  # type: ignore[arg-type]


def same(one: Batch, other: Batch) -> bool:
    inputs = all(torch.equal(one.inputs[name], other.inputs[name]) for name in one.inputs)
    return inputs and torch.equal(one.targets, other.targets) and one.examples == other.examples


# --- answers ---------------------------------------------------------------------------------------------


@given(st.sampled_from(KINDS), sizes, st.integers(0, 2**32))
def test_examples_are_correct(kind: PuzzleKind, size: list[int], seed: int) -> None:
    puzzle = Puzzle(kind=kind, shortest=size[0], longest=size[1])
    for source, target in examples(puzzle, 3, "train", seed):
        if kind == "addition":
            left, right = source.split("+")
            assert size[0] <= len(left) == len(right) <= size[1]
            assert int(target[::-1]) == int(left) + int(right)
            assert len(target) == len(left) + 1
        else:
            assert size[0] <= len(source) <= size[1]
            right = {"reverse": source[::-1], "sort": "".join(sorted(source))}.get(kind, source)
            assert target == right
            assert kind in ("copy", "reverse") or len(set(source)) == len(source)


@pytest.mark.parametrize("kind", KINDS)
def test_every_length_and_every_letter_occurs(kind: PuzzleKind) -> None:
    puzzle = Puzzle(kind=kind, shortest=2, longest=4)
    found = [source for source, _ in examples(puzzle, 400, "train", 0)]
    assert len({len(source) for source in found}) == 3
    assert set("".join(found)) == set("0123456789+" if kind == "addition" else "abcdefghijklmnopqrstuvwxyz")


@pytest.mark.parametrize("kind", KINDS)
def test_training_and_validation_sets_are_disjoint(kind: PuzzleKind) -> None:
    puzzle = Puzzle(kind=kind, shortest=2, longest=3)
    train = {each.source for each in examples(puzzle, 500, "train", 1)}
    valid = {each.source for each in examples(puzzle, 100, "valid", 0)}
    assert not train & valid
    assert all(map(held_out, valid))
    assert len(valid) > 20


# --- batches ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_batch_depends_only_on_its_key(kind: PuzzleKind) -> None:
    one, other = batches(kind), batches(kind)
    other.batch(0, 3)
    assert same(one.batch(2, 7), other.batch(2, 7))
    for elsewhere in (one.batch(2, 8), one.batch(3, 7), batches(kind, seed=1).batch(2, 7)):
        assert elsewhere.targets.tolist() != one.batch(2, 7).targets.tolist()
    assert one.fingerprint == other.fingerprint != batches(kind, seed=1).fingerprint
    assert sorted(one.batch(1, 2).examples) == [5 * (EPOCH + 2) + i for i in range(5)]


def test_validation_set_is_fixed() -> None:
    one, other = batches("sort", "valid", seed=0), batches("sort", "valid", seed=9, size=4)
    assert (one.batches_per_epoch, other.batches_per_epoch) == (3, 3)
    assert same(one.batch(0, 2), one.batch(5, 2)._replace(examples=one.batch(0, 2).examples))
    assert len(one.batch(0, 2).examples) == 2
    chosen = [[each for i in range(3) for each in data.examples(0, i)] for data in (one, other)]
    assert chosen[0] == chosen[1]
    assert len(chosen[0]) == 12


@pytest.mark.parametrize("kind", KINDS)
def test_batch_encodes_its_examples(kind: PuzzleKind) -> None:
    tokenizer, chosen = puzzle_tokenizer(kind), batches(kind).examples(0, 0)
    batch = batch_of(kind, chosen, tokenizer)
    assert sorted(batch.examples) == list(range(5))
    for row, number in enumerate(batch.examples):
        example = chosen[number]
        targets = batch.targets[row]
        answer = tokenizer.decode(targets[targets != IGNORED].tolist())
        read = tokenizer.decode(batch.inputs["ids"][row].tolist())
        if kind == "induction":  # all letters but the last are inputs; targets begin where the answer is determined
            assert (read, answer) == ((example.source * 2)[:-1], example.target[1:])
            assert (targets[: len(example.source)] == IGNORED).all()
        else:
            assert (read, answer) == (example.target, example.target)
            assert tokenizer.decode(batch.inputs["source"][row].tolist()) == example.source


# --- expected attention ----------------------------------------------------------------------------------


@given(st.sampled_from(KINDS), st.integers(0, 2**32))
def test_expected_keys_hold_the_answer(kind: PuzzleKind, seed: int) -> None:
    """Query t predicts the letter at its expected key; in a sum, the digit follows from two keys and the carry."""
    (example,) = examples(Puzzle(kind=kind, shortest=2, longest=8), 1, "train", seed)
    source, target = example
    if kind == "induction":
        before, after = expected(kind, example)
        repeated = source * 2
        assert all(keys == {query - 1} for query, keys in before.keys.items())
        assert all(repeated[query + 1] == repeated[key] for query, (key,) in after.keys.items())
        assert all(repeated[query] == repeated[key - 1] and key <= query for query, (key,) in after.keys.items())
        assert sorted(after.keys) == list(range(len(source), 2 * len(source) - 1))
        return
    (looks,) = expected(kind, example)
    assert looks.kind == "cross"
    if kind != "addition":
        assert [source[key] for query in range(len(source)) for key in looks.keys[query]] == list(target)
        return
    carry = 0
    for query, keys in looks.keys.items():
        carry, digit = divmod(sum(int(source[key]) for key in keys) + carry, 10)
        assert (len(keys), str(digit)) == (2, target[query])
    assert target[-1] == str(carry)


def test_agreement_finds_the_best_head() -> None:
    example = solve("reverse", "abcd")
    weights = np.full((1, 2, 5, 5), 0.1)
    weights[0, 0] += 0.5 * np.eye(5)
    weights[0, 1, :4, :4] += 0.5 * np.eye(4)[::-1]
    weights[0, 1, 3] = [0.1, 0.1, 0.6, 0.1, 0.1]  # one query of four attends to another key
    weights /= weights.sum(-1, keepdims=True)
    record = Trace.from_weights(weights, name="decoder.layers.0.cross_attention", kind="cross")
    assert agreement(record, expected("reverse", example)) == ("decoder.layers.0.cross_attention", 1, 0.75)
    assert agreement(record, expected("copy", solve("copy", "abcd")))[1:] == (0, 1.0)


def test_agreement_with_samples_of_different_length() -> None:
    weights = np.stack([np.eye(4)[::-1], np.eye(4)[[2, 1, 0, 3]]])[:, None]
    wanted = [*expected("reverse", solve("reverse", "abcd")), *expected("reverse", solve("reverse", "abc"))]
    assert agreement(Trace.from_weights(weights, kind="cross"), wanted).share == 1.0
    assert agreement(Trace.from_weights(weights[::-1], kind="cross"), wanted).share < 0.5


def test_small_model_learns_the_diagonal() -> None:
    """A small copy task: before training no head attends along the diagonal, after a few seconds one does."""
    torch.manual_seed(0)
    data = batches("copy", size=64)
    config = TransformerConfig.paper_2017(
        vocab_size=30, d_model=32, n_heads=1, d_ff=32, n_layers=1, max_len=5, dropout=0.0
    )
    model = Transformer(config)
    chosen = [Example(word, word) for word in ("abcd", "cab", "zzxy", "qi")]

    def share() -> float:
        batch, recorder = batch_of("copy", chosen, data.tokenizer), Recorder()
        logits(model, batch, recorder)
        return agreement(recorder.trace, [expected("copy", chosen[i])[0] for i in batch.examples]).share

    assert share() < 0.5
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(250):
        batch = data.batch(0, step)
        loss = cross_entropy(logits(model, batch).flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert share() > 0.9


def logits(model: Transformer, batch: Batch, recorder: Recorder | None = None) -> torch.Tensor:
    keep = Mask.from_keep(batch.inputs["source_keep"])
    return model(
        batch.inputs["ids"],
        batch.inputs["source"],
        source_mask=keep,
        **({} if recorder is None else {"attend": recorder}),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_longest_example_fits_max_len(kind: PuzzleKind) -> None:
    recipe = read_recipe(kind)
    assert recipe.puzzle is not None
    longest = Puzzle(kind=kind, shortest=recipe.puzzle.longest, longest=recipe.puzzle.longest)
    batch = batch_of(kind, examples(longest, 4, "train", 0), puzzle_tokenizer(kind))
    assert max(each.shape[1] for each in batch.inputs.values()) == recipe.puzzle.n_tokens <= recipe.data.max_len
