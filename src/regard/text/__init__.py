"""Text files, tokenizers, normalisation, and text split into words and sentences.

`split_words` needs no vocabulary. Names are imported on first use, so that splitting words does not import
`tokenizers`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not on first use: these modules need only the standard library.
from regard.text.normalise import is_chinese, tidy
from regard.text.segmentation import split_words

# public name -> the module that holds it
_MODULES = {
    "SPECIALS": "tokenizer_training",
    "Corpus": "corpus",
    "Tokenizer": "tokenizer",
    "fitting": "corpus",
    "learn_tokenizer": "tokenizer_training",
    "read_lines": "corpus",
    "read_pairs": "corpus",
    "read_text": "corpus",
    "split_sentences": "segmentation",
}

__all__ = [
    "SPECIALS",
    "Corpus",
    "Tokenizer",
    "fitting",
    "is_chinese",
    "learn_tokenizer",
    "read_lines",
    "read_pairs",
    "read_text",
    "split_sentences",
    "split_words",
    "tidy",
]

if TYPE_CHECKING:
    from regard.text.corpus import Corpus, fitting, read_lines, read_pairs, read_text
    from regard.text.segmentation import split_sentences
    from regard.text.tokenizer import Tokenizer
    from regard.text.tokenizer_training import SPECIALS, learn_tokenizer


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'regard.text' has no attribute {name!r}")
    value = getattr(import_module(f"regard.text.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
