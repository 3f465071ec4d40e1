"""256 greedy tokens are the same with every cache and every chunking of the prompt, in NumPy and torch.

The expected tokens come from a full forward pass per token, without a cache.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from models import CONFIGS, DECODERS, random_ids, random_weights, torch_model
from tolerances import assert_close

from regard import Mask, reference
from regard.config import TransformerConfig
from regard.dispatch import attend_in_model
from regard.generation import Sampling, Session, beam_search, generate, prefill, stream
from regard.generation.prompts import right_padded
from regard.models import Transformer

STEPS = 256
PROMPT, SHORT = 9, 4
# One of each preset, and edge cases of attention; max_len covers the whole text.
# Seeds chosen, of a dozen, for the most distinct ids in the greedy text: most texts soon repeat.
LONG = {"paper_2017": 1, "gpt2": 5, "llama": 1, "gemma": 10, "t5": 8, "bloom": 11}


def config_called(name: str) -> TransformerConfig:
    """With a sufficient max_len and two decoder layers, one of each kind if they alternate."""
    return replace(CONFIGS[name], n_decoder_layers=2, max_len=PROMPT + STEPS)


def both_of(
    config: TransformerConfig, dtype: str = "float32", seed: int = 0, soft: bool = False
) -> tuple[Transformer, reference.Transformer]:
    weights = random_weights(config, seed, dtype)
    if soft:  # less sharp attention: with random ids, float32 rounding grows to 1e-5 over 256 steps
        for name in weights:
            weights[name] *= 0.5 if name.endswith(("q_proj.weight", "k_proj.weight")) else 1
    return torch_model(config, weights), reference.Transformer(config, weights, attend=attend_in_model)


def prompts_of(config: TransformerConfig) -> tuple[list[list[int]], list[list[int]] | None]:
    """Two prompts of different lengths, and their sources."""
    ids = random_ids(config, (2, PROMPT)).tolist()
    prompts = [ids[0], ids[1][:SHORT]]
    if config.kind != "encoder-decoder":
        return prompts, None
    sources = random_ids(config, (2, 7), seed=1, source=True).tolist()
    return prompts, [sources[0], sources[1][:5]]


def one(of: list[list[int]] | None, row: int) -> list[int] | None:
    return None if of is None else of[row]


def without_cache(
    model: Transformer, prompts: list[list[int]], sources: list[list[int]] | None
) -> tuple[list[list[int]], torch.Tensor]:
    """The texts, and the logits of every step, (2, STEPS, W)."""
    ends = torch.tensor([len(prompt) for prompt in prompts])
    ids = torch.zeros(2, PROMPT + STEPS, dtype=torch.long)  # both start in column 0; later columns are masked
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.tensor(prompt)
    source, keep = (None, None) if sources is None else right_padded(sources)
    read = None if source is None else torch.from_numpy(source)
    mask = None if keep is None else Mask.from_keep(keep)
    logits = []
    with torch.no_grad():
        for _ in range(STEPS):
            logits.append(model(ids[:, : ends.max()], read, source_mask=mask)[[0, 1], ends - 1])
            ids[[0, 1], ends] = logits[-1].argmax(-1)
            ends += 1
    return [ids[row, len(prompts[row]) : ends[row]].tolist() for row in (0, 1)], torch.stack(logits, 1)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_256_greedy_tokens_are_the_same_with_every_cache(name: str) -> None:
    config = config_called(name)
    model, numpys = both_of(config, seed=LONG[name])
    prompts, sources = prompts_of(config)
    expected, expected_logits = without_cache(model, prompts, sources)
    assert all(len(set(text)) > 2 for text in expected)

    batch: dict[str, Any] = {"prompts": prompts, "sources": sources, "max_new": STEPS}
    assert generate(model, **batch) == expected, "left-padded batch"
    assert generate(model, **batch, cache="static") == expected, "static cache"
    assert generate(model, **batch, chunk=2) == expected, "chunked prefill"
    assert generate(numpys, **batch, chunk=3) == expected, "NumPy"
    assert list(stream(model, prompts[1], sources=one(sources, 1), max_new=STEPS)) == expected[1], "alone, streamed"

    decoding = model.begin(None if sources is None else np.array(sources[:1]))
    logits = [decoding.step(prompts[:1])]
    for token in expected[0][:-1]:
        decoding.select([0, 0])  # as in beam search: repeat, then keep one of the two
        decoding.select([1])
        logits.append(decoding.step([[token]]))
    assert torch.cat(logits).argmax(-1).tolist() == expected[0], "alone, reordered"
    assert_close(torch.cat(logits), expected_logits[0], "logits")


def _tensor(ids: list[list[int]] | None) -> torch.Tensor | None:
    return None if ids is None else torch.tensor(ids)


METHODS = ("growing", "static", "NumPy")


def methods_of_models() -> list[Any]:
    """Every model with one method in turn, the first with all; the other pairs take part in `make test-long`."""
    return [
        pytest.param(name, method, marks=() if not at or place == 1 + at % 3 else pytest.mark.long)
        for at, name in enumerate(LONG)
        for place, method in enumerate(METHODS, 1)
    ]


@pytest.mark.parametrize(("name", "method"), methods_of_models())
def test_256_random_tokens_give_the_same_logits_with_every_cache(name: str, method: str) -> None:
    """Two texts, one padded on its left, read in chunks, then id by id; swapped every seventh step."""
    config = config_called(name)
    model, numpys = both_of(config, soft=True)
    prompts, sources = prompts_of(config)
    ids = random_ids(config, (2, STEPS), seed=2)
    full_pass: Any = numpys if method == "NumPy" else lambda text, source: model(*map(_tensor, (text, source)))
    with torch.no_grad():
        expected_logits = [
            full_pass([[*prompts[row], *ids[row]]], None if sources is None else [sources[row]])[
                0, len(prompts[row]) - 1 :
            ]
            for row in (0, 1)
        ]
    options: dict[str, Any] = {} if sources is None else {"source": right_padded(sources)[0]}
    if sources is not None:
        options["source_mask"] = Mask.from_keep(right_padded(sources)[1])
    decoding = numpys.begin(**options) if method == "NumPy" else model.begin(**options | {"cache": method})
    rows, found = [0, 1], [prefill(decoding, prompts, chunk=4)]
    for t in range(STEPS - 1):
        if t % 7 == 6:
            rows = rows[::-1]
            decoding.select([1, 0])
        logits = decoding.step(ids[rows, t : t + 1])
        found.append(logits[rows])
    for row in (0, 1):
        ours = np.stack([np.asarray(each)[row] for each in found])
        assert_close(ours, expected_logits[row][:STEPS], "logits")


@pytest.mark.parametrize("name", DECODERS)
def test_numpy_and_torch_generate_the_same(name: str) -> None:
    """Greedy, sampled with a seed, and beam search; in a batch and alone."""
    config = CONFIGS[name]
    model, numpys = both_of(config, "float64")
    prompts, sources = prompts_of(config)
    options: dict[str, Any] = {"sources": sources, "max_new": 12}
    how = Sampling(temperature=0.8, top_k=12, top_p=0.9, min_p=0.01, repetition_penalty=1.2, seed=7)
    for more in ({}, {"pick": how}, {"eos": 3}, {"pick": how, "chunk": 2}):
        assert generate(model, prompts, **options, **more) == generate(numpys, prompts, **options, **more)
    ours = beam_search(model, prompts, **options, beams=3, best=2, eos=3)
    theirs = beam_search(numpys, prompts, **options, beams=3, best=2, eos=3)
    alone = [
        beam_search(model, prompts[r], sources=one(sources, r), max_new=12, beams=3, best=2, eos=3) for r in (0, 1)
    ]
    for found in (theirs, alone):
        assert [[beam.ids for beam in row] for row in ours] == [[beam.ids for beam in row] for row in found]
        np.testing.assert_allclose(
            [beam.score for row in ours for beam in row], [beam.score for row in found for beam in row], atol=1e-9
        )


@pytest.mark.parametrize("name", ["gpt2", "llama", "window"])
def test_a_decoding_can_be_reused(name: str) -> None:
    """After crop(0), with its allocated cache; also with a batch."""
    model, numpys = both_of(config_called(name))
    prompts = [[1, 2, 3], [4, 5]]
    for decoding in (model.begin(cache="static", max_len=30), model.begin(), numpys.begin()):
        for texts in (prompts, prompts[::-1], [[7, 8], [9, 3, 1]]):
            assert generate(decoding, texts, max_new=6) == generate(model, texts, max_new=6)


@pytest.mark.parametrize("name", ["gpt2", "llama", "window"])
def test_continuing_a_conversation_equals_a_new_start(name: str) -> None:
    config = config_called(name)
    model, numpys = both_of(config)
    for each in (model, numpys):
        session, text = Session(each.begin()), [1, 2, 3]
        for turn_ids in ([4, 5], [6], [7, 8, 9]):
            text += turn_ids
            answer = generate(session, text, max_new=6)
            assert answer == generate(each, text, max_new=6)
            text += answer
