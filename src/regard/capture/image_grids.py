"""Where the patches of pictures are in a sequence: grids from the tensors that a vision model was called with.

Knows the ways in which models lay out patches: row by row behind a class token, packed one picture after the other,
in blocks that are merged later, in windows, in tiles with a token at the end of each row. Reads no attention.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

Grid = tuple[int, int]
_GRIDS = re.compile(r"(?:^|_)grid_thw$")
_NO_PICTURE = re.compile(r"^(q|k|v)$|query|key|value(?!s)|mask|bias|embed|position", re.I)
"""Names of other tensors with four axes."""
_STRIDES = (8, 16, 32, 64)
"""Strides of convolutional networks whose last feature map is read as a sequence."""
_MOST_EXTRA = 16
"""The most positions that are no patches beside those of one picture, if the config does not say."""
_EXTRA = {
    "[CLS]": re.compile(r"(^|_)(cls|class)(_token|_embedding|_embed|_emb)?$"),
    "[DIST]": re.compile(r"(^|_)dist(illation)?_token$"),
    "[REG]": re.compile(r"(^|_)(register|reg|storage)_tokens?$"),
}
_RESAMPLER = re.compile(r"Perceiver|Resampler|QFormer|Abstractor")


class PictureView(NamedTuple):
    """One picture, crop or frame as the model reads it, and the positions of its patches, row by row.

    pixels  3 or 1 channels, C h w, as the model reads them
    """

    grid: Grid
    places: np.ndarray
    pixels: Tensor | None = None
    sample: int | None = None
    number: int = 0
    crop: int | None = None
    frame: int | None = None
    extra: tuple[str, ...] = ()


class Inputs:
    """The tensors that running modules were called with, innermost first."""

    def __init__(self, arguments: Iterable[tuple[str, Tensor]]) -> None:
        self.pixels: list[Tensor] = []
        """Those with two spatial axes, (…, C, height, width)."""
        self._named: dict[str, Tensor] = {}
        for name, tensor in arguments:
            if _GRIDS.search(name):
                self._named.setdefault("video_grid_thw" if "video" in name else "grid_thw", tensor)
            elif tensor.dim() >= 4 and tensor.is_floating_point() and not _NO_PICTURE.search(name):
                self.pixels.append(tensor)
            elif name == "hidden_states":
                self._named[name] = tensor  # of the outermost module: the patches before they were embedded
            elif tensor.dim() in (1, 2):
                self._named.setdefault(name, tensor)

    def __bool__(self) -> bool:
        return bool(self.pixels) or any(
            name in self._named for name in ("grid_thw", "video_grid_thw", "spatial_shapes")
        )

    def rows(self, name: str) -> list[list[int]] | None:
        """An argument of whole numbers with two axes."""
        found = self._named.get(name)
        return None if found is None or found.dim() != 2 or found.is_floating_point() else found.tolist()

    def ids(self, B: int, T: int) -> np.ndarray | None:
        """Token ids, B T."""
        found = self._named.get("input_ids")
        fits = found is not None and tuple(found.shape) == (B, T) and not found.is_floating_point()
        return found.cpu().numpy() if fits and found is not None else None

    def packed(self, count: int) -> Tensor | None:
        """`count` flattened patches, one row each."""
        for name in ("pixel_values", "pixel_values_videos", "hidden_states"):
            found = self._named.get(name)
            if found is not None and found.dim() == 2 and len(found) == count and found.is_floating_point():
                return found
        return None


class Tower:
    """What the attributes of a module say about its patches: sizes, tokens before them, merging, windows."""

    def __init__(self, module: nn.Module, config: Any) -> None:
        self._config = config
        convolutions = [one for one in module.modules() if isinstance(one, nn.Conv2d | nn.Conv3d)]
        patchify = [one for one in convolutions if one.in_channels <= 4 and one.kernel_size == one.stride]
        self.patches = list(dict.fromkeys(int(one.kernel_size[-1]) for one in patchify if max(one.kernel_size) > 1))
        self.channels = {1, 3, *(one.in_channels for one in patchify)}
        """The numbers of channels that are cut into patches: those of pictures, and of latents."""
        self.frames = max([1, *(int(one.kernel_size[0]) for one in patchify if isinstance(one, nn.Conv3d))])
        if not self.patches and isinstance(size := self.value("patch_size"), int):
            self.patches = [size]
        self.extra = _extra_names(module)
        self.has_resampler = any(_RESAMPLER.search(type(one).__name__) for one in module.modules())

    def value(self, name: str, default: Any = None) -> Any:
        """A setting of the model, or of its vision part."""
        for owner in (self._config, getattr(self._config, "vision_config", None)):
            found = getattr(owner, name, None)
            if found is not None:
                return found
        return default

    @property
    def merge(self) -> int:
        """How many patches along each side become one token of the language model."""
        found = self.value("spatial_merge_size", 1)
        return found if isinstance(found, int) and found > 0 else 1

    @property
    def window(self) -> int | None:
        """The side of a window in merged patches, where patches are sorted by windows."""
        size, full = self.value("window_size"), self.value("fullatt_block_indexes")
        return size // self.merge // self.patches[0] if isinstance(size, int) and full and self.patches else None


def has_pixel_layer(module: nn.Module) -> bool:
    """Whether a module contains a convolution over pixels, or over the latents of a diffusion model."""
    return any(isinstance(one, nn.Conv2d | nn.Conv3d) and one.in_channels <= 4 for one in module.modules())


def _extra_names(module: nn.Module) -> tuple[str, ...]:
    """The tokens that a model puts before the patches, by the names of its parameters."""
    found: list[str] = []
    for label, pattern in _EXTRA.items():
        for name, weight in module.named_parameters():
            if pattern.search(name.rpartition(".")[2]) and weight.dim() and weight.shape[-1] > 1:
                count = weight.numel() // weight.shape[-1]
                found += [label] if label != "[REG]" else [f"[REG {i}]" for i in range(1, count + 1)]
                break
    return tuple(found)


# --- towers ----------------------------------------------------------------------------------------------


def packed_views(inputs: Inputs, tower: Tower) -> list[PictureView]:
    """Pictures packed into one sequence, patches in the order in which the model reads them."""
    for name in ("grid_thw", "video_grid_thw"):
        grids = inputs.rows(name)
        if grids is not None and all(len(row) == 3 for row in grids):
            return _merged_views(grids, tower, inputs)
    sizes = inputs.rows("image_sizes")
    if sizes is not None and tower.patches:
        views, start = [], 0
        for number, (high, wide) in enumerate(sizes):
            grid = high // tower.patches[0], wide // tower.patches[0]
            places, start = np.arange(start, start + grid[0] * grid[1]), start + grid[0] * grid[1]
            pixels = _image(inputs, number, len(sizes), (high, wide))
            views.append(PictureView(grid, places, pixels, number=number))
        return views
    return []


def _merged_views(grids: list[list[int]], tower: Tower, inputs: Inputs) -> list[PictureView]:
    """Patches in blocks of merge × merge that become one token, and blocks in windows if the model has some."""
    m, start, views = tower.merge, 0, []
    pixels = inputs.packed(sum(frames * rows * cols for frames, rows, cols in grids))
    for number, (frames, rows, cols) in enumerate(grids):
        blocks = np.arange(rows * cols).reshape(rows // m, m, cols // m, m).transpose(0, 2, 1, 3).reshape(-1, m * m)
        if tower.window:
            blocks = blocks[_by_windows(rows // m, cols // m, tower.window)]
        read = blocks.reshape(-1)  # the patch at each position
        plain = np.arange(rows * cols).reshape(rows // m, m, cols // m, m).transpose(0, 2, 1, 3).reshape(-1)
        for frame in range(frames):
            places = np.empty(rows * cols, np.int64)
            places[read] = np.arange(start, start + rows * cols)
            seen = None if pixels is None else _unpatched(pixels[start : start + rows * cols], plain, (rows, cols))
            views.append(PictureView((rows, cols), places, seen, number=number, frame=frame if frames > 1 else None))
            start += rows * cols
    return views


def _by_windows(rows: int, cols: int, window: int) -> np.ndarray:
    """The blocks sorted by windows."""
    down, across = np.divmod(np.arange(rows * cols), cols)
    return np.lexsort((across, down, across // window, down // window))


def _unpatched(flat: Tensor | None, order: np.ndarray, grid: Grid) -> Tensor | None:
    """3 h w from flattened patches, n (3 · frames · side · side); the first frame of each."""
    if flat is None or len(flat) != len(order):
        return None
    for frames in (2, 1):
        side = round((flat.shape[1] / (3 * frames)) ** 0.5)
        if 3 * frames * side * side == flat.shape[1]:
            patches = flat.reshape(-1, 3, frames, side, side)[:, :, 0]
            sorted_ = torch.empty_like(patches)
            sorted_[torch.from_numpy(order).to(flat.device)] = patches
            whole = sorted_.reshape(*grid, 3, side, side).permute(2, 0, 3, 1, 4)
            return whole.reshape(3, grid[0] * side, grid[1] * side)
    return None


def _image(inputs: Inputs, number: int, count: int, size: Grid) -> Tensor | None:
    """Picture `number` of a padded batch."""
    for pixels in inputs.pixels:
        flat = pixels.flatten(0, -4) if pixels.dim() > 3 else pixels
        if len(flat) == count and flat.shape[-2] >= size[0] and flat.shape[-1] >= size[1]:
            return flat[number][..., : size[0], : size[1]]
    return None


def batch_views(inputs: Inputs, tower: Tower, B: int, length: int) -> list[PictureView]:
    """Pictures of one size, one or several in each sequence of a batch; none if nothing fits the length."""
    shapes = inputs.rows("spatial_shapes")
    if shapes is not None and len(shapes) == B and max(rows * cols for rows, cols in shapes) <= length:
        return [PictureView((rows, cols), np.arange(rows * cols), sample=b) for b, (rows, cols) in enumerate(shapes)]
    pictures = [one for one in inputs.pixels if one.shape[-3] in tower.channels]
    for patch, several in (*((patch, pictures) for patch in tower.patches), (0, inputs.pixels)):
        for pixels in several:
            if found := _fitting(pixels, tower, patch, B, length):
                whole = next((one for one in inputs.pixels if one.numel() == pixels.numel() and one.dim() > 5), pixels)
                return _numbered(found, whole.shape[:-3]) if len(found) > B else found
    return []


def _fitting(pixels: Tensor, tower: Tower, patch: int, B: int, length: int) -> list[PictureView]:
    """The views of `pixels`, … C H W, in sequences of this length; patches of 0 stand for a feature map."""
    *lead, _, high, wide = pixels.shape
    each = pixels.flatten(0, -4)  # N C H W
    if len(lead) == 2 and tower.frames > 1 and patch:
        return _video_views(pixels, tower, patch, B, length)
    if not B or len(each) % B:
        return []
    per = len(each) // B
    stride, rest = divmod(length, per)
    if patch:
        grids = [(high // patch, wide // patch)]
    else:  # a feature map, or the picture that one is computed from
        is_map = each.shape[1] not in (1, 3)
        grids = [(high, wide)] if is_map else [] if tower.patches else [_ceiled(high, wide, s) for s in _STRIDES]
    for rows, cols in grids:
        n = rows * cols
        known = len(tower.extra)
        behind = int(tower.value("num_detection_tokens", 0) or 0)
        beside = stride - n
        is_picture = bool(patch) and each.shape[1] in (1, 3)  # beside latents, a text may stand on either side
        most = max(_MOST_EXTRA, known + behind) if is_picture else 0
        if rest or n < 2 or not 0 <= beside <= most:
            continue
        extra = tower.extra if 0 < known <= beside else tuple(f"[{i}]" for i in range(beside))
        places = np.arange(n) + len(extra)
        return [
            PictureView((rows, cols), places + view * stride, one if len(one) in (1, 3) else None, b, view, extra=extra)
            for b, several in enumerate(each.unflatten(0, (B, per)))
            for view, one in enumerate(several)
        ]
    return []


def _numbered(views: list[PictureView], lead: Sequence[int]) -> list[PictureView]:
    """Several views in each sequence, numbered by pictures and crops, without those that only pad a batch: zeros."""
    crops = lead[-1] if len(lead) > 1 else 1
    return [
        view._replace(number=view.number // crops, crop=view.number % crops if crops > 1 else None)
        for view in views
        if view.pixels is None or bool(view.pixels.any())
    ]


def _ceiled(high: int, wide: int, stride: int) -> Grid:
    return -(-high // stride), -(-wide // stride)


def _video_views(pixels: Tensor, tower: Tower, patch: int, B: int, length: int) -> list[PictureView]:
    """The frames of a video, B F C H W, read a few at a time."""
    frames, n = pixels.shape[1] // tower.frames, (pixels.shape[-2] // patch) * (pixels.shape[-1] // patch)
    beside = length - frames * n
    if len(pixels) != B or n < 2 or not 0 <= beside <= max(_MOST_EXTRA, len(tower.extra)):
        return []
    extra = tower.extra if 0 < len(tower.extra) <= beside else tuple(f"[{i}]" for i in range(beside))
    grid = pixels.shape[-2] // patch, pixels.shape[-1] // patch
    return [
        PictureView(
            grid, np.arange(n) + frame * n + len(extra), video[frame * tower.frames], sample=b, frame=frame, extra=extra
        )
        for b, video in enumerate(pixels)
        for frame in range(frames)
    ]


# --- pictures in a text ------------------------------------------------------------------------------------


class Read(NamedTuple):
    """One view as tokens of a text: its grid, and where its patches are among its `length` tokens."""

    grid: Grid
    places: np.ndarray
    length: int
    pixels: Tensor | None = None
    number: int | None = None
    crop: int | None = None
    frame: int | None = None


def token_views(inputs: Inputs, tower: Tower, count: int, samples: int, video: bool = False) -> list[Read]:
    """The views that `count` tokens of some texts stand for, in order; none if nothing fits.

    Beams of one text read its pictures, which are given once.
    """
    for texts in dict.fromkeys((1, samples)):
        each, rest = divmod(count, texts)
        for found in () if rest else _candidates(inputs, tower, each, video):
            if found and sum(one.length for one in found) == each:
                return found * texts
    return []


def _candidates(inputs: Inputs, tower: Tower, count: int, video: bool) -> Iterator[list[Read]]:
    grids = inputs.rows("video_grid_thw" if video else "grid_thw")
    if grids is not None:
        yield [
            Read(grid, np.arange(grid[0] * grid[1]), grid[0] * grid[1], view.pixels, view.number, None, view.frame)
            for view in _merged_views(grids, tower, inputs)
            for grid in [(view.grid[0] // tower.merge, view.grid[1] // tower.merge)]
        ]
        return
    if tower.has_resampler or video:
        return
    sizes = inputs.rows("image_sizes")
    if sizes is not None and tower.value("image_grid_pinpoints"):
        yield from _tiled(inputs, tower, sizes)
    for name in ("image_sizes", "spatial_shapes"):
        rows = inputs.rows(name)
        side = (tower.patches[0] if tower.patches else 0) if name == "image_sizes" else 1
        for merge in {tower.merge, int(tower.value("downsample_factor", 1))} if side else ():
            if not rows:
                continue
            yield [
                Read(grid, np.arange(grid[0] * grid[1]), grid[0] * grid[1],
                     _image(inputs, number, len(rows), (row[0], row[1])) if name == "image_sizes" else None, number)
                for number, row in enumerate(rows)
                for grid in [(row[0] // side // merge, row[1] // side // merge)]
            ]  # fmt: skip
    for pixels in inputs.pixels:
        each = [one for one in pixels.flatten(0, -4) if bool(one.any())]  # views that only pad a batch are zeros
        for patch in tower.patches if each else ():
            high, wide = pixels.shape[-2] // patch, pixels.shape[-1] // patch
            for shrink in range(1, min(high, wide) + 1):
                if high % shrink or wide % shrink or high * wide // shrink**2 * len(each) != count:
                    continue
                grid = high // shrink, wide // shrink
                yield [Read(grid, np.arange(grid[0] * grid[1]), grid[0] * grid[1], one) for one in each]


def _tiled(inputs: Inputs, tower: Tower, sizes: list[list[int]]) -> Iterator[list[Read]]:
    """LLaVA-NeXT and OneVision: a small picture, then tiles without their padding, each row with one more token."""
    tile = tower.value("image_size")
    if not isinstance(tile, int) or not tower.patches:
        return
    side = tile // tower.patches[0]
    most = re.fullmatch(r"anyres_max_(\d+)", str(tower.value("vision_aspect_ratio", "")))
    for newline in (1, 0):
        found: list[Read] = []
        for number, (high, wide) in enumerate(sizes):
            best = _best_tiles(high, wide, tower.value("image_grid_pinpoints"))
            down, across = best[0] // tile, best[1] // tile
            rows, cols, pad_rows, pad_cols = _unpadded(high, wide, down * side, across * side)
            shrink = 1.0 if most is None else (rows * cols / (int(most[1]) * side**2)) ** 0.5
            grid = (int(rows // shrink), int(cols // shrink)) if shrink > 1.1 else (rows, cols)
            tiles = _tiles(inputs, number, len(sizes), down * across)
            found.append(
                Read((side, side), np.arange(side * side), side * side, None if tiles is None else tiles[0], number)
            )
            places = np.arange(grid[0])[:, None] * (grid[1] + newline) + np.arange(grid[1])
            box = [each * tower.patches[0] for each in (pad_rows, pad_rows + rows, pad_cols, pad_cols + cols)]
            whole = None if tiles is None else _joined(tiles[1:], down, across)[:, box[0] : box[1], box[2] : box[3]]
            found.append(Read(grid, places.reshape(-1), grid[0] * (grid[1] + newline), whole, number, crop=0))
        yield found


def _best_tiles(high: int, wide: int, choices: Sequence[Sequence[int]]) -> tuple[int, int]:
    """The resolution that keeps most of the picture, then the one that wastes least."""

    def kept(choice: Sequence[int]) -> tuple[int, int]:
        scale = min(choice[1] / wide, choice[0] / high)
        pixels = min(int(wide * scale) * int(high * scale), wide * high)
        return pixels, pixels - choice[0] * choice[1]

    best = max(choices, key=kept)
    return best[0], best[1]


def _unpadded(high: int, wide: int, rows: int, cols: int) -> tuple[int, int, int, int]:
    """Rows and columns of patches without those that pad the picture, and the number of the latter before it."""
    if wide / high > cols / rows:
        pad = (rows - int(round(high * (cols / wide), 7))) // 2
        return rows - 2 * pad, cols, pad, 0
    pad = (cols - int(round(wide * (rows / high), 7))) // 2
    return rows, cols - 2 * pad, 0, pad


def _tiles(inputs: Inputs, number: int, count: int, tiles: int) -> Tensor | None:
    """The small picture and the tiles of picture `number`, N C H W."""
    for pixels in inputs.pixels:
        if pixels.dim() == 5 and len(pixels) == count and pixels.shape[1] > tiles:
            return pixels[number, : tiles + 1]
    return None


def _joined(tiles: Tensor, down: int, across: int) -> Tensor:
    """C H W from tiles."""
    _, C, high, wide = tiles.shape
    return tiles.reshape(down, across, C, high, wide).permute(2, 0, 3, 1, 4).reshape(C, down * high, across * wide)


# --- pixels ------------------------------------------------------------------------------------------------

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""The usual normalisation of pictures. CLIP's differs by less than 0.05."""


def visible(pixels: Tensor | None, normal: tuple[Any, Any] | None = None) -> np.ndarray | None:
    """Pixels C h w as a model reads them, as (h, w, 3) bytes: the normalisation is undone.

    normal   mean and standard deviation of each channel, if known; else they are inferred from the range of values
    """
    if pixels is None or pixels.shape[0] not in (1, 3) or not pixels.numel():
        return None
    x = pixels.detach().float().cpu()
    low, high = float(x.min()), float(x.max())
    if normal is not None and len(normal[0]) == len(x):
        x = x * x.new_tensor(normal[1])[:, None, None] + x.new_tensor(normal[0])[:, None, None]
    elif low >= 0 and high <= 1:
        pass
    elif low >= -1 and high <= 1:
        x = (x + 1) / 2
    elif len(x) == 3 and _is_usual(x):
        x = x * x.new_tensor(_STD)[:, None, None] + x.new_tensor(_MEAN)[:, None, None]
    else:
        x = (x - low) / max(high - low, 1e-12)
    array = x.expand(3, -1, -1).permute(1, 2, 0).nan_to_num().clamp(0, 1).mul(255).round().to(torch.uint8)
    return np.ascontiguousarray(array.numpy())


def _is_usual(x: Tensor) -> bool:
    """Whether the values are in the range of the usual normalisation."""
    mean, std = x.new_tensor(_MEAN)[:, None, None], x.new_tensor(_STD)[:, None, None]
    back = x * std + mean
    return bool(back.min() > -0.06) and bool(back.max() < 1.06)
