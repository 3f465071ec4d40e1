"""Which queries and keys of an attention call are patches of which picture.

The tensors that the running modules were called with are read once for each stack of layers and forward; the other
layers reuse what was found. Images among the tokens of a text keep their positions while the text grows.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from regard.capture.image_grids import (
    Inputs,
    PictureView,
    Read,
    Tower,
    batch_views,
    has_pixel_layer,
    packed_views,
    token_views,
    visible,
)
from regard.capture.module_names import ModuleNames, Place, running_arguments
from regard.errors import ArgumentError
from regard.images import RecordImage, pixels_of
from regard.messages import Listed, say
from regard.records import DecodeStep, Kind

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
_TOKEN_IDS = {
    False: ("image_token_id", "image_token_index", "media_token_id"),
    True: ("video_token_id", "video_token_index"),
}
_CROP = re.compile(r"row_(\d+)_col_(\d+)|global-img")
Images = tuple[RecordImage, ...]


class Given(NamedTuple):
    """A picture that the caller gave to `watch`: its pixels, the grid of its patches, or both."""

    pixels: np.ndarray | bytes | None
    grid: tuple[int, int] | None


def given_images(images: Any) -> list[Given]:
    """`images=` of `watch`: a picture, a grid, a pair of them, or a list of these. Raises as `pixels_of`."""
    if images is None:
        return []
    several = images if isinstance(images, list) else [images]
    return [_given(one) for one in several]


def _given(one: Any) -> Given:
    if isinstance(one, tuple):
        if len(one) == 2 and all(isinstance(size, int) and size > 0 for size in one):
            return Given(None, one)
        if len(one) == 2 and isinstance(one[1], tuple):
            return Given(pixels_of(one[0]), _given(one[1]).grid)
        raise ArgumentError("image-grid-form", found=one)
    return Given(pixels_of(one), None)


class _Stack:
    """The layers of one stack, named alike but for their numbers."""

    def __init__(self, leader: str) -> None:
        self.leader = leader
        self.inputs: Inputs | None = None
        self.found: dict[tuple[Any, ...], Images] = {}
        """By sizes."""
        self.packed: list[PictureView] = []
        self.consumed: dict[str, int] = {}
        """By module: how much of a packed sequence its calls have computed, where each call is a part."""
        self.text: Images = ()
        """The pictures among the tokens of the text that is being read."""
        self.text_length = 0


class ImageTracker:
    """The pictures that a watched model reads.

    images     pictures and grids that the caller gave
    processor  may hold the normalisation of the pixels
    """

    def __init__(self, model: nn.Module, names: ModuleNames, images: Any = None, processor: Any = None) -> None:
        self._given = given_images(images)
        self._names, self._model = names, model
        self._config = getattr(model, "config", None)
        self.reads_images = bool(self._given) or names.facts.once("reads images", lambda: _reads_images(model))
        self._towers: dict[str, Tower] = {}
        self._stacks: dict[str, _Stack] = {}
        self._normal = _normalisation(processor)
        self._pixels: dict[tuple[Any, ...], np.ndarray | None] = {}
        self.lengths: dict[tuple[int, int], None] = {}
        """Numbers of queries and keys that were seen, for messages."""
        self._used: set[int] = set()
        """The given grids that fitted some call, or are what the model's inputs tell."""
        self._own_grids: dict[tuple[int, int], None] = {}
        """Other grids, which the model's inputs tell."""

    def of_call(
        self,
        place: Place,
        kind: Kind,
        sizes: tuple[int, int, int, int],
        ids: np.ndarray | None,
        step: DecodeStep | None,
        tokens: Sequence[Sequence[str]] | None = None,
    ) -> Images:
        """The pictures among the queries and keys of a call of B H T S; `ids` and `tokens` are those of its queries."""
        if not self.reads_images:
            return ()
        B, _, T, S = sizes
        name = _NUMBER.sub("#", place.name)
        stack = self._stacks.get(name)
        if stack is None:
            stack = self._stacks[name] = _Stack(place.name)
        if stack.leader == place.name and not self._is_within(stack, place, T):
            self._refresh(stack)
        if kind != "cross" and (ids is not None or step is not None or kind == "decoder"):
            key: tuple[Any, ...] = ("text", T, S)
            if key not in stack.found:
                stack.found[key] = self._of_text(stack, B, T, S, ids, step, tokens)
            return stack.found[key]
        tower = self._tower(place)
        start = stack.consumed.get(place.name, 0)
        key = (kind == "cross", B, T, S, start)
        if key not in stack.found:
            stack.found[key] = self._of_picture(stack, tower, kind, sizes, start)
        if stack.packed and kind != "cross":
            end, total = start + T, sum(len(view.places) for view in stack.packed)
            stack.consumed[place.name] = 0 if end >= total else end
        return stack.found[key]

    def _is_within(self, stack: _Stack, place: Place, T: int) -> bool:
        """Whether the call continues a packed sequence, which its module computes in parts."""
        return bool(stack.packed) and stack.consumed.get(place.name, 0) > 0

    def _refresh(self, stack: _Stack) -> None:
        """Read the tensors of a new forward."""
        inputs = Inputs(running_arguments())
        stack.inputs, stack.found, stack.packed, stack.consumed = inputs, {}, [], {}

    def _tower(self, place: Place) -> Tower:
        """The settings of the innermost module around `place` that reads pictures, or of the model."""
        around = next(
            (module for module in reversed(self._names.ancestors(place.name)) if has_pixel_layer(module)), self._model
        )
        key = str(id(around))
        if key not in self._towers:
            config = getattr(around, "config", None) or self._config
            self._towers[key] = Tower(around, config)
        return self._towers[key]

    # --- pictures alone --------------------------------------------------------------------------------------

    def _of_picture(
        self, stack: _Stack, tower: Tower, kind: Kind, sizes: tuple[int, int, int, int], start: int
    ) -> Images:
        B, _, T, S = sizes
        self.lengths[T, S] = None
        inputs = stack.inputs
        if inputs is None:
            return ()
        if kind == "cross":
            source = self._text_keys(S)
            if source:
                return source
            keys = self._records(batch_views(inputs, tower, B, S) or self._given_views(B, S), "keys")
            return keys or self._records(batch_views(inputs, tower, B, T) or self._given_views(B, T), "queries")
        if T == 1 < S:  # a learned query pools the patches
            return self._records(batch_views(inputs, tower, B, S) or self._given_views(B, S), "keys")
        if T != S:
            return ()
        if B == 1 and not stack.packed:
            views = packed_views(inputs, tower)
            stack.packed = views if sum(len(view.places) for view in views) >= T else []
        if stack.packed:
            return self._records(_part(stack.packed, start, T), "both")
        return self._records(batch_views(inputs, tower, B, S) or self._given_views(B, S), "both")

    def _text_keys(self, S: int) -> Images:
        """The pictures of the text of S tokens that an encoder has read."""
        for stack in self._stacks.values():
            if stack.text and stack.text_length == S:
                return tuple(replace(one, side="keys") for one in stack.text)
        return ()

    def _given_views(self, B: int, length: int) -> list[PictureView]:
        """The given grids, if they are the whole of a sequence, behind at most a few tokens."""
        grids = [one.grid for one in self._given]
        if not grids or any(grid is None for grid in grids):
            return []
        count = sum(grid[0] * grid[1] for grid in grids if grid is not None)
        for beside in (length - count,):
            if 0 <= beside <= 16:
                self._used.update(range(len(grids)))
                extra = tuple(f"[{i}]" for i in range(beside))
                views, start = [], beside
                for number, grid in enumerate(grids):
                    assert grid is not None
                    views.append(
                        PictureView(grid, np.arange(start, start + grid[0] * grid[1]), number=number, extra=extra)
                    )
                    start += grid[0] * grid[1]
                return views
        return []

    # --- pictures in a text ----------------------------------------------------------------------------------

    def _of_text(
        self,
        stack: _Stack,
        B: int,
        T: int,
        S: int,
        ids: np.ndarray | None,
        step: DecodeStep | None,
        tokens: Sequence[Sequence[str]] | None,
    ) -> Images:
        """The pictures among the tokens of a text; later steps of a generation see them as keys."""
        if step is not None and step.start:
            return tuple(replace(one, side="keys") for one in _reordered(stack, step))
        stack.text, stack.text_length = (), T
        if ids is None and stack.inputs is not None:
            ids = stack.inputs.ids(B, T)
        if ids is None or stack.inputs is None:
            return ()
        side = "both" if T == S else "keys"
        found: Images = ()
        for video in (False, True):
            places = np.argwhere(np.isin(ids, self._token_ids(video)))  # rows of sample and position, in order
            if len(places):
                self.lengths[len(places), len(places)] = None
                views = token_views(stack.inputs, self._tower(Place("", self._model)), len(places), B, video)
                found += self._in_text(views or self._given_reads(len(places)), places, side, tokens)
        stack.text = found
        return found

    def _token_ids(self, video: bool) -> list[int]:
        found = [getattr(self._config, name, None) for name in _TOKEN_IDS[video]]
        return [one for one in found if isinstance(one, int)]

    def _given_reads(self, count: int) -> list[Read]:
        grids = [one.grid for one in self._given if one.grid is not None]
        if sum(rows * cols for rows, cols in grids) != count:
            return []
        self._used.update(range(len(grids)))
        return [Read(grid, np.arange(grid[0] * grid[1]), grid[0] * grid[1]) for grid in grids]

    def _in_text(
        self, views: list[Read], places: np.ndarray, side: Any, tokens: Sequence[Sequence[str]] | None
    ) -> Images:
        found: list[RecordImage] = []
        start = number = 0
        crop: int | None = None
        last_sample, last_end = -1, -2
        for view in views:
            own = places[start : start + view.length]
            start += view.length
            sample, first = int(own[0, 0]), int(own[0, 1])
            if sample != last_sample:
                number, crop, last_end = -1, None, -2
            label = _CROP.search(tokens[sample][first - 1]) if tokens is not None and first else None
            if view.number is not None:  # by the inputs
                number, crop = view.number - _first_number(views, places, sample), view.crop
            elif label is not None:  # `<row_1_col_2>` before each crop, `<global-img>` before the whole picture
                number += number < 0 or label[0] == "row_1_col_1" or (label[1] is None and crop is None)
                crop = None if label[1] is None else 0 if label[0] == "row_1_col_1" else (crop or 0) + 1
            elif first == last_end + 1:  # right behind another view: a crop of the same picture
                crop = 1 if crop is None else crop + 1
                if found and found[-1].crop is None:
                    found[-1] = replace(found[-1], crop=0)
            else:
                number, crop = number + 1, None
            last_sample, last_end = sample, int(own[-1, 1])
            made = PictureView(view.grid, own[view.places, 1], view.pixels, sample, number, crop, view.frame)
            found.append(self._record(made, side))
        return tuple(found)

    # --- records ---------------------------------------------------------------------------------------------

    def _records(self, views: list[PictureView], side: Any) -> Images:
        return tuple(self._record(view, side) for view in views)

    def _record(self, view: PictureView, side: Any) -> RecordImage:
        given = self._given[view.number] if view.number < len(self._given) and view.crop is None else None
        if given is not None and given.pixels is not None and view.frame is None:
            pixels: np.ndarray | bytes | None = given.pixels
        else:
            pixels = self._visible(view)
        same = [at for at, one in enumerate(self._given) if one.grid == view.grid]
        self._used.update(same)
        if not same:
            self._own_grids[view.grid] = None
        places, count = view.places, view.grid[0] * view.grid[1]
        first = int(places[0]) if len(places) else 0
        is_plain = len(places) == count and bool((places == np.arange(first, first + count)).all()) and first >= 0
        return RecordImage(
            pixels=pixels,
            grid=view.grid,
            first=first if is_plain else 0,
            side=side,
            positions=None if is_plain else places,
            sample=view.sample,
            number=view.number,
            crop=view.crop,
            frame=view.frame,
            extra=view.extra,
        )

    def _visible(self, view: PictureView) -> np.ndarray | None:
        """The pixels as bytes, once for the same tensor: vision tower and language model show the same picture."""
        x = view.pixels
        if x is None:
            return None
        key = (x.data_ptr(), x._version, tuple(x.shape), tuple(x.stride()))
        if key not in self._pixels:
            if len(self._pixels) > 64:
                self._pixels.clear()
            self._pixels[key] = visible(x, self._normal)
        return self._pixels[key]

    def warning(self) -> str | None:
        """A given grid that fitted no call."""
        wrong = [one.grid for at, one in enumerate(self._given) if one.grid is not None and at not in self._used]
        if not wrong or not self.lengths:
            return None
        rows, cols = wrong[0]
        if self._own_grids:
            grids = Listed.few([f"{high} × {wide}" for high, wide in self._own_grids], 3)
            return say("watch-images-own", rows=rows, cols=cols, grids=grids)
        lengths = sorted({length for pair in self.lengths for length in pair})
        return say("watch-images", rows=rows, cols=cols, patches=rows * cols, found=lengths[-1])


def _reads_images(model: nn.Module) -> bool:
    """Whether a model has a convolution over pixels, or its config tells the size of patches."""
    config = getattr(model, "config", None)
    owners = (config, getattr(config, "vision_config", None))
    return any(isinstance(getattr(one, "patch_size", None), int) for one in owners) or has_pixel_layer(model)


def _normalisation(processor: Any) -> tuple[Any, Any] | None:
    owner = getattr(processor, "image_processor", processor)
    mean, std = getattr(owner, "image_mean", None), getattr(owner, "image_std", None)
    return None if mean is None or std is None else (list(mean), list(std))


def _part(views: list[PictureView], start: int, length: int) -> list[PictureView]:
    """The views of a part of a packed sequence."""
    found = []
    for view in views:
        places = np.where((view.places >= start) & (view.places < start + length), view.places - start, -1)
        if (places >= 0).any():
            found.append(view._replace(places=places))
    return found


def _reordered(stack: _Stack, step: DecodeStep) -> Images:
    """The pictures of the text, for the samples of a step that may continue others."""
    parents = step.parents
    if not parents or parents == tuple(range(len(parents))):
        return stack.text
    return tuple(
        replace(one, sample=sample)
        for sample, parent in enumerate(parents)
        for one in stack.text
        if one.sample in (None, parent)
    )


def _first_number(views: list[Read], places: np.ndarray, sample: int) -> int:
    """The number of the first picture of a sample among those of all samples."""
    start = 0
    for view in views:
        if int(places[start, 0]) == sample:
            return view.number or 0
        start += view.length
    return 0
