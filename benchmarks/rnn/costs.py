"""Time, memory, sequential steps, and the gradient that reaches the first word, by the length of the text."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.measure import Contender, race
from benchmarks.rnn.contenders import language_models, n_parameters
from regard.config import RecurrentConfig, TransformerConfig
from regard.config.weights import ModelConfig
from regard.models import build_model

Table = dict[str, dict[str, float]]
"""A number by model and length; lengths are strings, as in JSON."""
FORGET_BIASES: dict[str, float | None] = {"LSTM": None, "LSTM, forget bias 1": 1.0, "LSTM, forget bias 5": 5.0}


# --- gradient ------------------------------------------------------------------------------------------------


def gradients(lengths: Sequence[int], samples: int = 8) -> Table:
    """The gradient of the last word's loss by the first word, relative to that by the last word. Initial weights.

    In float64, so that a gradient of 1e-40 is a number and not 0.
    """
    configs = language_models(d_model=64, n_layers=1, vocab_size=16)
    lstm = configs["LSTM"]
    assert isinstance(lstm, RecurrentConfig)
    found: Table = {}
    configs |= {name: replace(lstm, forget_bias=bias) for name, bias in FORGET_BIASES.items()}
    for name, config in configs.items():
        torch.manual_seed(0)
        model = build_model(config).double()
        found[name] = {str(length): first_gradient(model, length, samples) for length in lengths}
    return found


def first_gradient(model: Any, length: int, samples: int) -> float:
    """The median over texts of |∂loss/∂x₁| / |∂loss/∂x_T|."""
    vectors: list[Tensor] = []
    hook = model.embedding.register_forward_hook(lambda _module, _inputs, output: vectors.append(output))
    random = torch.Generator().manual_seed(length)
    ids = torch.randint(model.config.vocab_size, (samples, length + 1), generator=random)
    logits = model(ids[:, :-1])
    hook.remove()
    (gradient,) = torch.autograd.grad(F.cross_entropy(logits[:, -1], ids[:, -1], reduction="sum"), vectors[0])
    norms = gradient.norm(dim=-1)  # B T
    return statistics.median((norms[:, 0] / norms[:, -1]).tolist())


# --- time ----------------------------------------------------------------------------------------------------


def training_times(lengths: Sequence[int], tokens: int, rounds: int, device: str) -> dict[str, Table]:
    """Seconds per token, forward and backward: of one text, and of a batch of `tokens` tokens."""
    models = {name: build_model(config).to(device) for name, config in language_models().items()}
    found: dict[str, Table] = {"one text": {}, "a batch": {}}
    for length in lengths:
        for what, texts in (("one text", 1), ("a batch", max(1, tokens // length))):
            ids = torch.randint(64, (texts, length + 1), device=device)
            runs: dict[str, Contender] = {name: partial(training_step, model, ids) for name, model in models.items()}
            measured = race(runs, rounds, warm_up=1)
            for name in models:
                found[what].setdefault(name, {})[str(length)] = min(measured.times[name]) / (texts * length)
    return found


def training_step(model: nn.Module, ids: Tensor) -> None:
    """Forward and backward of one batch."""
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    model.zero_grad(set_to_none=True)
    if ids.is_cuda:
        torch.cuda.synchronize()


def generation_times(lengths: Sequence[int], rounds: int, device: str) -> Table:
    """Seconds for the next word after a text of a given length, with cached keys and values, or with a state."""
    found: Table = {}
    for name, config in language_models().items():
        model = build_model(config).to(device).eval()
        for length in lengths:
            decoding = model.begin()
            decoding.step(torch.randint(64, (1, length), device=device))
            word = torch.zeros(1, 1, dtype=torch.int64, device=device)
            times = []
            for _ in range(2 + 4 * rounds):
                start = time.perf_counter()
                decoding.step(word).sum().item()
                times.append(time.perf_counter() - start)
            found.setdefault(name, {})[str(length)] = statistics.median(times[2:])
    return found


# --- memory and work -----------------------------------------------------------------------------------------


def training_memory(lengths: Sequence[int]) -> Table:
    """Bytes that the forward pass of one text keeps for the backward pass, weights not counted."""
    found: Table = {}
    for name, config in language_models().items():
        model = build_model(config)
        weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
        for length in lengths:
            kept: dict[int, int] = {}

            def keep(tensor: Tensor, kept: dict[int, int] = kept) -> Tensor:
                storage = tensor.untyped_storage()
                kept[storage.data_ptr()] = storage.nbytes()
                return tensor

            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                logits = model(torch.randint(64, (1, length)))
            found.setdefault(name, {})[str(length)] = sum(size for at, size in kept.items() if at not in weights)
            del logits
    return found


def generation_memory(lengths: Sequence[int]) -> Table:
    """Bytes that generation keeps of a text: keys and values of every word, or one state. Counted, float32."""
    return {
        name: {str(length): float(kept_bytes(config, length)) for length in lengths}
        for name, config in language_models().items()
    }


def kept_bytes(config: ModelConfig, length: int) -> int:
    if isinstance(config, RecurrentConfig):
        return 4 * (2 if config.cell == "lstm" else 1) * config.n_decoder_layers * config.d_state
    return 4 * 2 * (config.n_decoder_layers or 0) * config.d_model * length


def work(lengths: Sequence[int]) -> dict[str, dict[str, dict[str, float]]]:
    """Counted: dependent steps of a forward pass, and multiplications of the whole text.

    A step is a product of matrices that must wait for another one. A Transformer's layer has six (q k v, scores,
    values, o, up, down) for a text of any length; a recurrent layer has one per word, and the layers overlap.
    """
    return {
        name: {
            "steps": {str(length): float(sequential_steps(config, length)) for length in lengths},
            "multiplications": {str(length): float(multiplications(config, length)) for length in lengths},
        }
        for name, config in language_models().items()
    }


def sequential_steps(config: ModelConfig, length: int) -> int:
    if isinstance(config, RecurrentConfig):
        return length + config.n_decoder_layers - 1 + 2  # and the readout and the output
    return 6 * (config.n_decoder_layers or 0) + 1


def multiplications(config: ModelConfig, length: int) -> int:
    """Of a forward pass: every weight once per word, and in attention 2 D for every visible pair of words."""
    pairs = length * (length + 1) // 2
    attention = 2 * config.d_model * pairs * (config.n_decoder_layers or 0)
    return n_parameters(config) * length + (attention if isinstance(config, TransformerConfig) else 0)
