"""python docs/pictures/film_frames.py RECIPE RUN: trains a recipe in the folder RUN, and saves frames for a lesson.

The recipe is `copy` (lesson 8) or `induction` (lesson 11). Writes the weights of each layer's only head at a few steps,
and the loss of every tenth step, to src/regard/course/drawings/measured/RECIPE-film.json. The pictures read this file.
"""

import json
import sys
from pathlib import Path

import numpy as np

from regard import read_trace
from regard.recipes import read_recipe
from regard.recipes.running import train

STEPS = {"copy": (0, 60, 100, 800), "induction": (10, 100, 140, 600)}
FOLDER = Path(__file__).parents[2] / "src/regard/course/drawings/measured"


def main(recipe: str, run: Path) -> None:
    train(read_recipe(recipe), data=None, out=run, device="cpu", film=True)
    write(recipe, run)


def write(recipe: str, run: Path) -> None:
    """The stored frames of a film that is recorded."""
    traces = {step: read_trace(run / f"film/step-{step:08d}.safetensors") for step in STEPS[recipe]}
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    first = traces[STEPS[recipe][0]]
    assert first[0].query_tokens is not None
    assert first[0].key_tokens is not None
    frames = {
        record.name: {
            str(step): np.asarray(trace[record.name].weights())[0, 0].round(3).tolist()
            for step, trace in traces.items()
        }
        for record in first
    }
    losses = {str(line["step"]): round(line["loss"], 4) for line in lines if "loss" in line and line["step"] % 10 == 0}
    data = {"rows": first[0].query_tokens[0], "columns": first[0].key_tokens[0], "frames": frames, "loss": losses}
    path = FOLDER / f"{recipe}-film.json"
    path.write_text(json.dumps(data, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
