"""Why a backend says no, or what its yes costs."""

from regard.words import Words

WORDS: dict[str, Words] = {}
