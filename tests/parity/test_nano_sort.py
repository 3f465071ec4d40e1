"""A real trained model, number for number: gpt-nano sorts six letters, and every step of it was written down.

The golden file holds what others' code computed on the way. Ours must give the same at every step, in torch and in
NumPy, and must sort.
"""

import json
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from families import config_of, weights_of
from safetensors.numpy import load_file
from tolerances import assert_close
from torch import nn

from regard import See, reference
from regard.arrays import to_numpy
from regard.config import TransformerConfig
from regard.generation import generate
from regard.models import Transformer
from regard.trace import Looking

GOLDEN = Path(__file__).parents[2].parent / "shared" / "golden" / "gpt-nano-sort"

pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"the trained model is not at {GOLDEN}")

Seen = dict[str, Any]
"""What each part gave, by the names that the NumPy model tells."""

FIRST = "decoder.layers.0"
NAMES = {
    "tok_emb": "embedding",
    "x": "decoder.positions",
    "ln1": f"{FIRST}.self_attention_norm",
    "q": f"{FIRST}.self_attention.q",
    "k": f"{FIRST}.self_attention.k",
    "v": f"{FIRST}.self_attention.v",
    "yProj": f"{FIRST}.self_attention",
    "ln2": f"{FIRST}.feed_forward_norm",
    "fc": f"{FIRST}.feed_forward.up",
    "gelu": f"{FIRST}.feed_forward.activation",
    "mlp": f"{FIRST}.feed_forward",
    "mlpResid": FIRST,
    "block0": "decoder.layers.0",
    "block1": "decoder.layers.1",
    "block2": "decoder.layers.2",
    "ln_f": "decoder.norm",
    "lm_head": "logits",
}
"""What the file calls it, and what we do; the rest is made of these in `as_recorded`."""


@cache
def golden() -> tuple[TransformerConfig, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The config, the weights, and what was written down."""
    theirs = SimpleNamespace(**json.loads((GOLDEN / "model" / "config.json").read_text(encoding="utf-8")))
    with np.load(GOLDEN / "recorded.npz", allow_pickle=False) as file:
        recorded = {name: file[name] for name in file.files if name != "meta"}
    return config_of(theirs), weights_of(load_file(GOLDEN / "model" / "model.safetensors"), theirs), recorded


def by_torch() -> Transformer:
    config, weights, _ = golden()
    model = Transformer(config).eval()
    model.load_state_dict({name: torch.from_numpy(weight.copy()) for name, weight in weights.items()})
    return model


def by_numpy() -> reference.Transformer:
    config, weights, _ = golden()
    return reference.Transformer(config, weights)


# --- every number on the way ------------------------------------------------------------------------------


def run_torch(ids: np.ndarray, look: Looking) -> Seen:
    model = by_torch()
    seen: Seen = {}

    def attend(q: Any, k: Any, v: Any, *, name: str, **rest: Any) -> Any:
        seen.update({f"{name}.q": q, f"{name}.k": k, f"{name}.v": v})
        seen[f"{name}.heads"] = look(q, k, v, name=name, **rest)
        return seen[f"{name}.heads"]

    def note(name: str, module: nn.Module, given: tuple[Any, ...], out: Any) -> None:
        seen[name] = out
        if name.endswith("feed_forward.down"):
            seen[name.replace("down", "activation")] = given[0]

    for name, module in model.named_modules():
        module.register_forward_hook(partial(note, name))
    with torch.no_grad():
        seen["logits"] = model(torch.from_numpy(ids), attend=attend)
    seen["decoder.positions"] = seen["decoder.dropout"]  # what enters the first layer
    return {name: to_numpy(x) for name, x in seen.items()}


def run_numpy(ids: np.ndarray, look: Looking) -> Seen:
    seen: Seen = {}
    by_numpy()(ids, attend=look, tell=seen.__setitem__)
    return seen


def as_recorded(seen: Seen, look: Looking) -> Seen:
    """Everything that the file holds, by its names there, made of what we saw."""
    config, weights, _ = golden()
    found = {f"partials_{theirs}": seen[ours] for theirs, ours in NAMES.items()}
    looks = np.stack([to_numpy(record.map) for record in look.trace])  # L B H T S
    with np.errstate(divide="ignore"):  # what is in the future has weight 0, and score −∞
        scores = np.log(looks[0]) + to_numpy(look.trace[0].lse)[..., None]
    layers = range(config.n_decoder_layers or 0)
    return found | {
        "partials_pos_emb": weights["decoder.positions.table"][None],
        "partials_qkv": np.concatenate([seen[f"{FIRST}.self_attention.{part}_proj"] for part in "qkv"], axis=-1),
        "partials_att": scores,
        "partials_attSm": looks[0],
        "partials_y": reference.merge_heads(seen[f"{FIRST}.self_attention.heads"]),
        "partials_attnResid": seen["decoder.positions"] + seen[f"{FIRST}.self_attention"],
        "partials_probs": reference.softmax(seen["logits"]),
        "hf_logits": seen["logits"],
        "hf_attentions": looks,
        "hf_hidden_states": np.stack(
            [seen["decoder.positions"], *(seen[f"decoder.layers.{i}"] for i in layers[:-1]), seen["decoder.norm"]]
        ),
    }


@pytest.mark.parametrize("run", [run_torch, run_numpy], ids=["torch", "numpy"])
def test_every_number_on_the_way(run: Callable[[np.ndarray, Looking], Seen]) -> None:
    _, _, recorded = golden()
    ids = recorded["partials_idx"].astype(np.int64)
    look = Looking(See(map=11))
    found = as_recorded(run(ids, look), look)
    assert recorded.keys() - found.keys() == {"partials_idx"}
    for name, numbers in found.items():
        assert numbers.dtype == np.float32, name
        assert_close(numbers, recorded[name], "logits")


# --- and what it is for -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [by_torch, by_numpy], ids=["torch", "numpy"])
def test_it_sorts(model: Callable[[], Any]) -> None:
    """Six of the letters 0, 1, 2, all 729 ways: what the model adds to them is the same six in order."""
    prompts = [list(letters) for letters in product(range(3), repeat=6)]
    texts = generate(model(), prompts, max_new=6)
    assert texts == [sorted(prompt) for prompt in prompts]
