"""Records of weights that a model computed itself."""

import pytest
import torch
from narrowing import present
from tolerances import assert_close, assert_same_bits
from torch import nn

from regard import See
from regard.capture import recording
from regard.capture.operators import CapturedWeights
from regard.capture.recording import record_of_call
from regard.errors import NotKeptError
from regard.functional.statistics import pooled_map

SCORES = torch.randn(6, 9, 10)
ATTENTION = nn.MultiheadAttention(9, 3)
EVERYTHING = See(map=4, max_score=True, entropy=True, received=True, top=2, qk=True)


def captured() -> CapturedWeights:
    return CapturedWeights(SCORES.softmax(-1), SCORES.logsumexp(-1))


@pytest.mark.parametrize("at_once", [True, False])
def test_statistics_are_those_of_the_weights(at_once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_BATCHED_WEIGHTS", 10**6 if at_once else 1)
    record = record_of_call(captured(), ATTENTION, EVERYTHING)
    weights = SCORES.softmax(-1).reshape(2, 3, 9, 10)
    assert record.shape == (2, 3, 9, 10)
    assert_close(record.map, pooled_map(weights, 4), "statistic")
    assert_close(record.entropy, torch.distributions.Categorical(weights).entropy(), "statistic")
    assert_close(record.received, weights.sum(-2), "statistic")
    assert_same_bits(present(record.top).weights, weights.topk(2).values)
    assert_same_bits(record.lse, SCORES.logsumexp(-1).reshape(2, 3, 9))
    assert_same_bits(record.weights(slice(2, 4), slice(0, 3)), weights[..., 2:4, 0:3])


def test_fields_that_were_not_requested_are_none() -> None:
    record = record_of_call(captured(), ATTENTION, See(map=4, lse=False))
    assert record.lse is None
    assert record.entropy is None
    with pytest.raises(NotKeptError):
        record.weights()


def test_records_share_no_memory_with_the_model() -> None:
    found = captured()
    record = record_of_call(found, ATTENTION, See(map=99, qk=True))
    found.weights.zero_()
    assert_close(present(record.map).sum(-1), torch.ones(2, 3, 9), "statistic")
    assert_close(record.weights().sum(-1), torch.ones(2, 3, 9), "statistic")
