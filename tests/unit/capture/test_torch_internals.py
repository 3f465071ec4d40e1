"""Private names of PyTorch are used in one module, and torch has an upper bound because of them."""

import re
import tokenize
import tomllib
from itertools import pairwise
from pathlib import Path

import torch

from regard.capture import torch_internals

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "regard"
PRIVATE = re.compile(r"\btorch(?:\.\w+)*\._[a-zA-Z]\w*|\b_?aten\._[a-zA-Z]\w*|\b_dispatch_cache\b|\bpy_kernels\b")
ELSEWHERE = {
    "training/loop.py": {"torch._dynamo"},
    "dispatch/overflow.py": {"torch._foreach_norm"},
    "kernels/chunked/forward.py": {"torch.ops.aten._scaled_dot_product_flash_attention_for_cpu"},
    "models/cpu_decoding.py": {"torch._C._len_torch_", "torch.nn.modules.module._has_any_global_hook"},
}
"""`torch._dynamo.maybe_mark_dynamic` is documented for users, though its module has an underscore.

`torch._foreach_norm` is what `torch.nn.utils.get_total_norm` calls; that function cannot give the norms one by one.

`aten._scaled_dot_product_flash_attention_for_cpu` is PyTorch's only kernel that returns the LSE on a CPU.

`models/cpu_decoding.py` may not import from capture, and asks whether modes or hooks of anyone are active: no public
function tells.
"""


def code_of(path: Path) -> str:
    """The source without comments, docstrings and other strings."""
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    left_out = (tokenize.COMMENT, tokenize.STRING, tokenize.ENCODING)
    pieces = ["" if token.type in left_out else token.string for token in tokens]
    spaces = [" " if after.start[1] > token.end[1] else "" for token, after in pairwise(tokens)]
    return "".join(piece + space for piece, space in zip(pieces, [*spaces, ""], strict=True))


def test_private_names_of_torch_are_in_one_module() -> None:
    own = Path(torch_internals.__file__)
    for path in SOURCE.rglob("*.py"):
        found = {match[0] for match in PRIVATE.finditer(code_of(path))}
        allowed = ELSEWHERE.get(path.relative_to(SOURCE).as_posix(), set())
        assert path == own or all(any(name.startswith(one) for one in allowed) for name in found), (path, found)


def test_torch_has_an_upper_bound_that_was_tried() -> None:
    """A private name may change in any version: the bound moves when the tests pass with a new one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (requirement,) = project["optional-dependencies"]["torch"]
    oldest, first_untried = re.fullmatch(r"torch>=(\d+\.\d+),<(\d+\.\d+)", requirement).groups()  # type: ignore[union-attr]
    tried = [int(minor) for minor in re.findall(r"\b2\.(\d+)\b", torch_internals.__doc__ or "")]
    assert (oldest, first_untried) == (f"2.{tried[0]}", f"2.{tried[-1] + 1}")
    assert int(oldest.split(".")[1]) <= int(torch.__version__.split(".")[1]) < int(first_untried.split(".")[1])
