"""Calls and known mistakes of `transformer-forward`: what is embedded, added, normalised and passed on, and where.

The parts are stand-ins, linear in their weights: a wrong layer, mask or memory changes every number.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.random_inputs import numbers

NAME = "transformer"


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def model(V: int, D: int, encoders: int, decoders: int) -> dict[str, Any]:
        def norm() -> tuple[np.ndarray, np.ndarray]:
            return 1 + numbers(rng, D, spread=0.3), numbers(rng, D, spread=0.3)

        return {
            "embedding": numbers(rng, V, D),
            "encoder": [{"W": numbers(rng, D, D)} for _ in range(encoders)],
            "encoder_norm": norm(),
            "decoder": [{"W": numbers(rng, D, D), "U": numbers(rng, D, D)} for _ in range(decoders)],
            "decoder_norm": norm(),
        }

    def forward(
        B: int, S: int, T: int, V: int, D: int, layers: tuple[int, int], heads: int, lengths: Sequence[int], about: str
    ) -> Call:
        source, target = rng.integers(0, V, (B, S)), rng.integers(0, V, (B, T))
        source_mask = np.arange(S) < np.array(lengths)[:, None]  # B S
        return call(NAME, source, target, model(V, D, *layers), heads, source_mask, about=about)

    return [
        forward(1, 4, 3, 7, 4, (1, 1), 2, [4], ""),
        forward(2, 5, 4, 9, 6, (2, 3), 2, [5, 3], "padding"),
        forward(2, 3, 5, 8, 4, (3, 2), 1, [1, 3], "layers"),
        forward(1, 4, 1, 6, 4, (2, 2), 4, [3], "one-token"),
        forward(3, 4, 4, 5, 4, (2, 2), 2, [4, 2, 3], "all-the-same"),
        forward(1, 1, 3, 6, 2, (1, 2), 1, [1], "one-source-token"),
    ]


SCALE = 'np.sqrt(weights["embedding"].shape[1])'
SOURCE = 'weights["embedding"][source] * scale'
TARGET = 'weights["embedding"][target] * scale'
SOURCE_POSITIONS = "    x = x + positional_encoding(x.shape[1], x.shape[2])\n"
TARGET_POSITIONS = "    y = y + positional_encoding(y.shape[1], y.shape[2])\n"
ENCODER = "x = encoder_block(x, layer, n_heads, source_mask)"
DECODER = "y = decoder_block(y, memory, layer, n_heads, source_mask)"
MEMORY = 'layer_norm(x, *weights["encoder_norm"])'
LAST_NORM = '    y = layer_norm(y, *weights["decoder_norm"])\n'
RETURN = 'return y @ weights["embedding"].T'
EVERYTHING = "np.ones_like({})"

MISTAKES = (
    Mistake("not-scaled", ((SCALE, "1.0"),)),
    Mistake("target-not-scaled", ((TARGET, TARGET.removesuffix(" * scale")),)),
    Mistake("source-not-scaled", ((SOURCE, SOURCE.removesuffix(" * scale")),)),
    Mistake("divided-by-root", ((SCALE, f"1 / {SCALE}"),)),
    Mistake("scaled-by-width", ((SCALE, 'weights["embedding"].shape[1]'),)),
    Mistake(
        "positions-scaled",
        (
            (SOURCE, SOURCE.removesuffix(" * scale")),
            (TARGET, TARGET.removesuffix(" * scale")),
            (SOURCE_POSITIONS, SOURCE_POSITIONS.replace("= x +", "= scale * (x +").replace("\n", ")\n")),
            (TARGET_POSITIONS, TARGET_POSITIONS.replace("= y +", "= scale * (y +").replace("\n", ")\n")),
        ),
    ),
    Mistake("no-positions", ((SOURCE_POSITIONS, ""), (TARGET_POSITIONS, ""))),
    Mistake("no-source-positions", ((SOURCE_POSITIONS, ""),)),
    Mistake("no-target-positions", ((TARGET_POSITIONS, ""),)),
    Mistake(
        "positions-in-every-layer",
        ((ENCODER, f"{ENCODER}\n        x = x + positional_encoding(x.shape[1], x.shape[2])"),),
    ),
    Mistake("no-encoder-norm", ((MEMORY, "x"),)),
    Mistake("no-decoder-norm", ((LAST_NORM, ""),)),
    Mistake("no-final-norms", ((MEMORY, "x"), (LAST_NORM, ""))),
    Mistake(
        "norms-swapped",
        (("encoder_norm", "former_norm"), ("decoder_norm", "encoder_norm"), ("former_norm", "decoder_norm")),
    ),
    Mistake(
        "norm-in-every-layer",
        ((MEMORY, "x"), (ENCODER, f"{ENCODER}\n        x = {MEMORY}")),
    ),
    Mistake(
        "layers-reversed",
        (
            ('in weights["encoder"]', 'in weights["encoder"][::-1]'),
            ('in weights["decoder"]', 'in weights["decoder"][::-1]'),
        ),
    ),
    Mistake(
        "first-layer-only",
        (
            ('in weights["encoder"]', 'in weights["encoder"][:1]'),
            ('in weights["decoder"]', 'in weights["decoder"][:1]'),
        ),
    ),
    Mistake(
        "first-layer-repeated",
        (
            (ENCODER, ENCODER.replace("layer,", 'weights["encoder"][0],')),
            (DECODER, DECODER.replace("layer,", 'weights["decoder"][0],')),
        ),
    ),
    Mistake("encoder-skipped", ((ENCODER, "pass"),)),
    Mistake("memory-from-target", (("y, memory, layer", "y, y[:, :1] + 0 * memory, layer"),)),
    Mistake("memory-not-encoded", ((DECODER, DECODER.replace("memory", f"({SOURCE})")),)),
    Mistake(
        "memory-of-each-layer",
        (
            (ENCODER, f"{ENCODER}\n        states.append({MEMORY})"),
            ('    for layer in weights["encoder"]:', '    states = []\n    for layer in weights["encoder"]:'),
            (DECODER, f"memory, states = states[0], states[1:] or states\n        {DECODER}"),
        ),
    ),
    Mistake(
        "source-mask-unused",
        (
            (ENCODER, ENCODER.replace("source_mask", EVERYTHING.format("source_mask"))),
            (DECODER, DECODER.replace("source_mask", EVERYTHING.format("source_mask"))),
        ),
    ),
    Mistake("cross-mask-unused", ((DECODER, DECODER.replace("source_mask", EVERYTHING.format("source_mask"))),)),
    Mistake("encoder-mask-unused", ((ENCODER, ENCODER.replace("source_mask", EVERYTHING.format("source_mask"))),)),
    Mistake("one-head", (("layer, n_heads", "layer, 1"),)),
    Mistake("last-token-only", ((RETURN, 'return y[:, -1] @ weights["embedding"].T'),)),
    Mistake(
        "probabilities",
        ((RETURN, f"{RETURN.replace('return', 'z =')}\n    z = np.exp(z)\n    return z / z.sum(-1, keepdims=True)"),),
    ),
    Mistake("logits-scaled", ((RETURN, f"{RETURN} / scale"),)),
    Mistake("vectors-returned", ((RETURN, "return y"),)),
    Mistake("memory-returned", ((RETURN, 'return memory @ weights["embedding"].T'),)),
    *(
        Mistake(f"one-{stack}-layer", ((f'in weights["{stack}"]', f'in weights["{stack}"][:1]'),))
        for stack in ("encoder", "decoder")
    ),
    Mistake(
        "memory-not-encoded",
        ((SOURCE_POSITIONS, f"{SOURCE_POSITIONS}    start = x\n"), (DECODER, DECODER.replace("memory", "start"))),
    ),
    Mistake(
        "memory-of-each-layer",
        (
            (ENCODER, f"{ENCODER}\n        states.append(x)"),
            ('    for layer in weights["encoder"]:', '    states = []\n    for layer in weights["encoder"]:'),
            (DECODER, f"memory, states = states[0], states[1:] or states\n        {DECODER}"),
        ),
    ),
    Mistake(
        "positions-continue",
        (
            (
                TARGET_POSITIONS,
                "    S = source.shape[1]\n    y = y + positional_encoding(S + y.shape[1], y.shape[2])[S:]\n",
            ),
        ),
    ),
    Mistake("root-of-vocabulary", ((SCALE, 'np.sqrt(weights["embedding"].shape[0])'),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
