"""Curves with a marked x: a dashed line in both drawings, and none without the mark."""

import numpy as np
import pytest

from regard.course.drawings import Curves, Drawing
from regard.course.drawings.svg import to_svg
from regard.course.drawings.terminal import drawing_lines
from regard.messages import Message


@pytest.mark.parametrize("marked_x", [None, 5.0])
def test_a_marked_x_has_a_dashed_line(marked_x: float | None) -> None:
    curves = Curves(x=np.arange(11.0), series={"y": np.arange(11.0)}, marked_x=marked_x)
    drawing = Drawing(title=Message("line", "线"), blocks=(curves,))
    assert ("stroke-dasharray" in to_svg(drawing, "en")) == (marked_x is not None)
    lines = [line.plain for line in drawing_lines(drawing, "en", 60, None)]
    columns = {line.index("┆") for line in lines if "┆" in line}
    assert len(columns) == (0 if marked_x is None else 1)
