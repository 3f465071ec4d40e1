"""The attention of a word laid over the pictures that a model read, with matplotlib: one square for each patch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.arrays import is_integer
from regard.errors import ArgumentError, MissingPackageError
from regard.images import RecordImage, decoded
from regard.messages import Language, language, say, use_language
from regard.trace.measures.image_attention import Head, ImageAttention, ViewWeights, attend_to_images
from regard.trace.trace import Trace
from regard.views import caption
from regard.views.colours import Scale, rounded_up
from regard.views.figure_layout import PlotOptions, draw_bar, line_height, points_of, wrapped
from regard.views.fonts import drawable, drawable_language, text_style
from regard.views.labels import cut, printable_label
from regard.views.picture import chosen_language

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_VIEWS = 12
"""Pictures, crops and frames in one figure: those with the largest weights."""
_ACROSS = 4
_SIDE, _ALONE = 2.4, 3.6
"""Inches of the longer side of a picture among several, and alone."""
_CHECKERED = (0.62, 0.68)
"""The shades of a picture whose pixels are unknown."""
_LONGEST = 40
_OUTLINED = 0.7
"""Patches from this share of the highest level on are outlined: half of the largest weight."""


def image_title(image: RecordImage, images: Sequence[RecordImage], lang: Language) -> str:
    """Which picture, crop or frame this is; "" for the only one of its sample."""
    alike = [one for one in images if one.sample == image.sample]
    pieces = [say("image-picture", lang, number=image.number + 1)] if any(one.number for one in alike) else []
    pieces += [] if image.crop is None else [say("image-crop", lang, number=image.crop + 1)]
    pieces += [] if image.frame is None else [say("image-frame", lang, number=image.frame + 1)]
    if not pieces and len(alike) > 1:  # the whole picture beside its crops
        pieces = [say("image-whole", lang)]
    return " · ".join([*([image.name] if image.name else []), *pieces])


def plot_image(
    trace: Trace,
    query: Any = None,
    layer: int | str | None = None,
    head: Head = None,
    sample: int = 0,
    image: int | None = None,
    *,
    vmax: float | None = None,
    cmap: Any = None,
    lang: Language | None = None,
) -> "Figure":
    """Draw the pictures with the weights laid over them. Raises ArgumentError, NotKeptError and MissingPackageError."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="trace.image") from error
    if image is not None and not (is_integer(image) and image >= 0):
        raise ArgumentError("image-number-form", found=image)
    options = PlotOptions(vmax, cmap)
    chosen = chosen_language(lang)
    found = attend_to_images(trace, query, layer, head, sample, image)
    with use_language(drawable_language(chosen)):
        return _Drawing(found, options).draw(pyplot.figure)


class _Drawing:
    """One figure: the picture beside its overlay, or the overlays of several pictures."""

    def __init__(self, found: ImageAttention, options: PlotOptions) -> None:
        self.found, self.options = found, options
        views = sorted(found.views, key=lambda view: -view.share)[:MOST_VIEWS]
        self.views = [view for view in found.views if any(view is one for one in views)]
        largest = max((float(np.nanmax(view.weights, initial=0.0)) for view in found.views), default=0.0)
        top = options.vmax or (rounded_up(largest) if largest > 0 else 1.0)
        self.scale = Scale(top, clipped=top < largest)
        self.highest = max(min(largest / top, 1.0), 1e-9) ** 0.5

    def draw(self, figure_of: Any) -> "Figure":
        alone = len(self.views) == 1
        pixels = [_pixels(view.image) for view in self.views]
        panels = 2 if alone and self.views[0].image.pixels is not None else len(self.views)
        across = min(_ACROSS, panels)
        down = -(-panels // across)
        aspect = float(np.median([one.shape[0] / one.shape[1] for one in pixels]))
        side = _ALONE if alone else _SIDE
        wide, high = (side, side * aspect) if aspect <= 1 else (side / aspect, side)
        wide, high = max(wide, 0.9), max(high, 0.9)
        points = points_of("medium")
        about = max(across * (wide + 0.12) + 0.8, 3.6)
        title = wrapped(drawable(self.title()), about, points)
        below = wrapped(drawable(self.notes()), about, points_of("small"))
        text = line_height(points, title.count("\n") + 1) + line_height(points_of("small"), below.count("\n") + 1)
        names = 0.3 if not alone else 0.0
        figure: Figure = figure_of(figsize=(about, down * (high + names + 0.1) + text + 0.35), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False)
        last = None
        for at, ax in enumerate(axes.flat):
            ax.axis("off")
            if panels > len(self.views) and at == 0:
                ax.imshow(pixels[0])
            elif at < panels:
                view = self.views[at - (panels - len(self.views))]
                last = self._overlay(ax, view, pixels[at - (panels - len(self.views))], named=not alone)
        figure.suptitle(title, fontsize=points, **text_style())
        figure.supxlabel(below, fontsize=points_of("small"), **text_style())
        if last is not None:
            bar = draw_bar(figure, last, self.scale, ax=list(axes.flat), fraction=0.04, pad=0.02, aspect=24)
            bar.set_label(drawable([say("plot-weight")])[0], fontsize=points_of("small"), **text_style())
            bar.ax.tick_params(labelsize=points_of("small"))
        return figure

    def _overlay(self, ax: Any, view: ViewWeights, pixels: np.ndarray, *, named: bool) -> Any:
        """The picture in grey, coloured by the weights. Returns what the colour bar describes."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import PowerNorm

        rows, cols = view.image.grid
        extent = (-0.5, cols - 0.5, rows - 0.5, -0.5)
        aspect = (pixels.shape[0] / rows) / (pixels.shape[1] / cols)
        ax.imshow(_muted(pixels), extent=extent, aspect=aspect, interpolation="bilinear")
        weights = np.ma.masked_invalid(view.weights)
        level = np.nan_to_num(np.sqrt(np.clip(view.weights / self.scale.ceiling, 0, 1)))
        norm = PowerNorm(0.5, vmin=0, vmax=self.scale.ceiling)
        alpha = np.where(np.isnan(view.weights), 0.0, 0.08 + 0.8 * level)
        ax.imshow(
            weights, cmap=self.options.palette, norm=norm, alpha=alpha, extent=extent, aspect=aspect,
            interpolation="nearest",
        )  # fmt: skip
        _outline(ax, level >= _OUTLINED * self.highest, rows, cols)
        self._marks(ax, view)
        ax.set_xlim(-0.5, cols - 0.5)
        ax.set_ylim(rows - 0.5, -0.5)
        if named:
            name = image_title(view.image, self.found.record.images, language())
            pieces = [*([cut(printable_label(name), _LONGEST)] if name else []), self._percent(view.share)]
            ax.set_title(drawable([" · ".join(pieces)])[0], fontsize=points_of("small"), **text_style())
        return ScalarMappable(norm, self.options.palette)  # opaque, where the overlay is not

    def _marks(self, ax: Any, view: ViewWeights) -> None:
        """A cross on every sink, and a frame around the patch that was asked for."""
        if view.sinks is not None and view.sinks.any():
            down, across = np.nonzero(view.sinks)
            for colour, width in (("black", 3.0), ("white", 1.4)):
                ax.scatter(across, down, marker="x", s=36, c=colour, linewidths=width)
        if self.found.patch is not None and self.found.patch[0] is view.image:
            _, row, col = self.found.patch
            from matplotlib.patches import Rectangle

            for colour, width in (("black", 3.6), ("white", 1.8)):
                ax.add_patch(Rectangle((col - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=colour, linewidth=width))

    # --- words -------------------------------------------------------------------------------------------

    def title(self) -> list[str]:
        """What was asked, the layer and the head."""
        found, record = self.found, self.found.record
        word, count = cut(printable_label(found.label), _LONGEST), len(found.positions)
        if found.patch is not None:
            asked = say("image-of-patch", row=found.patch[1], col=found.patch[2])
        elif found.side == "queries":
            asked = say("image-to-word", word=word) if word else say("image-to-all", count=count)
        else:
            asked = say("image-of-word", word=word) if word else say("image-of-all", count=count)
        pieces = [asked, caption.name_of(record)]
        if record.shape[1] > 1:
            pieces += [say("screen-mean") if found.head is None else say("screen-head", head=found.head)]
        if record.shape[0] > 1:
            pieces.append(say("screen-sample", sample=found.sample, count=record.shape[0]))
        return pieces

    def notes(self) -> list[str]:
        """The share on the pictures, on sinks and on the first token; pictures that are not drawn."""
        found = self.found
        pieces = []
        if found.side == "keys":
            count, share = len(found.views), self._percent(found.share)
            pieces.append(
                say("image-share", share=share) if count == 1 else say("image-share-several", count=count, share=share)
            )
            pieces += self._sinks()
            if found.first is not None:
                extra = found.views[0].image.extra
                name = extra[0] if extra else say("image-first-token")
                pieces.append(say("image-share-first", name=name, share=self._percent(found.first)))
        if any(np.isnan(view.weights).any() for view in found.views):
            pieces.append(say("image-window"))
        if len(self.views) < len(found.views):
            pieces.append(say("image-more", count=len(found.views), shown=len(self.views)))
        return pieces

    def _sinks(self) -> list[str]:
        known = [view for view in self.found.views if view.sinks is not None]
        count = sum(int(view.sinks.sum()) for view in known if view.sinks is not None)
        if not count:
            return []
        share = self._percent(sum(view.sink_share for view in known))
        return [say("image-sinks", share=share, count=count, border=sum(view.border_sinks for view in known))]

    @staticmethod
    def _percent(share: float) -> str:
        return f"{100 * share:.1f} %"


def _pixels(image: RecordImage) -> np.ndarray:
    if image.pixels is not None:
        return decoded(image.pixels)
    rows, cols = image.grid
    board = np.add.outer(np.arange(rows), np.arange(cols)) % 2
    shades = np.array(_CHECKERED)[board][..., None].repeat(3, -1)
    return (255 * shades.repeat(16, 0).repeat(16, 1)).astype(np.uint8)


def _muted(pixels: np.ndarray) -> np.ndarray:
    """The picture with little colour and in the middle of the brightness, so that colours over it are readable."""
    x = pixels.astype(np.float64) / 255
    grey = (x @ [0.299, 0.587, 0.114])[..., None]
    low, high = np.quantile(grey, [0.01, 0.99])
    spread = np.clip((grey - low) / max(high - low, 1e-6), 0, 1) if high - low > 0.05 else np.full_like(grey, 0.5)
    return np.clip(0.2 + 0.6 * spread + 0.12 * (x - grey), 0, 1)


def _outline(ax: Any, is_high: np.ndarray, rows: int, cols: int) -> None:
    """A thin line around the patches with the largest weights."""
    from matplotlib.collections import LineCollection

    inside = np.pad(is_high, 1)
    lines = []
    for row in range(rows + 1):
        for col in range(cols + 1):
            if col < cols and inside[row, col + 1] != inside[row + 1, col + 1]:
                lines.append([(col - 0.5, row - 0.5), (col + 0.5, row - 0.5)])
            if row < rows and inside[row + 1, col] != inside[row + 1, col + 1]:
                lines.append([(col - 0.5, row - 0.5), (col - 0.5, row + 0.5)])
    for colour, width in (("black", 2.2), ("white", 1.0)):
        ax.add_collection(LineCollection(lines, colors=colour, linewidths=width, alpha=0.9))
