"""The pictures of the lessons: drawn as SVG for pages and as text for the terminal, from the same data."""

from regard.course.drawings.blocks import (
    Bars,
    Block,
    Box,
    Curves,
    Drawing,
    Flow,
    Label,
    Line,
    Links,
    Matrix,
    Sign,
    text_in,
)

__all__ = [
    "Bars",
    "Block",
    "Box",
    "Curves",
    "Drawing",
    "Flow",
    "Label",
    "Line",
    "Links",
    "Matrix",
    "Sign",
    "text_in",
]
