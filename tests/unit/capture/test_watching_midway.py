"""A watch that starts in the middle of a text, after a cache has read the rest; and how steps are saved."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

import regard
from regard import See, Trace
from regard.records import DecodeStep

PROMPT, LENGTH = 5, 11
CONFIGS: dict[str, Any] = {
    "gpt2": lambda: transformers.GPT2Config(
        n_embd=16, n_layer=2, n_head=2, vocab_size=50, bos_token_id=1, eos_token_id=2
    ),
    "llama": lambda: transformers.LlamaConfig(
        hidden_size=16,
        intermediate_size=20,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=50,
    ),
}


def built(name: str) -> Any:
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(CONFIGS[name]()).eval()


def exact(model: Any, text: Tensor) -> list[Tensor]:
    """The weights of the whole text by `eager`."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        found = list(model(text, output_attentions=True).attentions)
    model.set_attn_implementation("sdpa")
    return found


def watched_from(model: Any, text: Tensor, start: int, lengths: list[int], map: int = 3) -> Trace:
    """The text read up to `start` without watch, then watched in pieces."""
    with torch.no_grad():
        cache = model(text[:, :start], use_cache=True).past_key_values
        with regard.watch(model, lambda ids: [str(i) for i in ids], see=See(map=map)) as trace:
            for length in lengths:
                model(text[:, start : start + length], past_key_values=cache, use_cache=True)
                start += length
    return trace


@pytest.mark.parametrize("lengths", [[1] * 6, [2, 1, 3]], ids=["tokens", "pieces"])
@pytest.mark.parametrize("name", CONFIGS)
def test_weights_are_those_of_the_whole_text(name: str, lengths: list[int]) -> None:
    model, text = built(name), torch.randint(3, 50, (2, LENGTH))
    wanted = exact(model, text)
    trace = watched_from(model, text, PROMPT, lengths)
    assert trace[0].step == DecodeStep(PROMPT, ())
    start = PROMPT
    for at, length in enumerate(lengths):
        for layer, weights in enumerate(wanted):
            found = trace[2 * at + layer].weights()
            assert (found - weights[:, :, start : start + length, : start + length]).abs().max() <= 1e-5
        start += length


@pytest.mark.parametrize("name", CONFIGS)
def test_a_continuation_is_one_matrix(name: str) -> None:
    model, text = built(name), torch.randint(3, 50, (1, LENGTH))
    wanted = exact(model, text)
    for record, weights in zip(watched_from(model, text, PROMPT, [1] * 6).stitched(), wanted, strict=True):
        assert record.shape[2:] == (LENGTH - PROMPT, LENGTH)
        assert (record.weights() - weights[:, :, PROMPT:]).abs().max() <= 1e-5
        words = [str(i) for i in text[0].tolist()]
        assert record.query_tokens == (tuple(words[PROMPT:]),)
        assert record.key_tokens == (("",) * PROMPT + tuple(words[PROMPT:]),)


def test_two_continuations_are_two_texts() -> None:
    model, text = built("gpt2"), torch.randint(3, 50, (1, LENGTH))
    with torch.no_grad():
        caches = [model(text[:, at : at + PROMPT], use_cache=True).past_key_values for at in (0, 1)]
        with regard.watch(model, see=See(map=3)) as trace:
            for cache in caches:
                for at in (7, 8):
                    model(text[:, at : at + 1], past_key_values=cache, use_cache=True)
    found = trace.stitched()
    assert [record.shape[2:] for record in found] == [(2, 7)] * 4
    other = exact(model, torch.cat([text[:, 1:6], text[:, 7:9]], 1))
    assert (found[2].weights() - other[0][:, :, 5:]).abs().max() <= 1e-5


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_two_alternating_caches(implementation: str) -> None:
    """Separate texts are not merged, and this is reported."""
    model, text = built("llama"), torch.randint(3, 50, (2, LENGTH))
    model.set_attn_implementation(implementation)
    with torch.no_grad(), regard.watch(model) as trace:
        caches = [model(row[None, :PROMPT], use_cache=True).past_key_values for row in text]
        for at in (PROMPT, PROMPT + 1):
            for row, cache in zip(text, caches, strict=True):
                model(row[None, at : at + 1], past_key_values=cache, use_cache=True)
    with pytest.warns(UserWarning, match="written in turn"):
        found = trace.stitched()
    assert [record.shape[2] for record in found] == [PROMPT] * 4 + [1] * 8


@pytest.mark.parametrize("qk", [False, True])
def test_steps_are_saved_with_their_weights(qk: bool, tmp_path: Path) -> None:
    model, prompt = built("llama"), torch.randint(3, 50, (2, PROMPT))
    with regard.watch(model, see=See(map=3, qk=qk)) as trace:
        model.generate(prompt, max_new_tokens=6, do_sample=False)
    trace.save(tmp_path / "steps.safetensors", qk=True)
    back = regard.read_trace(tmp_path / "steps.safetensors")
    for found, wanted in zip(back.stitched(), trace.stitched(), strict=True):
        assert (torch.from_numpy(found.weights()) - wanted.weights()).abs().max() <= 1e-6
