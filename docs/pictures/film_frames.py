"""python docs/pictures/film_frames.py RUN: trains the recipe `copy` in the folder RUN, and saves frames for lesson 8.

Writes the weights of the only head of cross-attention, at a few steps, and the loss of every tenth step, to
src/regard/course/drawings/measured/copy-film.json. The picture of the lesson reads this file.
"""

import json
import sys
from pathlib import Path

import numpy as np

from regard import read_trace
from regard.recipes import read_recipe
from regard.recipes.running import train

STEPS = (0, 60, 100, 800)
TARGET = Path(__file__).parents[2] / "src/regard/course/drawings/measured/copy-film.json"


def main(run: Path) -> None:
    train(read_recipe("copy"), data=None, out=run, device="cpu", film=True)
    traces = {step: read_trace(run / f"film/step-{step:08d}.safetensors") for step in STEPS}
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    record = traces[STEPS[0]][0]
    assert record.query_tokens is not None
    assert record.key_tokens is not None
    frames = {str(step): np.asarray(trace[0].weights())[0, 0].round(3).tolist() for step, trace in traces.items()}
    losses = {str(line["step"]): round(line["loss"], 4) for line in lines if "loss" in line and line["step"] % 10 == 0}
    data = {"name": record.name, "rows": record.query_tokens[0], "columns": record.key_tokens[0], "frames": frames}
    TARGET.write_text(json.dumps(data | {"loss": losses}, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
