"""The attention implementation "regard" of transformers."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers
from tolerances import assert_same_bits

import regard
from regard import See
from regard.capture import recording
from regard.capture.huggingface import Implementation, register
from regard.dispatch import observation
from regard.dispatch.observation import ObservedOutput
from regard.errors import ArgumentError, MissingPackageError
from regard.records import Record

TOKENS: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
SIZES: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
SIDES = {"layers": 2, "attention_heads": 4, "ffn_dim": 48}
BART: dict[str, Any] = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in SIDES.items()}
MODELS: dict[str, Any] = {
    "llama": lambda: transformers.LlamaForCausalLM(
        transformers.LlamaConfig(vocab_size=50, num_key_value_heads=2, **SIZES, **TOKENS)
    ),
    "bert": lambda: transformers.BertModel(transformers.BertConfig(vocab_size=50, **SIZES)),
    "bart": lambda: transformers.BartModel(
        transformers.BartConfig(vocab_size=50, d_model=32, decoder_start_token_id=2, **BART, **TOKENS)
    ),
}
IDS = torch.tensor([[5, 6, 7, 8, 9], [10, 11, 12, 13, 14]])
KEEP = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(See(map=8))
    yield
    for registry in (transformers.AttentionInterface, transformers.AttentionMaskInterface):
        registry._global_mapping.pop("regard", None)


def built(name: str) -> Any:
    torch.manual_seed(0)
    return MODELS[name]().eval()


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_sdpa_and_records_those_of_eager(name: str) -> None:
    model = built(name)
    outs = {}
    with torch.no_grad():
        for implementation in ("sdpa", "eager", "regard"):
            model.set_attn_implementation(implementation)
            wants_record = implementation != "sdpa"
            outs[implementation] = model(IDS, attention_mask=KEEP, output_attentions=wants_record)
        assert_same_bits(model(IDS, attention_mask=KEEP)[0], outs["sdpa"][0])
    assert_same_bits(outs["regard"][0], outs["sdpa"][0])
    compared = 0
    for field in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"):
        for record, weights in zip(outs["regard"].get(field) or (), outs["eager"].get(field) or (), strict=True):
            is_text = KEEP.bool() if field in ("attentions", "encoder_attentions") else torch.ones_like(KEEP).bool()
            assert (record.map - weights).abs().amax((1, 3))[is_text].max() <= 1e-5
            compared += 1
    assert compared == (6 if name == "bart" else 2)


def test_records_make_a_trace_with_the_names_of_a_watch() -> None:
    for name, field in (("llama", "attentions"), ("bart", "cross_attentions")):
        model = built(name)
        model.set_attn_implementation("regard")
        with torch.no_grad(), regard.watch(model) as watched:
            trace = regard.Trace(model(IDS, output_attentions=True)[field])
        same = watched.select(kind=trace[0].kind)
        assert trace.names == same.names
        for one, other in zip(trace, same, strict=True):
            assert_same_bits(one.map, other.map)


def test_generation_returns_a_record_for_every_step() -> None:
    model = built("llama")
    model.set_attn_implementation("regard")
    options = {"max_new_tokens": 3, "do_sample": False}
    found = model.generate(IDS, **options, output_attentions=True, return_dict_in_generate=True)
    assert [[record.shape[2:] for record in step] for step in found.attentions] == [
        [(5, 5)] * 2,
        [(1, 6)] * 2,
        [(1, 7)] * 2,
    ]
    model.set_attn_implementation("sdpa")
    assert_same_bits(found.sequences, model.generate(IDS, **options))


def test_gradients_are_those_of_sdpa() -> None:
    grads = {}
    for implementation in ("sdpa", "regard"):
        model = built("bert").train()
        model.set_attn_implementation(implementation)
        torch.manual_seed(1)
        model(IDS, output_attentions=implementation == "regard")[0].sum().backward()
        grads[implementation] = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        grads[implementation].append(torch.get_rng_state())
    for one, other in zip(grads["sdpa"], grads["regard"], strict=True):
        assert_same_bits(one, other)


def test_fused_true_replaces_the_output_only_with_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `watch`; our kernels need a GPU, so a stub replaces them."""
    q = torch.randn(2, 4, 9, 8)
    replacement = ObservedOutput(torch.full_like(q, 7), q.new_zeros(2, 4, 9), Record(shape=(2, 4, 9, 9), fused=True))
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("REGARD_INTERPRET", "1")
    monkeypatch.setattr(observation, "SMALL", 0)
    monkeypatch.setattr(recording, "attend_and_observe", lambda *_, **__: replacement)
    monkeypatch.setattr(recording, "observe_attention", lambda *_, **__: Record(shape=(2, 4, 9, 9)))
    for fused, wants_record in ((True, True), (True, False), (False, True)):
        attention = Implementation(See(fused=fused))
        out, record = attention(torch.nn.Identity(), q, q, q, None, output_attentions=wants_record)
        assert (record is not None) == wants_record
        assert bool((out == 7).all()) == (fused and wants_record) == (record is not None and record.fused)


@pytest.mark.parametrize("argument", ["softcap", "s_aux"])
def test_arguments_that_sdpa_ignores_raise(argument: str) -> None:
    q = torch.ones(1, 1, 2, 4)
    with pytest.raises(ArgumentError) as error:
        Implementation(See())(torch.nn.Identity(), q, q, q, None, **{argument: 3.0})
    assert error.value.key == "implementation-unsupported"


def test_bad_see_and_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError) as error:
        register(256)  # type: ignore[arg-type]
    assert error.value.key == "watch-see"
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingPackageError):
        register()
