"""Ids that were read, and what a tokenizer calls them."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from regard.capture.token_labels import Reading, speller, token_tables
from regard.errors import ArgumentError
from regard.text import Tokenizer, learn_tokenizer


def test_ours_and_functions() -> None:
    ours = learn_tokenizer(["床前明月光"], "characters")
    assert isinstance(ours, Tokenizer)
    spell = speller(ours)
    assert spell is not None
    assert spell(ours.encode("明月")) == ["明", "月"]
    assert speller(None) is None
    named = speller(lambda ids: [f"<{i}>" for i in ids])
    assert named is not None
    assert named([3, 4]) == ["<3>", "<4>"]


def test_hugging_face_s_keep_their_spelling() -> None:
    """Bytes that are half a character must stay what they are: only later are they put together."""
    asked = []

    class Theirs:
        def convert_ids_to_tokens(self, ids: list[int]) -> list[str | None]:
            asked.append(ids)
            return ["Ġcat" if i < 9 else None for i in ids]

    for tokenizer in (Theirs(), SimpleNamespace(tokenizer=Theirs())):
        spell = speller(tokenizer)
        assert spell is not None
        assert spell([1, 10]) == ["Ġcat", "10"]  # vocabularies are padded: some ids have no token
    assert asked == [[1, 10]] * 2


@pytest.mark.parametrize("tokenizer", [3, "gpt2", str])
def test_what_is_no_tokenizer(tokenizer: Any) -> None:
    with pytest.raises(ArgumentError) as error:
        speller(tokenizer)
    assert error.value.key == "watch-tokenizer"


@pytest.mark.parametrize("made", [["a"], "ab", 7, None])
def test_a_function_must_give_one_string_for_each(made: Any) -> None:
    spell = speller(lambda ids: made)
    assert spell is not None
    with pytest.raises(ArgumentError) as error:
        spell([1, 2])
    assert error.value.key == "watch-tokens"


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok_emb, self.pos_emb, self.segments = nn.Embedding(9, 4), nn.Embedding(9, 4), nn.Embedding(2, 4)


def test_tables_of_tokens_are_told_from_others_by_name() -> None:
    model = Model()
    assert token_tables(model) == {model.tok_emb.weight.data_ptr()}


def test_a_model_that_tells_its_table_is_believed() -> None:
    model = Model()
    model.get_input_embeddings = lambda: model.pos_emb  # type: ignore[assignment]
    assert token_tables(model) == {model.pos_emb.weight.data_ptr()}


def reading() -> tuple[Reading, Model]:
    model = Model()
    return Reading(model), model


def test_ids_wait_for_an_attention_of_their_size() -> None:
    read, model = reading()
    source, target = torch.arange(6).view(2, 3), torch.arange(8).view(2, 4)
    read.see(model.tok_emb.weight, source)
    read.see(model.tok_emb.weight, target)
    read.see(model.pos_emb.weight, source + 1)
    assert read.take(2, 5) is None
    taken = read.take(2, 4)
    assert taken is not None
    assert taken.tolist() == target.tolist()
    taken = read.take(2, 3)
    assert taken is not None
    assert taken.tolist() == source.tolist()
    assert read.take(2, 3) is None


class TwoTables(nn.Module):
    """The names of its tables do not say which of them is asked for tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tok, self.where = nn.Embedding(9, 4), nn.Embedding(9, 4)


@pytest.mark.parametrize("order", [("tok", "where"), ("where", "tok")])
def test_of_several_tables_the_one_that_was_asked_for_what_the_model_was_given(order: tuple[str, str]) -> None:
    model = TwoTables()
    read = Reading(model)
    for ids in torch.tensor([[5, 6, 7]]), torch.tensor([[8, 3, 4]]), torch.tensor([[5, 6, 7]]):
        asked = {"tok": ids, "where": torch.arange(3)[None]}
        for name in order:
            read.see(getattr(model, name).weight, asked[name])
        taken = read.take(1, 3, by="h.0", given=lambda ids=ids: [("x", ids.int())])
        assert taken is not None
        assert taken.tolist() == ids.tolist()
        assert read.take(1, 3, by="h.0") is None, "what was left is not what the same module reads next"
    assert not read.guessed


def test_nothing_tells_which_table_it_is() -> None:
    model = TwoTables()
    read = Reading(model)
    for ids in torch.tensor([[5, 6, 7]]), torch.tensor([[8, 3, 4]]):
        read.see(model.tok.weight, ids)
        read.see(model.where.weight, torch.arange(3)[None])
        taken = read.take(1, 3, by="h.0")
        assert taken is not None
        assert taken.tolist() == ids.tolist()
        assert read.guessed


def test_two_texts_that_are_looked_up_before_the_first_is_read() -> None:
    """Source and target of the same size; or two texts that one module reads in turn."""
    for second_reader in ("decoder", "encoder"):
        read, model = reading()
        one, two = torch.tensor([[5, 6]]), torch.tensor([[7, 8]])
        given = [("source", one), ("goal", two)]
        read.see(model.tok_emb.weight, one)
        read.see(model.tok_emb.weight, two)
        for by, expected in (("encoder", one), (second_reader, two)):
            taken = read.take(1, 2, by=by, given=lambda given=given: given)
            assert taken is not None
            assert taken.tolist() == expected.tolist()


def test_ids_are_copied() -> None:
    read, model = reading()
    ids = torch.zeros(1, 2, dtype=torch.long)
    read.see(model.tok_emb.weight, ids)
    ids += 5
    taken = read.take(1, 2)
    assert taken is not None
    assert taken.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("shape", "B", "T", "first", "expected"),
    [
        ((5,), 1, 5, False, True),
        ((5,), 2, 5, False, False),
        ((1, 5), 3, 5, False, True),
        ((5, 2), 2, 5, False, True),  # positions first
        ((2, 2), 2, 2, True, True),
        ((2, 2, 2), 2, 2, False, False),
    ],
)
def test_layouts(shape: tuple[int, ...], B: int, T: int, first: bool, expected: bool) -> None:
    read, model = reading()
    ids = torch.arange(torch.Size(shape).numel()).view(shape)
    read.see(model.tok_emb.weight, ids)
    taken = read.take(B, T, positions_first=first)
    assert (taken is not None) == expected
    if taken is not None:
        assert taken.shape == (B, T)
        turned = first or shape == (T, B) != (B, T)
        assert taken.tolist() == (ids.T if turned else ids.expand(B, T)).tolist()


def test_a_guess_takes_no_mask_for_ids() -> None:
    read, _ = reading()
    ids, ones = torch.tensor([[4, 5]]), torch.ones(1, 2, dtype=torch.long)
    given = [("attention_mask", ones), ("x", torch.ones(1, 2)), ("input_ids", ids)]
    found = read.guess(given, 1, 2)
    assert found is not None
    assert found.tolist() == [[4, 5]]
    assert read.guess(given[:2], 1, 2) is None


def byte_level(fast: bool) -> Any:
    """GPT-2's way to spell, learnt from a few words; 月 falls into bytes."""
    from tokenizers import Tokenizer as Fast
    from tokenizers import decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Fast(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel() if fast else decoders.Sequence([decoders.ByteLevel()])
    signs = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator(["the cat sat"] * 9, trainers.BpeTrainer(vocab_size=290, initial_alphabet=signs))
    inner.add_special_tokens(["<|end|>"])
    inner.add_tokens(["café"])
    return PreTrainedTokenizerFast(tokenizer_object=inner)


@pytest.mark.parametrize("fast", [True, False])
def test_tokens_of_bytes_are_read_as_text(fast: bool) -> None:
    tokenizer = byte_level(fast)
    spell = speller(tokenizer)
    assert spell is not None
    ids = tokenizer.encode("the cat月 café<|end|>")
    found = spell(ids)
    assert " cat" in found
    assert {"café", "<|end|>"} <= set(found)  # added by hand, in plain letters
    assert not any("Ġ" in token for token in found)
    assert found[found.index(" cat") + 1 :][:3] == ["⟨E6⟩", "⟨9C⟩", "⟨88⟩"]
    assert [spell([one])[0] for one in ids] == found  # as while a text is written, token by token


def test_other_vocabularies_stay_as_they_are() -> None:
    class Pieces:
        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return ["▁Ġcat", "æľ"][: len(ids)]

    spell = speller(Pieces())
    assert spell is not None
    assert spell([0, 1]) == ["▁Ġcat", "æľ"]
