"""watch on a GPU: unchanged outputs, weights equal to `eager`, pooled maps, one matrix per generated text."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers
from narrowing import present
from torch import Tensor

import regard
from regard import See
from regard.functional.statistics import pooled_map

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    # torch warns whenever it compiles; here products must be exact.
    pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning"),
]

DTYPES = (torch.float32, torch.bfloat16)
NEAR = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
"""`eager` rounds its scores and weights to the model's precision; we do not."""
EVERYTHING = See(map=16, max_score=True, entropy=True, received=True, top=3, distance=True, values=True)


@pytest.fixture(autouse=True)
def exact_products() -> Iterator[None]:
    """float32 products in float32: TF32 has ten bits."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def gpt2(dtype: torch.dtype, implementation: str = "sdpa") -> Any:
    config = transformers.GPT2Config(
        n_embd=64, n_layer=2, n_head=4, n_positions=256, vocab_size=99, bos_token_id=1, eos_token_id=2, pad_token_id=0
    )
    config._attn_implementation = implementation
    torch.manual_seed(0)
    model: torch.nn.Module = transformers.GPT2LMHeadModel(config)
    return model.to("cuda", dtype).eval()


def ids(B: int = 2, T: int = 96) -> Tensor:
    return torch.randint(3, 99, (B, T), generator=torch.Generator().manual_seed(1)).cuda()


def eager(model: Any, text: Tensor) -> list[Tensor]:
    """The weights of a copy of the model with eager attention."""
    twin = gpt2(next(model.parameters()).dtype, "eager")
    twin.load_state_dict(model.state_dict())
    with torch.no_grad():
        return [weights.float() for weights in twin(text, output_attentions=True).attentions]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_watch_changes_nothing(dtype: torch.dtype) -> None:
    model, text = gpt2(dtype).train(), ids()
    found = []
    for watched in (False, True):
        torch.manual_seed(3)
        model.zero_grad()
        if watched:
            with regard.watch(model, see=EVERYTHING) as trace:
                out = model(text, use_cache=False).logits
            assert len(trace) == 2
        else:
            out = model(text, use_cache=False).logits
        out.float().square().mean().backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        found.append((out.detach(), torch.cuda.get_rng_state(), gradients))
    (out, state, gradients), (seen, state_after, gradients_after) = found
    assert torch.equal(out, seen)
    assert torch.equal(state, state_after)
    # In the backward, a GPU's sums over tokens may have any order, with and without watching.
    for one, other in zip(gradients, gradients_after, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4 if dtype == torch.float32 else 2e-2, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_weights_equal_eager_and_maps_are_pooled_weights(dtype: torch.dtype) -> None:
    model, text = gpt2(dtype), ids()
    with torch.no_grad(), regard.watch(model, see=See(map=16, qk=True, received=True, entropy=True)) as trace:
        model(text, use_cache=False)
    assert [record.name for record in trace] == ["transformer.h.0.attn", "transformer.h.1.attn"]
    for record, expected_weights in zip(trace, eager(model, text), strict=True):
        weights = record.weights()
        assert weights.is_cuda
        assert (weights - expected_weights).abs().max() <= NEAR[dtype]
        assert (present(record.map) - pooled_map(weights, 16)).abs().max() <= 1e-5
        assert (record.received - weights.sum(-2)).abs().max() <= 1e-3
        assert (record.weights(slice(7, 9), slice(2, 5)) - weights[..., 7:9, 2:5]).abs().max() <= 1e-5


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_generated_text_gives_one_matrix(dtype: torch.dtype) -> None:
    model, prompt = gpt2(dtype), ids(2, 9)
    options = {"max_new_tokens": 7, "do_sample": False, "attention_mask": torch.ones_like(prompt)}
    expected = model.generate(prompt, **options)
    with regard.watch(model, see=See(map=4)) as trace:
        text = model.generate(prompt, **options)
    assert torch.equal(text, expected)
    for record, expected_weights in zip(trace.stitched(), eager(model, text), strict=True):
        T = record.shape[2]
        assert record.prompt == 9
        assert (record.weights() - expected_weights[:, :, :T, :T]).abs().max() <= NEAR[dtype]


def test_a_compiled_model_can_be_watched() -> None:
    model, text = gpt2(torch.float32), ids()
    compiled: Any = torch.compile(model)  # annotated as a function
    with torch.no_grad():
        expected = compiled(text, use_cache=False).logits
        with regard.watch(compiled, see=See(map=128)) as trace:
            found = compiled(text, use_cache=False).logits
    assert torch.equal(found, expected)
    assert len(trace) == 2
    for record, expected_weights in zip(trace, eager(model, text), strict=True):
        assert (
            record.weights() - expected_weights
        ).abs().max() <= 1e-4  # compiled, earlier operations are rounded differently
