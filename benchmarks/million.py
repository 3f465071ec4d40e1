"""python -m benchmarks.million --into FOLDER: the exact map of one head over 1,048,576 tokens, made on a CUDA device.

Then, with matplotlib: python -m benchmarks.million --draw FOLDER/million.npy writes million.png next to it.

The head is constructed, so that its map has structure. Each token has an address, which is its position, except in
passages that repeat an earlier one, forwards or backwards, and have its addresses (PASSAGES). q and k hold cosine and
sine of the address at 31 frequencies, so that a query attends to its own address, and less to others the further away
they are: a diagonal, and one more for each repeated passage. One more column makes all queries attend to the first four
tokens, as in real heads, and another to the first token of every later sixteenth.
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
from regard.attention_call import AttentionCall
from regard.kernels.division import Bins
from regard.kernels.triton.forward import forward
from regard.kernels.triton.support import ForwardRequest, ForwardResult, bands_of
from regard.records import Record
from regard.trace import Trace

TOKENS, BINS, WIDTH = 2**20, 1024, 64
FREQUENCIES, SLOWEST = 31, 32_768
OWN_ADDRESS, FIRST_TOKENS, SECTIONS = 16.0, 15.5, 13.0
"""Scores: of the same address, of each of the first tokens, and of the first token of each section."""
PASSAGES = ((16, 4, 3, 1), (20, 1, 12, -1), (22, 2, 9, 1), (26, 3, 3, 1), (30, 1, 20, -1))
"""In units of n / 32: where a passage begins, its length, where the repeated one begins, and the direction."""
ROWS_AT_ONCE = 64


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description=__doc__)
    parser.add_argument("--into", type=Path, help="make the map; the folder for million.npy and million.json")
    parser.add_argument("--draw", type=Path, metavar="NPY", help="draw a map that was made")
    options = parser.parse_args()
    if options.into is None and options.draw is None:
        parser.error("give --into FOLDER to make the map, or --draw FILE to draw one")
    if options.into is not None:
        pooled, facts = measured(TOKENS, BINS, torch.device("cuda"))
        np.save(options.into / "million.npy", pooled)
        (options.into / "million.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        print(json.dumps(facts, indent=1))
    if options.draw is not None:
        draw(np.load(options.draw), TOKENS, options.draw.with_suffix(".png"))


# --- the head --------------------------------------------------------------------------------------------


def addresses(n: int) -> Tensor:
    """The address of each token: its position, or that of the token it repeats.

    >>> addresses(32)[14:23].tolist()
    [14, 15, 3, 4, 5, 6, 12, 21, 9]
    """
    found, part = torch.arange(n), n // 32
    for start, length, source, direction in PASSAGES:
        passage = found[source * part : (source + length) * part].clone()
        found[start * part : (start + length) * part] = passage if direction > 0 else passage.flip(0)
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
    for keys, column, score in ((slice(4), -2, FIRST_TOKENS), (slice(n // 16, None, n // 16), -1, SECTIONS)):
        k[keys] = 0  # they have no address
        k[keys, column] = score
    return q.bfloat16()[None, None], k.bfloat16()[None, None]


# --- the map ---------------------------------------------------------------------------------------------


def measured(n: int, count: int, device: torch.device) -> tuple[np.ndarray, dict[str, Any]]:
    """The map, count × count, as in a Record, and the measurements; checked against float64."""
    q, k = head(n, device)
    bins = Bins.of(n, n, See(map=count))
    assert bins is not None
    result = one_pass(q, k, bins)  # also compiles the kernels
    times, before = [], torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        result = one_pass(q, k, bins)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    assert result.sums is not None
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
            str(r): row_error(q, k, result, bins, r) for r in (0, bins.R // 2, bins.R * 7 // 8, bins.R - 1)
        },
        "sum of all weights over tokens": float(result.sums.double().sum() / n),
        "seconds of checking": time.perf_counter() - begin,
    }
    return (result.sums[0, 0] / bins.height).cpu().numpy(), facts


def one_pass(q: Tensor, k: Tensor, bins: Bins) -> ForwardResult:
    """Causal attention of the head, with its keys as values, with the LSE and the map's sums."""
    n = q.shape[2]
    bands = bands_of(Mask.causal().bind((1, 1), n, n, q))
    return forward(AttentionCall(q, k, k, WIDTH**-0.5), bands, ForwardRequest(lse=True, bins=bins))


def row_error(q: Tensor, k: Tensor, result: ForwardResult, bins: Bins, r: int) -> float:
    """The largest relative difference of a row of the map from float64, for weights above a millionth."""
    assert result.sums is not None
    n, keys = q.shape[2], k[0, 0].double()
    right = torch.zeros(bins.C, dtype=torch.float64, device=q.device)
    for first in range(r * bins.height, min(n, (r + 1) * bins.height), ROWS_AT_ONCE):
        rows = torch.arange(first, min(n, (r + 1) * bins.height, first + ROWS_AT_ONCE), device=q.device)
        scores = q[0, 0, rows].double() @ keys.mT * WIDTH**-0.5
        scores.masked_fill_(torch.arange(n, device=q.device) > rows[:, None], -torch.inf)
        right += scores.softmax(-1).sum(0).unflatten(0, (bins.C, bins.width)).sum(-1)
    return float(((result.sums[0, 0, r].double() - right).abs() / right.clamp(min=1e-6)).max())


# --- the picture -----------------------------------------------------------------------------------------


def draw(pooled: np.ndarray, n: int, path: Path) -> None:
    """Draw it as `trace.plot` draws one head, on a logarithmic scale, with one pixel per bin."""
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
