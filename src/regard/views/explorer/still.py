"""One head as an SVG, written without any library: for places where scripts do not run, and for `--svg`.

Small maps are rectangles, larger ones an image of one pixel per cell. Fonts are named, so that a viewer with a Chinese
font shows Chinese tokens.
"""

import base64
import struct
import zlib
from html import escape

import numpy as np
from rich.cells import cell_len

from regard.messages import Language
from regard.views import caption
from regard.views.caption import layer_titles
from regard.views.colours import Scale, nan_colour, viridis
from regard.views.labels import cut, printable_label
from regard.views.picture import Picture

FONTS = (
    "'Noto Sans', 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', "
    "'Noto Sans CJK SC', 'Source Han Sans SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
)
MOST_RECTANGLES = 48 * 48
"""Up to this number of cells, each is a rectangle with its weight as a tooltip."""
MOST_CELLS = 256
SIDE, SMALLEST_CELL, LINED_CELL, LARGEST_CELL = 336, 9, 12, 36
"""Pixels of the map's longer side, and of a cell with a label and with lines around it. A column of a paper has about
336 pixels."""
MASKED = "#e8e8e8"
_LABEL, _LETTER, _LEGEND, _LEGEND_WIDE = 18, 6.2, 16, 200.0
"""Columns of the longest label, pixels of one column of text, and the height and width of the legend."""


def still(drawn: Picture, lang: Language) -> str:
    """The SVG of one head: title, map with the labels of its tokens, and the colours."""
    drawn = drawn.fitted(MOST_CELLS, MOST_CELLS)
    R, C = drawn.cells.shape
    size = SIDE / max(R, C, 1)
    named = size >= SMALLEST_CELL
    size = min(size, LARGEST_CELL) if named else size
    rows, cols = (_labels(tokens) if named else None for tokens in (drawn.row_labels, drawn.keys))
    left = 8 + _width(rows)
    top = 30 + _width(cols)
    wide, high = left + max(C * size, _LEGEND_WIDE) + 16, top + R * size + 8 + _LEGEND + 22
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high:.0f}" '
        f'viewBox="0 0 {wide:.0f} {high:.0f}" role="img" font-family="{escape(FONTS)}" font-size="10">',
        f"<title>{_text(_title(drawn, lang))}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="8" y="16" font-size="11" font-weight="600" fill="#1a1a1a">{_text(_title(drawn, lang))}</text>',
    ]
    scale = Scale.of([drawn])
    lines += _cells(drawn, scale, left, top, size)
    for at, name in enumerate(rows or ()):
        lines.append(
            f'<text x="{left - 4:.1f}" y="{top + (at + 0.5) * size + 3.5:.1f}" text-anchor="end">{_text(name)}</text>'
        )
    for at, name in enumerate(cols or ()):
        x, y = left + (at + 0.5) * size + 3.5, top - 4
        lines.append(f'<text transform="translate({x:.1f} {y:.1f}) rotate(-90)">{_text(name)}</text>')
    lines += _legend(scale, left, top + R * size + 8)
    return "\n".join([*lines, "</svg>"])


def _title(drawn: Picture, lang: Language) -> str:
    name = printable_label(layer_titles([drawn.record], lang)[0])
    return " · ".join([name, *caption.head_of(drawn.record, drawn.head, lang), *caption.cell(drawn, lang)])


def _labels(tokens: tuple[str, ...] | None) -> list[str] | None:
    return None if tokens is None else [cut(printable_label(token[: 8 * _LABEL]), _LABEL) for token in tokens]


def _width(labels: list[str] | None) -> float:
    return max((cell_len(label) for label in labels or ()), default=0) * _LETTER


def _text(text: str) -> str:
    """Text for XML, without the characters that XML forbids."""
    return escape("".join(sign for sign in text if sign >= " " and not 0xD800 <= ord(sign) <= 0xDFFF))


def _cells(drawn: Picture, scale: Scale, left: float, top: float, size: float) -> list[str]:
    R, C = drawn.cells.shape
    if not R * C:
        return []
    pixels = _pixels(drawn.cells, scale)
    if R * C > MOST_RECTANGLES:
        data = base64.b64encode(png(pixels)).decode("ascii")
        return [
            f'<image x="{left:.1f}" y="{top:.1f}" width="{C * size:.1f}" height="{R * size:.1f}" '
            f'preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        ]
    lined = 'stroke="#ffffff" stroke-width="0.5"' if size >= LINED_CELL else 'shape-rendering="crispEdges"'
    lines = [f"<g {lined}>"]  # lines between cells, as the explorer has them, or no seams
    for (row, column), weight in np.ndenumerate(drawn.cells):
        red, green, blue = pixels[row, column]
        lines.append(
            f'<rect x="{left + column * size:.2f}" y="{top + row * size:.2f}" width="{size:.2f}" height="{size:.2f}" '
            f'fill="#{red:02x}{green:02x}{blue:02x}"><title>{weight:.4g}</title></rect>'
        )
    return [*lines, "</g>"]


def _pixels(cells: np.ndarray, scale: Scale) -> np.ndarray:
    """R C 3: the colour of each cell; grey where masked."""
    table = np.array([viridis(step / 255).rgb for step in range(256)], np.uint8)
    level = np.asarray(scale.level(np.nan_to_num(cells)))
    pixels = table[np.round(level * 255).astype(int)]
    pixels[cells == 0] = [int(MASKED[at : at + 2], 16) for at in (1, 3, 5)]
    pixels[np.isnan(cells)] = nan_colour().rgb
    return pixels


def _legend(scale: Scale, left: float, top: float) -> list[str]:
    """A bar of the colours with round weights below it."""
    steps, wide = 64, _LEGEND_WIDE
    lines = ['<g shape-rendering="crispEdges">']  # no seams between the steps
    for step in range(steps):
        red, green, blue = viridis(step / (steps - 1)).rgb
        x = left + wide * step / steps
        lines.append(
            f'<rect x="{x:.2f}" y="{top:.1f}" width="{wide / steps + 0.3:.2f}" height="8" '
            f'fill="#{red:02x}{green:02x}{blue:02x}"/>'
        )
    lines.append("</g>")
    shown: list[float] = []
    for weight in scale.ticks():
        x = left + wide * float(scale.level(weight))
        if not shown or x - shown[-1] >= 28:
            shown.append(x)
            lines.append(f'<text x="{x:.1f}" y="{top + 19:.1f}" text-anchor="middle" font-size="9">{weight:g}</text>')
    return lines


def png(pixels: np.ndarray) -> bytes:
    """An image (rows, columns, 3) of bytes as a PNG file.

    >>> png(np.zeros((1, 1, 3), np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    rows, columns = pixels.shape[:2]
    raw = np.zeros((rows, 1 + 3 * columns), np.uint8)  # each row begins with its filter: none
    raw[:, 1:] = pixels.reshape(rows, 3 * columns)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(raw.tobytes(), 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def failure(text: str) -> str:
    """One sentence in the place of the picture."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="48" role="img" font-family="{escape(FONTS)}">'
        f'<text x="8" y="28" font-size="13">{_text(text)}</text></svg>'
    )
