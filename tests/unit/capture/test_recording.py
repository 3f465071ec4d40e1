"""Records of weights that a model made itself."""

import pytest
import torch
from tolerances import assert_close, assert_same_bits
from torch import nn

from regard import See
from regard.capture import recording
from regard.capture.captured import CaughtWeights
from regard.capture.recording import recorded
from regard.errors import NotKeptError
from regard.functional.statistics import pooled_map

SCORES = torch.randn(6, 9, 10)
ATTENTION = nn.MultiheadAttention(9, 3)
EVERYTHING = See(map=4, entropy=True, received=True, top=2, qk=True)


def caught() -> CaughtWeights:
    return CaughtWeights(SCORES.softmax(-1), SCORES.logsumexp(-1))


@pytest.mark.parametrize("at_once", [True, False])
def test_statistics_are_those_of_the_weights(at_once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "AT_ONCE", 10**6 if at_once else 1)
    record = recorded(caught(), ATTENTION, EVERYTHING)
    weights = SCORES.softmax(-1).reshape(2, 3, 9, 10)
    assert record.shape == (2, 3, 9, 10)
    assert_close(record.map, pooled_map(weights, 4), "statistic")
    assert_close(record.entropy, torch.distributions.Categorical(weights).entropy(), "statistic")
    assert_close(record.received, weights.sum(-2), "statistic")
    assert_same_bits(record.top.weights, weights.topk(2).values)
    assert_same_bits(record.lse, SCORES.logsumexp(-1).reshape(2, 3, 9))
    assert_same_bits(record.weights(slice(2, 4), slice(0, 3)), weights[..., 2:4, 0:3])


def test_what_was_not_asked_for_is_not_there() -> None:
    record = recorded(caught(), ATTENTION, See(map=4, lse=False))
    assert record.lse is None
    assert record.entropy is None
    with pytest.raises(NotKeptError):
        record.weights()


def test_the_model_keeps_its_weights_to_itself() -> None:
    found = caught()
    record = recorded(found, ATTENTION, See(map=99, qk=True))
    found.weights.zero_()
    assert_close(record.map.sum(-1), torch.ones(2, 3, 9), "statistic")
    assert_close(record.weights().sum(-1), torch.ones(2, 3, 9), "statistic")
