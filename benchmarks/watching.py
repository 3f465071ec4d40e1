"""python -m benchmarks.watching: what it costs to see the attention of a model, beside other ways to see it.

    unwatched   the forward alone, fused attention
    regard      the same inside `regard.watch`, and the page that `trace.html` writes
    eager       Hugging Face's `output_attentions=True`: every weight of every layer
    bertviz     head_view's page made from those weights, where bertviz is installed

Each way and length is a process of its own, so that its peak of memory is its own. What would not fit into memory is
not run, and the table says what it would have needed. --lengths, --report, --plot FILE.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.dated import finish, heading, table

ROOT = Path(__file__).parents[1]
LAYERS, HEADS, WIDTH = 4, 12, 768
WAYS = ("unwatched", "regard", "eager", "bertviz")
FITS = 14e9
"""Bytes that a way may need; this is meant for machines of 24 GB."""
RUNS, SHORT = 5, 2048
"""How often a text of at most so many tokens is run."""
TEXT = 22.0
"""Bytes of one weight in bertviz's page, measured at 128 tokens."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watching", description=__doc__)
    parser.add_argument("--lengths", nargs="+", type=int, default=[128, 512, 2048, 8192])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    parser.add_argument("--plot", type=Path, help="also draw the table, needs matplotlib")
    parser.add_argument("--alone", nargs=2, metavar=("WAY", "LENGTH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(measured(options.alone[0], int(options.alone[1]))))
        return
    rows = [row for length in options.lengths for row in rows_of(length, options.ways)]
    finish("watching", markdown(rows), report=options.report)
    if options.plot:
        draw(rows, options.plot)


def rows_of(length: int, ways: list[str]) -> list[dict[str, Any]]:
    """What each way took at this length, with the memory that it needs beyond the unwatched forward."""
    found: dict[str, dict[str, Any]] = {}
    for way in ways:
        needs = needed(way, length)
        if way == "bertviz" and find_spec("bertviz") is None:
            found[way] = {"why": "not installed"}
        elif needs > FITS:
            found[way] = {"why": f"would need {needs / 1e9:.0f} GB"}
        else:
            command = [sys.executable, "-m", "benchmarks.watching", "--alone", way, str(length)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
            found[way] = json.loads(done.stdout) if done.returncode == 0 else {"why": done.stderr.strip()[-200:]}
    plain = found.get("unwatched", {})
    for row in found.values():
        if "peak" in row and "peak" in plain:
            row["extra"] = max(0, row["peak"] - plain["peak"])
            row["times"] = row["seconds"] / plain["seconds"]
    return [{"way": way, "length": length, **row} for way, row in found.items()]


def needed(way: str, length: int) -> float:
    """Bytes, at least: eager keeps every layer's weights and three matrices of one; bertviz writes each as text."""
    matrix = 4.0 * HEADS * length**2
    if way == "eager":
        return (LAYERS + 3) * matrix
    return LAYERS * (matrix + 3 * TEXT * HEADS * length**2) if way == "bertviz" else 0.0


def measured(way: str, length: int) -> dict[str, Any]:
    """Seconds of the quickest of some runs, the peak of this process, and the size of the page."""
    import torch
    from transformers import GPT2Config, GPT2Model

    sizes: dict[str, Any] = {"vocab_size": 1000, "n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH}
    attention = "eager" if way in ("eager", "bertviz") else "sdpa"
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(n_positions=length, **sizes)).eval()
    model.set_attn_implementation(attention)
    ids = torch.randint(0, 1000, (1, length))
    run = {"unwatched": unwatched, "regard": by_regard, "eager": eagerly, "bertviz": by_bertviz}[way]
    with torch.no_grad():
        run(model, ids[:, : min(length, 64)])
        times = []
        for _ in range(RUNS if length <= SHORT else 1):
            start = time.perf_counter()
            page = run(model, ids)
            times.append(time.perf_counter() - start)
    return {"seconds": min(times), "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "page": page}


def unwatched(model: Any, ids: Any) -> None:
    model(ids)


def by_regard(model: Any, ids: Any) -> int:
    import regard

    with regard.watch(model) as trace:
        model(ids)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attention.html"
        trace.html(path)
        return path.stat().st_size


def eagerly(model: Any, ids: Any) -> None:
    model(ids, output_attentions=True)


def by_bertviz(model: Any, ids: Any) -> int:
    from bertviz import head_view

    out = model(ids, output_attentions=True)
    page = head_view(out.attentions, [str(i) for i in ids[0].tolist()], html_action="return")
    return len(page.data.encode())


HEADINGS = ("tokens", "way", "seconds", "over unwatched", "memory beyond unwatched, MB", "page, MB")


def markdown(rows: list[dict[str, Any]]) -> str:
    """The report."""
    lines = [
        *heading("Seeing attention"),
        f"GPT-2-shaped model, {LAYERS} layers, {HEADS} heads, {WIDTH} wide, no output layer, float32, one text. Each "
        "line is a process of its own; regard's time includes its page.",
        "",
        *table(HEADINGS, map(cells, rows)),
        "",
    ]
    return "\n".join(lines)


def cells(row: dict[str, Any]) -> list[str]:
    """A row under HEADINGS; what was not run says why."""
    if "why" in row:
        return [f"{row['length']:,}", row["way"], row["why"], "", "", ""]
    extra, page, times = row.get("extra"), row.get("page"), row.get("times")
    return [
        f"{row['length']:,}",
        row["way"],
        f"{row['seconds']:.2f}",
        "" if times is None else f"{times:.2f}",
        "" if extra is None else f"{extra / 1e6:,.0f}",
        "" if page is None else f"{page / 1e6:.1f}",
    ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Memory beyond the unwatched forward, by length, for each way."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for way in WAYS[1:]:
        points = [(row["length"], row["extra"] / 1e6) for row in rows if row["way"] == way and row.get("extra")]
        if points:
            axes.loglog(*zip(*points, strict=True), marker="o", label=way)
    axes.set(xlabel="tokens", ylabel="memory beyond the unwatched forward, MB")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
