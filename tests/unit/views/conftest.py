"""Figures of matplotlib, without a screen."""

from collections.abc import Iterator

import matplotlib
import pytest
from matplotlib import pyplot


@pytest.fixture
def no_screen() -> Iterator[None]:
    with matplotlib.rc_context():
        pyplot.switch_backend("Agg")
        yield
        pyplot.close("all")
