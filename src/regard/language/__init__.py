"""Models that read text, and the object that runs them.

`load` gives a LanguageModel: one of the two that come with regard, or any folder. `handmade` is one attention layer
whose weights nobody trained. NumPy is enough for all of it. Names are fetched when used, so that who only looks at
`handmade` does not wait for `tokenizers`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# public name -> the module that holds it
_HOMES = {
    "BUNDLED": "loading",
    "LanguageModel": "model",
    "Seen": "seeing",
    "Settings": "settings",
    "load": "loading",
}

__all__ = ["BUNDLED", "LanguageModel", "Seen", "Settings", "load"]

if TYPE_CHECKING:
    from regard.language.loading import BUNDLED, load
    from regard.language.model import LanguageModel
    from regard.language.seeing import Seen
    from regard.language.settings import Settings


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard.language' has no attribute {name!r}")
    value = getattr(import_module(f"regard.language.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
