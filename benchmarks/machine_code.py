"""python -m benchmarks.machine_code: what the assembler makes of the kernels for Hopper GPUs. No GPU is needed.

How quick they are hangs on an order that the assembler chooses. Where it waits for the product with values before it
has begun with the next exponentials, units stand idle by turns, and a kernel may take a tenth longer with not one
instruction more. For each kernel, of the loop over tiles that all queries see: its instructions, and how many of them
multiply tiles (second walks take two tiles at a time); how many in a hundred of its exponentials come between the wait
for scores and the wait for that product; and how many bytes of registers the whole kernel spills. A kernel that serves
several lengths is shown at the first. With PYTHONPATH another Triton can be asked than the one that is installed.
--widths, --masks, --tokens, --keep FOLDER.
"""

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton

from benchmarks.attention_settings import FORWARDS, LENGTHS, MASKS, WIDTHS, Setting
from benchmarks.commit import with_commit
from benchmarks.dated import heading, table
from benchmarks.without_gpu import compiled_instead
from regard.kernels.triton.hopper import launch
from regard.kernels.triton.mask_bands import Sight
from regard.kernels.triton.support import room_for

HEADINGS = (
    "kernel",
    "E",
    "mask",
    "tokens",
    "instructions",
    "products",
    "exponentials before the wait, %",
    "bytes spilled",
)
PRODUCT, WAIT, EXPONENTIAL = "HGMMA", "WARPGROUP.DEPBAR", "MUFU.EX2"


class Assembled(NamedTuple):
    """A kernel: its machine code as text, and how many bytes it spills."""

    code: str
    spilled: int


def main() -> None:
    options = parse()
    settings = [
        Setting(E=E, causal=mask == "causal", n=n)
        for n in options.tokens
        for E in options.widths
        for mask in options.masks
    ]
    print("\n".join(heading(with_commit("Machine code of attention on a Hopper"))))
    print(f"triton {triton.__version__}\n")
    print("\n".join(table(HEADINGS, rows(settings, options.keep))))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.machine_code", description=__doc__)
    parser.add_argument("--widths", nargs="+", type=int, default=WIDTHS, help="of a head")
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=MASKS)
    parser.add_argument("--tokens", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the machine code there, too")
    return parser.parse_args()


def rows(settings: Sequence[Setting], keep: Path | None) -> Iterator[tuple[str, ...]]:
    shown: set[str] = set()
    for setting in settings:
        for name, program in programs(setting):
            if program in shown:
                continue
            shown.add(program)
            assembled = assemble(program)
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                file = f"{name}_{setting.E}_{setting.mask}_{setting.n}.sass".replace(" ", "-")
                (keep / file).write_text(assembled.code, encoding="utf-8")
            loop = loop_of_seen_tiles(assembled.code)
            early = early_exponentials(loop) if name in FORWARDS else None
            share = "–" if early is None else f"{100 * early:.0f}"
            counts = str(len(loop)), str(products_in(loop))
            yield name, str(setting.E), setting.mask, f"{setting.n:,}", *counts, share, str(assembled.spilled)


# --- compiling -------------------------------------------------------------------------------------------


def programs(setting: Setting) -> Iterator[tuple[str, str]]:
    """Each kernel by name, as the compiler hands it to the assembler."""
    q, k, v = (torch.empty((1, setting.H, setting.n, setting.E), dtype=torch.bfloat16, device="meta") for _ in "qkv")
    sight, bins = Sight(right=0) if setting.causal else Sight(), setting.asked("map").bins
    assert bins is not None
    options: dict[str, Any] = {"sight": sight, "scale": setting.E**-0.5}
    with compiled_instead() as found:
        for name in FORWARDS:
            asked = setting.asked(name)
            launch.forward(q, k, v, told=room_for(asked, q, v), asked=asked, **options)
            yield name, found[-1].asm["ptx"]
        lse = torch.empty(q.shape[:3], device="meta")
        launch.map_of(q, k, lse, bins=bins, **options)
        yield "second walk for the map", found[-1].asm["ptx"]
        launch.received_of(q, k, lse, **options)
        yield "received", found[-1].asm["ptx"]
        next(launch.survivors_of(q, k, lse, sight))
        yield "survivors", found[-1].asm["ptx"]


def assemble(program: str) -> Assembled:
    tools = triton.knobs.nvidia
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(program, encoding="utf-8")
        said = told_by([tools.ptxas.path, "-v", "-arch=sm_90a", str(source), "-o", str(binary)])
        code = told_by([tools.nvdisasm.path, "-c", str(binary)])
    return Assembled(code, max(map(int, re.findall(r"(\d+) bytes spill stores", said)), default=0))


def told_by(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} says: {done.stderr.strip()[:500]}")
    return done.stdout + done.stderr


# --- reading ---------------------------------------------------------------------------------------------


def loop_of_seen_tiles(code: str) -> list[str]:
    """The operations of the loop with the fewest for each product: that of the tiles that everybody sees, which takes
    one or two of them at a time.
    """
    operations: list[str] = []
    labels: dict[str, int] = {}
    loops: list[list[str]] = []
    for line in code.splitlines():
        if label := re.match(r"\s*(\.L_\w+):", line):
            labels[label[1]] = len(operations)
        elif instruction := re.search(r"/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)(.*?);", line):
            condition, operation, operands = instruction.groups()
            operations.append(operation)
            target = re.search(r"\.L_\w+", operands) if operation.startswith("BRA") else None
            # Backwards, if something holds: from where somebody waits again the way back has no condition.
            if target and target[0] in labels and (condition or "U" in operation):
                loops.append(operations[labels[target[0]] :])
    multiplying = [loop for loop in loops if products_in(loop)]
    return min(multiplying, key=lambda loop: len(loop) / products_in(loop), default=[])


def products_in(loop: Sequence[str]) -> int:
    return sum(one.startswith(PRODUCT) for one in loop)


def early_exponentials(loop: Sequence[str]) -> float | None:
    """The share of a forward's exponentials between its first wait, for scores, and its last, for the product; None for
    a loop without either.
    """
    waits = [i for i, one in enumerate(loop) if one.startswith(WAIT)]
    places = [i for i, one in enumerate(loop) if one.startswith(EXPONENTIAL)]
    if not waits or not places:
        return None
    return sum(waits[0] < i < waits[-1] for i in places) / len(places)


if __name__ == "__main__":
    main()
