"""python -m benchmarks.watching: the cost of seeing the attention of a model, compared with other methods.

    unwatched   the forward alone, fused attention
    regard      the same inside `regard.watch`, and the page that `trace.html` writes
    eager       Hugging Face's `output_attentions=True`: every weight of every layer
    bertviz     head_view's page of those weights, if bertviz is installed

Each method and length runs in its own process, to measure its own peak of memory. What does not fit into memory is not
run, and the table states the memory that it needs. --lengths, --report, --plot FILE.
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
METHODS = ("unwatched", "regard", "eager", "bertviz")
FITS = 14e9
"""The largest number of bytes that a method may need; for machines of 24 GB."""
RUNS, SHORT = 5, 2048
"""The number of runs of a text of up to SHORT tokens."""
TEXT = 22.0
"""Bytes of one weight in bertviz's page, measured at 128 tokens."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watching", description=__doc__)
    parser.add_argument("--lengths", nargs="+", type=int, default=[128, 512, 2048, 8192])
    parser.add_argument("--ways", dest="methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    parser.add_argument("--plot", type=Path, help="also draw the table, needs matplotlib")
    parser.add_argument("--alone", nargs=2, metavar=("METHOD", "LENGTH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(measured(options.alone[0], int(options.alone[1]))))
        return
    rows = [row for length in options.lengths for row in rows_of(length, options.methods)]
    finish("watching", markdown(rows), report=options.report)
    if options.plot:
        draw(rows, options.plot)


def rows_of(length: int, methods: list[str]) -> list[dict[str, Any]]:
    """The measurements of each method at this length, with its memory beyond the unwatched forward."""
    found: dict[str, dict[str, Any]] = {}
    for method in methods:
        needs = needed(method, length)
        if method == "bertviz" and find_spec("bertviz") is None:
            found[method] = {"why": "not installed"}
        elif needs > FITS:
            found[method] = {"why": f"would need {needs / 1e9:.0f} GB"}
        else:
            command = [sys.executable, "-m", "benchmarks.watching", "--alone", method, str(length)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
            found[method] = json.loads(done.stdout) if done.returncode == 0 else {"why": done.stderr.strip()[-200:]}
    plain = found.get("unwatched", {})
    for row in found.values():
        if "peak" in row and "peak" in plain:
            row["extra"] = max(0, row["peak"] - plain["peak"])
            row["times"] = row["seconds"] / plain["seconds"]
    return [{"method": method, "length": length, **row} for method, row in found.items()]


def needed(method: str, length: int) -> float:
    """A lower bound in bytes: eager keeps the weights of every layer and three matrices of one; bertviz writes text."""
    matrix = 4.0 * HEADS * length**2
    if method == "eager":
        return (LAYERS + 3) * matrix
    return LAYERS * (matrix + 3 * TEXT * HEADS * length**2) if method == "bertviz" else 0.0


def measured(method: str, length: int) -> dict[str, Any]:
    """Seconds of the fastest of several runs, the peak memory of this process, and the size of the page."""
    import torch
    from transformers import GPT2Config, GPT2Model

    sizes: dict[str, Any] = {"vocab_size": 1000, "n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH}
    attention = "eager" if method in ("eager", "bertviz") else "sdpa"
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(n_positions=length, **sizes)).eval()
    model.set_attn_implementation(attention)
    ids = torch.randint(0, 1000, (1, length))
    run = {"unwatched": unwatched, "regard": by_regard, "eager": eagerly, "bertviz": by_bertviz}[method]
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


HEADINGS = ("tokens", "method", "seconds", "over unwatched", "memory beyond unwatched, MB", "page, MB")


def markdown(rows: list[dict[str, Any]]) -> str:
    """The report."""
    lines = [
        *heading("Seeing attention"),
        f"GPT-2-shaped model, {LAYERS} layers, {HEADS} heads, {WIDTH} wide, no output layer, float32, one text. Each "
        "line is its own process; regard's time includes its page.",
        "",
        *table(HEADINGS, map(cells, rows)),
        "",
    ]
    return "\n".join(lines)


def cells(row: dict[str, Any]) -> list[str]:
    """A row under HEADINGS; with the reason if the method was not run."""
    if "why" in row:
        return [f"{row['length']:,}", row["method"], row["why"], "", "", ""]
    extra, page, times = row.get("extra"), row.get("page"), row.get("times")
    return [
        f"{row['length']:,}",
        row["method"],
        f"{row['seconds']:.2f}",
        "" if times is None else f"{times:.2f}",
        "" if extra is None else f"{extra / 1e6:,.0f}",
        "" if page is None else f"{page / 1e6:.1f}",
    ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the memory beyond the unwatched forward, by length, for each method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for method in METHODS[1:]:
        points = [(row["length"], row["extra"] / 1e6) for row in rows if row["method"] == method and row.get("extra")]
        if points:
            axes.loglog(*zip(*points, strict=True), marker="o", label=method)
    axes.set(xlabel="tokens", ylabel="memory beyond the unwatched forward, MB")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
