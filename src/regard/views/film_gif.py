"""Films as animated GIF: matplotlib draws the frames, Pillow assembles them.

All frames have the same size, scale and palette, so every visible change is a change of the weights.
"""

from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import MissingPackageError
from regard.files.output import check_target, write_output
from regard.messages import Language, language, say, use_language
from regard.views.film import HeadFilm, frame_title
from regard.views.fonts import drawable, drawable_language, text_style
from regard.views.heatmap import PlotOptions
from regard.views.labels import cut_start, printable_label
from regard.views.picture import chosen_language
from regard.views.plots import draw_on_axes

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_FRAMES = 300
"""Limits the file size; a longer film skips frames evenly."""
_PAUSE_MS = 2000
"""How long the last frame stays."""
_WIDEST_NAME = 36
_CROWDED = 28
"""Number of tokens on one side above which the map grows and its labels shrink."""


def save_gif(
    shown: HeadFilm, path: Path, losses: Mapping[int, float], *, fps: float, lang: Language | None = None
) -> None:
    """Write the GIF, completely or not at all. Raises FileError and MissingPackageError."""
    check_target(path)
    with use_language(drawable_language(chosen_language(lang))):
        frames = list(gif_frames(shown, losses))
    durations = [round(1000 / fps)] * (len(frames) - 1) + [_PAUSE_MS]
    first, *rest = frames
    options: dict[str, Any] = {"save_all": True, "append_images": rest, "duration": durations, "loop": 0}
    drawn = BytesIO()
    first.save(drawn, format="GIF", **options)
    write_output(path, drawn.getvalue())


def gif_frames(shown: HeadFilm, losses: Mapping[int, float]) -> Iterator["Image"]:
    """The frames as images in the colours of the palette."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="--gif") from error
    figure = Figure(figsize=_size(shown), dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    draw_on_axes(axes, shown.pictures[0], PlotOptions(scale=shown.scale))
    if max(shown.record.shape[2:]) > _CROWDED:
        axes.tick_params(labelsize=7)
    title = axes.set_title(_title(shown, 0, losses), fontsize="medium", **text_style())
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # arranged once: the map must not move when the title grows
    palette, count = _palette(), len(shown.steps)
    for at in np.unique(np.linspace(0, count - 1, min(count, MOST_FRAMES)).round().astype(int)).tolist():
        cells = shown.pictures[at].cells
        title.set_text(_title(shown, at, losses))
        for image in axes.images:
            # As in `heatmap`: exactly 0 is masked and has no colour of the scale.
            image.set_data(np.where(cells == 0, -1.0, cells))
        canvas.draw()
        yield _with_palette(np.asarray(canvas.buffer_rgba())[..., :3], palette)


def _size(shown: HeadFilm) -> tuple[float, float]:
    """The figure size in inches; many tokens get a larger map."""
    T, S = (max(1, size) for size in shown.record.shape[2:])
    larger = min(2.0, max(1.0, max(T, S) / _CROWDED))
    wide, high = min(1.0, max(0.25, S / T)), min(1.0, max(0.25, T / S))
    return 2.6 + 4 * larger * wide, 1.6 + 3.8 * larger * high


def _title(shown: HeadFilm, at: int, losses: Mapping[int, float]) -> str:
    name = cut_start(printable_label(shown.record.name), _WIDEST_NAME)
    about = [name, say(f"screen-{shown.record.kind}"), say("screen-head", head=shown.head)]
    return "\n".join(drawable(" · ".join(line) for line in (about, frame_title(shown, at, losses, language()))))


def _with_palette(pixels: np.ndarray, palette: np.ndarray) -> "Image":
    """The image with each colour replaced by the nearest of the palette. Pillow's own search is approximate."""
    from PIL import Image

    packed = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    colours, places = np.unique(packed, return_inverse=True)
    spread = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=-1).astype(np.int32)
    nearest = np.array([((palette - one) ** 2).sum(-1).argmin() for one in spread], dtype=np.uint8)
    image = Image.fromarray(nearest[places].reshape(packed.shape))
    image.putpalette(palette.astype(np.uint8).tobytes())  # the pixel values are indices into the palette
    return image


def _palette() -> np.ndarray:
    """All colours of a frame: viridis, greys for the text, and the colours of masked cells and NaN.

    A palette per frame would flicker.
    """
    from matplotlib import colormaps

    scale = colormaps["viridis"](np.linspace(0, 1, 208))[:, :3] * 255
    greys = np.linspace(0, 255, 46)[:, None].repeat(3, axis=1)
    return np.concatenate([scale, greys, [[0xEE, 0xEE, 0xEE], [0xD6, 0x27, 0x28]]]).round().astype(np.int32)
