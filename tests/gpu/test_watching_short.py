"""watch on a GPU for short texts: calls that wait and are computed together; relevance; merged parts of a call."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from narrowing import present
from torch import Tensor, nn

import regard
from regard import See, Trace
from regard.functional.statistics import pooled_map
from regard.statistics_table import STATISTICS
from regard.trace.trace_merging import AXES, Split, merge_records

DEVICE = "cuda"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    # torch warns whenever it compiles; here products must be exact.
    pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning"),
]

EXACT = 1e-4
NEAR = 2e-2
"""`eager` rounds its scores and weights to bfloat16; we do not."""
EVERYTHING = See(map=16, max_score=True, entropy=True, received=True, top=3, distance=True)


@pytest.fixture(autouse=True)
def exact_products() -> Iterator[None]:
    """float32 products in float32: TF32 has ten bits."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def llama(groups: int, dtype: torch.dtype = torch.bfloat16) -> Any:
    sizes: dict[str, Any] = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 3, "head_dim": 64}
    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": groups}
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=99, max_position_embeddings=2048, **sizes, **heads)
    model: Any = transformers.LlamaForCausalLM(config)
    return model.to(DEVICE, dtype).eval().base_model


def ids(B: int, T: int) -> Tensor:
    return torch.randint(3, 99, (B, T), generator=torch.Generator().manual_seed(1)).to(DEVICE)


@pytest.mark.parametrize(("T", "map"), [(100, 256), (300, 16), (1024, 256), (1024, 16)])
@pytest.mark.parametrize("groups", [4, 2], ids=["MHA", "GQA"])
@torch.no_grad()
def test_calls_that_wait_equal_eager_and_exact_weights(groups: int, T: int, map: int) -> None:
    model, text = llama(groups), ids(2, T)
    wanted = model(text, use_cache=False).last_hidden_state
    with regard.watch(model, see=See(map=map)) as trace:
        assert torch.equal(model(text, use_cache=False).last_hidden_state, wanted)
        assert trace.calls  # type: ignore[attr-defined]
    with regard.watch(model, see=See(map=map, qk=True)) as exact:
        model(text, use_cache=False)
    model.set_attn_implementation("eager")
    eager = model(text, use_cache=False, output_attentions=True).attentions
    assert len(trace) == len(exact) == len(eager) == 3
    for record, other, weights in zip(trace, exact, eager, strict=True):
        assert record.name == other.name
        whole = other.weights()
        assert (present(record.map) - pooled_map(whole, map)).abs().max() <= EXACT
        assert (present(record.map) - pooled_map(weights.float(), map)).abs().max() <= NEAR
        assert (present(record.sink) - whole[..., 0].mean(-1)).abs().max() <= EXACT
        assert (present(record.lse) - other.lse).abs().max() <= EXACT


@torch.no_grad()
def test_a_watched_forward_waits_for_the_gpu_no_more_often_than_an_unwatched_one() -> None:
    model, text = llama(2), ids(2, 100)

    def waits(run: Callable[[], object]) -> int:
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("warn")
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                run()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        return sum("synchroniz" in str(one.message) for one in told)

    def watched() -> None:
        with regard.watch(model, lambda ids: [str(one) for one in ids]) as trace:
            model(text, use_cache=False)
        traces.append(trace)

    traces: list[Trace] = []
    watched()
    assert list(traces[0])  # computed here, not when the next watch begins
    assert waits(watched) <= waits(lambda: model(text, use_cache=False))
    assert traces[-1][0].key_tokens == tuple(tuple(map(str, row)) for row in text.tolist())


@pytest.mark.parametrize("layers", [[1], [0, 2]], ids=str)
@torch.no_grad()
def test_chosen_layers_equal_those_of_all(layers: list[int]) -> None:
    model, text = llama(2), ids(1, 300)
    found = []
    for chosen in (None, layers):
        with regard.watch(model, layers=chosen) as trace:
            model(text, use_cache=False)
            model(text[:, :200], use_cache=False)
        found.append(trace)
    assert found[1].names == [f"layers.{n}.self_attn{more}" for more in ("", "#1") for n in layers]
    for record in found[1]:
        torch.testing.assert_close(record.map, found[0][record.name].map, rtol=0, atol=1e-6)
        torch.testing.assert_close(record.lse, found[0][record.name].lse, rtol=0, atol=1e-6)


class Layer(nn.Module):
    """Attention that overwrites its q and k afterwards, if `overwrites`."""

    def __init__(self, overwrites: bool) -> None:
        super().__init__()
        self.overwrites, self.qkv = overwrites, nn.Linear(128, 256)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (-1, 32)).transpose(1, 2).split([4, 2, 2], 1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        for one in (q, k) if self.overwrites else ():
            one.zero_()
        return x + out.transpose(1, 2).flatten(2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@torch.no_grad()
def test_later_writes_change_nothing(dtype: torch.dtype) -> None:
    x = torch.randn(2, 130, 128, generator=torch.Generator().manual_seed(0)).to(DEVICE, dtype)
    traces: list[Trace] = []
    for overwrites in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(*(Layer(overwrites) for _ in range(3))).to(DEVICE, dtype)
        with regard.watch(model, see=EVERYTHING) as trace:
            model(x)
        traces.append(trace)
    for one, other in zip(*traces, strict=True):
        for statistic in STATISTICS:
            here, there = (statistic.arrays(getattr(each, statistic.name)) for each in (one, other))
            assert here.keys() == there.keys()
            assert all(torch.equal(here[name], there[name]) for name in here), statistic.name


def test_relevance_equals_autograd_through_eager() -> None:
    model, text = llama(2, torch.float32), ids(2, 70)
    model.set_attn_implementation("eager")
    out = model(text, use_cache=False, output_attentions=True)
    gradients = torch.autograd.grad(out.last_hidden_state[:, 40].max(-1).values.sum(), out.attentions)
    wanted = [(weights * each).clamp_min(0).detach() for weights, each in zip(out.attentions, gradients, strict=True)]
    model.set_attn_implementation("sdpa")
    with regard.watch(model, see=See(qk=True)) as trace:
        found = model(text, use_cache=False).last_hidden_state
    relevance = trace.relevance(found[:, 40].max(-1).values.sum())
    assert len(relevance) == 3
    for record, one in zip(relevance, wanted, strict=True):
        assert one.max() > 0
        assert (record.weights() - one).abs().max() <= EXACT * max(1.0, float(one.max())), record.name


@pytest.mark.parametrize("split", AXES)
def test_parts_on_one_device_merge_to_the_whole(split: Split) -> None:
    """Samples, heads or keys of a call in three unequal parts."""
    make = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(4, H, 150, 64, generator=make).to(DEVICE) for H in (8, 4, 4))
    visible = (torch.rand(4, 8, 150, 150, generator=make) < 0.7).tril() | torch.eye(150, dtype=torch.bool)
    visible = visible.to(DEVICE)  # every key is seen in every head: none is padding
    see = See(map=8, max_score=True, entropy=True, received=True, distance=True, qk=True)

    def recorded(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
        return present(regard.attend(q, k, v, mask=mask, see=see)[1])

    sizes = {"samples": [1, 2, 1], "heads": [1, 2, 1], "keys": [31, 70, 49]}[split]
    axis = {"samples": 0, "heads": 1, "keys": 2}[split]
    keys = zip(k.split(sizes, axis), v.split(sizes, axis), strict=True)
    if split == "keys":
        queries, masks = (q, q, q), visible.split(sizes, 3)
    else:
        wide = [2 * size for size in sizes] if split == "heads" else sizes
        queries, masks = q.split(wide, axis), visible.split(wide, axis)
    parts = [recorded(one, *pair, mask) for one, pair, mask in zip(queries, keys, masks, strict=True)]
    merged, whole = merge_records(parts, split, map=8), recorded(q, k, v, visible)
    assert merged.shape == whole.shape
    for statistic in STATISTICS:
        here, there = (statistic.arrays(getattr(each, statistic.name)) for each in (merged, whole))
        assert here.keys() == there.keys(), statistic.name
        for name in here:
            torch.testing.assert_close(here[name], there[name], rtol=EXACT, atol=EXACT, msg=name)
    torch.testing.assert_close(merged.weights(), whole.weights(), rtol=EXACT, atol=EXACT)
