"""Decoding step by step equals a full forward pass: every decoder, both caches, after select and crop."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest
import torch
from models import CONFIGS, DECODERS, random_ids, random_weights, torch_model
from narrowing import present
from tolerances import assert_close, assert_same_bits

from regard import Mask, See
from regard.config import TransformerConfig
from regard.dispatch import attend_in_model
from regard.errors import RegardError
from regard.models import Decoding, Transformer
from regard.trace import Recorder

Cache = Literal["growing", "static"]
CACHES = ("growing", "static")
T = 9


def model_of(config: TransformerConfig, dtype: str = "float32") -> Transformer:
    return torch_model(config, random_weights(config, dtype=dtype))


def source_of(config: TransformerConfig, B: int = 2) -> torch.Tensor | None:
    return torch.from_numpy(random_ids(config, (B, 7), 1, source=True)) if config.kind == "encoder-decoder" else None


def ids_of(config: TransformerConfig, B: int = 2) -> torch.Tensor:
    return torch.from_numpy(random_ids(config, (B, T)))


@pytest.fixture(params=DECODERS)
def model(request: pytest.FixtureRequest) -> Transformer:
    return model_of(CONFIGS[request.param])


@pytest.fixture(params=CACHES)
def begin(request: pytest.FixtureRequest, model: Transformer) -> Callable[..., Decoding]:
    return partial(model.begin, cache=request.param, max_len=24)


def full_logits(model: Transformer, ids: torch.Tensor, source: torch.Tensor | None, **options: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(ids, source, **options)


def test_token_by_token(model: Transformer, begin: Callable[..., Decoding]) -> None:
    ids, source = ids_of(model.config), source_of(model.config)
    decoding = begin(source)
    steps = [decoding.step(ids[:, t : t + 1]) for t in range(T)]
    assert_close(torch.stack(steps, dim=1), full_logits(model, ids, source), "logits")
    assert decoding.length == T


def test_in_chunks_of_any_size(model: Transformer, begin: Callable[..., Decoding]) -> None:
    ids, source = ids_of(model.config), source_of(model.config)
    expected = full_logits(model, ids, source)
    for cuts in ([T], [4, T], [1, 2, 7, T], [3, 4, 5, T]):
        decoding, start = begin(source), 0
        for stop in cuts:
            assert_close(decoding.step(ids[:, start:stop].numpy()), expected[:, stop - 1], "logits")
            start = stop


def test_left_padding_changes_nothing(model: Transformer, begin: Callable[..., Decoding]) -> None:
    """A short text padded on the left in a batch has the same logits as alone."""
    ids, source = ids_of(model.config), source_of(model.config)
    keep = np.ones((2, T), dtype=bool)
    keep[0, :4] = False
    decoding = begin(source)
    decoding.step(ids[:, :6], keep[:, :6])
    steps = [decoding.step(ids[:, 6:7], keep[:, 6:7]), *(decoding.step(ids[:, t : t + 1]) for t in (7, 8))]
    for row, first in ((0, 4), (1, 0)):
        alone = full_logits(model, ids[row : row + 1, first:], None if source is None else source[row : row + 1])
        assert_close(torch.stack(steps, dim=1)[row], alone[0, -3:], "logits")


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("name", [name for name in DECODERS if CONFIGS[name].kind == "encoder-decoder"])
def test_a_padded_source_changes_nothing(name: str, cache: Cache) -> None:
    model = model_of(CONFIGS[name])
    ids, source = ids_of(model.config), source_of(model.config)
    assert source is not None
    keep = np.ones((2, 7), dtype=bool)
    keep[1, 5:] = False
    decoding = model.begin(source, cache=cache, max_len=24, source_mask=Mask.from_keep(keep))
    decoding.step(ids[:, :4])
    found = decoding.step(ids[:, 4:])
    assert_close(found[1], full_logits(model, ids[1:], source[1:, :5])[0, -1], "logits")
    assert_close(found, full_logits(model, ids, source, source_mask=Mask.from_keep(keep))[:, -1], "logits")


def test_samples_can_be_reordered_repeated_and_dropped(model: Transformer, begin: Callable[..., Decoding]) -> None:
    ids, source = ids_of(model.config, B=3), source_of(model.config, B=3)
    keep = np.ones((3, T), dtype=bool)
    keep[1, :2] = False
    decoding = begin(source)
    decoding.step(ids[:, :5], keep[:, :5])
    rows = [2, 0, 1, 1]
    decoding.select(rows)
    decoding.step(ids[rows, 5:6])
    decoding.select([1, 3])
    found = decoding.step(ids[[0, 1], 6:])
    for at, (row, first) in enumerate(((0, 0), (1, 2))):
        alone = full_logits(model, ids[row : row + 1, first:], None if source is None else source[row : row + 1])
        assert_close(found[at], alone[0, -1], "logits")


def test_crop(model: Transformer, begin: Callable[..., Decoding]) -> None:
    ids, source = ids_of(model.config), source_of(model.config)
    decoding = begin(source)
    decoding.step(ids)
    for length in (5, 2, 0):
        decoding.crop(length)
        assert decoding.length == length
        assert_close(decoding.step(ids[:, length:]), full_logits(model, ids, source)[:, -1], "logits")


@pytest.mark.parametrize("rows", [[1, 0], [0, 0, 1, 1, 1], [1]])
def test_crop_to_zero_undoes_select(model: Transformer, begin: Callable[..., Decoding], rows: list[int]) -> None:
    """The sources and their number are restored: the same text gives the same logits, also after padding."""
    ids, source = ids_of(model.config), source_of(model.config)
    keep = torch.ones_like(ids, dtype=torch.bool)
    keep[1, :3] = False
    decoding = begin(source)
    first = decoding.step(ids, keep).clone()
    decoding.select(rows)
    decoding.step(ids[rows, :2])
    decoding.crop(0)
    assert_close(decoding.step(ids, keep), first, "logits")


def test_an_interrupted_step_leaves_no_trace(model: Transformer, begin: Callable[..., Decoding]) -> None:
    ids, source = ids_of(model.config), source_of(model.config)
    last: Any = present(model.decoder).layers[-1]
    decoding = begin(source)
    decoding.step(ids[:, :5])

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    hook = last.feed_forward.register_forward_hook(stop)
    with pytest.raises(KeyboardInterrupt):
        decoding.step(ids[:, 5:7])
    hook.remove()
    assert decoding.length == 5
    assert_close(decoding.step(ids[:, 5:]), full_logits(model, ids, source)[:, -1], "logits")


def test_logits_are_not_overwritten_by_later_steps(model: Transformer, begin: Callable[..., Decoding]) -> None:
    ids, source = ids_of(model.config), source_of(model.config)
    decoding = begin(source)
    first = decoding.step(ids[:, :3])
    kept = first.clone()
    for t in range(3, T):
        decoding.step(ids[:, t : t + 1])
    assert_same_bits(first, kept)
    assert not first.requires_grad


@pytest.mark.parametrize(
    "name",
    [
        "gemma 3",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("paper_2017", "gpt2", "llama", "t5", "gemma 2", "gpt-neox")
        ),
    ],
)
def test_a_step_compiles_as_one_graph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without graph breaks, and once: the second step uses the same graph."""
    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    model = model_of(CONFIGS[name])
    ids, source = ids_of(model.config), source_of(model.config)
    decoding = model.begin(source, cache="static", max_len=24, compile=True)
    decoding.step(ids[:, :3])
    with torch._dynamo.config.patch(error_on_recompile=True):
        for t in range(3, T):
            found = decoding.step(ids[:, t : t + 1])
    assert_close(found, full_logits(model, ids, source)[:, -1], "logits")


@pytest.mark.parametrize("cache", CACHES)
def test_decoding_is_recorded_step_by_step(cache: Cache) -> None:
    model = model_of(CONFIGS["paper_2017"])
    ids, source = ids_of(model.config), source_of(model.config)
    recorder, at_once = Recorder(See(map=32)), Recorder(See(map=32))
    decoding = model.begin(source, cache=cache, max_len=12, attend=recorder)
    for part in (ids[:, :3], ids[:, 3:4], ids[:, 4:5]):
        decoding.step(part)
    full_logits(model, ids[:, :5], source, attend=at_once)
    tokens, words = [f"t{i}" for i in range(5)], [f"s{i}" for i in range(7)]
    trace = recorder.label(tokens, words)
    assert [name for name in trace.names if name.startswith("encoder")] == at_once.trace.names[:2]
    name = "decoder.layers.1.self_attention"
    assert trace[f"{name}#2"].query_tokens == (("t4",),)
    assert present(trace[f"{name}#2"].key_tokens)[0][:5] == tuple(tokens)
    assert_close(present(trace[f"{name}#2"].map)[..., :5], present(at_once.trace[name].map)[:, :, 4:], "logits")
    cross = trace["decoder.layers.0.cross_attention#1"]
    assert (cross.query_tokens, cross.key_tokens) == ((("t3",),), (tuple(words),))


# --- fixed bugs ---------------------------------------------------------------------------------


@pytest.mark.long
def test_any_number_of_shapes_can_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch stops compiling a function after eight shapes; each decoding has its own function."""
    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    model = model_of(replace(CONFIGS["gpt2"], n_decoder_layers=1))
    for B in range(1, 12):
        decoding = model.begin(cache="static", max_len=5, compile=True)
        decoding.step([[1, 2]] * B)
        assert decoding.step([[3]] * B).shape == (B, 31)


@pytest.mark.parametrize("cache", CACHES)
def test_a_copy_is_independent(cache: Cache) -> None:
    model = model_of(CONFIGS["gpt2"])
    decoding = model.begin(cache=cache)
    decoding.step([[1, 2, 3]])
    other = deepcopy(decoding)
    decoding.step([[4]])
    decoding.step([[5]])
    assert_close(other.step([[6]]), full_logits(model, torch.tensor([[1, 2, 3, 6]]), None)[:, -1], "logits")


@pytest.mark.parametrize("cache", CACHES)
def test_after_an_interrupted_first_step_the_number_of_samples_may_change(cache: Cache) -> None:
    model = model_of(CONFIGS["gpt2"])
    calls = []

    def stopped_once(*args: Any, **options: Any) -> torch.Tensor:
        calls.append(options["name"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return attend_in_model(*args, **options)

    decoding = model.begin(cache=cache, attend=stopped_once)
    with pytest.raises(KeyboardInterrupt):
        decoding.step([[1, 2], [3, 4]], [[False, True], [True, True]])
    ids = torch.tensor([[1, 2, 3]])
    assert_close(decoding.step(ids), full_logits(model, ids, None)[:, -1], "logits")


@pytest.mark.parametrize("cache", CACHES)
def test_a_decoding_outlives_inference_mode(cache: Cache) -> None:
    model = model_of(CONFIGS["paper_2017"])
    ids, source = ids_of(model.config), source_of(model.config)
    with torch.inference_mode():
        decoding = model.begin(source, cache=cache, max_len=12)
        decoding.step(ids[:, :3])
        decoding.select([1, 0])
    decoding.select([1, 0])
    assert_close(decoding.step(ids[:, 3:]), full_logits(model, ids, source)[:, -1], "logits")


@pytest.mark.parametrize("cache", CACHES)
def test_a_change_of_dtype_within_a_text_is_refused(cache: Cache) -> None:
    decoding = model_of(CONFIGS["gpt2"]).begin(cache=cache)
    with torch.autocast("cpu", torch.bfloat16):
        decoding.step([[1, 2, 3]])
    refused("cache-dtype", lambda: decoding.step([[4]]))


# --- errors ----------------------------------------------------------------------------------


def refused(key: str, call: Callable[[], object]) -> RegardError:
    with pytest.raises(RegardError) as caught:
        call()
    assert caught.value.key == key
    assert caught.value.text("zh")
    return caught.value


def test_errors() -> None:
    model = model_of(CONFIGS["gpt2"])
    begin, ids = model.begin, torch.tensor([[1, 2, 3]])
    refused("unknown-choice", lambda: begin(cache="other"))  # type: ignore[arg-type]
    refused("compile-growing", lambda: begin(compile=True))
    refused("static-without-length", lambda: model_of(replace(CONFIGS["llama"], max_len=None)).begin(cache="static"))
    refused("source-unneeded", lambda: begin(ids))
    refused("source-missing", lambda: model_of(CONFIGS["paper_2017"]).begin())
    refused("decoding-encoder", lambda: model_of(CONFIGS["bert"]).begin())
    refused("decoding-vectors", lambda: model_of(CONFIGS["vectors"]).begin(torch.zeros(1, 2, 12)))
    refused("ids-out-of-range", lambda: begin().step([[31]]))
    refused("ids-axes", lambda: begin().step([1, 2]))
    for odd in ([[1, 2], [3]], [[10**30]], [[None]], [["a"]], [[1.5]]):
        with pytest.raises(RegardError):
            begin().step(odd)
    assert begin().step(np.array([[3, 2, 1]], dtype=">u2")[:, ::-1]).shape == (1, 31)
    refused("compile-recording", lambda: begin(cache="static", compile=True, attend=Recorder()))
    refused("keep-shape", lambda: begin().step(ids, [[True]]))
    refused("count-wanted", lambda: begin(max_len=0))
    refused("count-wanted", lambda: begin(max_len="8"))  # type: ignore[arg-type]
    error = refused("decoding-full", lambda: begin(max_len=4).step([[1] * 5]))
    assert (error.values["length"], error.values["max_len"]) == (5, 4)
    assert begin(max_len=1000).max_len == 29
    decoding = begin()
    decoding.step(ids)
    refused("batches-of-source", lambda: decoding.step(ids.expand(2, 3)))
    refused("rows-too-early", lambda: begin().select([0]))
    refused("rows-out-of-range", lambda: decoding.select([1]))
    refused("rows-out-of-range", lambda: decoding.select([0.0]))  # type: ignore[list-item]
    refused("rows-out-of-range", lambda: decoding.select([]))
    refused("crop-length", lambda: decoding.crop(4))
    assert decoding.length == 3


@pytest.mark.parametrize("cache", CACHES)
def test_padding_must_be_before_a_text(cache: Cache) -> None:
    """Elsewhere it would be ambiguous: a window counts columns, positions do not count padding."""
    decoding = model_of(CONFIGS["window"]).begin(cache=cache, max_len=24)
    ids = np.ones((2, 3), dtype=int)
    refused("keep-order", lambda: decoding.step(ids, [[True, False, True], [True, True, True]]))
    decoding.step(ids, [[False, False, False], [False, True, True]])
    refused("keep-order", lambda: decoding.step(ids, [[False, True, True], [False, True, True]]))
    decoding.step(ids, [[False, True, True], [True, True, True]])
    refused("keep-order", lambda: decoding.step(ids, [[False, True, True], [True, True, True]]))
    assert decoding.length == 6


def test_training_mode_with_dropout_is_refused() -> None:
    config = replace(CONFIGS["gpt2"], dropout=0.1)
    refused("decoding-training", lambda: Transformer(config).begin())
    model = Transformer(config).eval()
    decoding = model.begin()
    model.train()
    refused("decoding-training", lambda: decoding.step([[1]]))
    Transformer(replace(config, dropout=0.0)).begin()


def test_a_source_mask_must_be_the_same_for_all_queries() -> None:
    model = model_of(CONFIGS["paper_2017"])
    source = source_of(model.config)
    refused("source-mask-keys", lambda: model.begin(source, source_mask=Mask.causal()))
    assert model.begin(source, source_mask=Mask.prefix(3)).step([[1], [2]]).shape == (2, 23)
