"""Train a small vision–language model to name the colour of a shape, then draw where each word looks in the picture.

    python examples/where_a_word_looks.py --steps 2500 --out word_in_picture.png

The model has the classes of LLaVA in Hugging Face's transformers, with 0.2 million weights. A picture of 48 × 72 pixels
shows a circle, a square and a triangle of different colours; the model reads its 54 patches and one word, such as
"circle", and answers with a colour. To answer, the word has to find the shape: this is what the picture shows.
"""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import LlavaConfig, LlavaForConditionalGeneration

import regard
from regard import Trace

HIGH, WIDE, PATCH = 48, 72, 8
GRID = HIGH // PATCH, WIDE // PATCH
COLOURS = {
    "red": (214, 62, 54),
    "green": (66, 158, 84),
    "blue": (58, 104, 200),
    "yellow": (236, 196, 60),
    "white": (238, 236, 230),
    "black": (34, 32, 36),
}
SHAPES = ("circle", "square", "triangle")
WORDS = ("<pad>", "<picture>", *SHAPES, *COLOURS)
PICTURE = WORDS.index("<picture>")


def background(draw: np.random.Generator) -> np.ndarray:
    """A soft gradient with noise, like sky over ground."""
    top, bottom = draw.uniform(90, 200, 3), draw.uniform(60, 170, 3)
    share = np.linspace(0, 1, HIGH)[:, None, None]
    return top * (1 - share) + bottom * share + draw.normal(0, 7, (HIGH, WIDE, 1)) + draw.normal(0, 3, (HIGH, WIDE, 3))


def mask(shape: str, row: float, col: float, size: float) -> np.ndarray:
    """The pixels of a shape."""
    y, x = np.mgrid[:HIGH, :WIDE] - np.array([row, col])[:, None, None]
    if shape == "circle":
        return x**2 + y**2 <= size**2
    if shape == "square":
        return np.maximum(abs(x), abs(y)) <= 0.88 * size
    return (y <= 0.8 * size) & (y >= -size + 2 * abs(x) * 0.9)


class Shape(NamedTuple):
    """The colour of a shape, and its pixels."""

    colour: str
    inside: np.ndarray


def scene(draw: np.random.Generator) -> tuple[np.ndarray, dict[str, Shape]]:
    """A picture of three shapes that do not overlap."""
    found: dict[str, Shape] = {}
    pixels, taken = background(draw), np.zeros((HIGH, WIDE), bool)
    colours = dict(zip(SHAPES, draw.choice(list(COLOURS), len(SHAPES), replace=False).tolist(), strict=True))
    for shape, colour in colours.items():
        for _ in range(100):
            size = draw.uniform(6, 9.5)
            row, col = draw.uniform(size, HIGH - size), draw.uniform(size, WIDE - size)
            if not (taken & mask(shape, row, col, size + 3)).any():
                break
        inside = mask(shape, row, col, size)
        light = 1.12 - 0.3 * (np.mgrid[:HIGH, :WIDE][0] - row + size) / (2 * size)
        pixels[inside] = (np.array(COLOURS[colour]) * light[..., None])[inside]
        taken |= inside
        found[shape] = Shape(colour, inside)
    return np.clip(pixels, 0, 255).astype(np.uint8), found


def batch(draw: np.random.Generator, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures, the ids of what the model reads, and the ids of the answers."""
    scenes = [scene(draw) for _ in range(count)]
    asked = draw.choice(SHAPES, count).tolist()
    pixels = torch.tensor(np.stack([picture for picture, _ in scenes])).permute(0, 3, 1, 2) / 127.5 - 1
    ids = torch.tensor([[PICTURE] * (GRID[0] * GRID[1]) + [WORDS.index(shape)] for shape in asked])
    answers = [WORDS.index(shapes[shape].colour) for (_, shapes), shape in zip(scenes, asked, strict=True)]
    return pixels, ids, torch.tensor(answers)


def model() -> LlavaForConditionalGeneration:
    """A LLaVA of two layers that see and two that read."""
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    sees = sizes | {"model_type": "vit", "image_size": (HIGH, WIDE), "patch_size": PATCH}
    reads = sizes | {"model_type": "llama", "vocab_size": len(WORDS), "pad_token_id": 0, "num_key_value_heads": 4}
    reads |= {"bos_token_id": None, "eos_token_id": None}
    config = LlavaConfig(vision_config=sees, text_config=reads, image_token_index=PICTURE, vision_feature_layer=-1)
    return LlavaForConditionalGeneration(config)


def train(steps: int, seed: int = 0) -> LlavaForConditionalGeneration:
    """The model after this number of batches of 64 pictures."""
    torch.manual_seed(seed)
    draw, reader = np.random.default_rng(seed), model()
    optimiser = torch.optim.AdamW(reader.parameters(), lr=1.5e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1.5e-3, steps, pct_start=0.1)
    start = time.perf_counter()
    for step in range(1, steps + 1):
        pixels, ids, answers = batch(draw, 64)
        logits = reader(input_ids=ids, pixel_values=pixels, logits_to_keep=1).logits[:, -1]
        loss = torch.nn.functional.cross_entropy(logits, answers)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 200 == 0 or step == steps:
            right = (logits.argmax(-1) == answers).float().mean()
            seconds = time.perf_counter() - start
            print(f"{step:5d}  loss {loss:.3f}  right {100 * right:.0f} %  {seconds:.0f} s", flush=True)
    return reader.eval()


def read(reader: LlavaForConditionalGeneration, picture: np.ndarray, word: str) -> tuple[str, Trace]:
    """The answer to a word, and the attention of the forward that gave it."""
    pixels = torch.tensor(picture)[None].permute(0, 3, 1, 2) / 127.5 - 1
    ids = torch.tensor([[PICTURE] * (GRID[0] * GRID[1]) + [WORDS.index(word)]])
    with torch.no_grad(), regard.watch(reader, tokenizer=lambda ids: [WORDS[i] for i in ids]) as trace:
        answer = reader(input_ids=ids, pixel_values=pixels).logits[0, -1].argmax()
    return WORDS[answer], trace


def heads_that_find(reader: LlavaForConditionalGeneration, word: str, count: int = 50) -> dict[tuple[str, int], float]:
    """How much of a word's attention falls on its shape, for each head that reads, on fresh pictures; best first."""
    shares: dict[tuple[str, int], float] = {}
    for seed in range(1000, 1000 + count):
        picture, shapes = scene(np.random.default_rng(seed))
        covered = shapes[word].inside.reshape(GRID[0], PATCH, GRID[1], PATCH).any((1, 3)).reshape(-1)
        for record in read(reader, picture, word)[1]:
            if "language_model" not in record.name:
                continue
            (image,) = record.images
            row = np.asarray(record.weights(rows=-1))[0][:, image.patches]
            for head, weights in enumerate(row):
                shares[record.name, head] = shares.get((record.name, head), 0.0) + weights[covered].sum() / count
    return dict(sorted(shares.items(), key=lambda one: -one[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=7, help="of the picture that is drawn")
    parser.add_argument("--word", default="circle", choices=SHAPES)
    parser.add_argument("--weights", type=Path, help="a file to load the trained weights from, or to save them to")
    parser.add_argument("--out", type=Path, default=Path("word_in_picture.png"))
    parser.add_argument("--lang", choices=("en", "zh"))
    given = parser.parse_args()
    if given.weights is not None and given.weights.exists():
        reader = model().eval()
        reader.load_state_dict(torch.load(given.weights, weights_only=True))
    else:
        reader = train(given.steps)
        if given.weights is not None:
            torch.save(reader.state_dict(), given.weights)
    picture, shapes = scene(np.random.default_rng(given.seed))
    answer, trace = read(reader, picture, given.word)
    print(f"the {given.word} is {shapes[given.word].colour}; the model says {answer}")
    found = heads_that_find(reader, given.word)
    for (name, number), share in list(found.items())[:3]:
        print(f"{name}, head {number}: {100 * share:.0f} % of the attention of “{given.word}” on the {given.word}")
    layer, head = next(iter(found))
    trace.image(given.word, layer=layer, head=head, lang=given.lang).savefig(given.out, dpi=150)
    print(given.out)


if __name__ == "__main__":
    main()
