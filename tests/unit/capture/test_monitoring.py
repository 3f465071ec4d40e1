"""`monitor`: its numbers against brute force, training bit-equal with and without it, steps, warnings, other loops."""

import copy
import logging
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import GPT2Config, GPT2LMHeadModel

import regard
from regard.capture.health import LayerHealth
from regard.capture.monitoring import Monitor
from regard.errors import ArgumentError, UnknownNameError
from small_models import ROADS

pytestmark = pytest.mark.filterwarnings("ignore:.*loss_type.*", "ignore:The .grad attribute")


def gpt2(attention: str = "sdpa", seed: int = 0, **changes: Any) -> Any:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 20, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
    config = GPT2Config(**sizes | {"bos_token_id": 0, "eos_token_id": 1} | changes)
    return GPT2LMHeadModel._from_config(config, attn_implementation=attention).train()


def batches(count: int, T: int = 12) -> list[Tensor]:
    random = torch.Generator().manual_seed(7)
    return [torch.randint(2, 20, (3, T), generator=random) for _ in range(count)]


class Run:
    """A few steps of AdamW: losses, weights and the random state at the end."""

    def __init__(self, model: Any, call: Any = None, steps: int = 5, **options: Any) -> None:
        torch.manual_seed(1)
        optimizer, call = torch.optim.AdamW(model.parameters(), 1e-2), model if call is None else call
        self.losses = []
        for ids in batches(steps):
            loss = call(input_ids=ids, labels=ids, **options).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            self.losses.append(loss.item())
        self.weights, self.random = model.state_dict(), torch.get_rng_state()

    def assert_same(self, other: "Run") -> None:
        assert self.losses == other.losses
        assert torch.equal(self.random, other.random)
        for name, weight in self.weights.items():
            assert torch.equal(weight, other.weights[name]), name


class Logged(list[tuple[int, dict[str, float]]]):
    """What a callback received."""

    def __call__(self, metrics: dict[str, float], step: int) -> None:
        self.append((step, metrics))

    @property
    def steps(self) -> list[int]:
        return [step for step, _ in self]


# --- numbers ---------------------------------------------------------------------------------------------


def brute_force(scores: np.ndarray, keep: np.ndarray, causal: bool = True) -> dict[str, np.ndarray]:
    """The definitions in loops: scores B H T T, −∞ where masked; keep B T, False for padding."""
    B, H, T, _ = scores.shape
    rows: dict[str, list[list[float]]] = {name: [[] for _ in range(H)] for name in LayerHealth._fields}
    for b, h, t in np.ndindex(B, H, T):
        if not keep[b, t]:
            continue
        row = scores[b, h, t]
        weights = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        positive = weights[weights > 0]
        far = np.abs(np.arange(T) - t)
        bins = np.where(far > 0, np.floor(np.log2(np.maximum(far, 1))) + 1, 0)
        middles = np.where(bins > 0, 1.5 * 2.0 ** (bins - 1) - 0.5, 0)
        seen = keep[b, : t + 1].sum() if causal else keep[b].sum()
        found = {
            "entropy": -(positive * np.log(positive)).sum(),
            "sink": weights[keep[b].argmax()],
            "max_score": row.max(),
            "distance": (weights * middles).sum(),
            "even": np.log(seen),
            "to_no_key": 0.0,
        }
        for name, value in found.items():
            rows[name][h].append(value)
    return {
        name: np.array([max(x) if name == "max_score" else np.mean(x) for x in each]) for name, each in rows.items()
    }


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("padded", [False, True])
def test_numbers_equal_brute_force(attention: str, padded: bool) -> None:
    model = gpt2(attention, attn_pdrop=0.0)
    with torch.no_grad():  # scores of the size of a trained model's
        for block in model.transformer.h:
            block.attn.c_attn.weight.mul_(20)
    ids = batches(1)[0]
    keep = torch.ones_like(ids)
    if padded:
        keep[1, -5:] = 0
        keep[2, -1:] = 0
    inputs: list[Tensor] = []
    hooks = [
        block.attn.c_attn.register_forward_hook(lambda module, args, out: inputs.append(out.detach()))
        for block in model.transformer.h
    ]
    with regard.monitor(model, every=1, heads=True) as health:
        model(ids, attention_mask=keep)
    for hook in hooks:
        hook.remove()
    assert health.latest is not None
    assert list(health.latest) == ["transformer.h.0.attn", "transformer.h.1.attn"]
    assert repr(health).startswith("Monitor(every=1, step=1, latest=Health(layers=2, entropy=")
    metrics = health.latest.metrics(heads=True)
    everything = []
    for number, qkv in enumerate(inputs):
        q, k, _ = (x.unflatten(-1, (4, -1)).transpose(1, 2).double().numpy() for x in qkv.chunk(3, -1))
        visible = np.tril(np.ones((12, 12), bool)) & (keep.numpy()[:, None, None] > 0)
        scores = np.where(visible, q @ k.swapaxes(-1, -2) / np.sqrt(8), -np.inf)
        expected = brute_force(scores, keep.numpy() > 0)
        layer = health.latest[f"h.{number}.attn"]
        for name, values in expected.items():
            np.testing.assert_allclose(getattr(layer, name), values, rtol=2e-5, atol=2e-5, err_msg=name)
        name = f"attention/transformer.h.{number}.attn"
        assert metrics[f"{name}/entropy"] == pytest.approx(expected["entropy"].mean(), rel=1e-5)
        assert metrics[f"{name}/max_score"] == pytest.approx(expected["max_score"].max(), rel=1e-5)
        assert metrics[f"{name}/3/sink"] == pytest.approx(expected["sink"][3], rel=1e-4)
        uniform = expected["entropy"] >= 0.95 * expected["even"]
        assert metrics[f"{name}/uniform"] == uniform.mean()
        everything.append(expected)
    for name in ("entropy", "sink", "distance"):
        assert metrics[f"attention/{name}"] == pytest.approx(
            np.mean([one[name].mean() for one in everything]), rel=1e-4
        )
    assert metrics["attention/max_score"] == pytest.approx(max(one["max_score"].max() for one in everything), rel=1e-5)


@pytest.mark.parametrize(("every", "expected"), [(1, [1, 11, 21]), (4, [1, 12, 24]), (10, [1, 20])])
def test_the_distance_is_measured_at_most_at_every_tenth_step(every: int, expected: list[int]) -> None:
    layer, logged = nn.MultiheadAttention(8, 2), Logged()
    with regard.monitor(layer, every=every, log=logged) as health:
        for _ in range(24):
            layer(*3 * [torch.ones(3, 8)])
    assert [step for step, metrics in logged if "attention/distance" in metrics] == expected
    assert health.latest is not None
    assert logged.steps == [1, *(step for step in range(2, 25) if step % every == 0)]
    assert all({"attention/entropy", "attention/max_score"} <= metrics.keys() for _, metrics in logged)


def test_an_encoder_sees_all_keys() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, batch_first=True, dropout=0.0)
    with regard.monitor(layer, every=1) as health:
        layer(torch.zeros(2, 9, 16))  # equal keys: even attention
    assert health.latest is not None
    found = health.latest["self_attn"]
    np.testing.assert_allclose(found.entropy, np.log(9), rtol=1e-5)
    np.testing.assert_allclose(found.even, np.log(9), rtol=1e-6)
    assert found.uniform.all()
    assert not found.dead.any()


def test_dead_heads_attend_to_the_first_key() -> None:
    model = gpt2(attn_pdrop=0.0, n_layer=1)
    attention = model.transformer.h[0].attn
    with torch.no_grad():  # head 1: q is constant, and only the first key is large
        attention.c_attn.weight[:, 8:16] = 0
        attention.c_attn.bias[8:16] = 1
        attention.c_attn.weight[:, 40:48] = 0
        attention.c_attn.bias[40:48] = 0
    large = torch.zeros(12, 8)
    large[0] = 20

    def first_key_is_large(module: Any, args: Any, out: Tensor) -> Tensor:
        return torch.cat([out[..., :40], large.expand(3, 12, 8), out[..., 48:]], -1)

    attention.c_attn.register_forward_hook(first_key_is_large)
    with regard.monitor(model, every=1) as health:
        model(batches(1)[0])
    assert health.latest is not None
    assert health.latest["attn"].dead.tolist() == [False, True, False, False]
    assert health.latest.metrics()["attention/dead"] == 0.25


# --- training is bit-equal -------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", ROADS)
@pytest.mark.parametrize("every", [1, 2])
def test_training_is_bit_equal(attention: str, every: int) -> None:
    plain = Run(gpt2(attention))
    logged, model = Logged(), gpt2(attention)
    with regard.monitor(model, every=every, log=logged):
        watched = Run(model)
    watched.assert_same(plain)
    assert logged.steps == ([1, 2, 3, 4, 5] if every == 1 else [1, 2, 4])


def test_with_activation_checkpointing() -> None:
    def checkpointed() -> Any:
        model = gpt2()
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return model

    plain = Run(checkpointed(), use_cache=False)
    logged, model = Logged(), checkpointed()
    with regard.monitor(model, every=2, log=logged):
        Run(model, use_cache=False).assert_same(plain)
    assert logged.steps == [1, 2, 4]
    assert logged[0][1].keys() >= {"attention/transformer.h.1.attn/entropy"}


def test_a_checkpointed_root_counts_once() -> None:
    layer, logged = nn.MultiheadAttention(8, 2, batch_first=True), Logged()
    x = torch.randn(2, 5, 8, requires_grad=True)
    with regard.monitor(layer, every=1, log=logged):
        for _ in range(2):
            checkpoint(lambda x: layer(x, x, x)[0], x, use_reentrant=False).sum().backward()
    assert logged.steps == [1, 2]


WAYS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "the compiled model": lambda model: (call := torch.compile(model, backend="aot_eager"), call),
    "the model inside": lambda model: (model, torch.compile(model, backend="aot_eager")),
    "compiled in place": lambda model: (model.compile(backend="aot_eager"), (model, model))[1],
}


@pytest.mark.parametrize(
    "way", [way if way == "the model inside" else pytest.param(way, marks=pytest.mark.long) for way in WAYS]
)
def test_a_compiled_model(way: str) -> None:
    """Attention with dropout is decomposed in the graph, so a sampled step runs the model once more."""
    plain_model = gpt2()
    plain = Run(plain_model, WAYS[way](plain_model)[1])
    model, logged = gpt2(), Logged()
    watched, call = WAYS[way](model)
    with regard.monitor(watched, every=2, log=logged):
        Run(model, call).assert_same(plain)
    torch._dynamo.reset()
    assert logged.steps == [1, 2, 4]
    assert logged[1][1].keys() >= {"attention/entropy", "attention/transformer.h.0.attn/max_score"}


def test_a_rerun_restores_buffers_and_random_states() -> None:
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.attention = nn.BatchNorm1d(5), nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            x = self.norm(x)
            return self.attention(x, x, x)[0]

    results = []
    for every in (None, 1):
        torch.manual_seed(0)
        model = Hidden()
        call: Any = torch.compile(model, backend="aot_eager")
        health = None if every is None else regard.monitor(call, every=every)
        torch.manual_seed(0)
        for _ in range(3):
            call(torch.randn(4, 5, 8)).sum().backward()
        if health is not None:
            health.close()
            assert health.latest is not None
        results.append((model.norm.running_mean, model.norm.num_batches_tracked, torch.rand(1)))
        torch._dynamo.reset()
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


# --- steps -----------------------------------------------------------------------------------------------


def test_evaluation_and_generation_do_not_count() -> None:
    model, logged = gpt2(), Logged()
    ids = batches(1)[0]
    with regard.monitor(model, every=1, log=logged) as health:
        model(ids)
        with torch.no_grad():
            model(ids)
            model.generate(ids[:1, :4], max_new_tokens=3, pad_token_id=0)
        model.eval()(ids)
        model.train()(ids)
    assert (logged.steps, health.step) == ([1, 2], 2)


def test_accumulated_gradients_are_one_step() -> None:
    model, logged = gpt2(), Logged()
    with regard.monitor(model, every=2, log=logged, accumulate=3, step=9) as health:
        for ids in batches(9):
            model(ids)
    assert (logged.steps, health.step) == ([10, 12], 12)


def test_between_samples_nothing_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    begin = Monitor._begin

    def noted(self: Monitor) -> None:
        opened.append(self.step)
        begin(self)

    monkeypatch.setattr(Monitor, "_begin", noted)
    model = gpt2()
    with regard.monitor(model, every=4):
        for ids in batches(9):
            model(ids)
            assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    assert opened == [1, 4, 8]


def test_close_ends_it_and_an_exception_does_not_leave_it_open() -> None:
    model, logged = gpt2(), Logged()
    health = regard.monitor(model, every=1, log=logged)
    with pytest.raises(IndexError):
        model(torch.full((1, 3), 99))
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    health.close()
    health.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(batches(1)[0])
    assert not model._forward_pre_hooks
    assert not model._forward_hooks
    assert health.step == 1


# --- writers ---------------------------------------------------------------------------------------------


class Writer:
    """As TensorBoard's SummaryWriter."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, int]] = []

    def add_scalar(self, tag: str, value: float, global_step: int) -> None:
        self.rows.append((tag, value, global_step))


class WandbRun:
    """As a run of W&B."""

    def __init__(self) -> None:
        self.rows: list[tuple[dict[str, float], int]] = []

    def log(self, data: dict[str, float], step: int | None = None) -> None:
        assert step is not None
        self.rows.append((data, step))


def test_writers() -> None:
    model, board, run = gpt2(), Writer(), WandbRun()
    with regard.monitor(model, every=1, log=board), regard.monitor(model, every=1, log=run, layers="h.1.attn"):
        model(batches(1)[0])
    ((data, step),) = run.rows
    assert step == 1
    assert not any("h.0" in name for name in data)
    assert data["attention/transformer.h.1.attn/sink"] > 0
    assert {(tag, step) for tag, _, step in board.rows} > {("attention/entropy", 1)}
    assert all(type(value) is float for _, value, _ in board.rows)


# --- warnings and invalid input --------------------------------------------------------------------------


def warned(model: Any, inputs: list[Tensor], **options: Any) -> list[str]:
    """The warnings of a monitor that measures every forward."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with regard.monitor(model, every=1, **options):
            for one in inputs:
                model(one)
    return [str(one.message) for one in told]


def test_scores_that_explode_are_reported_once() -> None:
    model = gpt2(attn_pdrop=0.0)
    with torch.no_grad():
        model.transformer.h[1].attn.c_attn.weight.mul_(500)
    (told,) = warned(model, batches(3), entropy_floor=-1.0)
    assert told.startswith("step 1: the attention scores of transformer.h.1.attn, head ")


def test_entropy_that_collapses_is_reported_once() -> None:
    model = gpt2(attn_pdrop=0.0, n_layer=1)
    with torch.no_grad():
        model.transformer.h[0].attn.c_attn.weight.mul_(5000)
    (told,) = warned(model, batches(3, T=30), score_limit=1e9)
    assert "the attention entropy of transformer.h.0.attn has collapsed" in told


def test_nan_is_reported_once() -> None:
    model = gpt2(attn_pdrop=0.0)
    with torch.no_grad():
        model.transformer.h[1].attn.c_attn.weight[:, 8] = torch.nan  # of q of head 1
    (told,) = warned(model, batches(3))
    assert told.startswith("step 1: the attention of transformer.h.1.attn, head 1, is NaN")


@pytest.mark.parametrize(
    "way", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["copy", "pickle"]
)
def test_a_copy_of_a_monitored_model_is_not_monitored(way: Callable[[Any], Any]) -> None:
    model = gpt2()
    with regard.monitor(model, every=1) as health:
        copied, (ids,) = way(model), batches(1)
        copied(ids, labels=ids).loss.backward()
        assert health.step == 0
        model(ids, labels=ids).loss.backward()
    assert health.step == 1


def test_a_model_without_attention_is_trained_and_reported() -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    (told,) = warned(model, [torch.ones(1, 4)] * 3)
    assert "no attention" in told
    assert not model._forward_hooks


def test_an_uncalled_module_is_reported() -> None:
    with pytest.warns(UserWarning, match="GPT2LMHeadModel was never called"), regard.monitor(gpt2()):
        pass


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"every": 0}, ArgumentError, "every"),
        ({"accumulate": 1.5}, ArgumentError, "accumulate"),
        ({"log": 3}, ArgumentError, "add_scalar"),
        ({"log": logging.getLogger("x")}, ArgumentError, r"add_scalar.*logging\.Logger"),
        ({"layers": "h.9.attn"}, UnknownNameError, r"h\.9\.attn"),
        ({"score_limit": "high"}, ArgumentError, "score_limit"),
    ],
)
def test_invalid_arguments(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        regard.monitor(gpt2(), **options)
    with pytest.raises(ArgumentError, match=r"torch\.nn\.Module"):
        regard.monitor("gpt2")  # type: ignore[arg-type]


def test_an_error_while_measuring_does_not_end_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(trace: Any) -> Any:
        raise ValueError("no numbers")

    monkeypatch.setattr("regard.capture.monitoring.measured", broken)
    model = gpt2()
    with pytest.warns(UserWarning, match="no numbers"), regard.monitor(model, every=1):
        Run(model).assert_same(Run(gpt2()))


# --- several processes -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The output of two processes that train with DDP and with FSDP2."""
    store = tmp_path_factory.mktemp("ranks") / "store"
    command = [sys.executable, str(Path(__file__).with_name("monitored_ranks.py")), str(store)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        for rank in range(2)
    ]
    return [rank.communicate(timeout=300)[0] for rank in ranks]


@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_two_processes(both_ranks: list[str], way: str) -> None:
    """Each process measures its own part of the batch; losses and weights are bit-equal with and without it."""
    for output in both_ranks:
        assert f"{way}: same, steps [1, 2, 4], layers 2" in output.splitlines(), output
