"""The bundled translator and poet as one NumPy program whose parts can be replaced by a learner's functions.

The modules of this folder, joined to one text, run in the grader's sandbox, which has no `regard`: they import only
NumPy, the standard library and each other. The grader's process also imports them, for the run with our own parts.
Each part is a function with the signature of its exercise; `Parts` calls the learner's if there is one, otherwise ours.
Ours are made of the smaller parts, so that a learner's softmax also runs inside our attention. A learner's function is
self-contained: it replaces the smaller parts inside it.
"""

import re
from pathlib import Path

MODULES = ("our_parts", "part_calls", "models")
"""The modules in the order of their imports."""
_IMPORT = re.compile(rf"^( *)from {re.escape(__name__)}\.\w+ import (?:\([^)]*\)|[^(\n]*)$", flags=re.MULTILINE)


def program_text() -> str:
    """The program that runs in the sandbox: the modules one after the other, without their imports of each other."""
    folder = Path(__file__).parent
    return "\n\n".join(_IMPORT.sub(r"\1pass", (folder / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES)
