"""python -m benchmarks.million --into FOLDER: the exact map of one head over 1,048,576 tokens, made on a CUDA device.

Then, where matplotlib is: python -m benchmarks.million --draw FOLDER/million.npy. It writes million.png beside it.

The head is made up, by a rule, so that there is something to see. Each token has an address, which is its position, but
for passages that repeat an earlier one, forwards or backwards, and have its addresses (PASSAGES). q and k hold cosine
and sine of the address at 31 frequencies, so that a query looks at what has its own address, and the less at others the
further these are: a diagonal, and beside it one for each passage that is read again. One number more lets all look at
the first four tokens, as real heads do, and another at the first token of every later sixteenth.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.commit import commit
from benchmarks.machine import machine
from regard import Mask, See
from regard.kernels.tiles import Bins
from regard.kernels.triton.forward_launch import forward
from regard.kernels.triton.mask_bands import sight_of
from regard.kernels.triton.support import Asked, Told
from regard.records import Record
from regard.trace import Trace

TOKENS, BINS, WIDTH = 2**20, 1024, 64
FREQUENCIES, SLOWEST = 31, 32_768
OWN_ADDRESS, FIRST_TOKENS, SECTIONS = 16.0, 15.5, 13.0
"""Scores: of the same address, of each of the first tokens, and of each section's first one."""
PASSAGES = ((16, 4, 3, 1), (20, 1, 12, -1), (22, 2, 9, 1), (26, 3, 3, 1), (30, 1, 20, -1))
"""In parts of 32: where a passage begins, how long it is, where the one began that it repeats, and which way."""
ROWS_AT_ONCE = 64


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description=__doc__)
    parser.add_argument("--into", type=Path, help="make the map; the folder for million.npy and million.json")
    parser.add_argument("--draw", type=Path, metavar="NPY", help="draw a map that was made")
    options = parser.parse_args()
    if options.into is None and options.draw is None:
        parser.error("say where to with --into FOLDER, or what to draw with --draw FILE")
    if options.into is not None:
        pooled, facts = measured(TOKENS, BINS, torch.device("cuda"))
        np.save(options.into / "million.npy", pooled)
        (options.into / "million.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        print(json.dumps(facts, indent=1))
    if options.draw is not None:
        draw(np.load(options.draw), TOKENS, options.draw.with_suffix(".png"))


# --- the head --------------------------------------------------------------------------------------------


def addresses(n: int) -> Tensor:
    """Of each token: its position, or that of the token which it repeats.

    >>> addresses(32)[14:23].tolist()
    [14, 15, 3, 4, 5, 6, 12, 21, 9]
    """
    found, part = torch.arange(n), n // 32
    for start, length, source, way in PASSAGES:
        passage = found[source * part : (source + length) * part].clone()
        found[start * part : (start + length) * part] = passage if way > 0 else passage.flip(0)
    return found


def head(n: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """q and k, 1 1 n 64, in bfloat16."""
    steps = torch.arange(FREQUENCIES, dtype=torch.float64, device=device) / (FREQUENCIES - 1)
    angles = addresses(n).to(device)[:, None] * float(SLOWEST) ** -steps
    length = (OWN_ADDRESS / FREQUENCIES * WIDTH**0.5) ** 0.5  # a score is the product over the root of the width
    x = torch.zeros(n, WIDTH, dtype=torch.float64, device=device)
    x[:, :FREQUENCIES], x[:, FREQUENCIES : 2 * FREQUENCIES] = angles.cos() * length, angles.sin() * length
    q, k = x.clone(), x
    q[:, -2:] = WIDTH**0.5
    for some, column, score in ((slice(4), -2, FIRST_TOKENS), (slice(n // 16, None, n // 16), -1, SECTIONS)):
        k[some] = 0  # they are found by no address
        k[some, column] = score
    return q.bfloat16()[None, None], k.bfloat16()[None, None]


# --- the map ---------------------------------------------------------------------------------------------


def measured(n: int, count: int, device: torch.device) -> tuple[np.ndarray, dict[str, Any]]:
    """The map, count × count, as a Record holds it, and what it took; checked against float64."""
    q, k = head(n, device)
    bins = Bins.of(n, n, See(map=count))
    assert bins is not None
    told = one_pass(q, k, bins)  # and its kernels are compiled
    times, before = [], torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        told = one_pass(q, k, bins)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    assert told.sums is not None
    begin = time.perf_counter()
    facts = {
        **machine(),
        "commit": commit(),
        "tokens": n,
        "map": [bins.R, bins.C],
        "seconds": sorted(times)[1],
        "all seconds": times,
        "TFLOP/s": 2 * n**2 * WIDTH / sorted(times)[1] / 1e12,
        "bytes beyond the inputs": torch.cuda.max_memory_allocated() - before,
        "largest relative error of whole rows of the map, by row": {
            str(r): row_error(q, k, told, bins, r) for r in (0, bins.R // 2, bins.R * 7 // 8, bins.R - 1)
        },
        "sum of all weights over tokens": float(told.sums.double().sum() / n),
        "seconds of checking": time.perf_counter() - begin,
    }
    return (told.sums[0, 0] / bins.high).cpu().numpy(), facts


def one_pass(q: Tensor, k: Tensor, bins: Bins) -> Told:
    """Causal attention of the head, its keys as values too, with the LSE and the map's sums."""
    n = q.shape[2]
    sight = sight_of(Mask.causal().bind((1, 1), n, n, q))
    return forward(q, k, k, sight, scale=WIDTH**-0.5, asked=Asked(lse=True, bins=bins))


def row_error(q: Tensor, k: Tensor, told: Told, bins: Bins, r: int) -> float:
    """How far a row of the map is from float64, of the weights above a millionth; its queries a few at a time."""
    assert told.sums is not None
    n, keys = q.shape[2], k[0, 0].double()
    right = torch.zeros(bins.C, dtype=torch.float64, device=q.device)
    for first in range(r * bins.high, min(n, (r + 1) * bins.high), ROWS_AT_ONCE):
        rows = torch.arange(first, min(n, (r + 1) * bins.high, first + ROWS_AT_ONCE), device=q.device)
        scores = q[0, 0, rows].double() @ keys.mT * WIDTH**-0.5
        scores.masked_fill_(torch.arange(n, device=q.device) > rows[:, None], -torch.inf)
        right += scores.softmax(-1).sum(0).unflatten(0, (bins.C, bins.wide)).sum(-1)
    return float(((told.sums[0, 0, r].double() - right).abs() / right.clamp(min=1e-6)).max())


# --- the picture -----------------------------------------------------------------------------------------


def draw(pooled: np.ndarray, n: int, path: Path) -> None:
    """As `trace.plot` draws one head, on a logarithmic scale: a pixel for each bin, no frame over the first keys."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(9.8, 7.8), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    ax = figure.subplots()
    record = Record(shape=(1, 1, n, n), name=f"{n:,} tokens", kind="decoder", map=pooled[None, None])
    Trace([record]).plot(layer=0, head=0, ax=ax, scale="log", lang="en")
    places = range(0, n + 1, n // 4)
    ax.set_xticks(places, [f"{place:,}" for place in places])
    ax.set_yticks(places, [f"{place:,}" for place in places])
    ax.spines[:].set_visible(False)
    figure.draw_without_rendering()
    figure.savefig(path, dpi=figure.dpi * len(pooled) / ax.get_window_extent().width)


if __name__ == "__main__":
    main()
