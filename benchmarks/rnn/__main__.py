"""python -m benchmarks.rnn [--part NAME …] [--quick] [--report]: RNN against Transformer, at equal parameters and data.

recall        the copy puzzle by five models: accuracy by distance. A few minutes for each on a CPU
gradient      the gradient that reaches the first word, by distance
time          training per word, and generation of the next word, by length
work          sequential steps and multiplications, counted
memory        what training and generation keep, by length
translation   BLEU of a bundled recipe with five models; needs --data, --out and in practice a GPU

--report writes results/rnn_DAY.md and .json; parts measured before on the same day are kept. It also writes the data of
the pictures in lesson 9.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from benchmarks.dated import RESULTS, finish
from benchmarks.rnn import costs
from benchmarks.rnn.recall import recall
from benchmarks.rnn.report import markdown
from benchmarks.rnn.translation import translation

PICTURE = Path(__file__).parents[2] / "src/regard/course/drawings/measured/rnn.json"
PARTS = ("gradient", "work", "memory", "time", "recall", "translation")
DISTANCES = (4, 8, 16, 32, 64, 128, 256, 512)
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)
TOKENS, ROUNDS = 2048, 4
"""Words of a training batch; measurements of which the shortest counts."""


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    path = RESULTS / f"rnn_{datetime.now(UTC).date().isoformat()}.json"
    measured = {part: measure(part, options) for part in options.part}
    known = json.loads(path.read_text(encoding="utf-8")) if options.report and path.exists() else {}
    results: dict[str, Any] = known | measured
    finish("rnn", markdown(results), report=options.report)
    if options.report:
        text = json.dumps(results, indent=1) + "\n"
        path.write_text(text, encoding="utf-8")
        PICTURE.write_text(text, encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rnn", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS[:-1]))
    parser.add_argument("--quick", action="store_true", help="short texts and few steps, to see that it runs")
    parser.add_argument("--steps", type=int, help="training steps of recall (default 800) or translation")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--recipe", default="multi30k-en-de", help="of translation: a bundled recipe")
    parser.add_argument("--data", type=Path, help="of translation: the folder of the recipe's data")
    parser.add_argument("--out", type=Path, help="of translation: the folder of the runs")
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    options = parser.parse_args()
    if "translation" in options.part and (options.data is None or options.out is None):
        parser.error("--part translation needs --data and --out")
    return options


def measure(part: str, options: argparse.Namespace) -> Any:
    """The numbers of one part."""
    quick, device = options.quick, options.device
    lengths = LENGTHS[:2] if quick else LENGTHS
    rounds, tokens = (2, 256) if quick else (ROUNDS, TOKENS)
    print(f"measuring {part}", flush=True)
    match part:
        case "gradient":
            return costs.gradients(DISTANCES[:3] if quick else DISTANCES)
        case "work":
            return costs.work(lengths)
        case "memory":
            return {"training": costs.training_memory(lengths), "generation": costs.generation_memory(lengths)}
        case "time":
            training = costs.training_times(lengths, tokens, rounds, device)
            generation = costs.generation_times(lengths, rounds, device)
            return {"device": device, "tokens": tokens, "training": training, "generation": generation}
        case "recall":
            steps = options.steps or (5 if quick else 800)
            return {"steps": steps, "models": recall(steps)}
    return {options.recipe: translation(options.recipe, options.data, options.out, device, options.steps)}


if __name__ == "__main__":
    main()
