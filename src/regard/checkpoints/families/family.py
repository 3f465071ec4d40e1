"""Family: how the config.json and the tensor names of one kind of model correspond to our Transformer.

A family is a table, without model code: a function from the keys of a config.json to a TransformerConfig, and the name
of each tensor with our name and a difference of layout, if there is one.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from regard.axes import Shape
from regard.checkpoints.families.config_keys import ConfigKeys
from regard.config import TransformerConfig
from regard.config.weights import weight_shapes
from regard.errors import ShapeError, UnknownNameError
from regard.messages import Listed


@dataclass(frozen=True)
class Target:
    """Our weights that one tensor holds.

    names       of our modules; # is the number of the layer. Several names share the rows, in this order
    transposed  it is stored as (in, out), as by GPT-2's Conv1D
    skip        rows at the beginning that are not used, as of positions that count from 2
    per_head    its rows are grouped by head: q, k, v of head 0, then of head 1, … as in GPT-NeoX
    first_row   it is one row, as Marian's bias of the output, (1, W)
    is_copy     used only where no other tensor holds the weight
    written_if  whether a model of that config is written with it, where several tensors may hold one weight
    """

    names: tuple[str, ...]
    transposed: bool = False
    skip: int = 0
    per_head: bool = False
    first_row: bool = False
    is_copy: bool = False
    written_if: Callable[[TransformerConfig], bool] | None = None


def to(*names: str, **layout: Any) -> Target:
    """A Target that is not just another name.

    >>> to("decoder.positions.table", skip=2).names
    ('decoder.positions.table',)
    """
    return Target(names, **layout)


Names = dict[str, str | Target | None]
"""Their modules to ours; None for a tensor that is not a weight or is not used. # stands for the number of a layer."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of model.

    config     from the keys of config.json to our config
    names      the name of each module, or of a whole tensor; of several for one weight, the last is written
    prefix     of most names; files that hold the model without its output layer leave it out
    heads      modules of other tasks, such as a classifier: they are not used, and reported
    renamed    other spellings of a part of a name, in old files
    settings   from our config to the keys of config.json; None if models of this family are only read
    """

    config: Callable[[ConfigKeys], TransformerConfig]
    names: Names
    prefix: str = ""
    heads: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    settings: Callable[[TransformerConfig], dict[str, Any]] | None = None

    def unused(self, tensors: Iterable[str]) -> tuple[str, ...]:
        """The tensors that belong to other tasks."""
        modules = tuple(f"{head}." for head in self.heads)
        return tuple(sorted(name for name in tensors if name.startswith(modules)))

    def places(self, shapes: Mapping[str, Shape], config: TransformerConfig) -> "dict[str, TensorPlace]":
        """Where each of our weights is, by name, from the names and shapes of the tensors in the files.

        Raises UnknownNameError with the names that this family does not have.
        """
        wanted, found, unknown = weight_shapes(config), dict[str, TensorPlace](), list[str]()
        unused = set(self.unused(shapes))
        for name, shape in shapes.items():
            if name in unused:
                continue
            target = self._target(name)
            if target is None:
                unknown.append(name)
            else:
                parts = _parts(name, target, shape, wanted, config)
                found = parts | found if target.is_copy else found | parts
        if unknown:
            raise UnknownNameError("weights-unexpected", count=len(unknown), names=Listed.few(unknown))
        for copy, original in _shared_names(config).items():
            place = found.pop(copy, None)
            if place is not None:  # files list a shared weight twice, or once under either name
                found.setdefault(original, place)
        return found

    def tables(self, shapes: Mapping[str, Shape], config: TransformerConfig) -> dict[str, list[str]]:
        """The tensors that hold a table of tokens: of the output, where it is tied, and of the embeddings."""
        kinds = {"output": ["output.weight"], "embedding": ["embedding.weight"]}
        if config.embeddings.source_vocab_size is None:
            kinds["embedding"].append("source_embedding.weight")
        if config.output is None or not config.output.tied:
            del kinds["output"]
        names = {name: target.names[0] for name in shapes if (target := self._target(name)) and target.names}
        return {kind: [name for name, ours in names.items() if ours in wanted] for kind, wanted in kinds.items()}

    def _target(self, name: str) -> Target | None:
        """Our names, complete with weight or bias, of one of their tensors; None for an unknown one."""
        for old, new in self.renamed.items():
            name = name.replace(old, new)
        for candidate in (name, self.prefix + name):
            number = re.search(r"\d+", candidate)
            pattern = re.sub(r"\d+", "#", candidate, count=1)
            module, _, leaf = pattern.rpartition(".")
            key = pattern if pattern in self.names else module
            if key not in self.names:
                continue
            target = self.names[key]
            if target is None:
                return Target(())
            target = Target((target,)) if isinstance(target, str) else target
            ours = (one.replace("#", number[0] if number else "") for one in target.names)
            # A parameter in our model may be a module's weight in theirs.
            whole = key == pattern
            named = tuple(one if whole or one.endswith((".table", ".bias")) else f"{one}.{leaf}" for one in ours)
            return replace(target, names=named)
        return None


@dataclass(frozen=True)
class TensorPlace:
    """Where one of our weights is in their files: a range of rows of a tensor, and its layout."""

    tensor: str
    rows: slice | None = None
    transposed: bool = False
    per_head: tuple[int, int, int] | None = None
    """The number of heads, the parts of each head, and which part."""
    first_row: bool = False

    def of(self, tensor: Any) -> Any:
        """Our weight from their tensor, NumPy or torch; a view where possible."""
        if self.first_row:
            return tensor[0]
        found = tensor.T if self.transposed and tensor.ndim == 2 else tensor
        if self.per_head is not None:
            heads, parts, part = self.per_head
            grouped = found.reshape(heads, parts, -1, *found.shape[1:])[:, part]
            return grouped.reshape(-1, *found.shape[1:])
        return found if self.rows is None else found[self.rows]

    def shape_of(self, shape: Shape) -> Shape:
        """The shape of our weight from the shape of their tensor."""
        if self.first_row:
            return tuple(shape[1:])
        shape = tuple(reversed(shape)) if self.transposed and len(shape) == 2 else tuple(shape)
        if self.per_head is not None:
            return (shape[0] // self.per_head[1], *shape[1:])
        if self.rows is None:
            return shape
        return (len(range(*self.rows.indices(shape[0]))), *shape[1:])


def _parts(
    name: str, target: Target, shape: Shape, wanted: Mapping[str, Shape], config: TransformerConfig
) -> dict[str, TensorPlace]:
    """The place of each weight of a target. Rows are divided as our weights need them, else evenly."""
    if not target.names:
        return {}
    if target.first_row and shape[:1] != (1,):
        raise _shape_error(name, shape, "(1, …)")
    if len(target.names) == 1 and not target.skip:
        return {target.names[0]: TensorPlace(name, transposed=target.transposed, first_row=target.first_row)}
    if target.per_head:
        count = len(target.names)
        if not shape or shape[0] % (config.n_heads * count):
            raise _shape_error(name, shape, f"{config.n_heads} × {count} × …")
        return {
            one: TensorPlace(name, per_head=(config.n_heads, count, part), transposed=target.transposed)
            for part, one in enumerate(target.names)
        }
    if not shape:
        raise _shape_error(name, shape, "(…)")
    total = shape[-1] if target.transposed and len(shape) == 2 else shape[0]
    even = (total - target.skip) // len(target.names)
    found, start = {}, target.skip
    for one in target.names:
        stop = start + (wanted[one][0] if one in wanted else even)
        found[one] = TensorPlace(name, slice(start, stop), target.transposed)
        start = stop
    if start != total:
        raise _shape_error(name, shape, str(start))
    return found


def _shape_error(name: str, shape: Shape, wanted: str) -> ShapeError:
    return ShapeError("weights-shape", count=1, names=f"{name} {tuple(shape)} ≠ {wanted}")


def _shared_names(config: TransformerConfig) -> dict[str, str]:
    """Our weights that are copies of another one."""
    shared = {}
    if config.output is not None and config.output.tied:
        shared["output.weight"] = "embedding.weight"
    if config.embeddings.source_vocab_size is None:
        shared["source_embedding.weight"] = "embedding.weight"
    return shared
