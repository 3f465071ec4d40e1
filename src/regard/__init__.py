"""regard: see attention. Build it, watch it, learn it.

The dozen names a newcomer needs. Importing this package is fast and silent and never imports torch:
each name is imported from its module on first use.
"""

# Not from `typing`: the program `regard` handles Ctrl-C only after this package is imported, so it imports nothing.
TYPE_CHECKING = False

__version__ = "0.1.0"

# public name -> the module that holds it
_MODULES = {
    "Mask": "regard.masks",
    "See": "regard.records",
    "Record": "regard.records",
    "Trace": "regard.trace",
    "attend": "regard.dispatch",
    "backends": "regard.dispatch",
    "edit": "regard.capture",
    "effect": "regard.capture",
    "explain": "regard.hand_calculation",
    "load": "regard.language",
    "logit_attribution": "regard.capture",
    "monitor": "regard.capture",
    "patterns": "regard.patterns",
    "read_trace": "regard.trace",
    "survey": "regard.surveys",
    "watch": "regard.capture",
    "RegardError": "regard.errors",
}

__all__ = [
    "Mask",
    "Record",
    "RegardError",
    "See",
    "Trace",
    "__version__",
    "attend",
    "backends",
    "edit",
    "effect",
    "explain",
    "load",
    "logit_attribution",
    "monitor",
    "patterns",
    "read_trace",
    "survey",
    "watch",
]

if TYPE_CHECKING:
    from typing import Any

    from regard import patterns
    from regard.capture import edit, effect, logit_attribution, monitor, watch
    from regard.dispatch import attend, backends
    from regard.errors import RegardError
    from regard.hand_calculation import explain
    from regard.language import load
    from regard.masks import Mask
    from regard.records import Record, See
    from regard.surveys import survey
    from regard.trace import Trace, read_trace


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    module = import_module(_MODULES[name])
    value = module if name == "patterns" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
