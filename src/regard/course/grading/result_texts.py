"""Test results and diagnoses as text, and explanations of NumPy and PyTorch errors."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from regard.course.exercise import Call, CallResult, Exercise, Tolerance, Track
from regard.course.grading.child import FILE
from regard.course.grading.comparison import CallComparison, ResultDifference
from regard.course.grading.python_source import SMALL, kind_of, pair, shown, type_of, written_call
from regard.course.grading.sandbox import REFUSALS
from regard.course.grading.verdict import Test, plain
from regard.messages import Listed, say

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
"""The key of a message, "raises-…", and a pattern of the library's error; the first match is used."""


def explanation(message: str) -> str:
    """An explanation of an error message; empty if it is unknown.

    >>> explanation("cannot reshape array of size 6 into shape (4,2)")
    '6 elements do not fit the shape (4,2); the product of the sizes must equal the number of elements'
    """
    for key, pattern in _MESSAGES:
        if found := re.search(pattern, message):
            return say(f"raises-{key}", **found.groupdict())
    return ""


PLACEHOLDERS = ("name", "nearest", "wanted", "found", "what", "type", "message", "line")
"""Placeholders that the messages of diagnoses may use."""

IMPORTS = {
    "np": "import numpy as np",
    "numpy": "import numpy",
    "math": "import math",
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
}
"""The import line for each name that exercises use."""

TOO_MANY = re.compile(r"(\S+)\(\) takes (?:from \d+ to )?(\d+) positional arguments? but (\d+) (?:was|were) given")
MISSING = re.compile(r"(\S+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.+)")
UNEXPECTED = re.compile(r"(\S+)\(\) got an unexpected keyword argument '(\w+)'")
"""Python's errors for a call that does not match the signature."""

LONGEST = 300
"""Longest part of a learner's own message to show, in characters."""


def as_test(name: str, call: Call, test: CallComparison, exercise: Exercise) -> Test:
    """One test of a verdict."""
    call_text = written_call(call, exercise.track)
    if test.right:
        return Test(name, True, call_text)
    expected, got = ("", "") if test.same else _results(test, exercise.track)
    where, message = _where(test, exercise.track)
    numbers = test.difference is not None and test.difference.index is not None
    return Test(name, False, call_text, expected, got, where, message, _allowed(exercise.tolerance) if numbers else "")


def _allowed(tolerance: Tolerance) -> str:
    return say("verdict-tolerance", atol=f"{tolerance.atol:g}", rtol=f"{tolerance.rtol:g}")


def unanswered(name: str, call: Call, track: Track, reached: bool) -> Test:
    """A test whose call did not return, or was not made."""
    return Test(name, False, written_call(call, track), message=say("verdict-ended" if reached else "verdict-not-run"))


def _results(test: CallComparison, track: Track) -> tuple[str, str]:
    if test.difference is not None:
        return _different_row(test.difference, track) or pair(test.difference.expected, test.difference.got, track)
    return _result(test.expected, track), _result(test.got, track)


def _different_row(found: ResultDifference, track: Track) -> tuple[str, str] | None:
    """Of arrays too large to show, the first row that differs, or a part of it; None for others."""
    if not found.index or np.size(found.expected) <= SMALL:
        return None
    *row, at = found.index
    length = np.shape(found.expected)[-1]
    first, last = (0, length) if length <= SMALL else (at, min(at + 8, length))
    inside = [str(place) for place in row] + ([] if length <= SMALL else [f"{first}:{last}"])
    place = _place(replace(found, index=None)) + (f"[{', '.join(inside)}]" if inside else "")
    expected, got = (np.asarray(one)[tuple(row)][first:last] for one in (found.expected, found.got))
    left, right = pair(expected, got, track)
    return f"{left}  # {place}", f"{right}  # {place}"


def _result(answer: CallResult, track: Track) -> str:
    if answer.fault:
        return ""  # the diagnosis covers it
    if not answer.raised:
        return shown(answer.value, 4, track)
    text = (
        say("verdict-error-got", type=answer.raised, message=_short(answer.message))
        if answer.message
        else answer.raised
    )
    return text if answer.line is None else text + say("verdict-error-line", line=answer.line)


def _where(test: CallComparison, track: Track) -> tuple[str, str]:
    """The place of the difference, and a message about it."""
    found = test.difference
    if found is None:
        return "", say(
            "mistake-mutates-input", names=Listed(map(argument_name, test.changed_arguments))
        ) if test.changed_arguments else ""
    where = _place(found)
    if found.index is None:
        return where, sentence(found.fault, {}, found, track)
    expected, got = pair(*found.numbers)
    count = np.size(found.expected)
    return where, say("verdict-place", where=where, expected=expected, got=got, wrong=found.wrong, count=count)


def _place(found: ResultDifference) -> str:
    """The place as Python code, `result[1][0, 2]`, or the name of the gradient."""
    inside = f"[{', '.join(map(str, found.index))}]" if found.index else ""
    if found.path[:1] == ("gradient",):
        return say("verdict-gradient", name=argument_name(str(found.path[1]))) + inside
    return say("verdict-result") + "".join(f"[{key!r}]" for key in found.path) + inside


def sentence(
    name: str, values: Mapping[str, Any], found: ResultDifference | None = None, track: Track = "numpy"
) -> str:
    """The message of a general diagnosis. Values from the learner's process may be missing or forged."""
    known = {key: value for key, value in values.items() if value is not None}
    texts: dict[str, Any] = dict.fromkeys(PLACEHOLDERS, "")
    texts |= {key: v if isinstance(v, Listed) else plain(_short(str(v))) for key, v in known.items()}
    if name == "syntax":
        return texts["hint"]  # already a message, from `learner_source`
    if name == "raises":
        return _exception_sentence(texts)
    if name == "refused" and texts["what"] in REFUSALS:
        texts["what"] = say(f"sandbox-refused-{texts['what']}")
    if texts["nearest"]:
        texts["nearest"] = say("mistake-nearest", nearest=texts["nearest"])
    if found is not None:
        texts |= _values_for(name, found, track)
    if name == "not-finite" and found is not None and not np.isfinite(found.numbers[0]):
        name = "nan-for-infinity"
    return say(f"mistake-{name}", **texts)


def _exception_sentence(texts: Mapping[str, Any]) -> str:
    """The message for an exception; common ones are explained in the reader's language."""
    missing = re.search(r"^(?:name|No module named) '([\w.]+)'", texts["message"])
    if missing and texts["type"] == "NameError" and missing[1] in IMPORTS and texts["line"]:
        return say("mistake-no-import", name=missing[1], line=texts["line"], how=IMPORTS[missing[1]])
    if missing and texts["type"] == "ModuleNotFoundError":
        return say("mistake-no-package", name=missing[1])
    where = say("mistake-line", line=texts["line"]) if texts["line"] else ""
    if texts["type"] == "RecursionError":
        return say("mistake-recursion", where=where)
    if texts["type"] == "EOFError":
        return say("mistake-input", where=where)
    wrong_call = _wrong_call(texts["message"]) if texts["type"] == "TypeError" else ""
    if wrong_call:
        return where + wrong_call + ("" if where else say("mistake-as-in-the-task"))
    if explained := explanation(texts["message"]):
        return where + explained
    whole = say("mistake-raises-line" if where else "mistake-raises", **texts)
    return whole if texts["message"] else whole.rstrip(": ：")  # `raise ValueError` alone


def _wrong_call(message: str) -> str:
    """The message for a call that does not match the signature; empty for other errors.

    >>> _wrong_call("softmax() takes 1 positional argument but 2 were given")
    'wrong number of arguments for softmax: it takes 1 and is called with 2'
    """
    if many := TOO_MANY.search(message):
        home, _, name = many[1].rpartition(".")
        itself = bool(home) and not home.endswith("<locals>")  # Python counts the `self` of a method
        return say("mistake-too-many-arguments", name=name, takes=int(many[2]) - itself, given=int(many[3]) - itself)
    if missing := MISSING.search(message):
        names = Listed(re.findall(r"['\"](\w+)['\"]", missing[2]))
        return say("mistake-missing-arguments", name=missing[1].rpartition(".")[2], names=names)
    if unexpected := UNEXPECTED.search(message):
        return say("mistake-unexpected-argument", name=unexpected[1].rpartition(".")[2], names=unexpected[2])
    return ""


def printed(text: str) -> str:
    """The printed output; warnings get a line number in place of our internal file name.

    >>> printed("your file:4: RuntimeWarning: overflow encountered in exp")
    'line 4: RuntimeWarning: overflow encountered in exp'
    """
    return re.sub(
        rf"^{FILE}:(\d+): ", lambda found: say("mistake-line", line=found[1]), plain(text), flags=re.MULTILINE
    )


def _values_for(name: str, found: ResultDifference, track: Track) -> dict[str, str]:
    """The placeholders of one diagnosis: `expected` and `got`, or `name`."""
    if name == "wrong-shape":
        return {"expected": str(np.shape(found.expected)), "got": str(np.shape(found.got))}
    if name == "wrong-dtype":
        return {"expected": kind_of(found.expected), "got": kind_of(found.got)}
    if name == "wrong-type":
        return {"expected": type_of(found.expected, track), "got": type_of(found.got, track)}
    if name == "wrong-count":
        return {"expected": str(len(found.expected)), "got": str(len(found.got))}
    if found.path[:1] == ("gradient",):
        return {"name": argument_name(str(found.path[1]))}
    if found.index is None:
        return dict(zip(("expected", "got"), pair(found.expected, found.got, track), strict=True))
    return dict(zip(("expected", "got"), pair(*found.numbers), strict=True))


def argument_name(path: str) -> str:
    """The display name of an argument or parameter: "args.0" is the first argument, "kwargs.mask" is mask."""
    kind, _, name = path.partition(".")
    if kind == "args":
        return say("verdict-argument", place=int(name) + 1)
    return name if kind == "kwargs" else path


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
