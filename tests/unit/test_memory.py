"""Free memory is measured and formatted, and a request that does not fit is refused."""

import builtins
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard import memory
from regard.errors import TooLargeError


def test_available_bytes_is_plausible() -> None:
    free = memory.available_bytes()
    assert free is None or 2**20 < free < 2**60


def test_available_bytes_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}[name])
    assert memory.available_bytes() == 40960
    monkeypatch.setattr(os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert memory.available_bytes() is None
    monkeypatch.delattr(os, "sysconf")  # Windows
    assert memory.available_bytes() is None


def test_free_memory_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that PyTorch reserved and does not use counts as free. The GPU of the tensor is a stub."""
    other = torch.device("cuda", 1)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: {other: (1000, 5000)}[device])
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: {other: 700}[device])
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: {other: 300}[device])
    assert memory.free_gpu_bytes(SimpleNamespace(device=other)) == 1400
    for elsewhere in (torch.zeros(1), torch.zeros(1, device="meta"), np.zeros(1), None):
        assert memory.free_gpu_bytes(elsewhere) is None


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
def test_bytes_in_binary_units(count: int, text: str) -> None:
    assert memory.format_bytes(count) == text


@pytest.mark.parametrize(("count", "text"), [(999, "999 B"), (10**6, "1.0 MB"), (25 * 10**8, "2.5 GB")])
def test_bytes_in_decimal_units(count: int, text: str) -> None:
    assert memory.format_bytes(count, decimal=True) == text


def test_1024_of_a_unit_becomes_one_of_the_next() -> None:
    for unit in (2**10, 2**20, 2**30, 2**40):
        assert not memory.format_bytes(unit - 1).startswith("1024.0"), memory.format_bytes(unit - 1)


def test_error_names_needed_and_free_memory() -> None:
    with pytest.raises(TooLargeError) as caught:
        memory.require_bytes(2**31, key="weights-too-large", free=2**30, shape=(1, 2, 3, 4))
    assert isinstance(caught.value, MemoryError)
    assert caught.value.exit_code == 5
    for lang in ("en", "zh"):
        assert "2.0 GiB" in caught.value.text(lang)
        assert "1.0 GiB" in caught.value.text(lang)
        assert "See(map=256)" in caught.value.text(lang)


def test_request_that_fits_or_unknown_memory_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.require_bytes(2**30, key="weights-too-large", free=2**30)
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    memory.require_bytes(2**90, key="weights-too-large")
