"""Our Transformer, in torch and NumPy, equals Hugging Face's GPT-2, Llama, Mistral, Qwen, BERT, T5 and Marian.

Logits, every layer's attention weights, every gradient, greedy texts; full and padded batches. No downloads.
"""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from model_pairs import CASES, Batch, batch, by_definition, pair, weights_of
from narrowing import present
from tolerances import assert_close
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard import Mask, See
from regard.arrays import to_numpy
from regard.config import TransformerConfig
from regard.functional.int8_weight import compiled_library
from regard.generation import generate
from regard.models.cpu_decoding import CompiledStep, compiled_step
from regard.trace import Recorder

every_case = pytest.mark.parametrize("name", CASES)
whole_and_padded = pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*where: Any) -> None:
        raise AssertionError(f"the network was asked: {where}")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small gain nothing from threads, and wait seconds for them under xdist."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# --- the same numbers -------------------------------------------------------------------------------------


@every_case
@whole_and_padded
def test_logits(name: str, padded: bool) -> None:
    theirs, ours, config, _ = pair(name)
    given = batch(config, padded)
    with torch.no_grad():
        expected = theirs(**given.to_theirs()).logits
        logits = ours(**given.to_ours(padded))
    assert expected.std() > 0.2
    assert_close(logits[given.keep], expected[given.keep], "logits")


@every_case
@whole_and_padded
def test_attention_weights(name: str, padded: bool) -> None:
    theirs, ours, config, _ = pair(name)
    given = batch(config, padded)
    recorder = Recorder(See(map=16))
    with torch.no_grad():
        expected = theirs(**given.to_theirs(), output_attentions=True)
        logits = ours(**given.to_ours(padded), attend=recorder)
    assert_close(logits[given.keep], expected.logits[given.keep], "logits")
    compared = 0
    for record_name, weights, keep in attentions_of(expected, config, given):
        record = recorder.trace[record_name]
        assert record.kind == ("cross" if "cross" in record_name else record_name.partition(".")[0])
        assert (weights.amax(-1) * (weights > 0).sum(-1)).mean() > 1.2, "nearly uniform: the comparison is weak"
        rows = keep[:, None, :, None]  # padding queries are not compared
        assert_close(present(record.map) * rows, weights * rows, "logits")
        compared += 1
    assert compared == len(recorder.trace)


def attentions_of(output: Any, config: TransformerConfig, given: Batch) -> list[tuple[str, Tensor, Tensor]]:
    """Our name of each of their attentions, its weights (B, H, T, S), and which queries to compare."""
    if config.kind != "encoder-decoder":
        tables = {f"{config.kind}.layers.#.self_attention": (output.attentions, given.keep)}
    else:
        tables = {
            "encoder.layers.#.self_attention": (output.encoder_attentions, present(given.source_keep)),
            "decoder.layers.#.self_attention": (output.decoder_attentions, given.keep),
            "decoder.layers.#.cross_attention": (output.cross_attentions, given.keep),
        }
    return [
        (name.replace("#", str(i)), weights, keep)
        for name, (layers, keep) in tables.items()
        for i, weights in enumerate(layers)
    ]


@every_case
@whole_and_padded
def test_gradients(name: str, padded: bool) -> None:
    theirs, ours, config, _ = pair(name)
    given = batch(config, padded)
    wanted = given.ids.roll(-1, 1)[given.keep]
    for model, arguments in ((theirs, given.to_theirs()), (ours, given.to_ours(padded))):
        model.zero_grad()
        logits = model(**arguments)
        logits = logits if isinstance(logits, Tensor) else logits.logits
        cross_entropy(logits[given.keep], wanted).backward()
    learned = {
        name: weight.grad for name, weight in theirs.state_dict(keep_vars=True).items() if weight.grad is not None
    }
    expected = weights_of(learned, theirs.config)
    found = {name: weight.grad for name, weight in ours.named_parameters()}
    if config.kind == "encoder-decoder" and config.biases.output:
        del found["output.bias"]  # not trained in Marian
    assert found.keys() == expected.keys()
    for weight, gradient in found.items():
        assert gradient is not None, weight
        assert_close(gradient, expected[weight], "gradient")


@every_case
@whole_and_padded
def test_numpy(name: str, padded: bool) -> None:
    theirs, _, config, _ = pair(name)
    given = batch(config, padded)
    with torch.no_grad():
        expected = theirs(**given.to_theirs()).logits
    logits = by_definition(name)(**given.to_ours(padded, as_given=Tensor.numpy))
    keep = given.keep.numpy()
    assert logits.dtype == np.float32
    assert_close(logits[keep], expected[given.keep], "logits")


# --- the same texts ---------------------------------------------------------------------------------------

every_writer = pytest.mark.parametrize("name", [name for name in CASES if "bert" not in name])


@pytest.mark.skipif(compiled_library() is None, reason="no C++ compiler")
@every_writer
def test_compiled_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One text, id by id, through all layers in one compiled function: equal to their full forward pass."""
    monkeypatch.setattr("regard.models.cpu_decoding.SMALLEST", 0)
    theirs, ours, config, _ = pair(name)
    if config.kind != "decoder":
        assert compiled_step(ours) is None
        return
    ids = batch(config, padded=False).ids[:1]
    with torch.no_grad():
        expected = theirs(ids).logits
    decoding = ours.begin()
    found = [decoding.step(ids[:, :2]), *(decoding.step(ids[:, at : at + 1]) for at in range(2, ids.shape[1]))]
    assert isinstance(decoding._cpu_step, CompiledStep)
    assert_close(torch.stack(found, 1), expected[:, 1:], "logits")


@every_writer
@pytest.mark.parametrize("model", [lambda name: pair(name).ours, by_definition], ids=["torch", "numpy"])
def test_step_by_step(name: str, model: Callable[[str], Any]) -> None:
    """Id by id with a cache, prompts padded on the left, sources on the right: equal to their full forward pass."""
    theirs, _, config, _ = pair(name)
    given = batch(config, padded=True)
    with torch.no_grad():
        expected = theirs(**given.to_theirs()).logits
    if given.source is None or given.source_keep is None:
        decoding, keep = model(name).begin(), given.keep.numpy()
    else:  # padding after the text is masked by causality
        source_mask = Mask.from_keep(given.source_keep.numpy())
        decoding, keep = model(name).begin(given.source.numpy(), source_mask=source_mask), None
    for t in range(given.ids.shape[1]):
        column = slice(t, t + 1)
        logits = decoding.step(given.ids.numpy()[:, column], None if keep is None else keep[:, column])
        real = given.keep[:, t]
        assert_close(to_numpy(logits)[real], expected[real, t], "logits")


@every_writer
def test_greedy_texts(name: str) -> None:
    """Ours with a cache, in torch and NumPy, from lists; theirs without a cache, from padded rows."""
    theirs, ours, config, _ = pair(name)
    given = batch(config, padded=True)
    ids, keep, prompts, sources = given.ids, given.keep, unpadded(given.ids, given.keep), None
    if given.source is not None and given.source_keep is not None:
        ids, keep, sources = given.source, given.source_keep, unpadded(given.source, given.source_keep)
        prompts = [[theirs.config.decoder_start_token_id]] * len(sources)
    written = theirs.generate(
        ids, attention_mask=keep.long(), max_new_tokens=20, do_sample=False, eos_token_id=None, use_cache=False
    )
    expected = written[:, -20:].tolist()
    assert generate(ours, prompts, sources=sources, max_new=20) == expected
    assert generate(by_definition(name), prompts, sources=sources, max_new=20) == expected
    assert len({id for text in expected for id in text}) > 2, "one repeated id: the comparison is weak"


def unpadded(ids: Tensor, keep: Tensor) -> list[list[int]]:
    return [row[kept].tolist() for row, kept in zip(ids, keep, strict=True)]
