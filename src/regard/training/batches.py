"""Batches of training data. A batch is a pure function of (seed, epoch, index).

Permutations depend on their key alone, so a resumed run reads the same batches. `feed` copies them to the device.
"""

import hashlib
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from regard.arrays import check_counts
from regard.errors import ArgumentError
from regard.training.processes import Ranks


def noise(n: int, *key: int) -> np.ndarray:
    """`n` random 64-bit numbers that depend only on the key, a sequence of numbers ≥ 0.

    >>> noise(2, 7, 1).tolist() == noise(2, 7, 1).tolist() != noise(2, 7, 2).tolist()
    True
    """
    return np.asarray(np.random.PCG64(np.random.SeedSequence(key)).random_raw(n), dtype=np.uint64)


def permutation(n: int, *key: int) -> np.ndarray:
    """The numbers 0 … n - 1 in an order that depends only on the key.

    >>> permutation(5, 0, 0).tolist()
    [3, 2, 1, 0, 4]
    """
    return np.argsort(noise(n, *key), kind="stable")


IGNORED = -100
"""The target of a position that is not predicted; PyTorch's default `ignore_index`."""


class Batch(NamedTuple):
    """The inputs and targets of one forward pass, one row per example.

    inputs     tensors by name: "ids" (B, T); "…_keep" (B, S) is True for another input's tokens, False for padding;
               "alignment" (B, T, S): the wanted weights of a head that is trained to align
    targets    (B, T); IGNORED where nothing is predicted
    examples   the index of each row's example in the data
    """

    inputs: dict[str, Tensor]
    targets: Tensor
    examples: tuple[int, ...]

    @property
    def n_targets(self) -> int:
        """The number of predicted tokens."""
        return int((self.targets != IGNORED).sum())

    @property
    def n_tokens(self) -> int:
        """The number of input tokens without padding: `ids` up to the last target of each row, and kept tokens."""
        T = self.targets.shape[1]
        reach = (self.targets != IGNORED) * torch.arange(1, T + 1)  # B T
        kept = sum(int(keep.sum()) for name, keep in self.inputs.items() if name.endswith("_keep"))
        return kept + (int(reach.amax(1).sum()) if reach.numel() else 0)

    def shard(self, rank: int, world: int) -> "Batch":
        """The rows of process `rank` of `world`. Empty for some processes if there are fewer rows than processes.

        >>> ids = torch.arange(6).reshape(3, 2)
        >>> Batch({"ids": ids}, ids + 1, (7, 8, 9)).shard(1, 2).examples
        (8,)
        """
        mine = slice(rank, None, world)
        return Batch({name: each[mine] for name, each in self.inputs.items()}, self.targets[mine], self.examples[mine])


class Data(Protocol):
    """Examples in an order that is a pure function of (seed, epoch, index)."""

    @property
    def fingerprint(self) -> str:
        """A hash of everything that determines a batch."""

    @property
    def batches_per_epoch(self) -> int:
        """The same in every epoch."""

    def batch(self, epoch: int, index: int) -> Batch:
        """One batch with the rows of all processes, on the CPU."""


class PairBatches:
    """Sentence pairs as ids, grouped into batches by length.

    A batch of B pairs whose longest side has n tokens (bos or eos included) satisfies B · n ≤ `tokens_per_batch`,
    unless a single pair is longer. Each epoch shuffles pairs of equal length and the order of the batches; the batch
    boundaries never change. `shuffle=False`: always from short to long.

    inputs: `ids` (bos + target), `source` (source + eos), `source_keep`; targets: target + eos.
    links: for each pair, links (source token, target token), eos included; `alignment` (B, T, S) then holds the wanted
    weights of a head: the row that writes a target attends equally to the tokens that it is linked to.

    >>> data = PairBatches([[5, 6], [7]], [[8], [9, 4]], tokens_per_batch=6, seed=0, pad=0, bos=1, eos=2)
    >>> batch = data.batch(epoch=0, index=0)
    >>> batch.inputs["ids"].tolist(), batch.targets.tolist()
    ([[1, 9, 4], [1, 8, 0]], [[9, 4, 2], [8, 2, -100]])
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        *,
        tokens_per_batch: int,
        seed: int,
        pad: int,
        bos: int,
        eos: int,
        shuffle: bool = True,
        links: Sequence[Sequence[tuple[int, int]]] | None = None,
    ) -> None:
        check_counts(tokens_per_batch=(tokens_per_batch, 1), seed=(seed, 0), sources=(len(sources), 1))
        if len(sources) != len(targets):
            raise ArgumentError("pairs-unequal", sources=len(sources), targets=len(targets))
        self.seed, self.shuffle = seed, shuffle
        self.pad, self.bos, self.eos = pad, bos, eos
        self.tokens_per_batch = tokens_per_batch
        self._sources, self._targets = PackedRows.of(sources, eos), PackedRows.of(targets, eos)
        self._links = None if links is None else PackedLinks.of(links, self._sources.lengths, self._targets.lengths)
        self._longest = np.maximum(self._sources.lengths, self._targets.lengths)  # of the two sides of each pair
        self._cuts = cut_by_budget(np.sort(self._longest), tokens_per_batch)
        self._plan = (-1, np.empty(0, int), np.empty(0, int))  # epoch, order of the pairs, order of the batches

    @property
    def batches_per_epoch(self) -> int:
        """The same in every epoch."""
        return len(self._cuts) - 1

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the ids, the token budget, the seed and the order."""
        about = (self.tokens_per_batch, self.seed, self.pad, self.bos, self.eos, self.shuffle)
        arrays = [self._sources.flat, self._sources.starts, self._targets.flat, self._targets.starts]
        if self._links is not None:
            arrays += [self._links.flat.ravel(), self._links.starts]
        return _fingerprint("pairs", about, *arrays)

    def batch(self, epoch: int, index: int) -> Batch:
        """Batch `index` of an epoch. Raises ArgumentError if it does not exist."""
        _check_index(self, epoch, index)
        pairs, batches = self._planned(epoch)
        which = batches[index]
        rows = pairs[self._cuts[which] : self._cuts[which + 1]]
        targets, predicted = self._targets.padded(rows, IGNORED)
        ids = np.full_like(targets, self.bos)
        ids[:, 1:] = targets[:, :-1]
        ids[~predicted] = self.pad
        source, keep = self._sources.padded(rows, self.pad)
        inputs = {"ids": ids, "source": source, "source_keep": keep}
        if self._links is not None:
            inputs["alignment"] = self._links.wanted_weights(rows, targets.shape[1], source.shape[1])
        tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
        return Batch(tensors, torch.from_numpy(targets), tuple(rows.tolist()))

    def _planned(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The order of an epoch. The last one is cached in one attribute, so that threads read it atomically."""
        planned, pairs, batches = self._plan
        if planned != epoch:
            ties = noise(len(self._longest), self.seed, epoch, 0) if self.shuffle else np.arange(len(self._longest))
            pairs = np.lexsort((ties, self._longest))
            n = self.batches_per_epoch
            batches = permutation(n, self.seed, epoch, 1) if self.shuffle else np.arange(n)
            self._plan = (epoch, pairs, batches)
        return pairs, batches


class BlockBatches:
    """One long sequence of ids (an integer array or a memmap) in blocks of T, `batch_size` blocks per batch.

    Each epoch begins at a random offset below 2 T, so that block boundaries move, and shuffles the blocks. Fewer than
    2 T ids at the ends of the text are left out of an epoch; other epochs contain them.
    `shuffle=False`: in order; every id but the first is predicted once. The last block is filled with `pad`, its
    targets with IGNORED.

    inputs: `ids` (B, T); targets: the same positions shifted by one.

    >>> data = BlockBatches(np.arange(8), block=3, batch_size=2, seed=0, shuffle=False)
    >>> [data.batch(0, i).targets.tolist() for i in range(data.batches_per_epoch)]
    [[[1, 2, 3], [4, 5, 6]], [[7, -100, -100]]]
    """

    def __init__(
        self, ids: np.ndarray, *, block: int, batch_size: int, seed: int, shuffle: bool = True, pad: int = 0
    ) -> None:
        check_counts(block=(block, 1), batch_size=(batch_size, 1), seed=(seed, 0))
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise ArgumentError("blocks-ids", shape=ids.shape, dtype=ids.dtype)
        least = block + 1 if shuffle else 2  # with shuffling only whole blocks are used
        if len(ids) < least:
            raise ArgumentError("blocks-short", found=len(ids), least=least, block=block)
        self.ids, self.block, self.batch_size = ids, block, batch_size
        self.seed, self.shuffle, self.pad = seed, shuffle, pad
        # One block fewer than fit leaves space for the offset, and makes the number the same in every epoch.
        self._blocks = max(1, (len(ids) - block) // block) if shuffle else -(-(len(ids) - 1) // block)
        self._plan = (-1, 0, np.empty(0, int))  # epoch, offset, order of the blocks

    @property
    def batches_per_epoch(self) -> int:
        """The same in every epoch; the last batch may have fewer blocks."""
        return -(-self._blocks // self.batch_size)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the ids, the sizes, the seed and the order. Reads all ids once."""
        about = (self.block, self.batch_size, self.seed, self.shuffle, self.pad)
        return _fingerprint("blocks", about, self.ids)

    def batch(self, epoch: int, index: int) -> Batch:
        """Batch `index` of an epoch. Raises ArgumentError if it does not exist."""
        _check_index(self, epoch, index)
        offset, order = self._planned(epoch)
        blocks = order[index * self.batch_size : (index + 1) * self.batch_size]
        at = offset + blocks[:, None] * self.block + np.arange(self.block)  # B T
        last = len(self.ids) - 1
        targets = self.ids[np.minimum(at + 1, last)].astype(np.int64)
        ids = self.ids[np.minimum(at, last)].astype(np.int64)
        if not self.shuffle:
            targets[at >= last] = IGNORED
            ids[at >= last] = self.pad
        return Batch({"ids": torch.from_numpy(ids)}, torch.from_numpy(targets), tuple(blocks.tolist()))

    def _planned(self, epoch: int) -> tuple[int, np.ndarray]:
        """The offset and order of an epoch, cached in one attribute, so that threads read it atomically."""
        planned, offset, order = self._plan
        if planned != epoch:
            offsets = len(self.ids) - self._blocks * self.block  # the number of offsets at which all blocks fit
            offset = int(noise(1, self.seed, epoch, 0)[0]) % offsets if self.shuffle else 0
            order = permutation(self._blocks, self.seed, epoch, 1) if self.shuffle else np.arange(self._blocks)
            self._plan = (epoch, offset, order)
        return offset, order


class PackedRows(NamedTuple):
    """Rows of ids concatenated in one array: row i is flat[starts[i] : starts[i + 1]]."""

    flat: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], end: int) -> "PackedRows":
        """The rows, each followed by `end`."""
        lengths = np.fromiter((len(row) + 1 for row in rows), np.int64, len(rows))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        ids = chain.from_iterable(chain(row, (end,)) for row in rows)
        return cls(np.fromiter(ids, np.int32, starts[-1]), starts)

    @property
    def lengths(self) -> np.ndarray:
        """The length of each row."""
        return np.diff(self.starts)

    def padded(self, which: np.ndarray, pad: int) -> tuple[np.ndarray, np.ndarray]:
        """The chosen rows as one padded array, and a boolean array that is True for their ids."""
        lengths = self.starts[which + 1] - self.starts[which]
        keep = np.arange(lengths.max()) < lengths[:, None]  # B T
        at = self.starts[which][:, None] + np.arange(keep.shape[1])
        ids = self.flat[np.minimum(at, len(self.flat) - 1)].astype(np.int64)
        ids[~keep] = pad
        return ids, keep


class PackedLinks(NamedTuple):
    """Links (source token, target token) of all pairs: those of pair i are flat[starts[i] : starts[i + 1]]."""

    flat: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, links: Sequence[Sequence[tuple[int, int]]], sources: np.ndarray, targets: np.ndarray) -> "PackedLinks":
        """The links of pairs with these lengths. ArgumentError names the first pair with a link outside of it."""
        if len(links) != len(sources):
            raise ArgumentError("links-count", found=len(links), pairs=len(sources))
        counts = np.fromiter(map(len, links), np.int64, len(links))
        starts = np.concatenate([[0], np.cumsum(counts)])
        flat = np.fromiter(chain.from_iterable(chain.from_iterable(links)), np.int32, 2 * starts[-1]).reshape(-1, 2)
        pair_of = np.repeat(np.arange(len(links)), counts)
        outside = (flat < 0).any(1) | (flat[:, 0] >= sources[pair_of]) | (flat[:, 1] >= targets[pair_of])
        if outside.any():
            at = int(outside.argmax())
            pair = int(pair_of[at])
            sizes = {"n_source": int(sources[pair]), "n_target": int(targets[pair])}
            raise ArgumentError("links-outside", pair=pair, source=int(flat[at, 0]), target=int(flat[at, 1]), **sizes)
        return cls(flat, starts)

    def wanted_weights(self, which: np.ndarray, T: int, S: int) -> np.ndarray:
        """The weights that a head should have for the chosen pairs, (B, T, S); rows without a link are 0."""
        counts = self.starts[which + 1] - self.starts[which]
        at = np.concatenate([np.arange(*self.starts[pair : pair + 2]) for pair in which])
        source, target = self.flat[at].T
        weights = np.zeros((len(which), T, S), np.float32)
        weights[np.repeat(np.arange(len(which)), counts), target, source] = 1
        return weights / np.maximum(weights.sum(-1, keepdims=True), 1)


def cut_by_budget(lengths: np.ndarray, budget: int) -> np.ndarray:
    """The batch boundaries for rows of ascending length, such that count · longest ≤ budget in each batch.

    >>> cut_by_budget(np.array([1, 2, 2, 5, 9]), 6).tolist()
    [0, 3, 4, 5]
    """
    cuts = [0]
    while (start := cuts[-1]) < len(lengths):
        most = max(1, budget // int(lengths[start]))
        coming = lengths[start : start + most]
        sizes = coming * np.arange(1, len(coming) + 1)
        cuts.append(start + max(1, int(np.searchsorted(sizes, budget, side="right"))))
    return np.array(cuts)


def _check_index(data: Data, epoch: int, index: int) -> None:
    if epoch < 0 or not 0 <= index < data.batches_per_epoch:
        raise ArgumentError("batch-place", epoch=epoch, index=index, count=data.batches_per_epoch)


def _fingerprint(kind: str, about: tuple[object, ...], *arrays: np.ndarray) -> str:
    """SHA-256 of the settings and arrays; a memmap is read in pieces."""
    hashed = hashlib.sha256(repr((kind, about)).encode())
    for array in arrays:
        hashed.update(f"{array.dtype.name} {array.size}".encode())
        for start in range(0, array.size, 2**22):
            piece = array[start : start + 2**22]
            hashed.update(np.ascontiguousarray(piece, piece.dtype.newbyteorder("<")).data)
    return hashed.hexdigest()


class DeviceBatch(NamedTuple):
    """This process's rows of a micro-batch on its device.

    n_targets, n_tokens and examples count the micro-batch of all processes.
    """

    inputs: dict[str, Tensor]
    targets: Tensor
    n_targets: int
    n_tokens: int
    examples: tuple[int, ...]


def feed(data: Data, cursor: int, ranks: Ranks) -> Generator[DeviceBatch]:
    """Micro-batch `cursor` and all that follow, epoch after epoch, without end. A thread prepares the next one."""

    def prepare(at: int) -> DeviceBatch:
        return device_batch(data.batch(*divmod(at, data.batches_per_epoch)), ranks)

    with ThreadPoolExecutor(1, "feed") as background:
        coming = background.submit(prepare, cursor)
        while True:
            cursor += 1
            current, coming = coming, background.submit(prepare, cursor)
            yield current.result()


def device_batch(batch: Batch, ranks: Ranks) -> DeviceBatch:
    """The rows of this process, copied to its device."""
    mine = batch.shard(ranks.rank, ranks.world)
    inputs = {name: _to_device(each, ranks.device) for name, each in mine.inputs.items()}
    return DeviceBatch(inputs, _to_device(mine.targets, ranks.device), batch.n_targets, batch.n_tokens, batch.examples)


def _to_device(x: Tensor, device: torch.device) -> Tensor:
    """`x` on the device. Pinned memory lets the copy to a GPU run asynchronously."""
    return x.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else x
