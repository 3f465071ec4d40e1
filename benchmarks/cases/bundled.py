"""The cost of the bundled models with the core installation alone: a cold start, a thousand sentences, disk space."""

import os
import subprocess
import sys
import tempfile
import venv
from functools import partial
from pathlib import Path

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Measured, Ratio

ROOT = Path(__file__).parents[2]
HUNDRED = ROOT / "benchmarks" / "sentences" / "first_hundred.txt"


def run_silently(*command: str | Path, stdin: str | None = None) -> None:
    """Run a command to its end in a fresh process; raise if it fails."""
    subprocess.run(
        command, input=stdin, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8"
    )


# --- from a cold start ------------------------------------------------------------------------------------

SEE, NUMPY = 'regard see "I love you"', "import numpy"
PICTURE = "from command to picture"


def cold() -> dict[str, Contender]:
    return {
        SEE: partial(run_silently, sys.executable, "-m", "regard", "see", "I love you"),
        NUMPY: partial(run_silently, sys.executable, "-c", NUMPY),
    }


COLD = Case(
    name="see-cold",
    what="the bundled translator, loaded, run and drawn by a fresh process, beside one that only imports NumPy",
    prepare=cold,
    rounds=15,
    facts=lambda measured: {PICTURE: measured.median(SEE), "the shortest of these": min(measured.times[SEE])},
    fact_bounds=((PICTURE, "s", 1.0), ("the shortest of these", "s", None)),
    ratios=(Ratio(label="time over the import of NumPy", over=SEE, under=NUMPY),),
)

# --- a thousand sentences ---------------------------------------------------------------------------------

SENTENCES = 1000
SLOWEST = 15
"""The lowest accepted number of sentences per second."""
EACH = "time of a sentence"


def sentences() -> list[str]:
    """The English sentences of Tatoeba's dev.tsv in the folder TATOEBA; without it the first hundred, ten times."""
    folder = os.environ.get("TATOEBA")
    if folder is None:
        lines = [line for line in HUNDRED.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
        return lines * (SENTENCES // len(lines))
    pairs = (Path(folder) / "dev.tsv").read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(pair.partition("\t")[0] for pair in pairs))[:SENTENCES]


def lines() -> dict[str, Contender]:
    text = "".join(f"{sentence}\n" for sentence in sentences())
    return {"regard translate -": partial(run_silently, sys.executable, "-m", "regard", "translate", "-", stdin=text)}


def lines_facts(measured: Measured) -> dict[str, float]:
    each = measured.median("regard translate -") / SENTENCES
    return {EACH: each * 1e3, "sentences per second": 1 / each}


LINES = Case(
    name="translate-lines",
    what=f"{SENTENCES:,} sentences through `regard translate -`, start included: Tatoeba's dev.tsv where TATOEBA names "
    f"its folder, else the first hundred, ten times; at least {SLOWEST} a second",
    prepare=lines,
    rounds=3,
    warm_up=0,
    facts=lines_facts,
    fact_bounds=((EACH, "ms", 1e3 / SLOWEST), ("sentences per second", "", None)),
    ratios=(),
)

# --- disk space -------------------------------------------------------------------------------------------

INSTALL, ALL, MODELS = "pip install .", "installed, models included", "the models alone"
TOOLS = ("pip", "setuptools", "_distutils_hack", "distutils-precedence")
"""Packages of an environment before anything is installed."""
LARGEST = 190.0


def core() -> dict[str, Contender]:
    return {INSTALL: lambda: sizes.update(installed())}


sizes: dict[str, float] = {}
"""The sizes of the last installation."""


def installed() -> dict[str, float]:
    """Megabytes that `pip install .`, without extras, adds to an empty environment, including bytecode."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        run_silently(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", ROOT)
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        found = subprocess.run([python, "-c", where], check=True, stdout=subprocess.PIPE, encoding="utf-8")
        packages = Path(found.stdout.strip())
        added = [path for path in packages.iterdir() if not path.name.startswith(TOOLS)]
        return {ALL: sum(map(megabytes, added)), MODELS: megabytes(packages / "regard" / "assets")}


def megabytes(path: Path) -> float:
    """The size of a file, or of all files in a folder, in millions of bytes."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


SIZE = Case(
    name="core-size",
    what="`pip install .` into an empty environment: site-packages with all dependencies and their bytecode, without "
    "pip and setuptools; a torch stack alone is 1 to 5 GB",
    prepare=core,
    rounds=1,
    warm_up=0,
    facts=lambda _: sizes,
    fact_bounds=((ALL, "MB", LARGEST), (MODELS, "MB", None)),
    ratios=(),
)

CASES = (COLD, LINES, SIZE)
