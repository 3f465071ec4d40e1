"""`edit` against the same change by hand: a hook replaces columns of what the output projection reads."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import torch
from architectures import ARCHITECTURES
from narrowing import present
from tolerances import assert_close
from torch import Tensor, nn

import regard
from regard import See
from regard.trace import Trace

PROJECTIONS = {
    "GPT2Model": "c_proj",
    "LlamaModel": "o_proj",
    "GPTNeoXModel": "dense",
    "BertModel": "../output.dense",
    "T5Model": "o",
    "BartModel": "out_proj",
}
HEADS = 4
Change = Callable[[str, Tensor], Tensor]
"""From the name of an attention and its outputs, B H T Ev, to other outputs."""


@contextmanager
def changed_by_hand(model: nn.Module, kind: str, names: list[str], change: Change) -> Iterator[None]:
    """Change what the output projections of these modules read."""
    with ExitStack() as stack:
        for name in names:
            own, suffix = name, PROJECTIONS[kind]
            if suffix.startswith("../"):
                own, suffix = name.rpartition(".")[0], suffix[3:]
            projection = model.get_submodule(f"{own}.{suffix}")

            def hook(_: nn.Module, args: tuple[Tensor], name: str = name) -> tuple[Tensor]:
                outputs = args[0].unflatten(-1, (HEADS, -1)).transpose(1, 2)
                return (change(name, outputs).transpose(1, 2).flatten(2),)

            stack.callback(projection.register_forward_pre_hook(hook).remove)
        yield


class Case:
    """A model with two texts, and what its heads computed on both."""

    def __init__(self, kind: str, implementation: str) -> None:
        architecture = next(one for one in ARCHITECTURES if one.name == kind)
        torch.manual_seed(0)
        self.kind, self.model = kind, architecture.build().eval()
        if implementation == "eager" or architecture.fused:
            self.model.set_attn_implementation(implementation)
        self.inputs = self._texts(architecture.inputs())
        self.others = {key: ids.flip(0, 1).contiguous() for key, ids in self.inputs.items()}
        self.trace, self.other = self.watched(self.inputs), self.watched(self.others)
        self.names = self.trace.names

    def _texts(self, given: dict[str, Any]) -> dict[str, Tensor]:
        return {key: ids.clamp_min(3) for key, ids in given.items() if key != "attention_mask"}  # without padding

    def watched(self, inputs: dict[str, Tensor]) -> Trace:
        with torch.no_grad(), regard.watch(self.model, see=See(outputs=True)) as trace:
            self.model(**inputs)
        return trace

    def run(self, more: dict[str, Tensor] | None = None, **edits: Any) -> Tensor:
        with torch.no_grad(), regard.edit(self.model, **edits):
            found: Tensor = self.model(**self.inputs, **(more or {})).last_hidden_state
        return found

    def by_hand(self, change: Change, **more: Tensor) -> Tensor:
        with torch.no_grad(), changed_by_hand(self.model, self.kind, self.names, change):
            found: Tensor = self.model(**self.inputs, **more).last_hidden_state
        return found


def with_head(outputs: Tensor, head: int, value: Tensor | float) -> Tensor:
    outputs = outputs.clone()
    outputs[:, head] = value
    return outputs


@pytest.fixture(params=[(kind, way) for kind in PROJECTIONS for way in ("sdpa", "eager")], ids="-".join, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    with torch.random.fork_rng():
        return Case(*request.param)


def test_silence_is_zero(case: Case) -> None:
    wanted = case.by_hand(lambda name, outputs: with_head(outputs, 1, 0.0))
    assert_close(case.run(silence={name: [1] for name in case.names}), wanted, "logits")
    assert not torch.allclose(wanted, case.run(), atol=1e-3)


def test_mean_is_the_mean_over_queries(case: Case) -> None:
    wanted = case.by_hand(lambda name, outputs: with_head(outputs, 2, outputs[:, 2].mean(1, keepdim=True)))
    assert_close(case.run(mean={name: [2] for name in case.names}), wanted, "logits")


@pytest.mark.parametrize("side", ["left", "right"])
def test_mean_leaves_out_padding(case: Case, side: str) -> None:
    """Of each side: the queries of cross-attention are the decoder's."""
    masks = {}
    for key, ids in case.inputs.items():
        mask = masks[key.replace("input_ids", "attention_mask")] = torch.ones_like(ids)
        mask[1, slice(None, 2) if side == "left" else slice(-2, None)] = 0
    own = masks["attention_mask"]

    def change(name: str, outputs: Tensor) -> Tensor:
        text = masks.get("decoder_attention_mask", own) if "decoder" in name else own
        kept = text[..., None].to(outputs.dtype)
        mean = (outputs[:, 2] * kept).sum(1, keepdim=True) / kept.sum(1, keepdim=True)
        return with_head(outputs, 2, mean)

    wanted, found = case.by_hand(change, **masks), case.run(masks, mean={name: [2] for name in case.names})
    last = masks.get("decoder_attention_mask", own).bool()
    assert_close(found[last], wanted[last], "logits")
    whole = case.by_hand(lambda name, outputs: with_head(outputs, 2, outputs[:, 2].mean(1, keepdim=True)), **masks)
    assert (found - wanted)[last].abs().max() < (whole - wanted)[last].abs().max() / 10


def test_resample_is_the_other_run(case: Case) -> None:
    wanted = case.by_hand(lambda name, outputs: with_head(outputs, 3, present(case.other[name].outputs)[:, 3]))
    assert_close(case.run(resample={name: (case.other[name], [3]) for name in case.names}), wanted, "logits")


def test_mean_of_other_texts(case: Case) -> None:
    means = {name: present(case.other[name].outputs).mean((0, 2)) for name in case.names}
    wanted = case.by_hand(lambda name, outputs: with_head(outputs, 0, means[name][0]))
    for source in (case.other, means):
        given = {name: (source if source is case.other else means[name], [0]) for name in case.names}
        assert_close(case.run(mean=given), wanted, "logits")
    every = case.by_hand(lambda name, outputs: means[name][None, :, None].expand(outputs.shape))
    assert_close(case.run(mean=case.other), every, "logits")
