"""Signals as stop requests: the first is recorded, the second raises; handlers are restored afterwards."""

import signal
import threading

import pytest

from regard.training.signals import SIGNALS, handle_signals

pytestmark = pytest.mark.usefixtures("signals_at_default")


@pytest.mark.parametrize("number", SIGNALS)
def test_first_signal_requests_second_raises(number: int) -> None:
    with handle_signals() as request:
        assert not request.is_set
        signal.raise_signal(number)
        assert request.is_set
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_handlers_are_restored(number: int) -> None:
    before = signal.getsignal(number)
    received: list[int] = []
    signal.signal(number, lambda found, frame: received.append(found))
    try:
        with handle_signals() as request:
            signal.raise_signal(number)
        assert request.is_set
        assert received == []
        signal.raise_signal(number)
        assert received == [number]
    finally:
        signal.signal(number, before)


def test_handlers_are_restored_after_an_error() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(RuntimeError), handle_signals():
        raise RuntimeError
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_no_effect_in_a_thread() -> None:
    requested: list[bool] = []

    def work() -> None:
        with handle_signals() as request:
            requested.append(request.is_set)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert requested == [False]


def test_sighup_requests_and_ignored_signals_stay_ignored() -> None:
    with handle_signals() as request:
        signal.raise_signal(signal.SIGHUP)
    assert request.is_set
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with handle_signals() as request:
            signal.raise_signal(signal.SIGHUP)
        assert not request.is_set
    finally:
        signal.signal(signal.SIGHUP, before)
