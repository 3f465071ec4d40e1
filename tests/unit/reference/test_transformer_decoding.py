"""Decoding in NumPy equals a full pass: step by step, in chunks, padded, reordered, cropped."""

from typing import Any

import numpy as np
import pytest
from models import CONFIGS, DECODERS, random_ids, random_weights
from narrowing import present
from tolerances import assert_close

from regard.dispatch import attend_in_model
from regard.errors import RegardError
from regard.masks import Mask
from regard.reference import Transformer

DTYPES = ["float32", "float64"]
B, T = 3, 11


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert_close(actual, expected, "logits")


def model_called(name: str, dtype: str = "float64") -> Transformer:
    return Transformer(CONFIGS[name], random_weights(CONFIGS[name], dtype=dtype))


def texts_of(model: Transformer) -> tuple[np.ndarray, np.ndarray | None]:
    """Ids (B, T), and a source for an encoder-decoder."""
    source = random_ids(model.config, (B, 6), seed=2, source=True)
    return random_ids(model.config, (B, T), seed=1), source if model.config.kind == "encoder-decoder" else None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("chunks", [(1,) * T, (4, 1, 1, 3, 2), (T,)], ids=["tokens", "chunks", "at once"])
def test_step_by_step_equals_one_pass(name: str, chunks: tuple[int, ...], dtype: str) -> None:
    model = model_called(name, dtype)
    ids, source = texts_of(model)
    expected, decoding, read = model(ids, source), model.begin(source), 0
    for chunk in chunks:
        logits = decoding.step(ids[:, read : read + chunk])
        read += chunk
        assert_same(logits, expected[:, read - 1])
        assert logits.dtype == dtype
        assert decoding.length == read


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DECODERS)
def test_a_left_padded_batch_equals_each_text_alone(name: str, dtype: str) -> None:
    model = model_called(name, dtype)
    ids, source = texts_of(model)
    lengths = (1, 5, 6)
    keep = np.arange(6) >= 6 - np.array(lengths)[:, None]
    decoding = model.begin(source)
    decoding.step(ids[:, :4], keep[:, :4])  # still padding in the first sample
    steps = [decoding.step(ids[:, 4:6], keep[:, 4:6]), *(decoding.step(ids[:, [i]]) for i in range(6, T))]
    for b, length in enumerate(lengths):
        alone = model(ids[b : b + 1, 6 - length :], None if source is None else source[b : b + 1])
        for i, logits in enumerate(steps):
            assert_same(logits[b], alone[0, length - 1 + i])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
def test_samples_are_reordered_repeated_and_dropped(name: str, padded: bool, dtype: str) -> None:
    model = model_called(name, dtype)
    ids, source = texts_of(model)
    keep = np.ones((B, 4), bool)
    keep[1, 0] = not padded
    source_mask = None if source is None else Mask.from_keep(np.arange(6) < np.array([[6], [3], [5]]))
    decoding = model.begin(source, source_mask=source_mask)
    decoding.step(ids[:, :4], keep)
    for rows in ([2, 0, 0, 1], [3, 1], [0, 1, 0]):
        decoding.select(rows)
    origin = [1, 0, 1]  # the original sample of each row
    logits = decoding.step(ids[:, 4:6])
    for b, (row, new) in enumerate(zip(origin, ids[:, 4:6], strict=True)):
        text = np.concatenate((ids[row, :4][keep[row]], new))
        kept = None if source is None else source[row : row + 1, : [6, 3, 5][row]]
        assert_same(logits[b], model(text[None], kept)[0, -1])


def test_reordering_beams_of_one_source_copies_nothing() -> None:
    model = model_called("marian")
    ids, source = texts_of(model)
    assert source is not None
    decoding = model.begin(source)
    decoding.step(ids[:, :2])
    decoding.select([0, 0, 2, 2])
    memory = decoding._memory
    decoding.step(np.array([[3], [4], [5], [6]]))
    decoding.select([1, 0, 3, 3])
    assert decoding._memory is memory
    texts = np.column_stack([ids[[0, 0, 2, 2], :2], [4, 3, 6, 6], [7, 8, 9, 1]])
    assert_same(decoding.step(texts[:, -1:]), model(texts, source[[0, 0, 2, 2]])[:, -1])
    decoding.select([2, 0, 1, 3])
    assert decoding._memory is not memory


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
def test_crop_and_continue(name: str, padded: bool) -> None:
    model = model_called(name)
    ids, source = texts_of(model)
    decoding = model.begin(source)
    if padded:
        decoding.step(ids[:, :2], np.zeros((B, 2), bool))
        decoding.crop(0)
    decoding.step(ids[:, :5])
    decoding.step(ids[:, 5:9])
    decoding.crop(6)
    other = (ids[:, 6:] + 1) % model.config.vocab_size
    expected = model(np.concatenate((ids[:, :6], other), axis=1), source)
    assert_same(decoding.step(other[:, :3]), expected[:, 8])
    assert_same(decoding.step(other[:, 3:4]), expected[:, 9])
    decoding.crop(0)
    assert_same(decoding.step(ids), model(ids, source)[:, -1])


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("rows", [[1, 0, 2], [0, 0, 1, 1, 2], [1]])
def test_crop_to_zero_undoes_select(name: str, rows: list[int]) -> None:
    model = model_called(name)
    ids, source = texts_of(model)
    keep = np.ones((B, T), bool)
    keep[1, :2] = False
    decoding = model.begin(source)
    first = decoding.step(ids, keep)
    decoding.select(rows)
    decoding.step(ids[rows, :2])
    decoding.crop(0)
    assert_same(decoding.step(ids, keep), first)


def test_crop_restores_padding() -> None:
    model = model_called("llama")
    ids, _ = texts_of(model)
    decoding = model.begin()
    decoding.step(ids[:, :3], np.array([[False, True, True]] * B))
    decoding.step(ids[:, 3:6])
    decoding.crop(4)
    assert_same(decoding.step(ids[:, :2]), model(np.concatenate((ids[:, 1:4], ids[:, :2]), axis=1))[:, -1])


@pytest.mark.parametrize("name", ["gpt2", "window"])
def test_an_interrupted_step_can_be_repeated(name: str) -> None:
    model = model_called(name)
    ids, _ = texts_of(model)
    interrupted = True

    def attend(*qkv: np.ndarray, name: str, **options: Any) -> np.ndarray:
        if interrupted and name == "decoder.layers.1.self_attention" and qkv[0].shape[2] == 2:
            raise KeyboardInterrupt
        return attend_in_model(*qkv, name=name, **options)

    decoding = model.begin(attend=attend)
    decoding.step(ids[:, :5])
    with pytest.raises(KeyboardInterrupt):
        decoding.step(ids[:, 5:7])
    interrupted = False
    assert_same(decoding.step(ids[:, 5:7]), model(ids[:, :7])[:, -1])


@pytest.mark.parametrize("name", DECODERS)
def test_greedy_tokens_are_the_same(name: str) -> None:
    """Fast attention with a cache, and the reference without one."""
    model = model_called(name, "float32")
    ids, source = texts_of(model)
    decoding = model.begin(source, attend=attend_in_model)
    text, logits = ids[:, :2], decoding.step(ids[:, :2])
    for _ in range(20):
        newest = logits.argmax(-1)[:, None]
        assert newest.tolist() == model(text, source)[:, -1:].argmax(-1).tolist()
        text, logits = np.concatenate((text, newest), axis=1), decoding.step(newest)


def test_a_window_can_be_cropped_too() -> None:
    model = model_called("window")
    ids, _ = texts_of(model)
    decoding = model.begin()
    decoding.step(ids)
    decoding.crop(3)
    assert_same(decoding.step(ids[:, 3:4]), model(ids[:, :4])[:, -1])


def test_properties_of_a_decoding() -> None:
    model = model_called("gpt2")
    decoding = model.begin()
    assert (decoding.vocab_size, decoding.max_len, decoding.length) == (31, 29, 0)
    assert model_called("paper_2017").begin(np.ones((1, 2), int)).max_len is None


def wrong_steps() -> dict[str, tuple[str, Any]]:
    """By message key: a model, and a wrong call of a decoding that has read two columns of two samples."""
    ids = np.ones((2, 1), int)
    return {
        "ids-kind": ("gpt2", lambda d: d.step(ids * 0.5)),
        "ids-axes": ("gpt2", lambda d: d.step(ids[:, :0])),
        "ids-out-of-range": ("gpt2", lambda d: d.step(ids * 31)),
        "ids-too-long": ("gpt2", lambda d: d.step(np.ones((2, 30), int))),
        "decoding-full": ("gpt2", lambda d: d.step(np.ones((2, 28), int))),
        "batches-of-source": ("gpt2", lambda d: d.step(ids[:1])),
        "keep-shape": ("gpt2", lambda d: d.step(ids, keep=ids)),
        "rows-out-of-range": ("gpt2", lambda d: d.select([0, 2])),
        "crop-length": ("gpt2", lambda d: d.crop(3)),
    }


@pytest.mark.parametrize("key", wrong_steps())
def test_bad_input_is_refused_and_changes_nothing(key: str) -> None:
    name, act = wrong_steps()[key]
    model = model_called(name)
    decoding = model.begin()
    decoding.step(np.ones((2, 2), int))
    with pytest.raises(RegardError) as caught:
        act(decoding)
    assert caught.value.key == key
    assert_same(decoding.step(np.ones((2, 1), int)), model(np.ones((2, 3), int))[:, -1])


@pytest.mark.parametrize(
    ("name", "options", "key"),
    [
        ("bert", {}, "decoding-encoder"),
        ("vectors", {}, "decoding-vectors"),
        ("paper_2017", {}, "source-missing"),
        ("gpt2", {"source": np.ones((1, 2), int)}, "source-unneeded"),
        ("gpt2", {"source_mask": Mask.causal()}, "source-unneeded"),
        ("paper_2017", {"source": np.ones((1, 3), int), "source_mask": Mask.causal()}, "source-mask-keys"),
    ],
)
def test_errors_of_begin(name: str, options: dict[str, Any], key: str) -> None:
    with pytest.raises(RegardError) as caught:
        model_called(name).begin(**options)
    assert caught.value.key == key


def test_any_key_mask_may_be_a_source_mask() -> None:
    model = model_called("marian")
    ids, source = texts_of(model)
    for mask in (Mask.prefix(4), Mask.prefix(np.array([4, 4, 4])), ~Mask.from_keep(np.arange(6) >= 4)):
        logits = model.begin(source, source_mask=mask).step(ids)
        assert_same(logits, model(ids, present(source)[:, :4])[:, -1])
    assert model.begin(source, source_mask=Mask.prefix(9)).step(ids).shape == (3, 27)
