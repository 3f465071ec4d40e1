"""The bundled models in NumPy and in torch: the same tokens by beam search and by seed, and the same attention."""

from functools import cache

import pytest
from tolerances import assert_close

import regard
from benchmarks.translator import HUNDRED, read_sentences
from regard.arrays import to_numpy
from regard.language import LanguageModel
from regard.language.generating import continue_prompt, read_prompt, sampling
from regard.language.translating import search


@cache
def both(name: str) -> tuple[LanguageModel, LanguageModel]:
    return regard.load(name), regard.load(name, backend="torch")


def test_a_hundred_sentences() -> None:
    sentences = read_sentences(HUNDRED)
    by_numpy, by_torch = both("translator")
    sources = by_numpy.tokenizer.encode_all(sentences)
    ours, theirs = (search(model, sources) for model in (by_numpy, by_torch))
    assert ours == theirs
    assert len({tuple(ids) for ids in ours}) > 90


@pytest.mark.parametrize("seed", range(5))
def test_poems(seed: int) -> None:
    form = ("5x4", "7x4")[seed % 2]
    found = [continue_prompt(model, read_prompt(model, "", form), sampling(model, seed=seed)) for model in both("poet")]
    assert found[0] == found[1]
    assert len(found[0]) > 20


def test_attention_maps() -> None:
    ours, theirs = (model.see("The cat sat on the mat.").trace for model in both("translator"))
    assert len(ours) == len(theirs) > 0
    for record, other in zip(ours, theirs, strict=True):
        assert (record.name, record.query_tokens, record.key_tokens) == (
            other.name,
            other.query_tokens,
            other.key_tokens,
        )
        assert_close(to_numpy(other.weights()), to_numpy(record.weights()), "weights")
