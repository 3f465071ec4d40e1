"""What Python, NumPy and PyTorch say where shapes, axes, dtypes or types do not fit, in plain words and in the
reader's language.

Their messages are English and speak of operands and gufuncs. What is not known here is shown as it came.
"""

import re

from regard.words import say

_MESSAGES = (
    ("shapes", r"operands could not be broadcast together with shapes (?P<shapes>\(.*\))"),
    ("broadcast", r"operands could not be broadcast together"),
    ("assigned", r"could not broadcast input array from shape (?P<one>\(.*\)) into shape (?P<other>\(.*\))"),
    ("broadcast", r"does not broadcast with previously seen size"),
    ("joined", r"(?:input array dimensions|Sizes of tensors must match) except"),
    ("permuted", r"axes don't match array|does not match the length of the desired ordering of dimensions"),
    ("boolean-minus", r"boolean (?:subtract|negative)|(?:Subtraction|Negation), the `-` operator, (?:with|on) a bool"),
    ("invert", r"operator\.invert|ufunc 'invert'|bitwise_(?:and|or|xor)"),
    (
        "sizes-differ",
        r"The (?:expanded )?size of (?:the )?tensor (?:a )?\((?P<one>\d+)\) must match the (?:existing )?size "
        r"(?:of tensor b )?\((?P<other>\d+)\) at non-singleton dimension (?P<axis>\d+)",
    ),
    ("in-place-shape", r"output with shape (?P<one>\[.*?\]) doesn't match the broadcast shape (?P<other>\[.*?\])"),
    ("product", r"mat1 and mat2 shapes cannot be multiplied \((?P<one>[\dx]+) and (?P<other>[\dx]+)\)"),
    (
        "product-sizes",
        r"matmul: Input operand 1 has a mismatch in its core dimension .*\(size (?P<other>\d+) is different from "
        r"(?P<one>\d+)\)",
    ),
    ("product", r"shapes (?P<one>\(.*?\)) and (?P<other>\(.*?\)) not aligned"),
    (
        "product-sizes",
        r"Expected size for first two dimensions of batch2 tensor to be: \[\d+, (?P<one>\d+)\] but got: "
        r"\[\d+, (?P<other>\d+)\]",
    ),
    ("reshape", r"cannot reshape array of size (?P<size>\d+) into shape (?P<shape>\(.*\))"),
    ("reshape", r"shape '(?P<shape>\[.*\])' is invalid for input of size (?P<size>\d+)"),
    ("view", r"view size is not compatible with input tensor's size and stride"),
    ("axis", r"axis (?P<axis>-?\d+) is out of bounds for array of dimension (?P<axes>\d+)"),
    ("axis-range", r"Dimension out of range \(expected to be in range of \[.*\], but got (?P<axis>-?\d+)\)"),
    ("index", r"index (?P<index>-?\d+) is out of bounds for (?:axis|dimension) (?P<axis>\d+) with size (?P<size>\d+)"),
    ("indices", r"too many indices for (?:array|tensor)"),
    (
        "boolean-index",
        r"boolean index did not match|The shape of the mask \[.*\] at index \d+ does not match|"
        r"mask and data must be the same size",
    ),
    ("boolean-mask", r"masked_fill_? only supports boolean masks|Expected attn_mask dtype to be bool"),
    ("leaf-in-place", r"a (?:view of a )?leaf Variable that requires grad is being used in an in-place operation"),
    ("gradient-in-place", r"modified by an inplace operation"),
    ("numpy-of-gradient", r"Can't call numpy\(\) on Tensor that requires grad"),
    ("dtypes", r"expected scalar type (?P<one>\w+) but found (?P<other>\w+)"),
    ("stacked", r"all input arrays must have the same shape|stack expects each tensor to be equal size"),
    ("nothing", r"zero-size array to reduction operation|Expected reduction dim .* to have non-zero size"),
    ("one-number", r"only (?:0-dimensional|length-1|size-1|one element) .* can be converted to (?:a )?Python scalar"),
    ("whole-powers", r"Integers to negative (?:integer )?powers are not allowed"),
    ("infinity-as-whole", r"cannot convert float (?:infinity|NaN) to integer|value cannot be converted to type int"),
    ("whole-wanted", r"'float' object cannot be interpreted as an integer"),
    ("whole-wanted", r"type must be tuple of ints,but got float|must be .*ints?.*, (?:not|but (?:got|found)) .*float"),
    ("whole-index", r"only integers, slices .* are valid indices|slice indices must be integers"),
    ("tensor-wanted", r"^(?P<name>\w+)\(\): argument '\w+' \(position \d+\) must be Tensor, not (?P<type>[\w.]+)"),
    (
        "none-used",
        r"unsupported operand type\(s\) for .*'NoneType'|'NoneType' object (?:is not|has no)|of type 'NoneType'",
    ),
    ("operands", r"unsupported operand type\(s\) for (?P<sign>\S+): '(?P<one>[\w.]+)' and '(?P<other>[\w.]+)'"),
    ("undefined", r"^name '(?P<name>\w+)' is not defined"),
    ("one-shape", r"Cannot interpret '\d+' as a data type"),
    ("ragged", r"array has an inhomogeneous shape"),
    (
        "whole-numbers",
        r"not implemented for '(?:Long|Int|Bool)'|Input dtype must be either a floating point or complex",
    ),
    ("called", r"^'(?:numpy\.ndarray|Tensor|Parameter|tuple|list|int|float)' object is not callable"),
    ("list-index", r"^(?:list|tuple) index out of range"),
    ("equal-parts", r"array split does not result in an equal division"),
    (
        "in-a-list",
        r"must be tuple of Tensors, not Tensor|only integer scalar arrays can be converted to a scalar index",
    ),
    ("by-zero", r"^(?:float |integer )?division by zero|^float floor division by zero"),
    ("first-init", r"cannot assign (?:module|parameter)s? before Module\.__init__\(\) call"),
    ("array-method", r"'numpy\.ndarray' object has no attribute '(?P<name>\w+)'"),
    ("tensor-method", r"'(?:Tensor|Parameter)' object has no attribute '(?P<name>\w+)'"),
    ("unbound", r"cannot access local variable '(?P<name>\w+)'"),
    ("dtypes", r"to have the same dtype, but got: (?P<one>.+) != (?P<other>.+)"),
    ("dtypes", r"mat1 and mat2 must have the same dtype, but got (?P<one>\w+) and (?P<other>\w+)"),
    ("truth", r"The truth value of an array with more than one element is ambiguous"),
    ("truth", r"Boolean value of Tensor with more than one value is ambiguous"),
)
"""The key of a sentence, "raises-…", and what the library says; the first that fits is told."""


def explanation(message: str) -> str:
    """The message in plain words; empty where it is not known.

    >>> explanation("cannot reshape array of size 6 into shape (4,2)")
    '6 numbers do not fill the shape (4,2); the sizes of a shape must multiply to the number of elements'
    """
    for key, pattern in _MESSAGES:
        if found := re.search(pattern, message):
            return say(f"raises-{key}", **found.groupdict())
    return ""
