"""Loading a public model, compared with Hugging Face: each load in a process of its own, its time and peak memory."""

import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases.case import Case
from benchmarks.measure import Measured, Ratio

OURS, THEIRS = "regard", "Hugging Face"
SHARD = 40_000_000
_START = """
import json, sys, time
folder = sys.argv[1]

def memory(name):
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(lines[name].split()[0]) * 1024

{imports}
before, start = memory("VmRSS"), time.perf_counter()
open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
{load}
seconds = time.perf_counter() - start
for p in model.parameters():
    p.sum()  # reads every weight: some are views of the file
weights = sum(p.numel() * p.element_size() for p in {{id(p): p for p in model.parameters()}}.values())
print(json.dumps([seconds, (memory("VmHWM") - before) / weights]))
"""
PROGRAMS = {
    OURS: _START.format(
        imports="import regard, torch, regard.language.loading, regard.language.hub_files, regard.models",
        load='lm = regard.load(folder, backend="torch"); model = lm.model',
    ),
    THEIRS: _START.format(
        imports="import torch; from transformers import AutoModelForCausalLM, LlamaForCausalLM",
        load="model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()",
    ),
}


def write_model(folder: Path, *, dtype: str, sharded: bool) -> None:
    """A Llama of 29 million random weights, in one file or in files of 40 MB."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=16_000,
        hidden_size=512,
        intermediate_size=1408,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).to(getattr(torch, dtype))
    model.save_pretrained(folder, max_shard_size=SHARD if sharded else "5GB")


@dataclass(frozen=True, kw_only=True)
class Loading(Case):
    """One kind of folder."""

    dtype: str
    sharded: bool

    def run(self, rounds: int | None = None) -> Measured:
        measured = Measured(times={name: [] for name in PROGRAMS})
        peaks: dict[str, list[float]] = {name: [] for name in PROGRAMS}
        with tempfile.TemporaryDirectory() as folder:
            write_model(Path(folder), dtype=self.dtype, sharded=self.sharded)
            order = list(PROGRAMS)
            for number in range((rounds or self.rounds) + 1):
                random.Random(number).shuffle(order)
                for name in order:
                    seconds, peak = load_alone(PROGRAMS[name], folder)
                    if number:  # the first brings the files into memory
                        measured.times[name].append(seconds)
                        peaks[name].append(peak)
        measured.facts = {f"peak over the weights, {name}": max(found) for name, found in peaks.items()}
        return measured


def load_alone(program: str, folder: str) -> list[float]:
    """The seconds of a load in a fresh process, and its peak of added memory over the size of the weights."""
    done = subprocess.run([sys.executable, "-c", program, folder], check=True, stdout=subprocess.PIPE, text=True)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


CASES = tuple(
    Loading(
        name=f"load-{dtype}{'-sharded' if sharded else ''}",
        what=f"a Llama of 29 million weights, {dtype} in {'several files' if sharded else 'one file'}, loaded to "
        "float32 in a fresh process, imports excluded; the peak is that of the load and of reading each weight once",
        prepare=dict,
        rounds=9,
        dtype=dtype,
        sharded=sharded,
        ratios=(Ratio(label="time over Hugging Face", over=OURS, under=THEIRS, must=1.0),),
        fact_bounds=((f"peak over the weights, {OURS}", "×", 1.1), (f"peak over the weights, {THEIRS}", "×", None)),
    )
    for dtype in ("float32", "bfloat16")
    for sharded in (False, True)
)
