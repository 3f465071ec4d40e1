"""Memory is asked for, spelled, and refused before it is taken."""

import builtins
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard import memory
from regard.errors import TooLargeError


def test_there_is_some() -> None:
    free = memory.available_bytes()
    assert free is None or 2**20 < free < 2**60


def test_without_proc_the_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}[name])
    assert memory.available_bytes() == 40960
    monkeypatch.setattr(os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert memory.available_bytes() is None
    monkeypatch.delattr(os, "sysconf")  # Windows
    assert memory.available_bytes() is None


def test_a_gpu_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what PyTorch holds there and does not use; of the tensor's own GPU, which something stands in for."""
    other = torch.device("cuda", 1)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: {other: (1000, 5000)}[device])
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: {other: 700}[device])
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: {other: 300}[device])
    assert memory.free_beside(SimpleNamespace(device=other)) == 1400
    for elsewhere in (torch.zeros(1), torch.zeros(1, device="meta"), np.zeros(1), None):
        assert memory.free_beside(elsewhere) is None


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (2**20, "1.0 MiB"),
        (3 * 2**30, "3.0 GiB"),
        (2**40, "1.0 TiB"),
        (5000 * 2**40, "5000.0 TiB"),
    ],
)
def test_bytes_as_people_write_them(count: int, text: str) -> None:
    assert memory.spell(count) == text


@pytest.mark.parametrize(("count", "text"), [(999, "999 B"), (10**6, "1.0 MB"), (25 * 10**8, "2.5 GB")])
def test_bytes_by_the_thousand(count: int, text: str) -> None:
    assert memory.spell(count, decimal=True) == text


def test_nothing_is_spelled_as_1024_of_a_unit() -> None:
    for unit in (2**10, 2**20, 2**30, 2**40):
        assert not memory.spell(unit - 1).startswith("1024.0"), memory.spell(unit - 1)


def test_what_does_not_fit_is_refused_with_both_numbers() -> None:
    with pytest.raises(TooLargeError) as caught:
        memory.require(2**31, key="weights-too-large", free=2**30, shape=(1, 2, 3, 4))
    assert isinstance(caught.value, MemoryError)
    assert caught.value.exit_code == 5
    for lang in ("en", "zh"):
        assert "2.0 GiB" in caught.value.text(lang)
        assert "1.0 GiB" in caught.value.text(lang)
        assert "See(map=256)" in caught.value.text(lang)


def test_what_fits_or_cannot_be_known_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.require(2**30, key="weights-too-large", free=2**30)
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    memory.require(2**90, key="weights-too-large")
