"""Encoder and decoder, each with its text."""

import pytest
import torch
from torch import Tensor, nn

from regard.capture.module_names import Place
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.capture.texts import TextTracker
from regard.capture.token_labels import GuardedTokenizer
from regard.records import DecodeStep, Kind


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(99, 2)


def new_texts() -> tuple[TextTracker, Model]:
    model = Model()
    return TextTracker(model, GuardedTokenizer(lambda ids: [str(i) for i in ids])), model


def read(texts: TextTracker, model: Model, ids: Tensor) -> None:
    texts.listeners[torch.ops.aten.embedding.default](model.shared.weight, ids, -1)


def of_call(
    texts: TextTracker, kind: Kind, B: int, T: int, S: int, name: str = "a", k: Tensor | None = None
) -> tuple[object, ...]:
    q, k = torch.zeros(B, 1, T, 2), torch.zeros(B, 1, S, 2) if k is None else k
    found = texts.of_call(Place(name, nn.Identity()), kind, CapturedCall(q=q, k=k, v=k, scale=1.0), (B, 1, T, S))
    return found.step, found.query_tokens, found.key_tokens


def test_one_embedding_two_texts() -> None:
    texts, model = new_texts()
    read(texts, model, torch.tensor([[1, 2, 3]]))
    assert of_call(texts, "encoder", 1, 3, 3) == (None, (("1", "2", "3"),), (("1", "2", "3"),))
    read(texts, model, torch.tensor([[7, 8]]))
    assert of_call(texts, "decoder", 1, 2, 2, "b") == (None, (("7", "8"),), (("7", "8"),))
    assert of_call(texts, "cross", 1, 2, 3, "c") == (None, (("7", "8"),), (("1", "2", "3"),))


def test_later_layers_have_the_tokens_of_the_first() -> None:
    texts, model = new_texts()
    read(texts, model, torch.tensor([[1, 2]]))
    assert of_call(texts, "decoder", 1, 2, 2, "0") == of_call(texts, "decoder", 1, 2, 2, "1")


def test_beams_share_one_source() -> None:
    texts, model = new_texts()
    read(texts, model, torch.tensor([[1], [2]]))
    of_call(texts, "encoder", 2, 1, 1)
    read(texts, model, torch.tensor([[5], [5], [5], [5]]))
    of_call(texts, "decoder", 4, 1, 1, "b")
    assert of_call(texts, "cross", 4, 1, 1, "c")[2] == (("1",), ("1",), ("2",), ("2",))


def test_windows_of_an_image_have_no_tokens() -> None:
    texts, model = new_texts()
    read(texts, model, torch.tensor([[1, 2, 3, 4]]))
    of_call(texts, "encoder", 1, 4, 4, "0")
    assert of_call(texts, "encoder", 2, 2, 2, "1") == (None, None, None)


def test_an_unknown_source() -> None:
    texts, _ = new_texts()
    assert of_call(texts, "cross", 1, 2, 9) == (None, None, None)


def test_a_reordered_cache() -> None:
    """Dropped keys cannot distinguish beams; the order of the cache can."""
    texts, _ = new_texts()
    reorder = texts.listeners[torch.ops.aten.index_select.default]
    of_call(texts, "decoder", 2, 3, 3)
    reorder(torch.zeros(2, 1, 3, 2), 0, torch.tensor([1, 0]))
    assert of_call(texts, "decoder", 2, 1, 4)[0] == DecodeStep(3, (1, 0))
    assert of_call(texts, "decoder", 2, 1, 5)[0] == DecodeStep(4, (0, 1))
    reorder(torch.zeros(5, 3), 0, torch.tensor([1, 0]))  # another tensor
    assert of_call(texts, "decoder", 2, 1, 6)[0] == DecodeStep(5, (0, 1))


@pytest.mark.parametrize("heads", [1, 2])
def test_values_are_compared_if_the_model_computes_its_softmax(heads: int) -> None:
    """A window of three: keys are unknown, and sizes do not show the dropped tokens."""
    texts, _ = new_texts()
    values = torch.rand(2, heads, 6, 4)

    def step(start: int, stop: int, T: int) -> object:
        weights = torch.ones(2, heads, T, stop - start)
        v = values[:, :, start:stop].flatten(0, 1)
        found = texts.of_call(
            Place("a", nn.Identity()), "decoder", CapturedWeights(weights, None, v=v), (2, heads, T, stop - start)
        )
        return found.step

    assert step(0, 4, 4) is None
    assert step(2, 5, 1) == DecodeStep(4, (0, 1))
    assert step(3, 6, 1) == DecodeStep(5, (0, 1))
