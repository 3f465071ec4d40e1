"""Ids that were read, and their tokens."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from regard.capture.token_labels import TokenIds, token_names_function, token_tables
from regard.errors import ArgumentError
from regard.text import Tokenizer, learn_tokenizer


def test_our_tokenizer_and_functions() -> None:
    ours = learn_tokenizer(["床前明月光"], "characters")
    assert isinstance(ours, Tokenizer)
    token_names = token_names_function(ours)
    assert token_names is not None
    assert token_names(ours.encode("明月")) == ["明", "月"]
    assert token_names_function(None) is None
    named = token_names_function(lambda ids: [f"<{i}>" for i in ids])
    assert named is not None
    assert named([3, 4]) == ["<3>", "<4>"]


def test_hugging_face_tokens_are_unchanged() -> None:
    """Bytes that are part of a character must stay as they are: they are merged later."""
    calls = []

    class Theirs:
        def convert_ids_to_tokens(self, ids: list[int]) -> list[str | None]:
            calls.append(ids)
            return ["Ġcat" if i < 9 else None for i in ids]

    for tokenizer in (Theirs(), SimpleNamespace(tokenizer=Theirs())):
        token_names = token_names_function(tokenizer)
        assert token_names is not None
        assert token_names([1, 10]) == ["Ġcat", "10"]  # vocabularies are padded: some ids have no token
    assert calls == [[1, 10]] * 2


@pytest.mark.parametrize("tokenizer", [3, "gpt2", str])
def test_invalid_tokenizers_raise(tokenizer: Any) -> None:
    with pytest.raises(ArgumentError) as error:
        token_names_function(tokenizer)
    assert error.value.key == "watch-tokenizer"


@pytest.mark.parametrize("made", [["a"], "ab", 7, None])
def test_a_function_must_return_one_string_per_id(made: Any) -> None:
    token_names = token_names_function(lambda ids: made)
    assert token_names is not None
    with pytest.raises(ArgumentError) as error:
        token_names([1, 2])
    assert error.value.key == "watch-tokens"


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok_emb, self.pos_emb, self.segments = nn.Embedding(9, 4), nn.Embedding(9, 4), nn.Embedding(2, 4)


def test_token_tables_are_found_by_name() -> None:
    model = Model()
    assert token_tables(model) == {model.tok_emb.weight.data_ptr()}


def test_get_input_embeddings_is_used() -> None:
    model = Model()
    model.get_input_embeddings = lambda: model.pos_emb  # type: ignore[assignment]
    assert token_tables(model) == {model.pos_emb.weight.data_ptr()}


def new_token_ids() -> tuple[TokenIds, Model]:
    model = Model()
    return TokenIds(model), model


def test_ids_wait_for_an_attention_of_their_size() -> None:
    token_ids, model = new_token_ids()
    source, target = torch.arange(6).view(2, 3), torch.arange(8).view(2, 4)
    token_ids.add(model.tok_emb.weight, source)
    token_ids.add(model.tok_emb.weight, target)
    token_ids.add(model.pos_emb.weight, source + 1)
    assert token_ids.take(2, 5) is None
    ids_taken = token_ids.take(2, 4)
    assert ids_taken is not None
    assert ids_taken.tolist() == target.tolist()
    ids_taken = token_ids.take(2, 3)
    assert ids_taken is not None
    assert ids_taken.tolist() == source.tolist()
    assert token_ids.take(2, 3) is None


class TwoTables(nn.Module):
    """The names of its tables do not show which of them embeds tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tok, self.where = nn.Embedding(9, 4), nn.Embedding(9, 4)


@pytest.mark.parametrize("order", [("tok", "where"), ("where", "tok")])
def test_of_several_tables_the_one_with_the_model_inputs_is_used(order: tuple[str, str]) -> None:
    model = TwoTables()
    token_ids = TokenIds(model)
    for ids in torch.tensor([[5, 6, 7]]), torch.tensor([[8, 3, 4]]), torch.tensor([[5, 6, 7]]):
        calls = {"tok": ids, "where": torch.arange(3)[None]}
        for name in order:
            token_ids.add(getattr(model, name).weight, calls[name])
        ids_taken = token_ids.take(1, 3, by="h.0", given=partial(list, [("x", ids.int())]))
        assert ids_taken is not None
        assert ids_taken.tolist() == ids.tolist()
        assert token_ids.take(1, 3, by="h.0") is None, "what was left is not what the same module reads next"
    assert not token_ids.guessed


def test_an_ambiguous_table_is_noted() -> None:
    model = TwoTables()
    token_ids = TokenIds(model)
    for ids in torch.tensor([[5, 6, 7]]), torch.tensor([[8, 3, 4]]):
        token_ids.add(model.tok.weight, ids)
        token_ids.add(model.where.weight, torch.arange(3)[None])
        ids_taken = token_ids.take(1, 3, by="h.0")
        assert ids_taken is not None
        assert ids_taken.tolist() == ids.tolist()
        assert token_ids.guessed


def test_two_texts_embedded_before_the_first_attention() -> None:
    """Source and target of the same size; or two texts that one module reads in turn."""
    for second_reader in ("decoder", "encoder"):
        token_ids, model = new_token_ids()
        one, two = torch.tensor([[5, 6]]), torch.tensor([[7, 8]])
        given = [("source", one), ("goal", two)]
        token_ids.add(model.tok_emb.weight, one)
        token_ids.add(model.tok_emb.weight, two)
        for by, expected in (("encoder", one), (second_reader, two)):
            ids_taken = token_ids.take(1, 2, by=by, given=partial(list, given))
            assert ids_taken is not None
            assert ids_taken.tolist() == expected.tolist()


def test_ids_are_copied() -> None:
    token_ids, model = new_token_ids()
    ids = torch.zeros(1, 2, dtype=torch.long)
    token_ids.add(model.tok_emb.weight, ids)
    ids += 5
    ids_taken = token_ids.take(1, 2)
    assert ids_taken is not None
    assert ids_taken.tolist() == [[0, 0]]


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
    token_ids, model = new_token_ids()
    ids = torch.arange(torch.Size(shape).numel()).view(shape)
    token_ids.add(model.tok_emb.weight, ids)
    ids_taken = token_ids.take(B, T, positions_first=first)
    assert (ids_taken is not None) == expected
    if ids_taken is not None:
        assert ids_taken.shape == (B, T)
        transposed = first or shape == (T, B) != (B, T)
        assert ids_taken.tolist() == (ids.T if transposed else ids.expand(B, T)).tolist()


def test_a_mask_is_not_guessed_as_ids() -> None:
    token_ids, _ = new_token_ids()
    ids, ones = torch.tensor([[4, 5]]), torch.ones(1, 2, dtype=torch.long)
    given = [("attention_mask", ones), ("x", torch.ones(1, 2)), ("input_ids", ids)]
    found = token_ids.guess(given, 1, 2)
    assert found is not None
    assert found.tolist() == [[4, 5]]
    assert token_ids.guess(given[:2], 1, 2) is None


def byte_level(fast: bool) -> Any:
    """A byte-level tokenizer like GPT-2's, trained on a few words; 月 is split into bytes."""
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
def test_byte_level_tokens_are_decoded(fast: bool) -> None:
    tokenizer = byte_level(fast)
    token_names = token_names_function(tokenizer)
    assert token_names is not None
    ids = tokenizer.encode("the cat月 café<|end|>")
    found = token_names(ids)
    assert " cat" in found
    assert {"café", "<|end|>"} <= set(found)  # an added token, in plain letters
    assert not any("Ġ" in token for token in found)
    assert found[found.index(" cat") + 1 :][:3] == ["⟨E6⟩", "⟨9C⟩", "⟨88⟩"]
    assert [token_names([one])[0] for one in ids] == found  # as during generation, token by token


def test_other_vocabularies_are_unchanged() -> None:
    class Pieces:
        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return ["▁Ġcat", "æľ"][: len(ids)]

    token_names = token_names_function(Pieces())
    assert token_names is not None
    assert token_names([0, 1]) == ["▁Ġcat", "æľ"]
