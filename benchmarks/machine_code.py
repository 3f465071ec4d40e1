"""python -m benchmarks.machine_code: the machine code of the kernels for Hopper GPUs. No GPU is needed.

Their speed depends on the instruction order chosen by the assembler. If it waits for the product with values before it
starts the next exponentials, units are idle in turn, and a kernel may take a tenth longer without a single additional
instruction. For each kernel, for the loop over fully visible tiles: its instructions, and how many of them multiply
tiles (second passes process two tiles at a time); the percentage of its exponentials between the wait for scores and
the wait for that product; and the bytes of registers that the whole kernel spills. A kernel used for several lengths is
shown at the first one. With PYTHONPATH another Triton than the installed one can be used.
--widths, --masks, --tokens, --keep FOLDER.
"""

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
import triton

from benchmarks.attention_settings import FORWARDS, LENGTHS, MASKS, WIDTHS, Setting
from benchmarks.commit import with_commit
from benchmarks.dated import heading, table
from benchmarks.without_gpu import compile_only
from regard.attention_call import AttentionCall
from regard.kernels.triton.hopper import launch
from regard.kernels.triton.support import MaskBands, allocate_result

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
    """A kernel: its machine code as text, and the bytes it spills."""

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
            loop = visible_tile_loop(assembled.code)
            early = early_exponentials(loop) if name in FORWARDS else None
            share = "–" if early is None else f"{100 * early:.0f}"
            counts = str(len(loop)), str(products_in(loop))
            yield name, str(setting.E), setting.mask, f"{setting.n:,}", *counts, share, str(assembled.spilled)


# --- compiling -------------------------------------------------------------------------------------------


def programs(setting: Setting) -> Iterator[tuple[str, str]]:
    """The PTX of each kernel, by name."""
    q, k, v = (torch.empty((1, setting.H, setting.n, setting.E), dtype=torch.bfloat16, device="meta") for _ in "qkv")
    bands, bins = MaskBands(right=0) if setting.causal else MaskBands(), setting.request("map").bins
    assert bins is not None
    call = AttentionCall(q, k, v, setting.E**-0.5)
    with compile_only() as found:
        for name in FORWARDS:
            request = setting.request(name)
            launch.forward(call, bands, request, allocate_result(request, q, v))
            yield name, found[-1].asm["ptx"]
        lse = torch.empty(q.shape[:3], device="meta")
        launch.map_of(call, bands, lse, bins)
        yield "second pass for the map", found[-1].asm["ptx"]
        launch.received_of(call, bands, lse)
        yield "received", found[-1].asm["ptx"]
        next(launch.candidates_of(call, bands, lse))
        yield "candidates", found[-1].asm["ptx"]


def assemble(program: str) -> Assembled:
    tools = triton.knobs.nvidia
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(program, encoding="utf-8")
        log = run_tool([tools.ptxas.path, "-v", "-arch=sm_90a", str(source), "-o", str(binary)])
        code = run_tool([tools.nvdisasm.path, "-c", str(binary)])
    return Assembled(code, max(map(int, re.findall(r"(\d+) bytes spill stores", log)), default=0))


def run_tool(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} failed: {done.stderr.strip()[:500]}")
    return done.stdout + done.stderr


# --- reading ---------------------------------------------------------------------------------------------


def visible_tile_loop(code: str) -> list[str]:
    """The operations of the loop with the fewest operations per product: that over fully visible tiles, which processes
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
            # A conditional backward branch: the branch back to a repeated wait is unconditional.
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
