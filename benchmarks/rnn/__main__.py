"""python -m benchmarks.rnn [--part NAME …] [--quick] [--report]: RNN against Transformer, at equal parameters and data.

recall        the copy puzzle by five models, each with its own learning rate: accuracy by distance. Minutes on a CPU
gradient      the gradient that reaches the first word, by distance
time          training per word, and generation of the next word, by length
work          sequential steps and multiplications, counted
memory        what training and generation keep, by length
translation   BLEU of a bundled recipe with five models, each with its own learning rate; needs --data and --out. With
              --size small an hour on a CPU core; the full size needs a GPU

--report writes results/rnn_DAY.md and .json; parts measured before on the same day are kept, as are other recipes and
sizes of translation, and times of another device. It also writes the data of the pictures in lesson 9. With --out, the
same command continues an interrupted part.
"""

import argparse
import json
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import torch

from benchmarks.commit import commit
from benchmarks.dated import RESULTS, finish
from benchmarks.rnn import costs
from benchmarks.rnn.recall import recall
from benchmarks.rnn.report import TIME_ON_GPU, markdown
from benchmarks.rnn.translation import SMALL, Size, translation
from benchmarks.rnn.tuning import Place

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
    measured = dict(measure(part, options) for part in options.part)
    known = json.loads(path.read_text(encoding="utf-8")) if options.report and path.exists() else {}
    results = merged(known, measured)
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
    parser.add_argument("--steps", type=int, help="training steps of recall (default 1500) or translation")
    parser.add_argument("--trial-steps", type=int, help="of each run that chooses a learning rate; default: an eighth")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of recall; default: 1 2 3")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--recipe", default="multi30k-en-de", choices=SMALL, help="of translation: a bundled recipe")
    parser.add_argument("--size", default="full", choices=get_args(Size), help="of translation; default: full")
    parser.add_argument("--data", type=Path, help="of translation: the folder of the recipe's data")
    parser.add_argument("--out", type=Path, help="the folder of the runs of recall and translation")
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    options = parser.parse_args()
    if "translation" in options.part and (options.data is None or options.out is None):
        parser.error("--part translation needs --data and --out")
    return options


def merged(known: dict[str, Any], measured: dict[str, Any]) -> dict[str, Any]:
    """All results: new ones replace those of the same part, and of the same recipe and size of translation."""
    translations = known.get("translation", {}) | measured.get("translation", {})
    return known | measured | ({"translation": translations} if translations else {})


def measure(part: str, options: argparse.Namespace) -> tuple[str, Any]:
    """The name under which the results of a part are kept, and its numbers."""
    quick, device = options.quick, options.device
    lengths = LENGTHS[:2] if quick else LENGTHS
    rounds, tokens = (2, 256) if quick else (ROUNDS, TOKENS)
    print(f"measuring {part}", flush=True)
    match part:
        case "gradient":
            return part, costs.gradients(DISTANCES[:3] if quick else DISTANCES)
        case "work":
            return part, costs.work(lengths)
        case "memory":
            return part, {"training": costs.training_memory(lengths), "generation": costs.generation_memory(lengths)}
        case "time":
            training = costs.training_times(lengths, tokens, rounds, device)
            generation = costs.generation_times(lengths, rounds, device)
            found = {"device": device, "tokens": tokens, "training": training, "generation": generation}
            if device == "cpu":
                return part, found
            name = torch.cuda.get_device_name(device)
            versions = (
                f"Commit {commit()}, python {platform.python_version()}, torch {torch.__version__.partition('+')[0]}"
            )
            return TIME_ON_GPU, found | {"device": f"{name}, torch {torch.__version__}", "versions": versions}
    with tempfile.TemporaryDirectory() as folder:
        return part, trained(part, options, options.out or Path(folder))


def trained(part: str, options: argparse.Namespace, out: Path) -> Any:
    """The numbers of recall or translation, with the runs in a folder."""
    steps, trial_steps = options.steps, options.trial_steps
    if part == "recall":
        steps = steps or (8 if options.quick else 1500)
        trial_steps = trial_steps or steps // 8
        return recall(steps, trial_steps, options.seeds, Place(None, out / "recall", options.device))
    key = options.recipe if options.size == "full" else f"{options.recipe}, {options.size}"
    place = Place(options.data, out / f"{options.recipe}-{options.size}", options.device)
    return {key: translation(options.recipe, options.size, steps, trial_steps, place)}


if __name__ == "__main__":
    main()
