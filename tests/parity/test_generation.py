"""Decoding that never differs: 256 greedy tokens, the same by every way of reading and of remembering, in both kinds.

The judge reads the whole text anew for each token, with no cache at all.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from models import CONFIGS, DECODERS, random_ids, random_weights
from tolerances import assert_close

from regard import Mask, reference
from regard.config import TransformerConfig
from regard.dispatch import attend_within
from regard.generation import Sampling, Session, beam_search, generate, stream
from regard.generation.prompts import right_padded
from regard.models import Transformer

STEPS = 256
PROMPT, SHORT = 9, 4
# One of each preset, and the corners of attention; with room for the whole text.
LONG = ("paper_2017", "gpt2", "llama", "gemma", "t5", "bloom")


def config_called(name: str) -> TransformerConfig:
    """With room for the text, and two decoder layers: one of each kind where they alternate."""
    return replace(CONFIGS[name], n_decoder_layers=2, max_len=PROMPT + STEPS)


def both_of(config: TransformerConfig, dtype: str = "float32") -> tuple[Transformer, reference.Transformer]:
    weights = random_weights(config, dtype=dtype)
    with torch.device("meta"):
        model = Transformer(config)
    model.load_state_dict({name: torch.from_numpy(weight) for name, weight in weights.items()}, assign=True)
    return model.eval(), reference.Transformer(config, weights, attend=attend_within)


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
    ids = torch.zeros(2, PROMPT + STEPS, dtype=torch.long)  # texts begin together: what follows an end, nobody sees
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


@pytest.mark.parametrize("name", LONG)
def test_256_tokens_are_the_same_by_every_way(name: str) -> None:
    config = config_called(name)
    model, numpys = both_of(config)
    prompts, sources = prompts_of(config)
    expected, judged = without_cache(model, prompts, sources)
    assert len({tuple(text) for text in expected}) == 2

    batch = {"prompts": prompts, "sources": sources, "max_new": STEPS}
    assert generate(model, **batch) == expected, "left-padded batch"
    assert generate(model, **batch, cache="static") == expected, "static cache"
    assert generate(model, **batch, chunk=2) == expected, "chunked prefill"
    assert generate(numpys, **batch, chunk=3) == expected, "NumPy"
    assert list(stream(model, prompts[1], sources=one(sources, 1), max_new=STEPS)) == expected[1], "alone, streamed"

    decoding = model.begin(None if sources is None else np.array(sources[:1]))
    logits = [decoding.step(prompts[:1])]
    for token in expected[0][:-1]:
        decoding.select([0, 0])  # as a beam search would: repeated, then one of the two kept
        decoding.select([1])
        logits.append(decoding.step([[token]]))
    assert torch.cat(logits).argmax(-1).tolist() == expected[0], "alone, reordered"
    assert_close(torch.cat(logits), judged[0], "logits")


@pytest.mark.parametrize("name", DECODERS)
def test_numpy_and_torch_write_the_same(name: str) -> None:
    """Greedy, sampled with a seed, and with beams; a batch as each alone."""
    config = CONFIGS[name]
    model, numpys = both_of(config, "float64")
    prompts, sources = prompts_of(config)
    options = {"sources": sources, "max_new": 12}
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
def test_a_conversation_is_as_good_as_a_new_start(name: str) -> None:
    config = config_called(name)
    model, numpys = both_of(config)
    for each in (model, numpys):
        session, text = Session(each.begin()), [1, 2, 3]
        for said in ([4, 5], [6], [7, 8, 9]):
            text += said
            answer = generate(session, text, max_new=6)
            assert answer == generate(each, text, max_new=6)
            text += answer
