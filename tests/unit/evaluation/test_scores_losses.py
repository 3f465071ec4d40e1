"""Losses compared with the definition: each token is predicted once, from the tokens before it in its block."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models import CONFIGS, random_weights, torch_model

from regard.errors import ArgumentError
from regard.evaluation import TextLoss, text_loss, with_source_mask
from regard.reference import log_sum_exp
from regard.training.batches import IGNORED, Batch, BlockBatches, PairBatches

GPT2 = CONFIGS["gpt2"]
WRITER = torch_model(GPT2, random_weights(GPT2, dtype="float64"))
PAPER = CONFIGS["paper_2017"]
TRANSLATOR = torch_model(PAPER, random_weights(PAPER, dtype="float64"))


def surprise(logits: torch.Tensor, id: int) -> float:
    scores = logits.detach().numpy()
    return float(log_sum_exp(scores) - scores[id])


@given(n=st.integers(2, 40), block=st.integers(1, 12), size=st.integers(1, 5), seed=st.integers(0, 99))
def test_every_token_but_the_first_is_predicted_once(n: int, block: int, size: int, seed: int) -> None:
    ids = np.random.default_rng(seed).integers(0, 31, n).astype(np.uint16)
    found = text_loss(WRITER, BlockBatches(ids, block=block, batch_size=size, seed=0, shuffle=False))
    wanted = 0.0
    for at in range(1, n):
        seen = ids[(at - 1) // block * block : at].astype(np.int64)
        wanted += surprise(WRITER(torch.from_numpy(seen)[None])[0, -1], int(ids[at]))
    assert found.tokens == n - 1
    assert found.nats == pytest.approx(wanted)
    assert found.loss == pytest.approx(wanted / (n - 1))


def test_padded_pairs_equal_single_pairs() -> None:
    sources, targets = [[5, 6, 7], [4], [9, 9]], [[8], [10, 11, 12, 4], [6, 5]]
    special: dict[str, Any] = {"pad": 0, "bos": 1, "eos": 2}
    wanted = 0.0
    for source, target in zip(sources, targets, strict=True):
        logits = TRANSLATOR(torch.tensor([[1, *target]]), torch.tensor([[*source, 2]]))[0]
        wanted += sum(surprise(each, id) for each, id in zip(logits, [*target, 2], strict=True))
    for tokens_per_batch in (1, 8, 100):
        data = PairBatches(sources, targets, tokens_per_batch=tokens_per_batch, seed=0, shuffle=False, **special)
        found = text_loss(with_source_mask(TRANSLATOR), data)
        assert found.tokens == 10
        assert found.nats == pytest.approx(wanted)
        assert found.bits_per_byte is None
        assert found.bits_per_character is None


def test_bits_per_byte_and_character() -> None:
    even: Any = lambda ids: torch.zeros(*ids.shape, 8)  # noqa: E731  three bits per token, for any input
    data = BlockBatches(np.arange(7), block=3, batch_size=2, seed=0, shuffle=False)
    found = text_loss(even, data, text="床前明月光，a")
    assert (found.tokens, found.bytes, found.characters) == (6, 19, 7)
    assert found.perplexity == pytest.approx(8)
    assert found.bits_per_byte == pytest.approx(18 / 19)
    assert found.bits_per_character == pytest.approx(18 / 7)


def test_half_precision_logits_are_summed_in_float64() -> None:
    rough: Any = lambda ids: torch.zeros(*ids.shape, 3, dtype=torch.bfloat16)  # noqa: E731
    found = text_loss(rough, BlockBatches(np.zeros(5001, int), block=100, batch_size=7, seed=0, shuffle=False))
    assert found.loss == pytest.approx(math.log(3), rel=1e-6)


def test_perplexity_overflow_is_infinite() -> None:
    assert TextLoss(nats=2000.0, tokens=2, examples=1, solved=0).perplexity == math.inf
    assert math.isnan(TextLoss(nats=math.nan, tokens=2, examples=1, solved=0).perplexity)


def test_solved_examples_have_no_mistake() -> None:
    def echo(ids: torch.Tensor, source: torch.Tensor, source_keep: torch.Tensor) -> torch.Tensor:
        return 9.0 * torch.nn.functional.one_hot(source, 12)

    sources = [[5, 6, 7], [4, 4, 4], [9, 9, 8], [3], [8], [3, 5]]
    targets = [[5, 6, 7], [4, 5, 4], [9, 9, 8], [3], [9], [3, 5]]  # two of six are wrong somewhere
    for tokens_per_batch in (4, 100):
        special: dict[str, Any] = {"pad": 0, "bos": 1, "eos": 2, "seed": 0, "tokens_per_batch": tokens_per_batch}
        found = text_loss(echo, PairBatches(sources, targets, shuffle=False, **special))
        assert (found.examples, found.solved) == (6, 4)


def test_no_gradient_is_recorded() -> None:
    seen = []

    def watching(ids: torch.Tensor) -> torch.Tensor:
        seen.append(WRITER(ids))
        return seen[-1]

    text_loss(watching, BlockBatches(np.arange(5), block=4, batch_size=1, seed=0, shuffle=False))
    assert not seen[0].requires_grad


def test_data_without_targets_raises() -> None:
    class Silent:
        fingerprint, batches_per_epoch = "", 1

        def batch(self, epoch: int, index: int) -> Batch:
            return Batch({"ids": torch.zeros(1, 2, dtype=torch.long)}, torch.full((1, 2), IGNORED), (0,))

    with pytest.raises(ArgumentError, match="no token is predicted"):
        text_loss(WRITER, Silent())
