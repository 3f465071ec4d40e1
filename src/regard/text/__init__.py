"""Text and the pieces a model, or a person, takes it apart into.

Now: `split_words`, for people. It knows no vocabulary and no ids.
"""

from regard.text.words import split_words

__all__ = ["split_words"]
