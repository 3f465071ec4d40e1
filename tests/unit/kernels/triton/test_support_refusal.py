"""What the kernels cannot do, and that they say so beforehand; interpreted, the CPU stands for a GPU."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard import Mask, See
from regard.kernels.triton import support
from regard.kernels.triton.mask_bands import is_known
from regard.messages import LANGUAGES, say

Q = torch.zeros(1, 1, 4, 8)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("REGARD_INTERPRET", "1")


def key(x: Tensor = Q, **options: Any) -> str | None:
    """The reason, which can be said in both languages."""
    found = support.refusal(x, x, x, **options)
    if found is None:
        return None
    for lang in LANGUAGES:
        assert say(found[0], lang, **found[1])
    return found[0]


@pytest.mark.parametrize("mask", [Mask.causal() | Mask.prefix(2), ~Mask.causal(), Mask.of(torch.ones(4, 4) > 0)])
def test_masks_that_are_not_known(mask: Mask) -> None:
    bound = mask.bind((1, 1), 4, 4, Q)
    assert not is_known(bound)
    assert key(mask=bound) == "triton-mask"


def test_what_cannot_be_done() -> None:
    assert key() is None
    assert key(Q.clone().requires_grad_()) is None
    assert key(dropout=0.1) == "no-dropout"
    assert key(bias=Q) == "triton-bias"
    assert key(Q.double()) == "triton-dtype"
    assert key(torch.zeros(1, 1, 4, 257)) == "triton-width"
    assert key(see=See(top=33)) == "triton-top"
    assert key(see=See(top=32)) is None


def test_where_it_cannot_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key(Q.to("meta")) == "triton-device"
    monkeypatch.setattr(support, "find_spec", lambda _: None)
    assert key() == "triton-missing"
    monkeypatch.delenv("TRITON_INTERPRET")
    assert key() == "triton-device", "to install Triton would not help"


def test_the_sentence_about_old_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor that says it is on one: no machine of ours is."""

    class Elsewhere:
        is_cuda, device = True, torch.device("cuda", 0)

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    found = support._of_this_machine(Elsewhere())  # type: ignore[arg-type]
    assert found is not None
    assert "8.0 at least; this one has 7.5; chunked" in say(found[0], "en", **found[1])
