"""What the command line says, help pages included."""

from regard.words import Words

WORDS: dict[str, Words] = {}
