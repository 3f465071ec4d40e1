"""Matrices: masked scores keep the colours of scores."""

import numpy as np

from regard.course.drawings.blocks import Matrix


def test_minus_infinity_alone_is_no_second_hue() -> None:
    assert not Matrix(values=np.array([[1.0, -np.inf], [np.nan, 0.0]])).is_signed
    assert Matrix(values=np.array([[1.0, -0.5]])).is_signed
    assert Matrix(values=np.array([[1.0, -np.inf]])).number(0, 1) == "−∞"
