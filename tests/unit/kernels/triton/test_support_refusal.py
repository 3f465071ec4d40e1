"""Unsupported calls are refused in advance; under the interpreter the CPU counts as a GPU."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard import Mask, See
from regard.attention_call import AttentionCall
from regard.kernels.triton import support
from regard.kernels.triton.support import is_supported
from regard.messages import LANGUAGES, say

Q = torch.zeros(1, 1, 4, 8)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("REGARD_INTERPRET", "1")


def key(x: Tensor = Q, **options: Any) -> str | None:
    """The message key of the reason, which exists in both languages."""
    found = support.refusal(AttentionCall(x, x, x, 1.0, **options))
    if found is None:
        return None
    for lang in LANGUAGES:
        assert say(found[0], lang, **found[1])
    return found[0]


@pytest.mark.parametrize("mask", [Mask.causal() | Mask.prefix(2), ~Mask.causal(), Mask.of(torch.ones(4, 4) > 0)])
def test_unsupported_masks(mask: Mask) -> None:
    bound = mask.bind((1, 1), 4, 4, Q)
    assert not is_supported(bound)
    assert key(bound=bound) == "triton-mask"


def test_unsupported_calls() -> None:
    assert key() is None
    assert key(Q.clone().requires_grad_()) is None
    assert key(dropout=0.1) == "no-dropout"
    assert key(bias=Q) == "triton-bias"
    assert key(Q.double()) == "triton-dtype"
    assert key(torch.zeros(1, 1, 4, 257)) == "triton-width"
    assert key(see=See(top=33)) == "triton-top"
    assert key(see=See(top=32)) is None


def test_unsupported_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key(Q.to("meta")) == "triton-device"
    monkeypatch.setattr(support, "find_spec", lambda _: None)
    assert key() == "triton-missing"
    monkeypatch.delenv("TRITON_INTERPRET")
    assert key() == "triton-device", "installing Triton would not help"


def test_the_message_for_old_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake tensor on an old GPU: none of our machines has one."""

    class Elsewhere:
        is_cuda, device = True, torch.device("cuda", 99)  # the answer for a device is kept

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    found = support._machine_refusal(Elsewhere())  # type: ignore[arg-type]
    assert found is not None
    assert "8.0 at least; this one has 7.5; chunked" in say(found[0], "en", **found[1])
