"""Models with 8-bit weights: those of the dequantised weights, saved, read, used for generation; and compiled steps."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import CONFIGS, random_ids, random_weights, torch_model
from tolerances import assert_close

import regard
from regard.checkpoints import read_model
from regard.config import Alibi, Relative, TransformerConfig
from regard.dispatch import attend_in_model
from regard.functional.int8_weight import compiled_library
from regard.generation import generate
from regard.models import Transformer
from regard.models.cpu_decoding import CompiledStep, compiled_step, float_weights, round_weights, rounded_names
from regard.trace import Recorder

LARGE = TransformerConfig.llama(vocab_size=120, d_model=64, n_heads=4, n_kv_heads=2, d_ff=96, n_layers=2)


def pair(config: TransformerConfig) -> tuple[Transformer, Transformer]:
    """A model with 8-bit weights, and the same numbers as float32."""
    rounded = torch_model(config, random_weights(config))
    round_weights(rounded)
    floats = {name: np.asarray(weight) for name, weight in float_weights(rounded).items()}
    return rounded, torch_model(config, floats)


@pytest.mark.parametrize("name", ["llama", "gpt2", "paper_2017", "bert", "t5"])
def test_logits_of_every_kind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.models.cpu_decoding.LARGE", 1)
    config = CONFIGS[name]
    rounded, same = pair(config)
    assert rounded_names(rounded)
    ids = torch.from_numpy(random_ids(config, (2, 5)))
    source = torch.from_numpy(random_ids(config, (2, 4), source=True)) if config.kind == "encoder-decoder" else None
    with torch.no_grad():
        assert torch.allclose(rounded(ids, source), same(ids, source), rtol=1e-4, atol=1e-4)


def test_small_matrices_norms_and_biases_stay_float() -> None:
    rounded, _ = pair(TransformerConfig.gpt2(vocab_size=100, d_model=64, n_heads=2, d_ff=64, n_layers=1, max_len=8))
    kinds = {name: weight.dtype for name, weight in rounded.state_dict().items()}
    assert kinds["embedding.weight.numbers"] == kinds["decoder.layers.0.feed_forward.up.weight.numbers"] == torch.int8
    others = {name for name in kinds if not name.endswith(".numbers")}
    assert all(kinds[name] == torch.float32 for name in others)
    assert any("positions" in name for name in others)
    assert any("norm" in name for name in others)


def test_saved_and_read(tmp_path: Path) -> None:
    rounded, same = pair(LARGE)
    rounded.save(tmp_path)
    stored = read_model(tmp_path)
    again = Transformer.of_stored(stored, "float32", int8=True)
    for name, weight in rounded.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name]), name
    ids = torch.tensor([[3, 1, 4]])
    with torch.no_grad():
        assert torch.allclose(Transformer.read(tmp_path)(ids), same(ids), rtol=1e-4, atol=1e-4)
    assert (tmp_path / "model.safetensors").stat().st_size < 0.4 * sum(w.nbytes for w in same.state_dict().values())


def test_greedy_texts_equal_those_of_the_same_numbers() -> None:
    rounded, same = pair(LARGE)
    assert generate(rounded, [[1, 2, 3], [4]], max_new=24) == generate(same, [[1, 2, 3], [4]], max_new=24)


def test_perplexity_is_near_that_of_the_exact_weights() -> None:
    """A small model trained here: rounding its weights changes its perplexity on held-out text by less than 1 %."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig.gpt2(vocab_size=64, d_model=64, n_heads=4, d_ff=128, n_layers=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    text = torch.tensor(list(islice(_numbers(), 4000)))
    train, held = text[:3200].reshape(-1, 64), text[3200:3840].reshape(-1, 64)
    for _ in range(30):
        loss = _loss(model, train)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        exact = _loss(model, held).exp()
        rounded = _loss(round_weights(model), held).exp()
    assert exact < 32, "it has learned nothing: the comparison is weak"
    assert abs(rounded / exact - 1) < 0.01


def _numbers() -> Iterator[int]:
    """Runs that count up by 3 from a random number: predictable in part."""
    rng = np.random.default_rng(0)
    while True:
        start = int(rng.integers(64))
        yield from ((start + 3 * i) % 64 for i in range(8))


def _loss(model: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    logits = model(rows[:, :-1])
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


# --- the compiled step ---------------------------------------------------------------------------------------

needs_compiler = pytest.mark.skipif(compiled_library() is None, reason="no C++ compiler")


@pytest.fixture
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.models.cpu_decoding.SMALLEST", 0)


def layers_of(model: Transformer) -> Any:
    assert model.decoder is not None
    return model.decoder.layers


def is_compiled(decoding: Any) -> bool:
    return isinstance(decoding._cpu_step, CompiledStep)


@needs_compiler
@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("int8", [False, True], ids=["float32", "int8"])
def test_a_compiled_step_equals_the_layers(int8: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far beyond the first capacity of the cache, after a part was dropped, and after the text began again."""
    monkeypatch.setattr("regard.models.cpu_decoding.LARGE", 1)
    for name, config in CONFIGS.items():
        model = torch_model(config, random_weights(config))
        if config.kind != "decoder":
            assert compiled_step(model) is None
            continue
        if int8:
            round_weights(model)
        decoding, other = model.begin(), model.begin(attend=lambda *args, **kwargs: attend_in_model(*args, **kwargs))
        ids = torch.from_numpy(random_ids(config, (1, min(config.max_len or 40, 40))))
        for parts in ([3, *[1] * (ids.shape[1] - 5)], [1, 1, 1, 2, 1]):
            start = 0
            for size in parts:
                part, start = ids[:, start : start + size], start + size
                assert_close(decoding.step(part), other.step(part), "logits")
                if start % 7 == 0:
                    start -= 2
                    decoding.crop(start)
                    other.crop(start)
            decoding.crop(0)
            other.crop(0)
        has_bias = isinstance(config.positions, Alibi | Relative)
        assert is_compiled(decoding) is not has_bias, name
        assert not is_compiled(other)


@needs_compiler
@pytest.mark.usefixtures("every_size")
def test_a_step_that_somebody_observes_is_not_compiled() -> None:
    model = torch_model(LARGE, random_weights(LARGE))
    decoding, recorder, seen = model.begin(), Recorder(), []
    decoding.step([[3, 1, 4]])
    with regard.watch(model) as trace:
        decoding.step([[1]])
    assert len(trace) == 2
    handle = layers_of(model)[1].register_forward_hook(lambda *_: seen.append(1))
    decoding.step([[5]])
    handle.remove()
    assert seen == [1]
    assert not is_compiled(decoding) or not seen[1:]
    recorded = model.begin(attend=recorder)
    recorded.step([[3, 1]])
    recorded.step([[4]])
    assert len(recorder.trace) == 4
    several = model.begin()
    several.step([[3, 1], [4, 1]])
    assert several.step([[1], [2]]).shape == (2, 120)
    assert not is_compiled(several)
    decoding.step([[9]])
    assert is_compiled(decoding)


@pytest.mark.usefixtures("every_size")
def test_without_a_compiler_the_layers_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch_model(LARGE, random_weights(LARGE))
    text = generate(model, [3, 1, 4], max_new=30)
    monkeypatch.setattr("regard.models.cpu_decoding.compiled_library", lambda: None)
    assert compiled_step(model) is None
    assert generate(model, [3, 1, 4], max_new=30) == text


@needs_compiler
@pytest.mark.usefixtures("every_size")
def test_layers_of_others_are_not_compiled() -> None:
    class Other(torch.nn.Linear):
        pass

    for change in ("a layer", "a dtype", "an activation"):
        model = torch_model(LARGE, random_weights(LARGE))
        assert compiled_step(model) is not None
        block = layers_of(model)[1]
        if change == "a layer":
            block.self_attention.q_proj = Other(64, 64)
        elif change == "a dtype":
            model.double()
        else:
            block.feed_forward.activation = torch.tanh
        assert compiled_step(model) is None, change


def test_a_small_model_is_not_compiled() -> None:
    assert compiled_step(torch_model(LARGE, random_weights(LARGE))) is None
