"""Language models: loading, translating, generating text, and recording their attention.

`load` returns a LanguageModel: a bundled one, or one from a folder. `handmade` is one attention layer with weights set
by hand. All of it works with NumPy alone. Names are imported on first use, so that `handmade` does not import
`tokenizers`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# public name -> the module that holds it
_MODULES = {
    "BUNDLED": "loading",
    "LanguageModel": "model",
    "Seen": "seeing",
    "Settings": "hub_files",
    "load": "loading",
}

__all__ = ["BUNDLED", "LanguageModel", "Seen", "Settings", "load"]

if TYPE_CHECKING:
    from regard.language.hub_files import Settings
    from regard.language.loading import BUNDLED, load
    from regard.language.model import LanguageModel
    from regard.language.seeing import Seen


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'regard.language' has no attribute {name!r}")
    value = getattr(import_module(f"regard.language.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
