"""Text and the pieces a model, or a person, takes it apart into.

For people: `split_words`, which knows no vocabulary. For models: files read, tokenizers learnt and used, typed text
made plain and split into sentences. Names are fetched when used, so that who only splits words does not wait for
`tokenizers`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# At once, unlike the others: a function that bears its module's name would else be hidden by it.
from regard.text.normalise import is_chinese, tidy
from regard.text.segmentation import split_words

# public name -> the module that holds it
_HOMES = {
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
    if name not in _HOMES:
        raise AttributeError(f"module 'regard.text' has no attribute {name!r}")
    value = getattr(import_module(f"regard.text.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
