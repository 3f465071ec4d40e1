"""What the views write beside a picture."""

from regard.words import Words

WORDS: dict[str, Words] = {}
