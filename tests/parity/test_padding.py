"""A text in a padded batch gives the same numbers as alone: every statistic, backend and path to a Record."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from narrowing import present, three
from torch import nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertModel,
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

import regard
from regard import Mask, See, attend
from regard.arrays import to_numpy
from regard.capture.huggingface import register
from regard.records import Record
from regard.trace import Trace

EVERYTHING = See(map=64, max_score=True, entropy=True, received=True, top=3, distance=True, values=True, qk=True)
TEXTS = [[5, 6, 7, 8, 9, 5, 6, 7, 8, 9], [11, 12, 11, 13], [7, 8, 9, 10, 7, 8, 9]]
LENGTH = 12
BACKENDS = ("blocked", "reference", "chunked", "eager")


def place(count: int, length: int, side: str) -> slice:
    return slice(length - count, length) if side == "left" else slice(0, count)


def assert_as_alone(found: Record, alone: Record, sample: int, rows: slice, cols: slice, atol: float = 1e-5) -> None:
    """Compare sample `sample` of a padded record, whose text is at rows and cols, with the record of the text alone."""

    def same(name: str, mine: Any, right: Any) -> None:
        np.testing.assert_allclose(to_numpy(mine), to_numpy(right), atol=atol, rtol=1e-5, err_msg=name)

    def empty(x: Any, part: slice, axis: int) -> Any:
        return np.delete(to_numpy(x), np.arange(part.start, part.stop), axis)

    if alone.map is not None:
        same("map", present(found.map)[sample, :, rows, cols], alone.map[0])
        assert not empty(present(found.map)[sample], rows, 1).any()
    for name, part in (("lse", rows), ("max_score", rows), ("entropy", rows), ("received", cols)):
        mine, right = getattr(found, name), getattr(alone, name)
        if right is not None:
            same(name, mine[sample][:, part], right[0])
            assert (empty(mine[sample], part, 1) == (-np.inf if name in ("lse", "max_score") else 0)).all(), name
    if alone.sink is not None:
        same("sink", present(found.sink)[sample], alone.sink[0])
    if alone.distance is not None:
        near = alone.distance.shape[-1]
        same("distance", present(found.distance)[sample, :, :near], alone.distance[0])
        assert not to_numpy(present(found.distance)[sample, :, near:]).any()
    if alone.top is not None:
        k = alone.top.weights.shape[-1]
        same("top", present(found.top).weights[sample, :, rows, :k], alone.top.weights[0])
        assert not empty(present(found.top).weights[sample], rows, 1).any()
    if alone.has_weights:
        same("weights", found.weights()[sample, :, rows, cols], alone.weights()[0])
        assert not empty(found.weights()[sample], rows, 1).any()


# --- attend -------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    more=st.integers(0, 3),
    side=st.sampled_from(("left", "right")),
    causal=st.booleans(),
    bins=st.sampled_from((3, 64)),
    backend=st.sampled_from(BACKENDS),
    seed=st.integers(0, 9),
)
def test_attend(lengths: list[int], more: int, side: str, causal: bool, bins: int, backend: str, seed: int) -> None:
    B, T = len(lengths), max(lengths) + more
    q, k, v = np.random.default_rng(seed).normal(size=(3, B, 2, T, 3))
    keep = np.zeros((B, T), bool)
    for sample, count in enumerate(lengths):
        keep[sample, place(count, T, side)] = True
    see = See(map=bins, max_score=True, entropy=True, received=True, top=2, distance=True, qk=True)

    def observed(mask: Mask | None, *arrays: np.ndarray) -> Record:
        if causal:
            mask = Mask.causal() if mask is None else Mask.causal() & mask
        given_arrays = three(x if backend in ("blocked", "reference") else torch.tensor(x) for x in arrays)
        return attend(*given_arrays, mask=mask, see=see, backend=backend)[1]

    found = observed(Mask.from_keep(keep), q, k, v)
    for sample, count in enumerate(lengths):
        at = place(count, T, side)
        alone = observed(None, *(x[sample : sample + 1, :, at] for x in (q, k, v)))
        if bins < T:  # its bins are those of the padded length; the mean over the text's queries is equal
            weights = to_numpy(found.weights())[sample]
            high = -(-T // bins)
            for r in range(present(found.map).shape[-2]):
                text = weights[:, r * high : (r + 1) * high][:, keep[sample, r * high : (r + 1) * high]]
                mean = text.mean(1) if text.shape[1] else np.zeros((2, T))
                pooled = np.add.reduceat(mean, np.arange(0, T, high), axis=-1)
                np.testing.assert_allclose(to_numpy(present(found.map)[sample, :, r]), pooled, atol=1e-9)
            alone = alone.changed(map=None)
        assert_as_alone(found, alone, sample, at, at, atol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_attend_cross_attention(backend: str, side: str) -> None:
    """The source is padded, the target is not, though both have the same length."""
    q, k, v = np.random.default_rng(0).normal(size=(3, 2, 2, 6, 3))
    keep = np.ones((2, 6), bool)
    keep[1] = False
    keep[1, place(4, 6, side)] = True

    def observed(mask: Mask | None, *arrays: np.ndarray) -> Record:
        given_arrays = three(x if backend in ("blocked", "reference") else torch.tensor(x) for x in arrays)
        return attend(*given_arrays, mask=mask, see=EVERYTHING, backend=backend, kind="cross")[1]

    found, at = observed(Mask.from_keep(keep), q, k, v), place(4, 6, side)
    alone = observed(None, q[1:], k[1:, :, at], v[1:, :, at])
    assert_as_alone(found, alone, 1, slice(0, 6), at, atol=1e-9)
    assert found.kind == "cross"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_masked_position_is_not_padding(backend: str) -> None:
    """A band, and an array that masks each query's own key, mask the last key for all queries: it is still a token."""
    x: Any = np.random.default_rng(0).normal(size=(1, 1, 5, 3))
    x = x if backend in ("blocked", "reference") else torch.tensor(x)
    before = np.tril(np.ones((5, 5), bool), -1)
    _, record = attend(x, x, x, mask=before if backend in ("blocked", "reference") else torch.tensor(before), see=See())
    assert record.padding is None
    for mask in (Mask.causal(), Mask.window(1, 0)):
        assert attend(x, x, x, mask=mask, see=See(), backend=backend)[1].padding is None


def test_a_bias_shows_padding_too() -> None:
    x = np.random.default_rng(0).normal(size=(1, 1, 5, 3))
    hiding = np.zeros((1, 1, 5, 5))
    hiding[..., 3:] = -1e9
    for backend in BACKENDS:
        given_arrays = three(x if backend in ("blocked", "reference") else torch.tensor(x) for _ in range(3))
        bias = hiding if backend in ("blocked", "reference") else torch.tensor(hiding)
        found = attend(*given_arrays, bias=bias, see=EVERYTHING, backend=backend)[1]
        alone = attend(*three(y[:, :, :3] for y in given_arrays), see=EVERYTHING, backend=backend)[1]
        assert_as_alone(found, alone, 0, slice(0, 3), slice(0, 3), atol=1e-9)


def test_gradients_of_statistics_ignore_padding() -> None:
    x = torch.randn(1, 2, 5, 3, dtype=torch.float64, requires_grad=True)
    keep = torch.tensor([[True, True, True, False, False]])
    see = See(map=2, entropy=True, differentiable=True)
    _, found = attend(x, x, x, mask=Mask.from_keep(keep), see=see)
    (present(found.map).square().sum() + present(found.entropy).sum() + present(found.lse)[..., :3].sum()).backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert (x.grad[:, :, 3:] == 0).all()
    assert (x.grad[:, :, :3] != 0).any()


def test_non_finite_padding_does_not_change_statistics() -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 5, 3))
    spoiled = x.copy()
    spoiled[:, :, 3:] = np.nan
    keep = Mask.from_keep(np.array([True, True, True, False, False]))
    for backend in BACKENDS:
        pair = [y if backend in ("blocked", "reference") else torch.tensor(y) for y in (x, spoiled)]
        clean, found = (attend(y, y, y, mask=keep, see=EVERYTHING, backend=backend)[1] for y in pair)
        for name in ("map", "lse", "max_score", "entropy", "received", "sink", "distance"):
            np.testing.assert_array_equal(to_numpy(getattr(clean, name)), to_numpy(getattr(found, name)))


# --- watched models -----------------------------------------------------------------------------------------


def padded(texts: list[list[int]], side: str, length: int = LENGTH) -> torch.Tensor:
    pads = [[0] * (length - len(text)) for text in texts]
    return torch.tensor([p + t if side == "left" else t + p for p, t in zip(pads, texts, strict=True)])


def family(name: str, implementation: str) -> Any:
    torch.manual_seed(0)
    common: dict[str, Any] = {"vocab_size": 50, "attn_implementation": implementation}
    wide: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    made: nn.Module
    if name == "gpt2":
        made = GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=1, **common))
    elif name == "llama":
        made = LlamaForCausalLM(LlamaConfig(num_key_value_heads=2, **wide, **common))
    elif name == "mistral":
        made = MistralForCausalLM(MistralConfig(num_key_value_heads=2, sliding_window=4, **wide, **common))
    elif name == "bloom":
        made = BloomForCausalLM(BloomConfig(vocab_size=50, hidden_size=32, n_layer=2, n_head=4))
    else:
        made = BertModel(BertConfig(**wide, **common))
    for weights in made.parameters():
        weights.data *= 2  # not quite uniform
    return made.eval()


def ran(made: nn.Module, ids: torch.Tensor, see: See) -> Trace:
    keep = (ids != 0).long()
    more = {} if isinstance(made, BloomForCausalLM) else {"position_ids": (keep.cumsum(1) - 1).clamp_min(0)}
    with torch.no_grad(), regard.watch(made, see=see) as trace:
        made(ids, attention_mask=keep, **more)
    return trace


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    ("name", "implementation"),
    [*((name, one) for name in ("gpt2", "llama", "bert", "mistral") for one in ("sdpa", "eager")), ("bloom", "eager")],
)
def test_watched_models(name: str, implementation: str, side: str) -> None:
    made = family(name, implementation)
    trace = ran(made, padded(TEXTS, side), EVERYTHING)
    for sample, text in enumerate(TEXTS):
        at = place(len(text), LENGTH, side)
        for found, alone in zip(trace, ran(made, torch.tensor([text]), EVERYTHING), strict=True):
            assert_as_alone(found, alone, sample, at, at)
    rolled = trace.rollout()[0]
    short = ran(made, torch.tensor([TEXTS[1]]), EVERYTHING).rollout()[0]
    at = place(4, LENGTH, side)
    np.testing.assert_allclose(rolled.weights()[1, 0, at, at], short.weights()[0, 0], atol=1e-5)
    assert not np.delete(rolled.weights()[1, 0], np.arange(at.start, at.stop), 0).any()


@pytest.mark.parametrize("side", ["left", "right"])
def test_in_blocks_of_rows(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls too large for their weights to be computed at once."""
    monkeypatch.setattr("regard.dispatch.observation.SMALL", 0)
    made = family("llama", "sdpa")
    trace = ran(made, padded(TEXTS, side), EVERYTHING)
    for sample, text in enumerate(TEXTS):
        at = place(len(text), LENGTH, side)
        for found, alone in zip(trace, ran(made, torch.tensor([text]), EVERYTHING), strict=True):
            assert_as_alone(found, alone, sample, at, at)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_hugging_face_implementation(side: str) -> None:
    register(see=EVERYTHING, name="regard-padding")
    made = family("bert", "sdpa")
    made.set_attn_implementation("regard-padding")
    ids = padded(TEXTS, side)
    with torch.no_grad():
        found = made(ids, attention_mask=(ids != 0).long(), output_attentions=True).attentions
    assert [list(map(bool, row)) for row in found[0].padding.queries] == (ids != 0).tolist()
    at = place(4, LENGTH, side)
    np.testing.assert_allclose(found[0].received[1].sum(-1), 4.0, atol=1e-5)
    assert not np.delete(to_numpy(found[0].map[1]), np.arange(at.start, at.stop), 1).any()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_torch_encoder_with_and_without_its_fused_path() -> None:
    """With padding it nests its tensors, and passes only the lengths."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(2, 6, 16)
    blocked = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    see = replace(EVERYTHING, values=False)
    for gradient in (False, True):
        with torch.set_grad_enabled(gradient):
            with regard.watch(model, see=see) as trace:
                model(x, src_key_padding_mask=blocked)
            with regard.watch(model, see=see) as short:
                model(x[1:, :4])
        for found, alone in zip(trace, short, strict=True):
            assert_as_alone(found, alone, 1, slice(0, 4), slice(0, 4))


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_called_directly() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    class Flexible(nn.Module):
        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            size = x.shape[2]
            mask = create_block_mask(lambda b, h, i, j: j < lengths[b], len(x), None, size, size, device="cpu")
            return flex_attention(x, x, x, block_mask=mask)

    x = torch.randn(2, 2, 6, 16)
    model = Flexible()
    with torch.no_grad(), regard.watch(model, see=EVERYTHING) as trace:
        model(x, torch.tensor([6, 4]))
    with torch.no_grad(), regard.watch(model, see=EVERYTHING) as short:
        model(x[1:, :, :4].contiguous(), torch.tensor([4]))
    assert_as_alone(trace[0], short[0], 1, slice(0, 4), slice(0, 4))


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_encoder_decoder_and_cross_attention(implementation: str) -> None:
    """Sources and targets are padded on the right. T5 starts from the padding id; targets' padding is not masked."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"vocab_size": 50, "d_model": 32, "attn_implementation": implementation}
    t5 = T5Config(d_kv=8, d_ff=64, num_layers=2, num_heads=4, pad_token_id=0, **sizes)
    t5.decoder_start_token_id = 0
    heads: dict[str, Any] = {
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_layers": 2,
        "decoder_layers": 2,
    }
    wide: dict[str, Any] = {
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    bart = BartConfig(decoder_start_token_id=2, **heads, **wide, **sizes)
    for made, start in ((T5ForConditionalGeneration(t5).eval(), 0), (BartForConditionalGeneration(bart).eval(), 2)):
        sources, targets = TEXTS[:2], [[start, 21, 22], [start, 23, 24, 25, 26]]
        long, short = padded(sources, "right"), padded(targets, "right", 8)

        def run(source: torch.Tensor, target: torch.Tensor, made: nn.Module = made) -> Trace:
            with torch.no_grad(), regard.watch(made, see=EVERYTHING) as trace:
                made(input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target)
            return trace

        trace = run(long, short)
        assert {record.kind for record in trace} == {"encoder", "decoder", "cross"}
        for sample in range(2):
            alone = run(torch.tensor([sources[sample]]), torch.tensor([targets[sample]]))
            for found, right in zip(trace, alone, strict=True):
                T, S = right.shape[2:]
                assert_as_alone(found, right, sample, slice(0, T), slice(0, S))


def test_ids_show_padding_without_a_mask() -> None:
    """A decoder without a padding mask: no query of a text sees what follows it."""
    made = family("llama", "sdpa")
    made.config.pad_token_id = 0
    with torch.no_grad(), regard.watch(made, see=EVERYTHING) as trace:
        made(padded(TEXTS, "right"))
    for sample, text in enumerate(TEXTS):
        with torch.no_grad(), regard.watch(made, see=EVERYTHING) as short:
            made(torch.tensor([text]))
        at = slice(0, len(text))
        for found, alone in zip(trace, short, strict=True):
            assert_as_alone(found, alone, sample, at, at)


def test_the_padding_index_of_an_embedding_is_used() -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(50, 16, padding_idx=0)
            self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            x = self.tokens(ids)
            hidden = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
            return self.attention(x, x, x, attn_mask=hidden, need_weights=False)[0]

    torch.manual_seed(0)
    model = Small().eval()
    with regard.watch(model, see=EVERYTHING) as trace:
        model(padded(TEXTS, "right"))
    with regard.watch(model, see=EVERYTHING) as short:
        model(torch.tensor([TEXTS[1]]))
    assert_as_alone(trace[0], short[0], 1, slice(0, 4), slice(0, 4))


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_generation_from_a_padded_prompt(name: str, cache: str) -> None:
    made = family(name, "sdpa")
    options: dict[str, Any] = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    options["cache_implementation"] = None if cache == "dynamic" else cache
    see = See(map=64, entropy=True, received=True, distance=True)

    def written(ids: torch.Tensor) -> tuple[Trace, Trace]:
        with torch.no_grad(), regard.watch(made, see=see) as trace:
            out = made.generate(ids, attention_mask=(ids != 0).long(), **options)
        return trace, trace.stitched(out)

    steps, whole = written(padded(TEXTS[:2], "left"))
    alone_steps, alone = written(torch.tensor([TEXTS[1]]))
    for found, right in zip(steps, alone_steps, strict=True):
        for field in ("sink", "entropy"):
            rows = slice(found.shape[2] - right.shape[2], None) if field == "entropy" else slice(None)
            mine = to_numpy(getattr(found, field))[1][..., rows]
            np.testing.assert_allclose(mine, to_numpy(getattr(right, field))[0], atol=1e-5, err_msg=field)
        near = min(present(found.distance).shape[-1], present(right.distance).shape[-1])
        np.testing.assert_allclose(
            present(found.distance)[1, :, :near], present(right.distance)[0, :, :near], atol=1e-5
        )
    for found, right in zip(whole, alone, strict=True):
        length = right.shape[-1]
        at = slice(found.shape[-1] - length, found.shape[-1])
        np.testing.assert_allclose(present(found.sink)[1], present(right.sink)[0], atol=1e-5)
        np.testing.assert_allclose(present(found.map)[1, :, at, at], present(right.map)[0], atol=1e-5)


def test_a_padded_trace_is_saved_and_read(tmp_path: Any) -> None:
    trace = ran(family("llama", "sdpa"), padded(TEXTS, "left"), EVERYTHING)
    trace.save(tmp_path / "padded.safetensors", qk=True)
    again = regard.read_trace(tmp_path / "padded.safetensors")
    for found, right in zip(again, trace, strict=True):
        for mine, theirs in zip(present(found.padding), present(right.padding), strict=True):
            np.testing.assert_array_equal(mine, to_numpy(theirs))
        np.testing.assert_allclose(found.weights(), to_numpy(right.weights()), atol=1e-6)
        np.testing.assert_array_equal(again.measure("sink"), trace.measure("sink"))


def test_keys_that_no_head_chooses_are_not_padding() -> None:
    """The last key may be among no query's top keys, in any head: the last query is still text."""

    class Strongest(nn.Module):
        num_heads = 4

        def forward(self, scores: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            least = scores.topk(2).values[..., -1:]
            return scores.masked_fill(scores < least, -torch.inf).softmax(-1) @ v

    torch.manual_seed(0)
    causal = torch.ones(8, 8, dtype=torch.bool).tril()
    scores = torch.randn(6, 4, 8, 8).masked_fill(~causal, -1e30)
    scores[:, :, -1, -1] = -5  # never chosen
    model = Strongest()
    with torch.no_grad(), regard.watch(model) as trace:
        model(scores, torch.randn(6, 4, 8, 3))
    assert trace[0].padding is None
    torch.testing.assert_close(present(trace[0].map).sum(-1), torch.ones(6, 4, 8))
