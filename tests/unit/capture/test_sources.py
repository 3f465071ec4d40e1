"""Beam search over several sources, some of which end early: each beam keeps its own source and its text."""

import numpy as np
import pytest
import torch
from tolerances import assert_close

import regard
from regard.config import TransformerConfig
from regard.generation import beam_search
from regard.models import Transformer

SOURCES = [[3, 4, 5], [6, 7, 8]]
BOS, EOS = 1, 2


@pytest.fixture(scope="module")
def model() -> Transformer:
    """A random model that ends the first text at once, found by its seed."""
    torch.manual_seed(36)
    config = TransformerConfig.paper_2017(n_layers=1, d_model=16, n_heads=2, d_ff=32, vocab_size=12)
    made = Transformer(config).eval()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return made


def test_beams_keep_their_source_after_others_end(model: Transformer) -> None:
    with regard.watch(model, tokenizer=lambda ids: [str(i) for i in ids]) as trace:
        found = beam_search(model, [[BOS], [BOS]], sources=SOURCES, beams=2, max_new=6, eos=EOS)
    steps = trace.select("cross")
    assert [record.shape[0] for record in steps][:3] == [2, 4, 2], "a source has ended"
    names = [("3", "4", "5"), ("6", "7", "8")]
    assert steps[1].key_tokens == (names[0], names[0], names[1], names[1])
    assert all(set(record.key_tokens or ()) == {names[1]} for record in steps[2:])

    texts = [[BOS, *beams[0].ids] for beams in found]
    longest = max(map(len, texts))
    ids = np.array([text + [0] * (longest - len(text)) for text in texts])
    whole = trace.stitched(ids).select("cross")[0]
    assert whole.key_tokens == tuple(names)
    for sample, text in enumerate(texts):
        with torch.no_grad(), regard.watch(model) as alone:
            model(torch.tensor([text]), torch.tensor([SOURCES[sample]]))
        read = len(text) - 1  # the last token is not read
        expected = alone.select("cross")[0].weights()[0, :, :read]
        assert_close(whole.weights()[sample, :, :read], expected, "weights")
