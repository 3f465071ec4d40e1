"""The Hopper kernels without a GPU: they compile, they accept the right calls, and no tile is left out.

Started only by test_hopper.py in this folder: it replaces Triton's GPU driver for the whole process.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import triton
from hypothesis import given, settings
from hypothesis import strategies as st
from narrowing import Three, present, three
from torch import Tensor

from benchmarks.without_gpu import PROCESSORS, Kernel, compile_only
from regard.attention_call import AttentionCall
from regard.kernels.division import Bins
from regard.kernels.triton import hopper, pooling
from regard.kernels.triton.hopper import bins, launch
from regard.kernels.triton.hopper.config import (
    HEADS_TOGETHER,
    MAP_CONFIG,
    MIN_WAVES,
    RECEIVED_CONFIG,
    ROWS,
    SEARCH_CONFIG,
    WIDTHS,
    block_size_for,
    config_for,
)
from regard.kernels.triton.hopper.tiles import (
    HopperArguments,
    head_and_tile,
    key_tiles,
    query_tiles,
    tile_at,
    wave_count,
)
from regard.kernels.triton.pooling import max_strips
from regard.kernels.triton.support import ForwardRequest, ForwardResult, MaskBands, allocate_result

SHARED = 232_448
"""Bytes of shared memory available to a program."""
REGISTERS = 65_536
"""Registers of a processor. Besides consumers of 128 threads each, as many threads are reserved for the producer, with
24 registers each.
"""
FULL, CAUSAL = MaskBands(), MaskBands(right=0)


def tensors(
    T: int, S: int, E: int = 64, *, H: int = 4, G: int = 4, dtype: torch.dtype = torch.bfloat16
) -> Three[Tensor]:
    return three(torch.zeros(shape, dtype=dtype) for shape in ((1, H, T, E), (1, G, S, E), (1, G, S, E)))


def bins_of(T: int, S: int, height: int, width: int) -> Bins:
    return Bins(height, width, R=-(-T // height), C=-(-S // width))


# --- compiling --------------------------------------------------------------------------------------------------


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = SimpleNamespace(multi_processor_count=PROCESSORS)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)


@pytest.fixture
def compiled() -> Iterator[list[Any]]:
    with compile_only() as found:
        yield found


def forward(q: Tensor, k: Tensor, v: Tensor, bands: MaskBands, request: ForwardRequest) -> None:
    """A supported call, with tensors for the requested statistics."""
    call = AttentionCall(q, k, v, scale=0.1)
    assert launch.supports(call, bands, request.bins, with_values=True)
    launch.forward(call, bands, request, allocate_result(request, q, v))


def second(work: str, q: Tensor, k: Tensor, bands: MaskBands, request: ForwardRequest) -> None:
    """A second pass of a supported call."""
    call = AttentionCall(q, k, k, scale=0.1)
    assert launch.supports(call, bands, request.bins)
    lse = torch.zeros(q.shape[:3])
    if work == "map":
        assert request.bins is not None
        launch.map_of(call, bands, lse, request.bins)
    elif work == "received":
        launch.received_of(call, bands, lse)
    elif work == "thresholds":
        launch.thresholds_of(call, bands, request.top)
    else:
        assert [first for first, _ in launch.candidates_of(call, bands, lse)] == [0]


def assert_compiled(kernels: list[Any], dtype: torch.dtype) -> None:
    """The program uses tensor cores and TMA, and fits into shared memory."""
    (kernel,) = kernels
    program = kernel.asm["ptx"]
    assert ".target sm_90a" in program
    assert "wgmma.mma_async.sync.aligned" in program
    assert (".f32.f16.f16" if dtype == torch.float16 else ".f32.bf16.bf16") in program
    assert "cp.async.bulk.tensor" in program
    assert kernel.metadata.shared <= SHARED


class Variant(NamedTuple):
    E: int
    bands: MaskBands
    request: ForwardRequest = ForwardRequest()
    T: int = 512
    S: int = 512
    H: int = 4
    G: int = 4
    dtype: torch.dtype = torch.bfloat16

    def tensors(self) -> Three[Tensor]:
        return tensors(self.T, self.S, self.E, H=self.H, G=self.G, dtype=self.dtype)


WIDE, NARROW, ONE = bins_of(512, 512, 128, 128), bins_of(512, 512, 16, 32), bins_of(64, 64, 64, 128)
UNALIGNED, SMALL = bins_of(512, 512, 79, 79), bins_of(512, 512, 20, 24)
# Together these cover both widths, full and causal, each kind of map and none, with and without entropy. A size of 1 is
# a compile-time constant in Triton, which makes another kernel: one head, one key, one bin, an edge of one.
FORWARD = {
    "no statistics": Variant(64, FULL, dtype=torch.float16),
    "wide bins": Variant(128, CAUSAL, ForwardRequest(maximum=True, entropy=True, bins=WIDE), H=8, G=2),
    "narrow bins": Variant(64, FULL, ForwardRequest(bins=NARROW), H=8, G=2),
    "one key": Variant(128, FULL, ForwardRequest(lse=True), S=1, H=1, G=1, dtype=torch.float16),
    "one bin": Variant(64, MaskBands(right=1), ForwardRequest(entropy=True, bins=ONE), 64, 64, H=1, G=1),
    "a threshold": Variant(128, CAUSAL, ForwardRequest(entropy=True, bins=NARROW, top=8), H=8, G=2),
    "unaligned bins": Variant(64, CAUSAL, ForwardRequest(maximum=True, bins=UNALIGNED), H=8, G=2),
    "small unaligned bins": Variant(128, FULL, ForwardRequest(entropy=True, bins=SMALL, top=8), dtype=torch.float16),
}
SECOND_PASSES = {
    ("map", "wide"): Variant(128, CAUSAL, ForwardRequest(bins=WIDE), H=8, G=2),
    ("map", "narrow"): Variant(64, FULL, ForwardRequest(bins=NARROW), H=1, G=1, dtype=torch.float16),
    ("map", "unaligned"): Variant(128, CAUSAL, ForwardRequest(bins=UNALIGNED), H=8, G=2),
    ("received", "causal"): Variant(64, CAUSAL, H=8, G=2),
    ("thresholds", "full"): Variant(128, FULL, ForwardRequest(top=8), H=8, G=2),
    ("candidates", "causal"): Variant(64, CAUSAL, ForwardRequest(top=8), H=8, G=2),
    ("candidates", "one head"): Variant(128, FULL, ForwardRequest(top=1), H=1, G=1, dtype=torch.float16),
}


# Each takes seconds; those most similar to others run only in `make test-long`.
SIMILAR = {"one key", "one bin", "a threshold", ("map", "wide"), ("map", "narrow"), ("thresholds", "full")}


def short_or_long(names: Iterable[Any]) -> list[Any]:
    """Test parameters by name; a tuple is two arguments."""
    for_long = [pytest.mark.long]
    return [
        pytest.param(*(name if isinstance(name, tuple) else (name,)), marks=for_long if name in SIMILAR else [])
        for name in names
    ]


@pytest.mark.parametrize("name", short_or_long(FORWARD))
def test_the_forward_compiles(name: str, compiled: list[Any]) -> None:
    one = FORWARD[name]
    forward(*one.tensors(), one.bands, one.request)
    assert_compiled(compiled, one.dtype)


@pytest.mark.parametrize(("name", "block"), [("unaligned bins", 64), ("small unaligned bins", 16)])
def test_the_layout_of_a_lane_matches_the_assembly(name: str, block: int, compiled: list[Any]) -> None:
    """Two columns, then the row eight further on, then the next eight columns; blocks last."""
    one = FORWARD[name]
    forward(*one.tensors(), one.bands, one.request)
    program = compiled[0].asm["ttgir"]
    (layout,) = set(re.findall(rf"\.pred above.*: tensor<64x{128 // block}x4x{block // 4}xf32, (#\w+)>", program))
    (registers,) = re.findall(rf"^{layout} = #ttg\.linear<{{register = (\[\[.*?\]\]), lane", program, re.MULTILINE)
    within = [[0, 0, 0, 2 << i] for i in range((block // 8).bit_length() - 1)]
    blocks = [[0, 1 << i, 0, 0] for i in range((128 // block).bit_length() - 1)]
    assert json.loads(registers) == [[0, 0, 0, 1], [8, 0, 0, 0], *within, *blocks]


@pytest.mark.parametrize(("work", "how"), short_or_long(SECOND_PASSES))
def test_the_second_pass_compiles(work: str, how: str, compiled: list[Any]) -> None:
    one = SECOND_PASSES[work, how]
    second(work, *one.tensors()[:2], one.bands, one.request)
    assert_compiled(compiled, one.dtype)


@pytest.mark.parametrize("E", WIDTHS)
@pytest.mark.parametrize(
    "bins", [None, NARROW, WIDE, UNALIGNED, SMALL], ids=["no map", "narrow bins", "wide bins", "unaligned", "small"]
)
def test_a_config_fits_on_a_processor(E: int, bins: Bins | None) -> None:
    forwards = (
        config_for(E, ForwardRequest(bins=bins, entropy=entropy, top=top), is_causal=is_causal)
        for is_causal, entropy, top in product((False, True), (False, True), (0, 8))
    )
    for config in (*forwards, MAP_CONFIG, RECEIVED_CONFIG, SEARCH_CONFIG):
        assert config.rows == config.consumers * ROWS
        assert 128 * (config.consumers * config.registers + 24) <= REGISTERS


# --- supported calls --------------------------------------------------------------------------------------------


def is_supported(
    *x: Tensor,
    with_values: bool = True,
    bands: MaskBands = FULL,
    bins: Bins | None = None,
    scale: float = 0.1,
    softcap: float | None = None,
) -> bool:
    return launch.supports(AttentionCall(*three(x), scale=scale, softcap=softcap), bands, bins, with_values=with_values)


@pytest.mark.parametrize("with_values", [False, True], ids=["without values", "with values"])
def test_supported_calls(with_values: bool) -> None:
    def supports(*x: Tensor, **different: Any) -> bool:
        return is_supported(*x, with_values=with_values, **different)

    for E in (64, 128):
        for dtype in (torch.bfloat16, torch.float16):
            assert supports(*tensors(64, 64, E, dtype=dtype))
    assert supports(*tensors(1000, 17, H=8, G=2), bands=MaskBands(right=0, offset=-983))
    assert supports(*tensors(64, 1))
    assert supports(*tensors(64, 64), bands=MaskBands(right=5))
    assert supports(*tensors(100, 100), bins=bins_of(100, 100, 32, 32))
    apart = torch.zeros(2, 100, 4, 64, dtype=torch.bfloat16).transpose(1, 2)
    assert supports(apart, apart, apart)


@pytest.mark.parametrize(
    "different",
    [
        {"bands": MaskBands(left=3, right=0)},
        {"bands": MaskBands(queries=torch.zeros(1, 100), keys=torch.zeros(1, 100))},
        {"softcap": 30.0},
        {"scale": -0.1},
        {"scale": 0.0},
        {"bins": bins_of(100, 100, 25, 15)},
    ],
    ids=["window", "segments", "softcap", "negative scale", "no scale", "bins"],
)
def test_unsupported_options(different: dict[str, Any]) -> None:
    x = tensors(100, 100)
    assert is_supported(*x)
    assert not is_supported(*x, **different)
    assert not is_supported(*x, **different, with_values=False)


def test_unsupported_tensors() -> None:
    q, k, v = tensors(100, 100)
    mirrored = torch.zeros(1, 4, 64, 100, dtype=torch.bfloat16).mT
    two_bytes_on = torch.zeros(4 * 100 * 64 + 1, dtype=torch.bfloat16)[1:].view(1, 4, 100, 64)
    for case in (
        tensors(63, 100),
        tensors(100, 100, 80),
        tensors(100, 100, 256),
        tensors(100, 100, dtype=torch.float32),
        (q, k, torch.zeros(1, 4, 100, 128, dtype=torch.bfloat16)),
        (mirrored, k, v),
        (q, k[:, :1].expand(-1, 4, -1, -1), v),
        (q, k, two_bytes_on),
    ):
        assert not is_supported(*case), [(x.shape, x.stride(), x.dtype) for x in case]


@pytest.mark.parametrize(
    ("height", "width", "fit"), [(16, 16, True), (79, 157, True), (15, 128, False), (64, 15, False)]
)
def test_minimum_size_of_bins(height: int, width: int, fit: bool) -> None:
    assert launch.bins_supported(bins_of(999, 999, height, width)) == fit


def test_supported_devices_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    (major, first), (_, last) = hopper.VERSIONS

    def available(capability: tuple[int, int], version: str) -> bool:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setattr(triton, "__version__", version)
        hopper.is_available.cache_clear()
        return hopper.is_available(torch.device("cuda"))

    for minor in (first, last):
        assert available((9, 0), f"{major}.{minor}.0")
        assert available((9, 0), f"{major}.{minor}.0+git8a2b")
    for capability in ((8, 0), (8, 9), (10, 0), (12, 0)):
        assert not available(capability, f"{major}.{first}.0")
    for version in (f"{major}.{first - 1}.9", f"{major}.{last + 1}.0", f"{major}.{last}0.0", f"{major + 1}.{first}.0"):
        assert not available((9, 0), version)
    assert not hopper.is_available(torch.device("cpu"))


# --- schedule ---------------------------------------------------------------------------------------------------


def in_python(function: Any, programs: int = 1, own: int = 0) -> Callable[..., Any]:
    """A GPU function run in Python, with the few Gluon functions it needs, as program `own` of `programs`."""
    gl = SimpleNamespace(
        cdiv=lambda a, b: int((a + b - 1) / b),  # a GPU rounds towards zero
        minimum=min,
        maximum=max,
        where=lambda condition, a, b: a if condition else b,
        program_id=lambda axis: own,
        num_programs=lambda axis: programs,
    )
    return FunctionType(function.fn.__code__, {"gl": gl})


def args_for(
    T: int, S: int, *, heads: int = 1, first: int = 0, heads_together: int = HEADS_TOGETHER, edge: int = 0
) -> HopperArguments:
    return HopperArguments(first, heads, heads_together, heads, 1, T, S, edge, 1.0, None, None, None, None, None, None)


@given(
    heads=st.integers(1, 40),
    length=st.integers(1, 2000),
    rows=st.sampled_from([64, 128, 192]),
    programs=st.integers(1, 140),
    heads_together=st.integers(1, 20),
    first=st.integers(0, 3),
    causal=st.booleans(),
    by_keys=st.booleans(),
)
def test_every_tile_is_processed_once(
    heads: int, length: int, rows: int, programs: int, heads_together: int, first: int, causal: bool, by_keys: bool
) -> None:
    args = args_for(1, 1, heads=heads, first=first, heads_together=heads_together)
    processed: Counter[tuple[int, int]] = Counter()
    for own in range(programs):
        waves, tiles = in_python(wave_count, programs, own)(args, length, rows)
        for wave in range(waves):
            at = in_python(tile_at, programs, own)(wave, causal)
            if at < tiles:
                processed[in_python(head_and_tile)(args, at, length, rows, causal, by_keys)] += 1
    assert processed == Counter((first + head, tile) for head in range(heads) for tile in range(-(-length // rows)))


def test_the_longest_tiles_of_a_group_of_heads_come_first() -> None:
    args = args_for(500, 500, heads=5, heads_together=2)
    last_queries = [in_python(head_and_tile)(args, at, 500, 128, True, False) for at in range(20)]
    assert last_queries[:8] == [(0, 3), (1, 3), (0, 2), (1, 2), (0, 1), (1, 1), (0, 0), (1, 0)]
    assert last_queries[-4:] == [(4, 3), (4, 2), (4, 1), (4, 0)]
    first_keys = [in_python(head_and_tile)(args, at, 500, 128, True, True) for at in range(20)]
    assert first_keys == [(head, 3 - tile) for head, tile in last_queries]


LENGTHS = (1, 63, 64, 128, 129, 300, 640)
EDGES = [64 * tiles + more for tiles in range(-11, 12) for more in (-2, -1, 0, 1)]


@pytest.mark.parametrize("rows", [128, 192])
@pytest.mark.parametrize("T", LENGTHS)
def test_key_tiles_cover_the_visible_keys(T: int, rows: int) -> None:
    keys = 128
    for S, edge, causal, tile in product(LENGTHS, EDGES, (False, True), range(-(-T // rows))):
        tiles, n_masked = in_python(key_tiles)(args_for(T, S, edge=edge), tile, rows, keys, causal)
        # The number of keys visible to the first and the last query; a partial tile counts as whole.
        least, most = (max(0, min(S, i + edge + 1)) if causal else S for i in (tile * rows, (tile + 1) * rows - 1))
        assert tiles == max(1, -(-most // keys))
        assert 0 <= n_masked <= tiles
        assert (tiles - n_masked) * keys <= least, "a tile without a mask check is partly masked"


@pytest.mark.parametrize("rows", [128, 192])
@pytest.mark.parametrize("S", LENGTHS)
def test_query_tiles_cover_the_attending_queries(S: int, rows: int) -> None:
    queries = 128
    for T, edge, causal, tile in product(LENGTHS, EDGES, (False, True), range(-(-S // rows))):
        first, tiles, n_masked = in_python(query_tiles)(args_for(T, S, edge=edge), tile, rows, queries, causal)
        # The first query that attends to the first and to the last key; a partial tile counts as whole.
        some, everything = (max(0, j - edge) if causal else 0 for j in (tile * rows, (tile + 1) * rows - 1))
        assert first % queries == 0
        assert first + tiles * queries == -(-T // queries) * queries, "the last query is left out"
        assert first <= some or tiles == 0
        assert tiles > 0 or some >= T, "some query attends to it"
        assert 0 <= n_masked <= tiles
        assert tiles == n_masked or first + n_masked * queries >= everything, (
            "a tile without a mask check is partly masked"
        )


# --- unaligned bins ---------------------------------------------------------------------------------------------


def run_assembly(program: str, operands: list[float]) -> list[float]:
    """The first four operands after a piece of assembly; interprets the few PTX instructions it uses."""
    names: dict[str, float] = {f"${i}": number for i, number in enumerate(operands)}
    for statement in program.strip("{}").replace("\n", " ").split(";"):
        *guard, name, arguments = present(
            re.fullmatch(r"\s*(?:@(!?)above )?([a-z0-9.]*) ?(.*)", statement, re.S)
        ).groups()
        into, *given = arguments.split(", ") if name in ("mov.f32", "add.f32", "setp.le.s32") else ("",)
        if guard[0] is not None and bool(names["above"]) == (guard[0] == "!"):
            continue
        numbers = [names[one] if one in names else 0.0 if one.startswith("0f") else int(one) for one in given]
        if name == "mov.f32":
            names[into] = numbers[0]
        elif name == "add.f32":
            names[into] = sum(numbers)
        elif name == "setp.le.s32":
            names[into] = numbers[0] <= numbers[1]
    return [names[f"${i}"] for i in range(4)]


@given(block=st.sampled_from([16, 32, 64]), lane=st.integers(0, 3), begin=st.integers(-200, 63))
def test_a_lane_sums_its_columns_on_either_side_of_an_edge(block: int, lane: int, begin: int) -> None:
    pack = block // 2
    columns = [first + 2 * lane + i for first in range(0, block, 8) for row in (0, 1) for i in (0, 1)]
    numbers = [2.0**i for i in range(pack)]  # each subset has a different sum
    rows = [i // 2 % 2 for i in range(pack)]
    found = run_assembly(bins._split_sum_asm.fn(pack), [0.0] * pack + numbers + [begin - 2 * lane] * pack)
    expected = [
        sum(x for x, column, at in zip(numbers, columns, rows, strict=True) if at == row and (column >= begin) == above)
        for row in (0, 1)
        for above in (True, False)
    ]
    assert found == expected


class Numbers(np.ndarray):
    """A GPU tensor, as far as unaligned bins need it."""

    type = SimpleNamespace(layout=None)

    def permute(self, axes: tuple[int, ...]) -> "Numbers":
        return self.transpose(axes)

    def to(self, dtype: object) -> "Numbers":
        return self


def numbers(x: Any) -> Numbers:
    return np.asarray(x).view(Numbers)


def run_in_lanes(program: str, operands: str, arguments: list[Numbers], *_: object, pack: int, **__: object) -> Numbers:
    """Run the assembly for each block and lane of two rows."""
    x, begins = np.broadcast_arrays(*arguments)
    rows, blocks, lanes, each = x.shape
    assert operands.split(",") == ["=f"] * pack + ["f"] * pack + ["r"] * pack
    found = np.full(x.shape, np.nan)
    for row, block, lane in product(range(0, rows, 2), range(blocks), range(lanes)):
        own = x[row : row + 2, block, lane].reshape(2, each // 2, 2).swapaxes(0, 1).ravel()
        begin = int(begins[row, block, lane, 0])
        results = run_assembly(program, [0.0] * pack + list(own) + [begin] * pack)
        found[row : row + 2, block, lane, :2] = np.reshape(results, (2, 2))
    return numbers(found)


ON_CPU = SimpleNamespace(
    SliceLayout=lambda *_: None,
    BlockedLayout=lambda *_: None,
    minimum=min,
    cdiv=lambda a, b: -(-a // b),
    int64=None,
    arange=lambda first, end, layout: numbers(np.arange(first, end)),
    zeros_like=lambda x: numbers(np.zeros_like(x)),
    where=lambda *x: numbers(np.where(*x))[()],  # a scalar stays a scalar, which -= does not change elsewhere
    sum=lambda x, axis: numbers(np.sum(x, axis)),
    convert_layout=lambda x, layout: x,
    static_range=range,
    float32=None,
    inline_asm_elementwise=run_in_lanes,
)


@settings(max_examples=30)
@given(T=st.integers(1, 300), height=st.integers(16, 200), consumers=st.sampled_from([2, 3]), C=st.integers(1, 70))
def test_sums_of_unaligned_bins_of_queries(T: int, height: int, consumers: int, C: int) -> None:
    """Both GPU functions run in Python: consumers write the strips of one head, which are then summed."""
    map_bins = Bins(height, 1, R=-(-T // height), C=C)
    tiles = -(-T // (ROWS * consumers)) * consumers
    weights = np.zeros((tiles * ROWS, C))
    weights[:T] = np.random.default_rng(T).integers(1, 1000, (T, C))
    is_whole = ROWS % height == 0
    strips_per_head = map_bins.R if is_whole else max_strips(T, map_bins, ROWS)
    strips = np.full(strips_per_head * C, np.nan)

    def store(places: np.ndarray, x: np.ndarray, mask: np.ndarray) -> None:
        places, x, mask = np.broadcast_arrays(places, x, mask)
        strips[places[mask]] = x[mask]

    layout = launch._constants_for(map_bins)
    for row in range(0, tiles * ROWS, ROWS):
        scratch = np.vstack([weights[row : row + ROWS].T, np.full((64, ROWS), np.nan)])  # bins beyond the last

        def load(places: Numbers, mask: Numbers, other: float, scratch: np.ndarray = scratch) -> Numbers:
            return numbers(np.where(mask, scratch.ravel()[places], other))

        here = SimpleNamespace(**vars(ON_CPU), load=load, store=store)
        sum_bin_rows = FunctionType(bins.sum_bin_rows.fn.__code__, {"gl": here, "float": float})
        pool = SimpleNamespace(strips=0, strips_per_head=strips_per_head, bin_height=height, bin_width=1, bins=C)
        no_lse = numbers(np.zeros(ROWS))
        sum_bin_rows(pool, 0, numbers(0), row, no_lse, C, T, False, layout["PIECES"])
    found = strips.reshape(strips_per_head, C)
    if not is_whole:
        found = sum_all_strips(found, map_bins)
    expected = np.pad(weights[:T], ((0, map_bins.R * height - T), (0, 0))).reshape(map_bins.R, height, C).sum(1)
    assert (found == expected).all()


def sum_all_strips(strips: np.ndarray, map_bins: Bins) -> np.ndarray:
    """The result of `sum_strips`, one program after another."""
    sums = np.full(map_bins.R * map_bins.C, np.nan)

    def load(places: np.ndarray, mask: np.ndarray, other: float) -> np.ndarray:
        return np.where(mask, strips.ravel()[np.where(mask, places, 0)], other)

    def store(places: np.ndarray, x: np.ndarray, mask: np.ndarray) -> None:
        sums[places[mask]] = x[mask]

    for r in range(map_bins.R):
        tl = SimpleNamespace(
            program_id=lambda axis, r=r: r if axis == 0 else 0,
            cast=lambda x, dtype: x,
            int64=None,
            float32=None,
            arange=np.arange,
            zeros=lambda shape, dtype: np.zeros(shape),
            cdiv=lambda a, b: -(-a // b),
            minimum=min,
            load=load,
            store=store,
        )
        sum_strips = FunctionType(pooling._sum_strips_kernel.fn.__code__, {"tl": tl})
        sum_strips(0, 0, len(strips), map_bins.height, map_bins.R, map_bins.C, ROWS, 128)
    return sums.reshape(map_bins.R, map_bins.C)


@settings(max_examples=20)
@given(S=st.integers(1, 400), width=st.integers(16, 300), seed=st.integers(0, 9))
def test_sums_of_unaligned_bins_of_keys(S: int, width: int, seed: int) -> None:
    """Both GPU functions run in Python, over all tiles of two rows, from the last to the first."""
    stored: dict[int, Numbers] = {}

    def store(pool: Any, scratch: None, parts: Numbers, shift: None, first: int, bins: Numbers, *_: bool) -> None:
        for at, bin in enumerate(bins.ravel()):
            if bin < pool.bins:
                assert first + int(bin) not in stored
                stored[first + int(bin)] = parts[:, at].sum(-1)

    names = {
        "gl": ON_CPU,
        "_split_sum_asm": bins._split_sum_asm.fn,
        "_asm_operands": bins._asm_operands.fn,
        "store_bins": store,
    }
    names["bin_indices"] = FunctionType(bins.bin_indices.fn.__code__, names)
    split_at_edges, store_finished_bins = (
        FunctionType(one.fn.__code__, names) for one in (bins.split_at_edges, bins.store_finished_bins)
    )
    keys, block = 128, block_size_for(width)
    tiles = -(-S // keys)
    weights = np.zeros((2, tiles * keys))
    weights[:, :S] = np.random.default_rng(seed).integers(1, 1000, (2, S))  # sums of integers are exact
    pool = SimpleNamespace(bin_width=width, bins=-(-S // width))
    bin_sum, bin = numbers(np.zeros((2, 4))), (S - 1) // width
    edge = bin * width
    for start in range((tiles - 1) * keys, -1, -keys):
        p = numbers(weights[:, start : start + keys].copy())
        above, below, edge = split_at_edges(p, edge, width, start, block)
        bin_sum, bin = store_finished_bins(pool, None, above, below, None, bin_sum, bin, start, block, True, True)
        assert edge == bin * width, "both functions are at the same bin"
    assert bin == -1
    assert not bin_sum.any()
    assert sorted(stored) == list(range(pool.bins))
    for at, sums in stored.items():
        assert (sums == weights[:, at * width : (at + 1) * width].sum(1)).all()


@given(S=st.integers(1, 3000), width=st.integers(16, 700))
def test_at_most_one_unaligned_bin_begins_in_a_block(S: int, width: int) -> None:
    block, keys = block_size_for(width), 128
    assert keys % block == 0
    begins = Counter(bin * width // block for bin in range(-(-S // width)))
    assert max(begins.values()) == 1


@pytest.mark.parametrize("bins", [None, WIDE, NARROW, UNALIGNED], ids=["no map", "wide", "narrow", "unaligned"])
def test_heads_are_launched_one_by_one_if_the_cache_is_too_small(
    bins: Bins | None, monkeypatch: pytest.MonkeyPatch, processors: None
) -> None:
    """Each launch uses the head's own keys and values, and writes to its own part of the result."""
    launched: list[Any] = []
    written: list[int] = []
    kernel = Kernel(lambda grid, args, pool, q, k, v, **_: launched.append((args, q.base, k.base, v.base)))
    monkeypatch.setattr(launch, "forward_kernel", kernel)
    monkeypatch.setattr(launch, "sum_strips", lambda *arguments: written.append(arguments[-1].data_ptr()))
    monkeypatch.setattr(launch, "MIN_WAVES", 0)
    x = three(torch.cat([one, one]) for one in tensors(512, 512, H=4, G=2))
    one_head = 2 * x[1][0, 0].nbytes
    request = ForwardRequest(lse=True, maximum=True, entropy=True, bins=bins, top=8)
    monkeypatch.setattr(launch, "L2_BYTES", one_head)
    forward(*x, CAUSAL, request)
    assert [(args.first, args.heads) for args, *_ in launched] == [(0, 8)]
    launched.clear()
    written.clear()
    monkeypatch.setattr(launch, "L2_BYTES", one_head - 1)
    forward(*x, CAUSAL, request)
    assert all((args.first, args.heads, args.H) == (0, 1, 1) for args, *_ in launched)

    def steps(*places: int) -> list[int]:
        return [place - places[0] for place in places]

    for name in ("lse", "maximum", "entropy", "threshold"):
        assert steps(*(getattr(args, name).data_ptr() for args, *_ in launched)) == [512 * 4 * h for h in range(8)]
    for at, group_size in enumerate((1, 1, 2, 2)):
        places = ((args.out, *rest)[at].data_ptr() for args, *rest in launched)
        assert steps(*places) == [512 * 64 * 2 * (h // group_size) for h in range(8)]
    if written:
        assert bins is not None
        assert steps(*written) == [4 * bins.R * bins.C * h for h in range(8)]


def test_a_head_is_launched_alone_only_if_it_fills_the_processors(
    monkeypatch: pytest.MonkeyPatch, processors: None
) -> None:
    """A few queries with many keys are too few."""
    launched: list[int] = []
    monkeypatch.setattr(launch, "forward_kernel", Kernel(lambda grid, args, *_, **__: launched.append(args.heads)))
    monkeypatch.setattr(launch, "L2_BYTES", 0)
    rows = config_for(64, ForwardRequest(), is_causal=False).rows
    filling = PROCESSORS * MIN_WAVES * rows
    for T, alone in ((64, False), (filling - rows, False), (filling - rows + 1, True)):
        launched.clear()
        x = three(one.to("meta") for one in tensors(64, 64))
        q = x[0][:, :, :1].expand(-1, -1, T, -1)
        result = ForwardResult(out=torch.empty(q.shape, device="meta"))
        launch.forward(AttentionCall(q, *x[1:], scale=0.1), FULL, ForwardRequest(), result)
        assert launched == ([1] * 4 if alone else [4])


def test_all_heads_are_launched_in_groups(monkeypatch: pytest.MonkeyPatch, processors: None) -> None:
    launches: list[tuple[int, HopperArguments]] = []
    kernel = Kernel(lambda grid, args, *_, **__: launches.append((*grid, args)))
    monkeypatch.setattr(launch, "forward_kernel", kernel)
    monkeypatch.setattr(launch, "STRIP_LIMIT", 1)
    monkeypatch.setattr(launch, "sum_strips", lambda *_: None)
    forward(*tensors(512, 512, H=7, G=7), CAUSAL, ForwardRequest(bins=WIDE))
    config = config_for(64, ForwardRequest(bins=WIDE), is_causal=True)
    assert len(launches) > 1
    assert [head for _, args in launches for head in range(args.first, args.first + args.heads)] == list(range(7))
    assert all(programs == min(PROCESSORS, args.heads * -(-512 // config.rows)) for programs, args in launches)
