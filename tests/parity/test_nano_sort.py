"""A trained model, compared with recorded values of every step: gpt-nano sorts six letters.

The golden file holds the intermediate values of another implementation. Ours must give the same values, in torch and
NumPy, and must sort.
"""

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from real_models import SHARED
from tolerances import assert_close
from torch import nn

from regard import See, reference
from regard.arrays import to_numpy
from regard.checkpoints import read_model
from regard.config import TransformerConfig
from regard.generation import generate
from regard.models import Transformer
from regard.trace import Recorder

GOLDEN = SHARED / "gpt-nano-sort"

pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"the trained model is not at {GOLDEN}")

Outputs = dict[str, Any]
"""The output of each part, by the names of the NumPy model."""

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
"""Names in the file and ours; `as_recorded` computes the rest from these."""


@cache
def golden() -> tuple[TransformerConfig, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The config, the weights, and the recorded values."""
    stored = read_model(GOLDEN / "model")
    with np.load(GOLDEN / "recorded.npz", allow_pickle=False) as file:
        recorded = {name: file[name] for name in file.files if name != "meta"}
    return stored.config, stored.tensors.arrays(), recorded


def by_torch() -> Transformer:
    config, weights, _ = golden()
    model = Transformer(config).eval()
    model.load_state_dict({name: torch.from_numpy(weight.copy()) for name, weight in weights.items()})
    return model


def by_numpy() -> reference.Transformer:
    config, weights, _ = golden()
    return reference.Transformer(config, weights)


# --- every intermediate value ------------------------------------------------------------------------------


def run_torch(ids: np.ndarray, recorder: Recorder) -> Outputs:
    model = by_torch()
    outputs: Outputs = {}

    def attend(q: Any, k: Any, v: Any, *, name: str, **rest: Any) -> Any:
        outputs.update({f"{name}.q": q, f"{name}.k": k, f"{name}.v": v})
        outputs[f"{name}.heads"] = recorder(q, k, v, name=name, **rest)
        return outputs[f"{name}.heads"]

    def store(name: str, module: nn.Module, given: tuple[Any, ...], out: Any) -> None:
        outputs[name] = out
        if name.endswith("feed_forward.down"):
            outputs[name.replace("down", "activation")] = given[0]

    for name, module in model.named_modules():
        module.register_forward_hook(partial(store, name))
    with torch.no_grad():
        outputs["logits"] = model(torch.from_numpy(ids), attend=attend)
    outputs["decoder.positions"] = outputs["decoder.dropout"]  # the input of the first layer
    return {name: to_numpy(x) for name, x in outputs.items()}


def run_numpy(ids: np.ndarray, recorder: Recorder) -> Outputs:
    outputs: Outputs = {}
    by_numpy()(ids, attend=recorder, observer=outputs.__setitem__)
    return outputs


def as_recorded(outputs: Outputs, recorder: Recorder) -> Outputs:
    """All values of the file, by its names, computed from our outputs."""
    config, weights, _ = golden()
    found = {f"partials_{theirs}": outputs[ours] for theirs, ours in NAMES.items()}
    maps = np.stack([to_numpy(record.map) for record in recorder.trace])  # L B H T S
    with np.errstate(divide="ignore"):  # masked keys have weight 0 and score −∞
        scores = np.log(maps[0]) + to_numpy(recorder.trace[0].lse)[..., None]
    layers = range(config.n_decoder_layers or 0)
    return found | {
        "partials_pos_emb": weights["decoder.positions.table"][None],
        "partials_qkv": np.concatenate([outputs[f"{FIRST}.self_attention.{part}_proj"] for part in "qkv"], axis=-1),
        "partials_att": scores,
        "partials_attSm": maps[0],
        "partials_y": reference.merge_heads(outputs[f"{FIRST}.self_attention.heads"]),
        "partials_attnResid": outputs["decoder.positions"] + outputs[f"{FIRST}.self_attention"],
        "partials_probs": reference.softmax(outputs["logits"]),
        "hf_logits": outputs["logits"],
        "hf_attentions": maps,
        "hf_hidden_states": np.stack(
            [
                outputs["decoder.positions"],
                *(outputs[f"decoder.layers.{i}"] for i in layers[:-1]),
                outputs["decoder.norm"],
            ]
        ),
    }


@pytest.mark.parametrize("run", [run_torch, run_numpy], ids=["torch", "numpy"])
def test_every_intermediate_value(run: Callable[[np.ndarray, Recorder], Outputs]) -> None:
    _, _, recorded = golden()
    ids = recorded["partials_idx"].astype(np.int64)
    recorder = Recorder(See(map=11))
    found = as_recorded(run(ids, recorder), recorder)
    assert recorded.keys() - found.keys() == {"partials_idx"}
    for name, numbers in found.items():
        assert numbers.dtype == np.float32, name
        assert_close(numbers, recorded[name], "logits")


# --- the task -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [by_torch, by_numpy], ids=["torch", "numpy"])
def test_it_sorts(model: Callable[[], Any]) -> None:
    """All 729 sequences of six letters 0, 1, 2: the model appends the sorted sequence."""
    prompts = [list(letters) for letters in product(range(3), repeat=6)]
    texts = generate(model(), prompts, max_new=6)
    assert texts == [sorted(prompt) for prompt in prompts]
