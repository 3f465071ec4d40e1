"""Practice: exercises, their graders, lessons and questions.

`check` is the entry point for notebooks: `regard.course.check("self-attention", compute_qkv, self_attention)`.
Submodules are imported on first use.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["check"]

if TYPE_CHECKING:
    from regard.course.notebook import check


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'regard.course' has no attribute {name!r}")
    from regard.course import notebook

    return getattr(notebook, name)
