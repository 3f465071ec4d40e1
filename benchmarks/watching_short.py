"""python -m benchmarks.watching_short: the time of watched forwards of short texts over unwatched ones.

On a GPU a Llama shape in bfloat16, on the CPU GPT-2's shape in float32. The methods of one length take turns in one
process, and each ratio is the median of its rounds. --lengths, --rounds, --steps N for a generation of N tokens,
--profile LENGTH for where Python spends the time of a watched forward, --report.
"""

import argparse
import cProfile
import io
import pstats
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.dated import finish, heading, table

Run = Callable[[], object]

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
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    options = parser.parse_args()
    torch.manual_seed(0)
    with torch.no_grad():
        model = llama() if gpu else gpt2()
        rows = [row for length in options.lengths for row in forwards(model, length, options.rounds)]
        rows += generations(model, options.steps, max(3, options.rounds // 3)) if options.steps else []
        rows += single_calls(options.rounds) if gpu and not options.without_calls else []
        if options.profile:
            print(profile(lambda: watched_forward(model, options.profile)))
        if options.profile and gpu and not options.without_calls:
            print(profile(attend_once))
    finish("watching_short", markdown(rows), report=options.report)


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


def methods(model: Any, run: Run, every_weight: Run | None = None) -> dict[str, Run]:
    """The run alone and under each watch."""
    import regard
    from regard import See

    def watched(**options: Any) -> Run:
        def method() -> None:
            with regard.watch(model, **options):
                run()

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


def forwards(model: Any, length: int, rounds: int) -> list[list[str]]:
    import torch

    body = model.base_model
    ids = torch.randint(0, 1000, (1, length), device=model.device)

    def run() -> None:
        body(ids, use_cache=False)

    def eager() -> None:
        body.set_attn_implementation("eager")
        body(ids, use_cache=False, output_attentions=True)
        body.set_attn_implementation("sdpa")

    found = measured(methods(body, run, eager if length <= EAGER else None), rounds)
    return rows_of(f"{length:,} tokens", found)


def generations(model: Any, steps: int, rounds: int) -> list[list[str]]:
    import torch

    ids = torch.randint(0, 1000, (1, 64), device=model.device)
    options: dict[str, Any] = {"max_new_tokens": steps, "min_new_tokens": steps, "do_sample": False, "pad_token_id": 0}

    def run() -> None:
        model.generate(ids, attention_mask=torch.ones_like(ids), **options)

    several = methods(model, run)
    return rows_of(f"{steps} generated", measured({name: several[name] for name in ("unwatched", "watch")}, rounds))


def single_calls(rounds: int) -> list[list[str]]:
    """The time until `attend(see=See(map=256))` returns, without waiting for the GPU; milliseconds."""
    import torch

    from regard import Mask, See, attend

    rows = []
    for length in (4096, 16384):
        q, k, v = torch.randn(3, 1, 16, length, 64, device="cuda", dtype=torch.bfloat16).unbind()
        mask, see = Mask.causal(), See(map=256)
        attend(q, k, v, mask=mask, see=see)
        host, wall = [], []
        for _ in range(rounds):
            torch.cuda.synchronize()
            start = time.perf_counter()
            attend(q, k, v, mask=mask, see=see)
            host.append(time.perf_counter() - start)
            torch.cuda.synchronize()
            wall.append(time.perf_counter() - start)
        cells = [f"{1000 * statistics.median(each):.2f}" for each in (host, wall)]
        rows.append([f"attend, {length:,} tokens", "host time", cells[0], ""])
        rows.append([f"attend, {length:,} tokens", "with the GPU's", cells[1], ""])
    return rows


def measured(several: dict[str, Run], rounds: int) -> dict[str, list[float]]:
    """The seconds of each method, round by round; the first two rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in several}
    for _ in range(rounds + 2):
        for name, run in several.items():
            wait()
            start = time.perf_counter()
            run()
            wait()
            times[name].append(time.perf_counter() - start)
    return {name: each[2:] for name, each in times.items()}


def wait() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def rows_of(what: str, found: dict[str, list[float]]) -> list[list[str]]:
    plain = found["unwatched"]
    rows = []
    for name, each in found.items():
        ratio = statistics.median(one / other for one, other in zip(each, plain, strict=True))
        rows.append([what, name, f"{1000 * statistics.median(each):.2f}", f"{ratio:.3f}"])
    return rows


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


HEADINGS = ("what", "method", "milliseconds", "over unwatched")


def markdown(rows: list[list[str]]) -> str:
    """The report."""
    import torch

    machine = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} CPU threads"
    lines = [
        *heading("Watching short texts"),
        f"{machine}. On a GPU: Llama shape, 8 layers, 2,048 wide, 32 and 8 heads of 64, bfloat16. On the CPU: GPT-2 "
        "124M shape without output layer, float32. Without a cache, except for generation.",
        "",
        *table(HEADINGS, rows),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
