"""`edit` on Hugging Face models: SDPA and eager agree, with and without a cache, and watch records the edit."""

from typing import Any

import pytest
import torch
import transformers
from tolerances import assert_close
from torch import Tensor

import regard
from regard import See, edit

IDS = torch.tensor([[5, 17, 40, 8, 61, 23, 77], [9, 30, 12, 55, 3, 88, 41]])
SMALL: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
ENDS: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}


def gpt2() -> Any:
    sizes: dict[str, Any] = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ENDS)), "h.1.attn"


def llama() -> Any:
    config = transformers.LlamaConfig(vocab_size=99, num_key_value_heads=2, initializer_range=0.3, **SMALL, **ENDS)
    return transformers.LlamaForCausalLM(config), "layers.0.self_attn"


def bert() -> Any:
    config = transformers.BertConfig(vocab_size=99, initializer_range=0.3, **SMALL)
    return transformers.BertForMaskedLM(config), "layer.1.attention.self"


def t5() -> Any:
    sizes: dict[str, Any] = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    config = transformers.T5Config(**sizes | {"decoder_start_token_id": 0})
    return transformers.T5ForConditionalGeneration(config), "decoder.block.1.layer.1.EncDecAttention"


def sinks() -> Any:
    config = transformers.GptOssConfig(
        vocab_size=99, num_key_value_heads=2, head_dim=8, num_local_experts=2, num_experts_per_tok=1, **SMALL, **ENDS
    )
    return transformers.GptOssForCausalLM(config), "layers.0.self_attn"


@pytest.fixture
def made(request: pytest.FixtureRequest) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, name = request.param()
    return model.eval(), name


def logits(model: Any) -> Tensor:
    more = {"decoder_input_ids": IDS[:, :5]} if model.config.is_encoder_decoder else {}
    return model(input_ids=IDS, **more).logits


@pytest.mark.parametrize("made", [gpt2, llama, bert, t5], indirect=True)
@torch.no_grad()
def test_sdpa_and_eager_are_edited_alike(made: Any) -> None:
    model, name = made
    found = {}
    for implementation in ("sdpa", "eager"):
        model.set_attn_implementation(implementation)
        with regard.watch(model, see=See(qk=True)) as before:
            plain = logits(model)
        with edit(model, cut={name: [(1, 4, 2), (3, 0)]}), regard.watch(model, see=See(qk=True)) as after:
            cut = logits(model)
        weights = before[name].weights().clone()
        weights[:, 1, 4, 2] = weights[:, :, 3, 0] = 0
        assert_close(after[name].weights(), weights / weights.sum(-1, keepdim=True), "weights")
        assert before.names == after.names
        with edit(model, freeze={name: before[name]}):
            assert_close(logits(model), plain, "logits")
        with edit(model, silence={name: [2]}):
            found[implementation] = torch.stack([cut, logits(model)])
        assert (found[implementation] - plain).abs().amax((1, 2, 3)).min() > 1e-4
    assert_close(found["sdpa"], found["eager"], "logits")


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("made", [gpt2, llama, t5], indirect=True)
@torch.no_grad()
def test_generation_with_a_cache_is_edited_like_the_whole_text(made: Any, implementation: str) -> None:
    model, name = made
    model.set_attn_implementation(implementation)
    edges = [(0, 0), (1, 2), (3, 4)] if model.config.is_encoder_decoder else [(3, 1), (8, 2), (9, 0)]
    options = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    with edit(model, cut={name: edges}, silence={name: [1]}):
        out = model.generate(IDS, output_logits=True, return_dict_in_generate=True, **options)
        if model.config.is_encoder_decoder:
            whole = model(input_ids=IDS, decoder_input_ids=out.sequences[:, :-1]).logits
        else:
            whole = model(out.sequences[:, :-1]).logits[:, IDS.shape[1] - 1 :]
    assert_close(torch.stack(out.logits, 1), whole, "logits")


@pytest.mark.parametrize("made", [sinks], indirect=True)
@torch.no_grad()
def test_a_learned_sink_is_not_a_key(made: Any) -> None:
    model, name = made
    with regard.watch(model) as before:
        plain = model(IDS).logits
    with edit(model, cut={name: [(5, -3)]}), regard.watch(model) as after:
        model(IDS)
    weights = before[name].map.clone()
    weights[:, :, 5] /= 1 - weights[:, :, 5, 4:5]  # the sink takes its share of the freed weight
    weights[:, :, 5, 4] = 0
    assert_close(after[name].map, weights, "weights")
    with edit(model, freeze={name: before[name]}):
        assert_close(model(IDS).logits, plain, "logits")
