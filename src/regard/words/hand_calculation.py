"""The sentences of the hand calculation."""

from regard.words import Words

WORDS: dict[str, Words] = {}
