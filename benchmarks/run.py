"""python -m benchmarks.run [CASE …]: measure, print a table, optionally write JSON or a dated report.

Each case runs in its own process: its memory allocator and thread pools would affect the next one. `--against REV` also
measures that revision of src/ and compares the times.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import report
from benchmarks.cases import CASES
from benchmarks.machine import machine
from benchmarks.measure import Measured

ROOT = Path(__file__).parents[1]


def main() -> None:
    options = parse()
    if options.alone:
        measured = CASES[options.alone].run(options.rounds)
        json.dump({"times": measured.times, "facts": measured.facts}, sys.stdout)
        return
    names = options.cases or [name for name, case in CASES.items() if case.gpu == options.gpu and not case.on_request]
    results = {name: measure_in_process(name, options.rounds, ROOT / "src") for name in names}
    for name, measured in results.items():
        print_table(name, measured)
    if options.against:
        compare(options.against, results, options.rounds)
    if options.json:
        Path(options.json).write_text(json.dumps(report.as_json(results, machine()), indent=1), encoding="utf-8")
    if options.report:
        day = datetime.now(UTC).date()
        which = "_".join(options.cases) if options.cases else "gpu" if options.gpu else "all"
        path = ROOT / "benchmarks" / "results" / f"{which}_{day}.md"
        path.write_text(report.markdown(results, machine(), day), encoding="utf-8")
        print(f"written: {path.relative_to(ROOT)}", file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of: {', '.join(CASES)} (default: all)")
    parser.add_argument("--gpu", action="store_true", help="the cases that need a CUDA device, instead of the others")
    parser.add_argument("--rounds", type=int, help="rounds per case (default: the case's own)")
    parser.add_argument("--json", metavar="FILE", help="also write every time and ratio")
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    parser.add_argument("--against", metavar="REV", help="compare the times with those of another revision")
    parser.add_argument("--alone", metavar="CASE", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [name for name in options.cases if name not in CASES]
    if unknown:
        parser.error(f"no case {', '.join(unknown)}; there are: {', '.join(CASES)}")
    return options


def measure_in_process(name: str, rounds: int | None, source: Path) -> Measured:
    """Measure one case in a fresh process, with `source` first on its path."""
    command = [sys.executable, "-m", "benchmarks.run", "--alone", name]
    command += ["--rounds", str(rounds)] if rounds else []
    path = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH")]))
    print(f"measuring {name} …", file=sys.stderr)
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=True, stdout=subprocess.PIPE, text=True
    )
    return Measured(**json.loads(done.stdout.splitlines()[-1]))  # contenders may print during setup


def print_table(name: str, measured: Measured) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{name}: {CASES[name].what}", title_justify="left")
    for heading in report.HEADINGS:
        table.add_column(heading)
    for row in report.rows(CASES[name], measured):
        table.add_row(*row)
    Console().print(table)
    for contender in measured.times:
        print(f"  {measured.median(contender) * 1e3:10.2f} ms  {contender}")


def compare(revision: str, results: dict[str, Measured], rounds: int | None) -> None:
    """Measure the same cases with the src/ of another revision, and print the ratios of the medians."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["git", "worktree", "add", "--detach", folder, revision], cwd=ROOT, check=True, capture_output=True
        )
        try:
            for name, ours in results.items():
                theirs = measure_in_process(name, rounds, Path(folder) / "src")
                print(f"{name}: time now over time at {revision}")
                for contender in ours.times:
                    print(f"  {ours.median(contender) / theirs.median(contender):6.3f}  {contender}")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
