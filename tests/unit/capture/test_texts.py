"""Encoder and decoder, each with its text."""

import pytest
import torch
from torch import Tensor, nn

from regard.capture.captured import Caught, CaughtWeights
from regard.capture.module_names import Place
from regard.capture.texts import Sides
from regard.capture.token_labels import Spelling
from regard.records import Kind, Step


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(99, 2)


def sides() -> tuple[Sides, Model]:
    model = Model()
    return Sides(model, Spelling(lambda ids: [str(i) for i in ids])), model


def read(sides: Sides, model: Model, ids: Tensor) -> None:
    sides.listeners[torch.ops.aten.embedding.default](model.shared.weight, ids, -1)


def told(
    sides: Sides, kind: Kind, B: int, T: int, S: int, name: str = "a", k: Tensor | None = None
) -> tuple[object, ...]:
    q, k = torch.zeros(B, 1, T, 2), torch.zeros(B, 1, S, 2) if k is None else k
    found = sides.told(Place(name, nn.Identity()), kind, Caught(q=q, k=k, v=k, scale=1.0), (B, 1, T, S))
    return found.step, found.queries, found.keys


def test_one_embedding_two_texts() -> None:
    each, model = sides()
    read(each, model, torch.tensor([[1, 2, 3]]))
    assert told(each, "encoder", 1, 3, 3) == (None, (("1", "2", "3"),), (("1", "2", "3"),))
    read(each, model, torch.tensor([[7, 8]]))
    assert told(each, "decoder", 1, 2, 2, "b") == (None, (("7", "8"),), (("7", "8"),))
    assert told(each, "cross", 1, 2, 3, "c") == (None, (("7", "8"),), (("1", "2", "3"),))


def test_later_layers_read_what_the_first_has_read() -> None:
    each, model = sides()
    read(each, model, torch.tensor([[1, 2]]))
    assert told(each, "decoder", 1, 2, 2, "0") == told(each, "decoder", 1, 2, 2, "1")


def test_beams_look_at_one_source() -> None:
    each, model = sides()
    read(each, model, torch.tensor([[1], [2]]))
    told(each, "encoder", 2, 1, 1)
    read(each, model, torch.tensor([[5], [5], [5], [5]]))
    told(each, "decoder", 4, 1, 1, "b")
    assert told(each, "cross", 4, 1, 1, "c")[2] == (("1",), ("1",), ("2",), ("2",))


def test_windows_of_a_picture_have_no_tokens() -> None:
    each, model = sides()
    read(each, model, torch.tensor([[1, 2, 3, 4]]))
    told(each, "encoder", 1, 4, 4, "0")
    assert told(each, "encoder", 2, 2, 2, "1") == (None, None, None)


def test_a_source_that_was_not_seen() -> None:
    each, _ = sides()
    assert told(each, "cross", 1, 2, 9) == (None, None, None)


def test_an_order_that_a_cache_was_put_in() -> None:
    """Keys that were forgotten cannot tell one beam from another; the order of the cache can."""
    each, _ = sides()
    move = each.listeners[torch.ops.aten.index_select.default]
    told(each, "decoder", 2, 3, 3)
    move(torch.zeros(2, 1, 3, 2), 0, torch.tensor([1, 0]))
    assert told(each, "decoder", 2, 1, 4)[0] == Step(3, (1, 0))
    assert told(each, "decoder", 2, 1, 5)[0] == Step(4, (0, 1))
    move(torch.zeros(5, 3), 0, torch.tensor([1, 0]))  # something else
    assert told(each, "decoder", 2, 1, 6)[0] == Step(5, (0, 1))


@pytest.mark.parametrize("heads", [1, 2])
def test_values_tell_where_a_model_makes_its_own_softmax(heads: int) -> None:
    """A window of three: keys are not seen, and sizes say nothing of the tokens that it forgot."""
    each, _ = sides()
    values = torch.rand(2, heads, 6, 4)

    def step(start: int, stop: int, T: int) -> object:
        weights = torch.ones(2, heads, T, stop - start)
        v = values[:, :, start:stop].flatten(0, 1)
        found = each.told(
            Place("a", nn.Identity()), "decoder", CaughtWeights(weights, None, v=v), (2, heads, T, stop - start)
        )
        return found.step

    assert step(0, 4, 4) is None
    assert step(2, 5, 1) == Step(4, (0, 1))
    assert step(3, 6, 1) == Step(5, (0, 1))
