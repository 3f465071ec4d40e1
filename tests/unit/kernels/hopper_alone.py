"""The kernels for Hopper GPUs, without one: that they compile, which calls they take, and that no tile is left out.

Started by test_hopper.py beside it, and by nobody else: what Triton takes for the GPU stays replaced.
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
from torch import Tensor

from benchmarks.without_gpu import PROCESSORS, Kernel, compiled_instead
from regard.kernels.tiles import Bins
from regard.kernels.triton import hopper, pooling
from regard.kernels.triton.hopper import bins, launch, unaligned_bins
from regard.kernels.triton.hopper import launch as room
from regard.kernels.triton.hopper.config import (
    POOLING,
    RECEIVING,
    ROWS,
    SEARCHING,
    TOGETHER,
    TURNS,
    WIDTHS,
    block_for,
    crew_for,
)
from regard.kernels.triton.hopper.scheduler import Task, keys_of, place_of, queries_of, tile_at, turns_of
from regard.kernels.triton.mask_bands import Sight
from regard.kernels.triton.pooling import strips_of_head
from regard.kernels.triton.support import Asked, Told, room_for

SHARED = 232_448
"""Bytes of shared memory that a program may have."""
REGISTERS = 65_536
"""Of a processor. Beside consumers of 128 threads each, as many are set aside for the producer, with 24 each."""
FULL, CAUSAL = Sight(), Sight(right=0)


def tensors(
    T: int, S: int, E: int = 64, *, H: int = 4, G: int = 4, dtype: torch.dtype = torch.bfloat16
) -> list[Tensor]:
    return [torch.zeros(shape, dtype=dtype) for shape in ((1, H, T, E), (1, G, S, E), (1, G, S, E))]


def bins_of(T: int, S: int, high: int, wide: int) -> Bins:
    return Bins(high, wide, R=-(-T // high), C=-(-S // wide))


# --- compiling --------------------------------------------------------------------------------------------------


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = SimpleNamespace(multi_processor_count=PROCESSORS)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)


@pytest.fixture
def compiled() -> Iterator[list[Any]]:
    with compiled_instead() as found:
        yield found


def forward(q: Tensor, k: Tensor, v: Tensor, sight: Sight, asked: Asked) -> None:
    """A call that fits, with room for what it is asked for."""
    assert launch.fits(q, k, v, sight=sight, scale=0.1, softcap=None, bins=asked.bins)
    launch.forward(q, k, v, sight, room_for(asked, q, v), scale=0.1, asked=asked)


def second(work: str, q: Tensor, k: Tensor, sight: Sight, asked: Asked) -> None:
    """A second pass of a call that fits."""
    assert launch.fits(q, k, sight=sight, scale=0.1, softcap=None, bins=asked.bins)
    lse = torch.zeros(q.shape[:3])
    if work == "map":
        assert asked.bins is not None
        launch.map_of(q, k, lse, sight, scale=0.1, bins=asked.bins)
    elif work == "received":
        launch.received_of(q, k, lse, sight, scale=0.1)
    elif work == "thresholds":
        launch.thresholds_of(q, k, sight, top=asked.top)
    else:
        assert [first for first, _ in launch.survivors_of(q, k, lse, sight)] == [0]


def assert_compiled(kernels: list[Any], dtype: torch.dtype) -> None:
    """For the tensor cores, by the copy engine, in the memory there is."""
    (kernel,) = kernels
    program = kernel.asm["ptx"]
    assert ".target sm_90a" in program
    assert "wgmma.mma_async.sync.aligned" in program
    assert (".f32.f16.f16" if dtype == torch.float16 else ".f32.bf16.bf16") in program
    assert "cp.async.bulk.tensor" in program
    assert kernel.metadata.shared <= SHARED


class Variant(NamedTuple):
    E: int
    sight: Sight
    asked: Asked = Asked()
    T: int = 512
    S: int = 512
    H: int = 4
    G: int = 4
    dtype: torch.dtype = torch.bfloat16

    def tensors(self) -> list[Tensor]:
        return tensors(self.T, self.S, self.E, H=self.H, G=self.G, dtype=self.dtype)


WIDE, NARROW, ONE = bins_of(512, 512, 128, 128), bins_of(512, 512, 16, 32), bins_of(64, 64, 64, 128)
ANYWHERE, SMALL = bins_of(512, 512, 79, 79), bins_of(512, 512, 20, 24)
# Together: both widths, full and causal, with each kind of map and with none, with entropy and without. A number 1 is
# known to Triton when it compiles, which makes another kernel: one head, one key, one bin, an edge of one.
FORWARD = {
    "nothing asked": Variant(64, FULL, dtype=torch.float16),
    "wide bins": Variant(128, CAUSAL, Asked(entropy=True, bins=WIDE), H=8, G=2),
    "narrow bins": Variant(64, FULL, Asked(bins=NARROW), H=8, G=2),
    "one key": Variant(128, FULL, Asked(lse=True), S=1, H=1, G=1, dtype=torch.float16),
    "one bin": Variant(64, Sight(right=1), Asked(entropy=True, bins=ONE), 64, 64, H=1, G=1),
    "a threshold": Variant(128, CAUSAL, Asked(entropy=True, bins=NARROW, top=8), H=8, G=2),
    "bins anywhere": Variant(64, CAUSAL, Asked(bins=ANYWHERE), H=8, G=2),
    "small bins anywhere": Variant(128, FULL, Asked(entropy=True, bins=SMALL, top=8), dtype=torch.float16),
}
AFTERWARDS = {
    ("map", "wide"): Variant(128, CAUSAL, Asked(bins=WIDE), H=8, G=2),
    ("map", "narrow"): Variant(64, FULL, Asked(bins=NARROW), H=1, G=1, dtype=torch.float16),
    ("map", "anywhere"): Variant(128, CAUSAL, Asked(bins=ANYWHERE), H=8, G=2),
    ("received", "causal"): Variant(64, CAUSAL, H=8, G=2),
    ("thresholds", "full"): Variant(128, FULL, Asked(top=8), H=8, G=2),
    ("survivors", "causal"): Variant(64, CAUSAL, Asked(top=8), H=8, G=2),
    ("survivors", "one head"): Variant(128, FULL, Asked(top=1), H=1, G=1, dtype=torch.float16),
}


# Each takes seconds; those that are most alike to others are left to `make test-long`.
ALIKE = {"one key", "one bin", "a threshold", ("map", "wide"), ("map", "narrow"), ("thresholds", "full")}


def quick_or_long(names: Iterable[Any]) -> list[Any]:
    """Cases of a test, by name; of pairs each is two arguments."""
    for_long = [pytest.mark.long]
    return [
        pytest.param(*(name if isinstance(name, tuple) else (name,)), marks=for_long if name in ALIKE else [])
        for name in names
    ]


@pytest.mark.parametrize("name", quick_or_long(FORWARD))
def test_the_forward_compiles(name: str, compiled: list[Any]) -> None:
    one = FORWARD[name]
    forward(*one.tensors(), one.sight, one.asked)
    assert_compiled(compiled, one.dtype)


@pytest.mark.parametrize(("name", "block"), [("bins anywhere", 64), ("small bins anywhere", 16)])
def test_numbers_of_a_lane_lie_in_the_order_that_the_assembly_takes(name: str, block: int, compiled: list[Any]) -> None:
    """Two columns, then the row eight further on, then the next eight columns; blocks last."""
    one = FORWARD[name]
    forward(*one.tensors(), one.sight, one.asked)
    program = compiled[0].asm["ttgir"]
    (layout,) = set(re.findall(rf"\.pred above.*: tensor<64x{128 // block}x4x{block // 4}xf32, (#\w+)>", program))
    (registers,) = re.findall(rf"^{layout} = #ttg\.linear<{{register = (\[\[.*?\]\]), lane", program, re.MULTILINE)
    within = [[0, 0, 0, 2 << i] for i in range((block // 8).bit_length() - 1)]
    blocks = [[0, 1 << i, 0, 0] for i in range((128 // block).bit_length() - 1)]
    assert json.loads(registers) == [[0, 0, 0, 1], [8, 0, 0, 0], *within, *blocks]


@pytest.mark.parametrize(("work", "how"), quick_or_long(AFTERWARDS))
def test_the_second_pass_compiles(work: str, how: str, compiled: list[Any]) -> None:
    one = AFTERWARDS[work, how]
    second(work, *one.tensors()[:2], one.sight, one.asked)
    assert_compiled(compiled, one.dtype)


@pytest.mark.parametrize("E", WIDTHS)
@pytest.mark.parametrize(
    "bins", [None, NARROW, WIDE, ANYWHERE, SMALL], ids=["no map", "narrow bins", "wide bins", "anywhere", "small"]
)
def test_a_crew_finds_room_on_a_processor(E: int, bins: Bins | None) -> None:
    forwards = (
        crew_for(E, Asked(bins=bins, entropy=entropy, top=top), is_causal=is_causal)
        for is_causal, entropy, top in product((False, True), (False, True), (0, 8))
    )
    for crew in (*forwards, POOLING, RECEIVING, SEARCHING):
        assert crew.rows == crew.consumers * ROWS
        assert 128 * (crew.consumers * crew.registers + 24) <= REGISTERS


# --- which calls ------------------------------------------------------------------------------------------------

PLAIN: dict[str, Any] = {"sight": FULL, "scale": 0.1, "softcap": None, "bins": None}


@pytest.mark.parametrize("count", [2, 3], ids=["without values", "with values"])
def test_calls_that_fit(count: int) -> None:
    def fits(*x: Tensor, **different: Any) -> bool:
        return launch.fits(*x[:count], **PLAIN | different)

    for E in (64, 128):
        for dtype in (torch.bfloat16, torch.float16):
            assert fits(*tensors(64, 64, E, dtype=dtype))
    assert fits(*tensors(1000, 17, H=8, G=2), sight=Sight(right=0, offset=-983))
    assert fits(*tensors(64, 1))
    assert fits(*tensors(64, 64), sight=Sight(right=5))
    assert fits(*tensors(100, 100), bins=bins_of(100, 100, 32, 32))
    apart = torch.zeros(2, 100, 4, 64, dtype=torch.bfloat16).transpose(1, 2)
    assert fits(apart, apart, apart)


@pytest.mark.parametrize(
    "different",
    [
        {"sight": Sight(left=3, right=0)},
        {"sight": Sight(queries=torch.zeros(1, 100), keys=torch.zeros(1, 100))},
        {"softcap": 30.0},
        {"scale": -0.1},
        {"scale": 0.0},
        {"bins": bins_of(100, 100, 25, 15)},
    ],
    ids=["window", "segments", "softcap", "negative scale", "no scale", "bins"],
)
def test_calls_that_want_something_else(different: dict[str, Any]) -> None:
    x = tensors(100, 100)
    assert launch.fits(*x, **PLAIN)
    assert not launch.fits(*x, **PLAIN | different)
    assert not launch.fits(*x[:2], **PLAIN | different)


def test_tensors_that_do_not_fit() -> None:
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
        assert not launch.fits(*case, **PLAIN), [(x.shape, x.stride(), x.dtype) for x in case]


@pytest.mark.parametrize(("high", "wide", "fit"), [(16, 16, True), (79, 157, True), (15, 128, False), (64, 15, False)])
def test_bins_fit_that_are_not_too_small(high: int, wide: int, fit: bool) -> None:
    assert room.bins_fit(bins_of(999, 999, high, wide)) == fit


def test_where_it_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    (major, first), (_, last) = hopper.VERSIONS

    def at_hand(capability: tuple[int, int], version: str) -> bool:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setattr(triton, "__version__", version)
        hopper.is_at_hand.cache_clear()
        return hopper.is_at_hand(torch.device("cuda"))

    for minor in (first, last):
        assert at_hand((9, 0), f"{major}.{minor}.0")
        assert at_hand((9, 0), f"{major}.{minor}.0+git8a2b")
    for capability in ((8, 0), (8, 9), (10, 0), (12, 0)):
        assert not at_hand(capability, f"{major}.{first}.0")
    for version in (f"{major}.{first - 1}.9", f"{major}.{last + 1}.0", f"{major}.{last}0.0", f"{major + 1}.{first}.0"):
        assert not at_hand((9, 0), version)
    assert not hopper.is_at_hand(torch.device("cpu"))


# --- who takes what ---------------------------------------------------------------------------------------------


def in_python(function: Any, programs: int = 1, own: int = 0) -> Callable[..., Any]:
    """A function of the GPU as Python runs it, with as much of Gluon as it needs, in one of so many programs."""
    gl = SimpleNamespace(
        cdiv=lambda a, b: int((a + b - 1) / b),  # a GPU rounds towards zero
        minimum=min,
        maximum=max,
        where=lambda condition, a, b: a if condition else b,
        program_id=lambda axis: own,
        num_programs=lambda axis: programs,
    )
    return FunctionType(function.fn.__code__, {"gl": gl})


def task_of(T: int, S: int, *, heads: int = 1, first: int = 0, together: int = TOGETHER, edge: int = 0) -> Task:
    return Task(first, heads, together, heads, 1, T, S, edge, 1.0, None, None, None, None, None)


@given(
    heads=st.integers(1, 40),
    length=st.integers(1, 2000),
    rows=st.sampled_from([64, 128, 192]),
    programs=st.integers(1, 140),
    together=st.integers(1, 20),
    first=st.integers(0, 3),
    causal=st.booleans(),
    by_keys=st.booleans(),
)
def test_every_tile_is_taken_once(
    heads: int, length: int, rows: int, programs: int, together: int, first: int, causal: bool, by_keys: bool
) -> None:
    task = task_of(1, 1, heads=heads, first=first, together=together)
    taken: Counter[tuple[int, int]] = Counter()
    for own in range(programs):
        turns, tiles = in_python(turns_of, programs, own)(task, length, rows)
        for turn in range(turns):
            at = in_python(tile_at, programs, own)(turn, causal)
            if at < tiles:
                taken[in_python(place_of)(task, at, length, rows, causal, by_keys)] += 1
    assert taken == Counter((first + head, tile) for head in range(heads) for tile in range(-(-length // rows)))


def test_of_heads_that_are_worked_on_together_the_longest_tiles_come_first() -> None:
    task = task_of(500, 500, heads=5, together=2)
    last_queries = [in_python(place_of)(task, at, 500, 128, True, False) for at in range(20)]
    assert last_queries[:8] == [(0, 3), (1, 3), (0, 2), (1, 2), (0, 1), (1, 1), (0, 0), (1, 0)]
    assert last_queries[-4:] == [(4, 3), (4, 2), (4, 1), (4, 0)]
    first_keys = [in_python(place_of)(task, at, 500, 128, True, True) for at in range(20)]
    assert first_keys == [(head, 3 - tile) for head, tile in last_queries]


LENGTHS = (1, 63, 64, 128, 129, 300, 640)
EDGES = [64 * tiles + more for tiles in range(-11, 12) for more in (-2, -1, 0, 1)]


@pytest.mark.parametrize("rows", [128, 192])
@pytest.mark.parametrize("T", LENGTHS)
def test_the_keys_of_a_tile_are_those_that_are_seen(T: int, rows: int) -> None:
    keys = 128
    for S, edge, causal, tile in product(LENGTHS, EDGES, (False, True), range(-(-T // rows))):
        tiles, partly = in_python(keys_of)(task_of(T, S, edge=edge), tile, rows, keys, causal)
        # How many keys the first and the last query see; a ragged tile is walked as if it were whole.
        least, most = (max(0, min(S, i + edge + 1)) if causal else S for i in (tile * rows, (tile + 1) * rows - 1))
        assert tiles == max(1, -(-most // keys))
        assert 0 <= partly <= tiles
        assert (tiles - partly) * keys <= least, "not all see a key of which nobody asks who does"


@pytest.mark.parametrize("rows", [128, 192])
@pytest.mark.parametrize("S", LENGTHS)
def test_the_queries_of_a_tile_are_those_that_see_it(S: int, rows: int) -> None:
    queries = 128
    for T, edge, causal, tile in product(LENGTHS, EDGES, (False, True), range(-(-S // rows))):
        first, tiles, partly = in_python(queries_of)(task_of(T, S, edge=edge), tile, rows, queries, causal)
        # From which query on the first and the last key are seen; a ragged tile is walked as if it were whole.
        some, everything = (max(0, j - edge) if causal else 0 for j in (tile * rows, (tile + 1) * rows - 1))
        assert first % queries == 0
        assert first + tiles * queries == -(-T // queries) * queries, "the last query is left out"
        assert first <= some or tiles == 0
        assert tiles > 0 or some >= T, "somebody sees it"
        assert 0 <= partly <= tiles
        assert tiles == partly or first + partly * queries >= everything, "not all are seen, and nobody asks"


# --- bins anywhere ----------------------------------------------------------------------------------------------


def carried_out(program: str, operands: list[float]) -> list[float]:
    """What a piece of assembly leaves in its first four operands; of the GPU's language as much as it needs."""
    names: dict[str, float] = {f"${i}": number for i, number in enumerate(operands)}
    for statement in program.strip("{}").replace("\n", " ").split(";"):
        *guard, name, arguments = re.fullmatch(r"\s*(?:@(!?)above )?([a-z0-9.]*) ?(.*)", statement, re.S).groups()
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
def test_a_lane_adds_its_columns_up_on_either_side(block: int, lane: int, begin: int) -> None:
    pack = block // 2
    columns = [first + 2 * lane + i for first in range(0, block, 8) for row in (0, 1) for i in (0, 1)]
    numbers = [2.0**i for i in range(pack)]  # each subset has a sum of its own
    rows = [i // 2 % 2 for i in range(pack)]
    found = carried_out(unaligned_bins._add.fn(pack), [0.0] * pack + numbers + [begin - 2 * lane] * pack)
    expected = [
        sum(x for x, column, at in zip(numbers, columns, rows, strict=True) if at == row and (column >= begin) == above)
        for row in (0, 1)
        for above in (True, False)
    ]
    assert found == expected


class Numbers(np.ndarray):
    """A tensor of the GPU, as much of it as bins anywhere need."""

    type = SimpleNamespace(layout=None)

    def permute(self, axes: tuple[int, ...]) -> "Numbers":
        return self.transpose(axes)

    def to(self, dtype: object) -> "Numbers":
        return self


def numbers(x: Any) -> Numbers:
    return np.asarray(x).view(Numbers)


def added_by_lanes(
    program: str, operands: str, arguments: list[Numbers], *_: object, pack: int, **__: object
) -> Numbers:
    """The assembly carried out for each block and lane of two rows."""
    x, begins = np.broadcast_arrays(*arguments)
    rows, blocks, lanes, each = x.shape
    assert operands.split(",") == ["=f"] * pack + ["f"] * pack + ["r"] * pack
    found = np.full(x.shape, np.nan)
    for row, block, lane in product(range(0, rows, 2), range(blocks), range(lanes)):
        own = x[row : row + 2, block, lane].reshape(2, each // 2, 2).swapaxes(0, 1).ravel()
        begin = int(begins[row, block, lane, 0])
        results = carried_out(program, [0.0] * pack + list(own) + [begin] * pack)
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
    where=lambda *x: numbers(np.where(*x))[()],  # a number stays one, which no -= changes for others
    sum=lambda x, axis: numbers(np.sum(x, axis)),
    convert_layout=lambda x, layout: x,
    static_range=range,
    float32=None,
    inline_asm_elementwise=added_by_lanes,
)


@settings(max_examples=30)
@given(T=st.integers(1, 300), high=st.integers(16, 200), consumers=st.sampled_from([2, 3]), C=st.integers(1, 70))
def test_bins_of_queries_anywhere_get_what_is_theirs(T: int, high: int, consumers: int, C: int) -> None:
    """Both functions of the GPU as Python runs them: strips of one head that consumers write, and that are joined."""
    cut = Bins(high, 1, R=-(-T // high), C=C)
    tiles = -(-T // (ROWS * consumers)) * consumers
    weights = np.zeros((tiles * ROWS, C))
    weights[:T] = np.random.default_rng(T).integers(1, 1000, (T, C))
    is_whole = ROWS % high == 0
    of_head = cut.R if is_whole else strips_of_head(T, cut, ROWS)
    strips = np.full(of_head * C, np.nan)

    def store(places: Numbers, x: Numbers, mask: Numbers) -> None:
        places, x, mask = np.broadcast_arrays(places, x, mask)
        strips[places[mask]] = x[mask]

    layout = room._layout_for(cut)
    for row in range(0, tiles * ROWS, ROWS):
        scratch = np.vstack([weights[row : row + ROWS].T, np.full((64, ROWS), np.nan)])  # of bins that there are not

        def load(places: Numbers, mask: Numbers, other: float, scratch: np.ndarray = scratch) -> Numbers:
            return numbers(np.where(mask, scratch.ravel()[places], other))

        here = SimpleNamespace(**vars(ON_CPU), load=load, store=store)
        pool_rows = FunctionType(bins.pool_rows.fn.__code__, {"gl": here, "float": float})
        pool = SimpleNamespace(strips=0, of_head=of_head, high=high, wide=1, bins=C)
        nobody = numbers(np.zeros(ROWS))
        pool_rows(pool, 0, numbers(0), row, nobody, C, T, False, layout["PIECES"])
    found = strips.reshape(of_head, C)
    if not is_whole:
        found = joined(found, cut)
    expected = np.pad(weights[:T], ((0, cut.R * high - T), (0, 0))).reshape(cut.R, high, C).sum(1)
    assert (found == expected).all()


def joined(strips: np.ndarray, cut: Bins) -> np.ndarray:
    """What `join` makes of them, a program after another."""
    sums = np.full(cut.R * cut.C, np.nan)

    def load(places: np.ndarray, mask: np.ndarray, other: float) -> np.ndarray:
        return np.where(mask, strips.ravel()[np.where(mask, places, 0)], other)

    def store(places: np.ndarray, x: np.ndarray, mask: np.ndarray) -> None:
        sums[places[mask]] = x[mask]

    for r in range(cut.R):
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
        join = FunctionType(pooling._join.fn.__code__, {"tl": tl})
        join(0, 0, len(strips), cut.high, cut.R, cut.C, ROWS, 128)
    return sums.reshape(cut.R, cut.C)


@settings(max_examples=20)
@given(S=st.integers(1, 400), wide=st.integers(16, 300), seed=st.integers(0, 9))
def test_bins_anywhere_get_what_is_theirs(S: int, wide: int, seed: int) -> None:
    """Both functions of the GPU as Python runs them, over all tiles of two rows, from the last to the first."""
    stored: dict[int, Numbers] = {}

    def store(pool: Any, scratch: None, parts: Numbers, shift: None, first: int, bins: Numbers, *_: bool) -> None:
        for at, bin in enumerate(bins.ravel()):
            if bin < pool.bins:
                assert first + int(bin) not in stored
                stored[first + int(bin)] = parts[:, at].sum(-1)

    names = {
        "gl": ON_CPU,
        "_add": unaligned_bins._add.fn,
        "_operands": unaligned_bins._operands.fn,
        "store_bins": store,
    }
    names["bins_of"] = FunctionType(bins.bins_of.fn.__code__, names)
    on_either_side, close_bins = (
        FunctionType(one.fn.__code__, names) for one in (unaligned_bins.on_either_side, unaligned_bins.close_bins)
    )
    keys, block = 128, block_for(wide)
    tiles = -(-S // keys)
    weights = np.zeros((2, tiles * keys))
    weights[:, :S] = np.random.default_rng(seed).integers(1, 1000, (2, S))  # whole numbers are added without rounding
    pool = SimpleNamespace(wide=wide, bins=-(-S // wide))
    mass, bin = numbers(np.zeros((2, 4))), (S - 1) // wide
    edge = bin * wide
    for start in range((tiles - 1) * keys, -1, -keys):
        p = numbers(weights[:, start : start + keys].copy())
        above, below, edge = on_either_side(p, edge, wide, start, block)
        mass, bin = close_bins(pool, None, above, below, None, mass, bin, start, block, True, True)
        assert edge == bin * wide, "both count the same bins"
    assert bin == -1
    assert not mass.any()
    assert sorted(stored) == list(range(pool.bins))
    for at, sums in stored.items():
        assert (sums == weights[:, at * wide : (at + 1) * wide].sum(1)).all()


@given(S=st.integers(1, 3000), wide=st.integers(16, 700))
def test_of_bins_anywhere_each_block_of_a_tile_meets_one_at_most(S: int, wide: int) -> None:
    block, keys = block_for(wide), 128
    assert keys % block == 0
    begins = Counter(bin * wide // block for bin in range(-(-S // wide)))
    assert max(begins.values()) == 1


@pytest.mark.parametrize("bins", [None, WIDE, NARROW, ANYWHERE], ids=["no map", "wide", "narrow", "anywhere"])
def test_heads_go_one_by_one_where_the_cache_holds_no_more(
    bins: Bins | None, monkeypatch: pytest.MonkeyPatch, processors: None
) -> None:
    """Each with its own keys and values, and into its own part of what is found."""
    launched: list[Any] = []
    written: list[int] = []
    kernel = Kernel(lambda grid, task, pool, q, k, v, **_: launched.append((task, q.base, k.base, v.base)))
    monkeypatch.setattr(launch, "forward_kernel", kernel)
    monkeypatch.setattr(room, "join", lambda *arguments: written.append(arguments[-1].data_ptr()))
    monkeypatch.setattr(launch, "TURNS", 0)
    x = [torch.cat([one, one]) for one in tensors(512, 512, H=4, G=2)]
    one_head = 2 * x[1][0, 0].nbytes
    asked = Asked(lse=True, entropy=True, bins=bins, top=8)
    monkeypatch.setattr(launch, "CACHED", one_head)
    forward(*x, CAUSAL, asked)
    assert [(task.first, task.heads) for task, *_ in launched] == [(0, 8)]
    launched.clear()
    written.clear()
    monkeypatch.setattr(launch, "CACHED", one_head - 1)
    forward(*x, CAUSAL, asked)
    assert all((task.first, task.heads, task.H) == (0, 1, 1) for task, *_ in launched)

    def steps(*places: int) -> list[int]:
        return [place - places[0] for place in places]

    for name in ("lse", "entropy", "threshold"):
        assert steps(*(getattr(task, name).data_ptr() for task, *_ in launched)) == [512 * 4 * h for h in range(8)]
    for at, served in enumerate((1, 1, 2, 2)):
        places = ((task.out, *rest)[at].data_ptr() for task, *rest in launched)
        assert steps(*places) == [512 * 64 * 2 * (h // served) for h in range(8)]
    if written:
        assert bins is not None
        assert steps(*written) == [4 * bins.R * bins.C * h for h in range(8)]


def test_a_head_goes_alone_only_where_it_fills_the_processors(
    monkeypatch: pytest.MonkeyPatch, processors: None
) -> None:
    """A few queries that look at a long past are too few for that."""
    launched: list[int] = []
    monkeypatch.setattr(launch, "forward_kernel", Kernel(lambda grid, task, *_, **__: launched.append(task.heads)))
    monkeypatch.setattr(launch, "CACHED", 0)
    rows = crew_for(64, Asked(), is_causal=False).rows
    filling = PROCESSORS * TURNS * rows
    for T, alone in ((64, False), (filling - rows, False), (filling - rows + 1, True)):
        launched.clear()
        x = [one.to("meta") for one in tensors(64, 64)]
        q = x[0][:, :, :1].expand(-1, -1, T, -1)
        launch.forward(q, *x[1:], FULL, Told(out=torch.empty(q.shape, device="meta")), scale=0.1, asked=Asked())
        assert launched == ([1] * 4 if alone else [4])


def test_heads_in_groups_are_all_launched(monkeypatch: pytest.MonkeyPatch, processors: None) -> None:
    launches: list[tuple[int, Task]] = []
    kernel = Kernel(lambda grid, task, *_, **__: launches.append((*grid, task)))
    monkeypatch.setattr(launch, "forward_kernel", kernel)
    monkeypatch.setattr(room, "ROOM", 1)
    monkeypatch.setattr(room, "join", lambda *_: None)
    forward(*tensors(512, 512, H=7, G=7), CAUSAL, Asked(bins=WIDE))
    crew = crew_for(64, Asked(bins=WIDE), is_causal=True)
    assert len(launches) > 1
    assert [head for _, task in launches for head in range(task.first, task.first + task.heads)] == list(range(7))
    assert all(programs == min(PROCESSORS, task.heads * -(-512 // crew.rows)) for programs, task in launches)
