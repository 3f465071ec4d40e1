"""Signals as requests: the first asks, the second ends, and afterwards all is as it was."""

import signal
import threading

import pytest

from regard.training.signals import SIGNALS, listening

pytestmark = pytest.mark.usefixtures("signals_at_default")


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_and_the_second_ends(number: int) -> None:
    with listening() as request:
        assert not request.asked
        signal.raise_signal(number)
        assert request.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_means_afterwards_what_it_meant_before(number: int) -> None:
    before = signal.getsignal(number)
    heard: list[int] = []
    signal.signal(number, lambda found, frame: heard.append(found))
    try:
        with listening() as request:
            signal.raise_signal(number)
        assert request.asked
        assert heard == []
        signal.raise_signal(number)
        assert heard == [number]
    finally:
        signal.signal(number, before)


def test_after_an_error_too() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(RuntimeError), listening():
        raise RuntimeError
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_thread_can_train_though_it_hears_nothing() -> None:
    asked: list[bool] = []

    def work() -> None:
        with listening() as request:
            asked.append(request.asked)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert asked == [False]


def test_a_closed_terminal_asks_and_what_is_ignored_stays_ignored() -> None:
    with listening() as request:
        signal.raise_signal(signal.SIGHUP)
    assert request.asked
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with listening() as request:
            signal.raise_signal(signal.SIGHUP)
        assert not request.asked
    finally:
        signal.signal(signal.SIGHUP, before)
