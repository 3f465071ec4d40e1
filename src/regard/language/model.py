"""LanguageModel: a model with its tokenizer and its settings, and what people do with it.

Each of its verbs is a file of its own: `translating`, `writing`, `seeing`. How a model computes is not known here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from regard.config import TransformerConfig
from regard.language.settings import Settings
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from regard.language.seeing import Seen
    from regard.records import See


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A model that reads text; `regard.load` makes one.

    name, folder   what it is called, and where it lies
    model          `reference.Transformer`, or `models.Transformer` with backend="torch"
    words          those that it read while it was trained, in small letters; empty where its folder does not list them
    """

    name: str
    folder: Path
    model: Any
    tokenizer: Tokenizer
    settings: Settings
    words: frozenset[str] = frozenset()

    @property
    def config(self) -> TransformerConfig:
        """Which Transformer it is."""
        config: TransformerConfig = self.model.config
        return config

    @property
    def longest(self) -> int:
        """How many tokens it reads at once, at most."""
        limit = self.config.max_len
        return self.settings.longest if limit is None else min(limit, self.settings.longest)

    def __repr__(self) -> str:
        return f"LanguageModel({self.name!r}, {self.config.kind}, {self.settings.task}, {str(self.folder)!r})"

    @overload
    def translate(self, text: str, *, beams: int | None = ..., length_penalty: float | None = ...) -> str: ...
    @overload
    def translate(
        self, text: list[str] | tuple[str, ...], *, beams: int | None = ..., length_penalty: float | None = ...
    ) -> list[str]: ...
    def translate(
        self, text: str | Sequence[str], *, beams: int | None = None, length_penalty: float | None = None
    ) -> str | list[str]:
        """The translation of a text of any length, sentence by sentence; of several, quicker together.

        beams, length_penalty   of the search; the model's own settings unless told

        In a list an empty text has an empty translation. ArgumentError where there is nothing to read, where it is in
        another script and the model reads English, and of a model that does not translate. A warning names what a
        model that reads English does not know (Chinese within a sentence, another language, an address, a word that it
        has never read), and numbers that its translation lacks.
        """
        from regard.language.input_text import warn_of_strange
        from regard.language.translating import translate

        found = translate(self, text, beams=beams, length_penalty=length_penalty)
        warn_of_strange(self, text, found)
        return found

    def generate(
        self,
        prompt: str = "",
        *,
        form: str | None = None,
        max_new: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
    ) -> str:
        """A text that begins with the prompt, drawn by chance: the same seed gives the same text.

        form      "5x4" or "五绝", …: one of `settings.forms`; told from the first line of the prompt if it can be
        max_new   tokens added, at most; this and the other options are the model's own settings unless told
        temperature   0 always takes the most likely token, whatever the seed

        ArgumentError where a character is not in the vocabulary, and of a model that translates; TooLargeError where
        the prompt is longer than what the model reads at once.
        """
        from regard.language.writing import write

        return write(self, prompt, form, max_new=max_new, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)

    def see(self, text: str, *, output: str | None = None, see: "See | None" = None) -> "Seen":
        """One run of the whole model on a text and what it makes of it, with a Trace of where every head looked.

        output   a translation, or continuation, to be looked at instead of the model's own
        see      what each Record holds; maps and exact weights unless told

        `text` of what it gives is the text as it was read. TooLargeError where that is longer than what the model reads
        at once; a warning as of `translate`.
        """
        from regard.language.input_text import warn_of_strange
        from regard.language.seeing import look

        found = look(self, text, output=output, see=see)
        warn_of_strange(self, text, found.output)
        return found
