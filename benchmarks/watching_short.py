"""python -m benchmarks.watching_short: the time of watched forwards of short texts over unwatched ones.

On a GPU a Llama shape in bfloat16, on the CPU GPT-2's shape in float32. The methods of one length take turns in one
process, and each ratio is the median of its rounds. "block" is a watched forward until the GPU has ended, "block and
read" that and the first access to the Trace, which computes what was deferred. make, enter, forward and exit are the
parts of the block as the host sees them, without waiting for the GPU; events are a GPU's own time for a call of
`attend`. --lengths, --rounds, --steps N for a generation of N tokens, --profile LENGTH for where Python spends the time
of a watched forward, --processor-time for the seconds of the processor in place of those of the clock (with one
thread, these do not depend on what else the machine computes), --bounds for an error where a ratio exceeds its bound,
--report.
"""

import argparse
import cProfile
import io
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.dated import finish, heading, table

Run = Callable[[], object]
Clock = Callable[[], float]

PARTS = ("make", "enter", "forward", "exit")


class Measurement(NamedTuple):
    """The seconds of one run, with those of reading its Trace, and of the parts of a watched one."""

    block: float
    whole: float
    parts: tuple[float, ...] = ()


BOUNDS = {
    ("128 tokens", "watch"): 1.15,
    ("512 tokens", "watch"): 1.15,
    ("1,024 tokens", "watch"): 1.2,
}
"""The largest ratios of block and read on two cores, by what and method."""

SLEEP = 10**7
"""Cycles that a GPU sleeps before a call that its events measure: some 5 ms."""

EAGER = 4096
"""The longest text for which every weight is computed."""


def main() -> None:
    import torch

    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watching_short", description=__doc__)
    parser.add_argument("--lengths", nargs="*", type=int, default=[128, 1024, 4096] if gpu else [128, 512, 1024])
    parser.add_argument("--rounds", type=int, default=15 if gpu else 7)
    parser.add_argument("--steps", type=int, default=64, help="tokens to generate; 0 for no generation")
    parser.add_argument("--profile", type=int, help="also profile a watched forward of this length")
    parser.add_argument("--without-calls", action="store_true", help="no single calls of attend")
    parser.add_argument("--processor-time", action="store_true", help="seconds of the processor, with one thread")
    parser.add_argument("--methods", nargs="*", help="only these, and unwatched")
    parser.add_argument("--bounds", action="store_true", help="on the CPU: exit with 1 where a ratio exceeds its bound")
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    options = parser.parse_args()
    options.clock = time.process_time if options.processor_time else time.perf_counter
    if options.processor_time:
        torch.set_num_threads(1)
    torch.manual_seed(0)
    with torch.no_grad():
        model = llama() if gpu else gpt2()
        rows = [row for length in options.lengths for row in forwards(model, length, options)]
        rows += generations(model, options) if options.steps else []
        rows += single_calls(options.rounds) if gpu and not options.without_calls else []
        if options.profile:
            print(profile(lambda: watched_forward(model, options.profile)))
        if options.profile and gpu and not options.without_calls:
            print(profile(attend_once))
    finish(
        "watching_short" if gpu else "watching_short_cpu", markdown(rows, options.processor_time), report=options.report
    )
    too_slow = [row[:5] for row in rows if float(row[4] or 0) > BOUNDS.get((row[0], row[1]), float("inf"))]
    if options.bounds and not gpu and too_slow:
        sys.exit(f"over their bounds: {too_slow}")


def llama() -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes: dict[str, Any] = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 8}
    heads: dict[str, Any] = {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64}
    config = LlamaConfig(vocab_size=1000, max_position_embeddings=2**17, **sizes, **heads)
    return LlamaForCausalLM._from_config(config, attn_implementation="sdpa").eval().to("cuda", torch.bfloat16)


def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=1000, bos_token_id=0, eos_token_id=None)
    return GPT2LMHeadModel._from_config(config, attn_implementation="sdpa").eval()


def methods(model: Any, run: Run, clock: Clock, every_weight: Run | None = None) -> dict[str, Run]:
    """The run alone and under each watch."""
    import regard
    from regard import See

    def watched(**options: Any) -> Run:
        def method() -> tuple[float, ...]:
            times = [clock()]
            watch = regard.watch(model, **options)
            times.append(clock())
            with watch as trace:
                times.append(clock())
                run()
                times.append(clock())
            times.append(clock())
            wait()
            parts = tuple(after - before for before, after in pairwise(times))
            block = clock() - times[0]
            list(trace)
            return (block, *parts)

        return method

    several = {
        "unwatched": run,
        "watch": watched(),
        "one layer": watched(layers=[3]),
        "LSE only": watched(see=See(map=None, sink=False)),
        "no layer": watched(layers=[]),
        "fused": watched(see=See(fused=True)),
    }
    return several | ({} if every_weight is None else {"eager, output_attentions": every_weight})


def forwards(model: Any, length: int, options: argparse.Namespace) -> list[list[str]]:
    import torch

    body = model.base_model
    ids = torch.randint(0, 1000, (1, length), device=model.device)

    def run() -> None:
        body(ids, use_cache=False)

    def eager() -> None:
        body.set_attn_implementation("eager")
        body(ids, use_cache=False, output_attentions=True)
        body.set_attn_implementation("sdpa")

    several = methods(body, run, options.clock, eager if length <= EAGER else None)
    if options.methods is not None:
        several = {name: several[name] for name in several if name == "unwatched" or name in options.methods}
    return rows_of(f"{length:,} tokens", measured(several, options.rounds, options.clock))


def generations(model: Any, options: argparse.Namespace) -> list[list[str]]:
    import torch

    ids, steps, rounds = (
        torch.randint(0, 1000, (1, 64), device=model.device),
        options.steps,
        max(3, options.rounds // 3),
    )
    tokens: dict[str, Any] = {"max_new_tokens": steps, "min_new_tokens": steps, "do_sample": False, "pad_token_id": 0}

    def run() -> None:
        model.generate(ids, attention_mask=torch.ones_like(ids), **tokens)

    several = methods(model, run, options.clock)
    several = {name: several[name] for name in ("unwatched", "watch")}
    return rows_of(f"{steps} generated", measured(several, rounds, options.clock))


def single_calls(rounds: int, lengths: Sequence[int] = (4096, 16384)) -> list[list[str]]:
    """`attend(see=See(map=256))`, and cuDNN's attention without statistics (on a CPU: PyTorch's): milliseconds.

    The host's time ends when the call returns; the events' is the GPU's, which sleeps until the host has launched.
    """
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from regard import Mask, See, attend

    device, fastest = (
        ("cuda", SDPBackend.CUDNN_ATTENTION) if torch.cuda.is_available() else ("cpu", SDPBackend.FLASH_ATTENTION)
    )
    rows = []
    for length in lengths:
        q, k, v = torch.randn(3, 1, 16, length, 64, device=device, dtype=torch.bfloat16).unbind()
        mask, see = Mask.causal(), See(map=256)

        def seen(q: Any = q, k: Any = k, v: Any = v, mask: Any = mask, see: Any = see) -> None:
            attend(q, k, v, mask=mask, see=see)

        def cudnn(q: Any = q, k: Any = k, v: Any = v) -> None:
            with sdpa_kernel(fastest):
                F.scaled_dot_product_attention(q, k, v, is_causal=True)

        for name, run in (("attend", seen), ("cuDNN", cudnn)):
            found = [single_call(run) for _ in range(rounds + 2)][2:]
            host, wall, events = (f"{1000 * statistics.median(each):.3f}" for each in zip(*found, strict=True))
            what = f"{name}, {length:,} tokens"
            rows += [shown([what, "host", host]), shown([what, "until the GPU has ended", wall])]
            rows.append(shown([what, "events", *[""] * (len(HEADINGS) - 3), events]))
    return rows


def single_call(run: Run) -> tuple[float, float, float]:
    """The seconds until it returns, until the GPU has ended, and those of the GPU; on a CPU all of them are alike."""
    import torch

    wait()
    start = time.perf_counter()
    run()
    host = time.perf_counter() - start
    wait()
    wall = time.perf_counter() - start
    if not torch.cuda.is_available():
        return host, wall, wall
    before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(SLEEP)
    before.record()
    run()
    after.record()
    wait()
    return host, wall, before.elapsed_time(after) / 1000


def measured(several: dict[str, Run], rounds: int, clock: Clock) -> dict[str, list[Measurement]]:
    """The times of each method, round by round; the first two rounds do not count."""
    times: dict[str, list[Measurement]] = {name: [] for name in several}
    for _ in range(rounds + 2):
        for name, run in several.items():
            wait()
            start = clock()
            parts = run()
            wait()
            whole = clock() - start
            block, *rest = parts if isinstance(parts, tuple) else (whole,)
            times[name].append(Measurement(block, whole, tuple(rest)))
    return {name: each[2:] for name, each in times.items()}


def wait() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def rows_of(what: str, found: dict[str, list[Measurement]]) -> list[list[str]]:
    plain = found["unwatched"]
    rows = []
    for name, each in found.items():
        pairs = list(zip(each, plain, strict=True))
        ratios = [
            f"{statistics.median(seconds / other.whole for seconds, other in of):.3f}"
            for of in ([(one.block, other) for one, other in pairs], [(one.whole, other) for one, other in pairs])
        ]
        parts = [f"{1000 * statistics.median(part):.2f}" for part in zip(*(one.parts for one in each), strict=True)]
        middle = statistics.median(one.block for one in each)
        rows.append(shown([what, name, f"{1000 * middle:.2f}", *ratios, *parts]))
    return rows


def shown(cells: list[str]) -> list[str]:
    """A row of the table, printed at once: a long run shows what it has measured."""
    row = cells + [""] * (len(HEADINGS) - len(cells))
    print(" | ".join(row), flush=True)
    return row


def watched_forward(model: Any, length: int) -> None:
    import torch

    import regard

    ids = torch.randint(0, 1000, (1, length), device=model.device)
    with regard.watch(model.base_model):
        model.base_model(ids, use_cache=False)


def attend_once() -> None:
    import torch

    from regard import Mask, See, attend

    q = torch.zeros(1, 16, 4096, 64, device="cuda", dtype=torch.bfloat16)
    attend(q, q, q, mask=Mask.causal(), see=See(map=256))


def profile(run: Run, runs: int = 10) -> str:
    """Where Python spends the time: the functions with the most time in all, and of their own."""
    run()
    profiler = cProfile.Profile()
    with profiler:
        for _ in range(runs):
            run()
    wait()
    text = io.StringIO()
    shown = pstats.Stats(profiler, stream=text)
    shown.sort_stats("cumulative").print_stats("regard|triton", 45)
    shown.sort_stats("tottime").print_stats(25)
    return text.getvalue()


HEADINGS = ("what", "method", "milliseconds", "block", "block and read", *PARTS, "events")


def markdown(rows: list[list[str]], processor_time: bool) -> str:
    """The report."""
    import torch

    machine = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} CPU threads"
    clock = " Milliseconds of the processor, not of the clock." if processor_time else ""
    lines = [
        *heading("Watching short texts"),
        f"{machine}. On a GPU: Llama shape, 8 layers, 2,048 wide, 32 and 8 heads of 64, bfloat16. On the CPU: GPT-2 "
        "124M shape without output layer, float32. Without a cache, except for generation. Milliseconds are "
        f"those of the block; both ratios are over unwatched.{clock}",
        "",
        *table(HEADINGS, rows),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
