"""Sparse attention assembled: blocks, bands and global tokens as one matrix of weights, B H N N.

Such a module splits queries and keys into pieces, multiplies matching pieces, and computes a softmax of each part. To
find the query and key of each score, every tensor computed from the module's input gets a second tensor of integers,
its origins, which operators move as they move the first. A softmax of scores with known origins is written to its place
in the matrix. Origins are stored by storage, so that views need no work.

Only the module classes named here are tracked. Other classes without weights of queries by keys are refused by name,
with a reason.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from regard.capture.aliases import key_of
from regard.capture.budget import in_bytes
from regard.capture.module_names import Place, call_arguments, running_modules
from regard.capture.operators import CapturedWeights, is_readable
from regard.capture.torch_internals import COPY_TO, INDEX_PUT_INSIDE, tree_map_only
from regard.messages import say

aten = torch.ops.aten

SPARSE = {
    "BigBirdBlockSparseAttention",
    "BigBirdPegasusBlockSparseAttention",
    "LEDEncoderSelfAttention",
    "LongT5LocalAttention",
    "LongT5TransientGlobalAttention",
    "LongformerSelfAttention",
    "PegasusXGlobalLocalAttention",
}
"""Classes whose pieces can be assembled."""

REFUSED = {
    "NystromformerSelfAttention": "watch-refused-landmarks",
    "LSHSelfAttention": "watch-refused-hashed",
    "LocalSelfAttention": "watch-refused-chunks",
    "MraSelfAttention": "watch-refused-resolutions",
    "YosoSelfAttention": "watch-refused-hashed",
    "InformerProbSparseAttention": "watch-refused-sampled",
    "AutoformerAttention": "watch-refused-correlation",
    "Gemma3nAudioAttention": "watch-refused-chunks",
    "Gemma4AudioAttention": "watch-refused-chunks",
    "GraniteSpeechConformerAttention": "watch-refused-chunks",
}
"""Classes that compute no weights of queries by keys, each with the reason: landmarks, hashes, chunks."""
_DEFORMABLE = re.compile("MultiscaleDeformableAttention$|^MSDeformAttn")
"""Such classes of Deformable DETR and of the many models that copy it."""

ROLES = {
    **dict.fromkeys(("query", "q", "q_proj", "query_global"), "query"),
    **dict.fromkeys(("key", "k", "k_proj", "key_global"), "key"),
}
"""The role of a projection, by its name."""

WIDTH = 2**24
"""An origin is the number of a token times this, plus the number of a feature."""

_LINEAR = {aten.mm.default: 0, aten.addmm.default: 1}
_PRODUCTS = {aten.bmm.default: 0, aten.baddbmm.default: 1}
_MOVES = {
    aten.cat.default,
    aten.stack.default,
    aten.index_select.default,
    aten.index.Tensor,
    aten.gather.default,
    aten.repeat.default,
    aten.flip.default,
    aten.roll.default,
    aten.clone.default,
    COPY_TO,
}
"""Operators that copy elements: applied to origins in the same way."""
_HIDES = {aten.masked_fill.Scalar, aten.masked_fill.Tensor}


class Origins(NamedTuple):
    """The origin of every element of a storage; −1 if unknown."""

    storage: StorageWeakRef  # a weak reference, so that the key is not reused
    codes: Tensor
    role: str  # "input", "query", "key": tokens; "scores", "weights": pairs of them


class WholeMatrix(NamedTuple):
    """The matrix that is being assembled, with (B, H, N) and the rows that have been written."""

    weights: Tensor  # B·H·N N
    sizes: tuple[int, int, int]
    written: Tensor


class SparseTracker:
    """Tracks the sparse attention of some modules, one call at a time.

    report  is called with the assembled weights and their module, once the module has finished
    refuse  is called with a module that could not be assembled, and the reason
    """

    def __init__(
        self,
        places: Mapping[int, Place],
        report: Callable[[CapturedWeights, Place], None],
        refuse: Callable[[Place, str], None],
    ) -> None:
        self._report, self._refuse = report, refuse
        self._projections: dict[int, tuple[Place, str]] = {}
        """By the address of its weight: the module of a projection, and its role."""
        for place in places.values():
            for name, part in place.module.named_children():
                if name in ROLES and isinstance(part, nn.Linear) and is_readable(part.weight):
                    self._projections[part.weight.data_ptr()] = place, ROLES[name]
        self._place: Place | None = None
        self._input: Tensor | None = None
        self._tokens = (0, 0)  # B N
        self._heads = 0
        self._whole: WholeMatrix | None = None
        self._origins: dict[int, Origins] = {}

    def __bool__(self) -> bool:
        return bool(self._projections)

    # --- operators -----------------------------------------------------------------------------------------

    def follow(self, func: Any, args: tuple[Any, ...], result: Any) -> None:
        """Follow one operator."""
        if func in _LINEAR:
            self._project(args[_LINEAR[func]], args[_LINEAR[func] + 1], result)
        elif not self._origins or not isinstance(result, Tensor):
            return
        elif func in _PRODUCTS:
            self._score(args[_PRODUCTS[func]], args[_PRODUCTS[func] + 1], result)
        elif func is aten.copy_.default:
            self._write(args[0], None, args[1])
        elif func is aten.index_put_.default or func is INDEX_PUT_INSIDE:
            self._write(args[0], args[1], args[2])
        elif func is aten.constant_pad_nd.default:
            self._move(lambda x, *more: func(x, args[1], -1), args, result)
        elif func in _MOVES:
            self._move(func, args, result)
        elif self.origins_of(result) is None and result.is_floating_point():
            self._elementwise(func, args, result)

    def add_softmax(self, scores: Tensor, weights: Tensor) -> bool:
        """Add a softmax. Returns whether it belongs to the sparse module. Rows of unknown origin are left out."""
        codes = self.origins_of(scores, "scores")
        if codes is None:
            return self._place is not None and any(module is self._place.module for module in running_modules())
        self._put(weights, codes, "weights")
        self._scatter(weights, codes)
        return True

    def origins_of(self, tensor: Any, *roles: str) -> Tensor | None:
        """The origins of a tensor, if they are known and of one of these roles."""
        found = self._origins.get(key_of(tensor)) if isinstance(tensor, Tensor) else None
        if found is None or (roles and found.role not in roles):
            return None
        return found.codes.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def _project(self, x: Tensor, weight: Tensor, result: Tensor) -> None:
        known = self._projections.get(weight.data_ptr())
        if known is None:
            return
        place, role = known
        self._begin(place)
        codes = self.origins_of(x, "input")
        if codes is None:
            codes = self._rows_of_input(x)
        if codes is not None:
            rows = codes[:, :1] // WIDTH  # the token of each row; −1 stays −1
            feature = torch.arange(result.shape[1], device=codes.device)
            self._put(result, torch.where(rows < 0, -1, rows * WIDTH + feature), role)

    def _begin(self, place: Place) -> None:
        """Start a call of the module: its input defines the origins."""
        given = (x for _, x in call_arguments(place.module))
        hidden = next((x for x in given if x.dim() == 3 and x.is_floating_point()), None)
        if self._place is not None and place.name == self._place.name and hidden is self._input:
            return
        self.flush()
        self._place, self._input = place, hidden
        if hidden is not None:
            B, N, D = hidden.shape
            tokens = torch.arange(B * N, device=hidden.device)[:, None] * WIDTH
            self._tokens = B, N
            self._put(hidden, (tokens + torch.arange(D, device=hidden.device)).view(B, N, D), "input")

    def _rows_of_input(self, x: Tensor) -> Tensor | None:
        """Origins of rows that were copied from the input, in its order or with positions first."""
        hidden = self._input
        codes = self.origins_of(hidden, "input")
        if hidden is None or codes is None or x.numel() != hidden.numel():
            return None
        for one, other in ((hidden, codes), (hidden.transpose(0, 1), codes.transpose(0, 1))):
            if torch.equal(one.reshape(x.shape), x):
                return other.reshape(x.shape)
        return None

    def _score(self, left: Tensor, right: Tensor, result: Tensor) -> None:
        """A product of queries and keys, in either order: every score has a query and a key."""
        rows, columns = self.origins_of(left, "query", "key"), self.origins_of(right, "query", "key")
        if rows is None or columns is None:
            return
        roles = self._origins[key_of(left)].role, self._origins[key_of(right)].role
        first, second = rows[..., :1], columns[..., :1, :]  # … T 1, … 1 S
        query, key = (first, second) if roles[0] == "query" else (second, first)
        (_, N), E = self._tokens, left.shape[-1]
        self._heads = max(self._heads, self._width() // E)
        token, head = query // WIDTH, query % WIDTH // E
        row = (token // N * self._heads + head) * N + token % N
        codes = torch.where((query < 0) | (key < 0), -1, row * N + key // WIDTH % N)
        self._put(result, codes, "scores")

    def _width(self) -> int:
        """The number of features of the queries of all heads."""
        assert self._place is not None
        parts = (part for name, part in self._place.module.named_children() if ROLES.get(name) == "query")
        return next(part.out_features for part in parts if isinstance(part, nn.Linear))

    def _move(self, func: Any, args: tuple[Any, ...], result: Tensor) -> None:
        several = args[0] if isinstance(args[0], list | tuple) else [args[0]]
        roles = [self._origins[key_of(x)].role for x in several if self.origins_of(x) is not None]
        if roles:
            moved = tree_map_only(Tensor, self._codes_or_none, args[0])
            self._put(result, func(moved, *args[1:]) if func not in _COPIES else moved, roles[0])

    def _codes_or_none(self, x: Tensor) -> Tensor:
        codes = self.origins_of(x)
        return torch.full(x.shape, -1, device=x.device) if codes is None else codes

    def _write(self, target: Tensor, where: Any, source: Tensor) -> None:
        """Elements were written into a tensor that may be new."""
        codes = self.origins_of(source)
        if codes is None:
            return
        if self.origins_of(target) is None:
            self._put(target, torch.full(target.shape, -1, device=target.device), self._origins[key_of(source)].role)
        into = self.origins_of(target)
        assert into is not None
        if where is None:
            into.copy_(codes)
        else:
            into.index_put_(tuple(where), codes.to(into.dtype))

    def _elementwise(self, func: Any, args: tuple[Any, ...], result: Tensor) -> None:
        """Elementwise operators keep every element in its place."""
        for x in args:
            codes = self.origins_of(x)
            if codes is not None and x.shape == result.shape:
                role = self._origins[key_of(x)].role
                self._put(result, codes, role)
                if role == "weights" and func in _HIDES:
                    self._scatter(result, codes)
                return

    def _put(self, tensor: Tensor, codes: Tensor, role: str) -> None:
        storage = tensor.untyped_storage()
        whole = torch.full((storage.nbytes() // tensor.element_size(),), -1, device=tensor.device)
        whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).copy_(codes)
        self._origins = {key: one for key, one in self._origins.items() if not one.storage.expired()}
        self._origins[key_of(tensor)] = Origins(StorageWeakRef(storage), whole, role)

    # --- the matrix ----------------------------------------------------------------------------------------

    def _scatter(self, weights: Tensor, codes: Tensor) -> None:
        """Write weights to their places. A row that is written twice is replaced: it belongs to a global token."""
        (B, N), H = self._tokens, self._heads
        if self._whole is None:
            if in_bytes(None, weights) < 4 * B * H * N * N:
                return
            made = weights.new_zeros((B * H * N, N), dtype=torch.promote_types(weights.dtype, torch.float32))
            self._whole = WholeMatrix(made, (B, H, N), torch.zeros(B * H * N, dtype=torch.bool, device=weights.device))
        known = codes >= 0
        places = codes[known]
        rewritten = torch.zeros_like(self._whole.written)
        rewritten[places // N] = True
        self._whole.weights[rewritten] = 0
        self._whole.written[rewritten] = True
        self._whole.weights.view(-1).index_put_(
            (places,), weights[known].to(self._whole.weights.dtype), accumulate=True
        )

    def flush(self) -> None:
        """End the module's call: report the matrix if every query has its row."""
        place, whole = self._place, self._whole
        self._place, self._input, self._whole, self._heads = None, None, None, 0
        self._origins.clear()
        if place is None:
            return
        if whole is None or not bool(whole.written.all()):
            self._refuse(place, say("watch-refused-pieces"))
            return
        B, H, N = whole.sizes
        self._report(CapturedWeights(whole.weights.view(B, H, N, N), None, rest="summaries"), place)


_COPIES = {aten.clone.default, COPY_TO}


def sparse_places(places: list[Place]) -> dict[int, Place]:
    """The modules that are tracked, by id."""
    return {id(place.module): place for place in places if type(place.module).__name__ in SPARSE}


def refusal_of(module: nn.Module) -> str | None:
    """Why the softmaxes of a module are not weights of queries by keys; None if they may be."""
    name = type(module).__name__
    key = "watch-refused-points" if _DEFORMABLE.search(name) else REFUSED.get(name)
    return None if key is None else say(key)
