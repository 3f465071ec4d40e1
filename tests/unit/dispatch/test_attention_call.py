"""Validation of attend's arguments: wrong ones raise a RegardError with values and the fix; inputs stay unchanged."""

from typing import Any

import numpy as np
import pytest
import torch
from narrowing import three

from regard import Mask, See, attend, backends
from regard.errors import ArgumentError, DtypeError, RegardError, ShapeError


def x(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


WRONG: dict[str, tuple[type[RegardError], str, tuple[Any, Any, Any], dict[str, Any], list[str]]] = {
    # name: (error, key, (q, k, v), options, words that must be in the message)
    "one axis": (ShapeError, "axes-differ", (x(4), x(4), x(4)), {}, ["(4,)"]),
    "axes differ": (ShapeError, "axes-differ", (x(2, 3, 4), x(3, 4), x(3, 4)), {}, ["(2, 3, 4)", "(3, 4)"]),
    "widths": (ShapeError, "widths-differ", (x(3, 4), x(3, 5), x(3, 4)), {}, ["4", "5"]),
    "no width": (ShapeError, "width-zero", (x(3, 0), x(3, 0), x(3, 4)), {}, ["(3, 0)"]),
    "keys and values": (ShapeError, "key-value-lengths-differ", (x(3, 4), x(5, 4), x(6, 4)), {}, ["5", "6"]),
    "heads of k and v": (
        ShapeError,
        "key-value-heads-differ",
        (x(1, 4, 3, 4), x(1, 2, 3, 4), x(1, 4, 3, 4)),
        {},
        ["(1, 2, 3, 4)"],
    ),
    "grouping": (
        ShapeError,
        "heads-not-grouped",
        (x(1, 6, 3, 4), x(1, 4, 3, 4), x(1, 4, 3, 4)),
        {},
        ["6", "4", "multiple"],
    ),
    "batches": (ShapeError, "batches-differ", (x(2, 3, 4), x(3, 3, 4), x(3, 3, 4)), {}, ["(2, 3, 4)", "expand"]),
    "batches with heads": (
        ShapeError,
        "batches-differ",
        (x(2, 1, 3, 4), x(3, 1, 3, 4), x(3, 1, 3, 4)),
        {},
        ["(3, 1, 3, 4)"],
    ),
    "lists": (DtypeError, "not-an-array", ([[1.0]], x(1, 1), x(1, 1)), {}, ["q", "list", "numpy.asarray"]),
    "mixed kinds": (DtypeError, "mixed-kinds", (x(3, 4), torch.zeros(3, 4), x(3, 4)), {}, ["torch", "NumPy"]),
    "whole numbers": (DtypeError, "float-wanted", (x(3, 4, dtype=int),) * 3, {}, ["int64", "float32"]),
    "complex": (DtypeError, "float-wanted", (x(3, 4, dtype=complex),) * 3, {}, ["complex128"]),
    "dtypes": (
        DtypeError,
        "dtypes-differ",
        (x(3, 4), x(3, 4, dtype=np.float64), x(3, 4)),
        {},
        ["float32", "float64"],
    ),
    "devices": (
        ArgumentError,
        "devices-differ",
        (torch.zeros(3, 4), torch.zeros(3, 4, device="meta"), torch.zeros(3, 4)),
        {},
        ["cpu", "meta", ".to(device)"],
    ),
    "sparse": (
        DtypeError,
        "tensor-not-dense",
        (torch.zeros(3, 4), torch.zeros(3, 4).to_sparse(), torch.zeros(3, 4)),
        {},
        ["sparse_coo", "k.to_dense()"],
    ),
    "nested": (
        DtypeError,
        "tensor-not-dense",
        (torch.nested.nested_tensor([torch.zeros(3, 4)], layout=torch.jagged),) * 3,
        {},
        ["nested", "to_padded_tensor(q, 0.0)"],
    ),
    "float mask": (
        DtypeError,
        "mask-dtype-float",
        (x(3, 4),) * 3,
        {"mask": np.zeros((3, 3))},
        ["float64", "Mask.from_additive", "bias="],
    ),
    "0/1 mask": (
        DtypeError,
        "mask-dtype-whole",
        (x(3, 4),) * 3,
        {"mask": np.ones((3, 3), int)},
        ["int64", "Mask.from_keep", "Mask.from_blocked"],
    ),
    "3-D mask beside heads, B = H": (
        ShapeError,
        "mask-ambiguous",
        (x(2, 2, 3, 4),) * 3,
        {"mask": np.ones((2, 3, 3), bool)},
        ["mask[:, None]", "mask[None]", "(2, 2, 3, 3)"],
    ),
    "mask of another size": (
        ShapeError,
        "mask-shape",
        (x(2, 2, 3, 4),) * 3,
        {"mask": np.ones((3, 5), bool)},
        ["(3, 5)", "(2, 2, 3, 3)"],
    ),
    "one mask value per key": (
        ShapeError,
        "mask-too-few-axes",
        (x(3, 4),) * 3,
        {"mask": np.ones(3, bool)},
        ["(3,)", "mask[None, :]"],
    ),
    "padding of another length": (
        ShapeError,
        "mask-keys",
        (x(2, 2, 3, 4),) * 3,
        {"mask": Mask.padding(np.ones((2, 5), int))},
        ["(2, 5)", "S=3"],
    ),
    "padding of other samples": (
        ShapeError,
        "mask-samples",
        (x(2, 2, 3, 4),) * 3,
        {"mask": Mask.padding(np.ones((3, 3), int))},
        ["Mask.padding", "3", "2"],
    ),
    "boolean bias": (
        DtypeError,
        "bias-dtype",
        (x(3, 4),) * 3,
        {"bias": np.ones((3, 3), bool)},
        ["bool", "mask="],
    ),
    "bias of another size": (
        ShapeError,
        "bias-shape",
        (x(3, 4),) * 3,
        {"bias": np.ones((3, 2))},
        ["(3, 2)", "(3, 3)"],
    ),
    "3-D bias beside heads": (
        ShapeError,
        "bias-ambiguous",
        (x(2, 2, 3, 4),) * 3,
        {"bias": np.ones((2, 3, 3))},
        ["bias[None]", "bias[:, None]"],
    ),
    "scale": (ArgumentError, "scale-value", (x(3, 4),) * 3, {"scale": float("nan")}, ["nan", "1/sqrt"]),
    "softcap": (ArgumentError, "softcap-value", (x(3, 4),) * 3, {"softcap": 0.0}, ["0.0", "None"]),
    "dropout": (ArgumentError, "dropout-value", (x(3, 4),) * 3, {"dropout": 1.0}, ["1.0"]),
    "scale in words": (ArgumentError, "scale-value", (x(3, 4),) * 3, {"scale": "1"}, ["'1'"]),
    "learnable scale": (
        ArgumentError,
        "scale-value",
        (x(3, 4),) * 3,
        {"scale": torch.nn.Parameter(torch.tensor(0.3))},
        ["Parameter", "q"],
    ),
    "dropout in words": (ArgumentError, "dropout-value", (x(3, 4),) * 3, {"dropout": None}, ["None"]),
    "see": (ArgumentError, "see-type", (x(3, 4),) * 3, {"see": True}, ["bool", "See("]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_raise_a_regard_error(name: str) -> None:
    kind, key, arrays, options, wanted = WRONG[name]
    for function in (attend, backends):
        with pytest.raises(kind) as caught:
            function(*arrays, **options)
        assert caught.value.key == key
        for language in ("en", "zh"):
            text = caught.value.text(language)
            assert "\n" not in text
            # Values and code are the same in every language; plain English words are not.
            words = wanted if language == "en" else [word for word in wanted if not word.isalpha()]
            assert [word for word in words if word not in text] == []


@pytest.mark.parametrize("name", ["float mask", "0/1 mask", "mask of another size", "3-D mask beside heads, B = H"])
def test_wrong_torch_masks_raise_the_same_errors(name: str) -> None:
    kind, key, arrays, options, _ = WRONG[name]
    with pytest.raises(kind) as caught:
        attend(*three(map(torch.from_numpy, arrays)), mask=torch.from_numpy(options["mask"]))
    assert caught.value.key == key


def test_mask_of_the_other_array_type_is_accepted() -> None:
    rng = np.random.default_rng(0)
    arrays = three(rng.standard_normal((1, 2, 3, 4)) for _ in range(3))
    tensors = three(torch.from_numpy(a) for a in arrays)
    mask = np.tri(3, dtype=bool)
    right = attend(*arrays, mask=mask)
    np.testing.assert_allclose(attend(*tensors, mask=mask).numpy(), right, atol=1e-12)
    np.testing.assert_allclose(attend(*arrays, mask=torch.from_numpy(mask)), right, atol=1e-12)


def test_array_subclasses_are_accepted() -> None:
    """np.matrix keeps two axes whatever is done to it."""

    class Flat(np.ndarray):
        def reshape(self, *shape: Any, **options: Any) -> Any:
            raise AssertionError("reshape of the subclass was called")

    x = np.eye(3)
    found = attend(*three(x.view(Flat) for _ in range(3)))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, attend(x, x, x))


def test_inputs_are_not_modified() -> None:
    rng = np.random.default_rng(0)
    arrays = three(rng.standard_normal((1, 2, 5, 4)).astype(np.float32) for _ in range(3))
    arrays[1][0, 0, 4] = np.nan
    copies = [a.copy() for a in arrays]
    mask = np.tri(5, dtype=bool)
    attend(*arrays, mask=mask, see=See(entropy=True, received=True, top=2, qk=True))
    tensors = three(torch.from_numpy(a) for a in arrays)
    attend(*tensors, mask=mask, see=See(entropy=True, received=True, top=2, qk=True))
    attend(*tensors, mask=mask)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert (mask == np.tri(5, dtype=bool)).all()


@pytest.mark.parametrize("axes", [2, 3, 4, 5])
def test_all_zero_additive_mask_masks_nothing(axes: int) -> None:
    shape = (2, 3, 2, 5, 4)[-axes:]
    arrays = three(np.random.default_rng(0).standard_normal(shape) for _ in range(3))
    mask = Mask.from_additive(np.zeros((5, 5)))
    np.testing.assert_allclose(attend(*arrays, mask=mask), attend(*arrays), atol=1e-12)
