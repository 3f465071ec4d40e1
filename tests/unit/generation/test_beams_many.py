"""`search_many`: results in the order of the sources, for any batch size and any worker."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import CONFIGS, random_weights, torch_model

from regard.errors import ArgumentError
from regard.generation import beam_search, search_many
from regard.generation.beams import BatchResult, max_translation_length
from regard.kernels.division import run_all
from regard.reference import Transformer

CONFIG = CONFIGS["pre-norm translator"]  # of at most 32 positions
MODEL = Transformer(CONFIG, random_weights(CONFIG, dtype="float64"))
BOS, EOS = 1, 2
SPECIAL: dict[str, Any] = {"bos": BOS, "eos": EOS}


def sources(lengths: list[int], seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [[*rng.integers(3, 41, n).tolist(), EOS] if n else [] for n in lengths]


def single(source: list[int], **how: Any) -> list[int]:
    """The result of beam search for one source."""
    best = beam_search(MODEL, [BOS], sources=[source], max_new=max_translation_length(source, 32), eos=EOS, **how)
    return list(best[0].ids)


@given(lengths=st.lists(st.integers(0, 9), max_size=6), batch_tokens=st.integers(1, 60), threads=st.booleans())
def test_results_are_in_the_order_of_the_sources(lengths: list[int], batch_tokens: int, threads: bool) -> None:
    given = sources(lengths)
    how: dict[str, Any] = {"beams": 2, "length_penalty": 0.7}
    run: Any = run_all if threads else map
    found = search_many(MODEL, given, **SPECIAL, **how, batch_tokens=batch_tokens, run=run)
    assert found == [single(source, **how) if source else [] for source in given]


def test_length_limit_depends_only_on_the_own_source() -> None:
    short, long = sources([1, 9])
    endless: dict[str, Any] = {"bos": BOS, "eos": 0, "beams": 1, "length_penalty": 5.0}
    (one,), both = (search_many(MODEL, each, **endless) for each in ([short], [short, long]))
    assert both[0] == one
    assert [len(ids) for ids in both] == [max_translation_length(source, 32) for source in (short, long)]


def test_torch_gives_the_same_result() -> None:
    given = sources([3, 7, 1, 0, 12, 5], seed=3)
    theirs = torch_model(CONFIG, random_weights(CONFIG, dtype="float64"))
    assert search_many(theirs, given, **SPECIAL, beams=4) == search_many(MODEL, given, **SPECIAL, beams=4, run=run_all)


def test_batches_are_passed_to_run_longest_first() -> None:
    given: list[list[int]] = []

    def recording(work: Callable[[list[int]], BatchResult], batches: Iterable[list[int]]) -> Iterable[BatchResult]:
        for batch in batches:
            given.append(batch)
            yield work(batch)

    search_many(MODEL, sources([1, 9, 2, 2, 0, 9]), **SPECIAL, beams=2, batch_tokens=40, run=recording)
    assert given == [[1, 5], [2, 3, 0]]


@pytest.mark.parametrize("how", [{"beams": 0}, {"batch_tokens": 0}, {"beams": 1.5}, {"length_penalty": np.nan}])
def test_invalid_numbers_raise(how: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        search_many(MODEL, sources([3]), **SPECIAL, **how)
