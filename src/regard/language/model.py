"""LanguageModel: a model with its tokenizer and its settings.

Its methods are implemented in `translating`, `generating`, `seeing`, `chat` and `embedding`. They do not depend on how
the model computes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from regard.arrays import convert_like, to_numpy
from regard.config import TransformerConfig
from regard.language.hub_files import Settings, SpecialIds
from regard.masks import Mask
from regard.text.tokenizer import AnyTokenizer

if TYPE_CHECKING:
    import numpy as np

    from regard.language.chat import ChatTemplate
    from regard.language.seeing import Seen, SilencedToken
    from regard.records import See
    from regard.text.chat_template import Message


class ModelBackend(NamedTuple):
    """What computes a model, and why."""

    name: Literal["numpy", "torch", "transformers"]
    reason: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A model that reads text; `regard.load` returns one.

    name, folder   its name and its folder
    model          `reference.Transformer`, or `models.Transformer` with backend="torch"
    special        the control ids around its texts
    backend        what computes it, and why: "numpy", "torch" or "transformers"
    words          the words of its training text in lower case; empty where its folder does not list them
    template       the chat template of its tokenizer, None without one
    """

    name: str
    folder: Path
    model: Any
    tokenizer: AnyTokenizer
    settings: Settings
    special: SpecialIds
    backend: ModelBackend
    words: frozenset[str] = frozenset()
    template: "ChatTemplate | None" = None

    @property
    def limit(self) -> int | None:
        """The most tokens of a text, None for no limit."""
        return self.config.max_len

    @property
    def width(self) -> int:
        """The width of its vectors."""
        return self.config.d_model

    def token_vectors(self, texts: list[list[int]]) -> "list[np.ndarray]":
        """The vectors for the ids of each text, (T, D) each, before the output layer; the texts are one batch."""
        from regard.language.embedding import padded

        parameters = getattr(self.model, "parameters", None)
        like = None if parameters is None else next(parameters())
        ids, keep = (convert_like(array, like) for array in padded(texts))
        run = self.model.vectors if self.config.kind == "decoder" else self.model.encode
        vectors = to_numpy(run(ids, mask=Mask.from_keep(keep)))  # B T D
        return [each[: len(one)] for each, one in zip(vectors, texts, strict=True)]

    @property
    def generator(self) -> Any:
        """What `regard.generation` drives."""
        return self.model

    def record(self, ids: list[int]) -> Any:
        """The Trace of one run on ids, with exact weights."""
        from regard.language.seeing import record_ids

        return record_ids(self, ids)

    @property
    def config(self) -> TransformerConfig:
        """The configuration of the Transformer."""
        config: TransformerConfig = self.model.config
        return config

    @property
    def longest(self) -> int:
        """The most tokens that it reads at once."""
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
        """The translation of a text of any length, sentence by sentence; a list of texts is faster than one by one.

        beams, length_penalty   of the search; by default the model's own settings

        In a list an empty text has an empty translation. Raises ArgumentError where there is nothing to read, where
        the text is in another script and the model reads English, and where the model does not translate. Warns about
        what a model that reads English does not know (Chinese within a sentence, another language, an address, a word
        that is not in its training text), and about numbers that are missing in the translation.
        """
        from regard.language.input_text import warn_about_input
        from regard.language.translating import translate

        found, notes = translate(self, text, beams=beams, length_penalty=length_penalty)
        warn_about_input(self, notes)
        return found

    @overload
    def generate(
        self, prompt: str = ..., *, form: str | None = ..., stream: Literal[False] = ..., **options: Any
    ) -> str: ...
    @overload
    def generate(
        self, prompt: str = ..., *, form: str | None = ..., stream: Literal[True], **options: Any
    ) -> Iterator[str]: ...
    def generate(
        self,
        prompt: str = "",
        *,
        form: str | None = None,
        max_new_tokens: int | None = None,
        beams: int | None = None,
        stop: str | Sequence[str] | None = None,
        stream: bool = False,
        prompt_lookup: int | None = None,
        **sampling: Any,
    ) -> str | Iterator[str]:
        """A text that begins with the prompt: the same seed gives the same text.

        form            "5x4" or "五绝", …: one of `settings.forms`; by default inferred from the first line
        max_new_tokens  the most tokens to add; by default, like the sampling, the model's own setting
        beams           beam search with that many texts at once, in place of sampling
        stop            a text, or several: the output ends before the first of them
        stream          return an iterator over the added text, piece by piece, in whole characters
        prompt_lookup   at temperature 0, the most tokens that one step reads at once where the text repeats itself: the
                        same tokens, sooner
        sampling        temperature (0 always takes the most likely token, whatever the seed), top_k, top_p, min_p,
                        repetition_penalty, seed

        Raises ArgumentError where a character is not in the vocabulary, and where the model translates; TooLargeError
        where the prompt is longer than the model reads at once.
        """
        from regard.language.generating import generate_text

        return generate_text(
            self,
            prompt,
            form,
            max_new=max_new_tokens,
            beams=beams,
            stop=stop,
            streamed=stream,
            prompt_lookup=prompt_lookup,
            **sampling,
        )

    @overload
    def chat(self, messages: "Sequence[Message]", *, stream: Literal[False] = ..., **options: Any) -> str: ...
    @overload
    def chat(self, messages: "Sequence[Message]", *, stream: Literal[True], **options: Any) -> Iterator[str]: ...
    def chat(
        self,
        messages: "Sequence[Message]",
        *,
        max_new_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        stream: bool = False,
        prompt_lookup: int | None = None,
        **sampling: Any,
    ) -> str | Iterator[str]:
        """The answer to a conversation, by the chat template of the model's own tokenizer.

        messages   [{"role": "user", "content": "…"}, …]; the names of control tokens in a content are plain text

        The other options are those of `generate`. Raises ArgumentError for a model without a chat template, and
        FileError where the template fails: it runs in a sandbox, in a process with limits.
        """
        from regard.language.chat import chat

        return chat(
            self,
            messages,
            max_new_tokens=max_new_tokens,
            stop=stop,
            streamed=stream,
            prompt_lookup=prompt_lookup,
            **sampling,
        )

    def see(self, text: str, *, output: str | None = None, see: "See | None" = None) -> "Seen":
        """Run the whole model once on a text and its output, and record the attention of every head.

        output   a translation, or continuation, to use instead of the model's own
        see      what each Record holds; by default maps and exact weights

        `text` of the result is the text as the model reads it. Raises TooLargeError where that is longer than the model
        reads at once. Warns as `translate`; `notes` of the result holds the same for programs.
        """
        from regard.language.input_text import warn_about_input
        from regard.language.seeing import run_recorded

        found = run_recorded(self, text, output=output, see=see)
        warn_about_input(self, found.notes)
        return found

    def embed(self, texts: str | Sequence[str], *, prompt: str | None = None) -> "np.ndarray":
        """One vector for each text, float32: (D,) for a single text, (N, D) for several.

        prompt   the name of one of the prompts of the folder, such as "query", which is put before each text; by
                 default the one that the folder names, if any

        Pooled, changed by dense layers and normalised as the model's folder says (modules.json of
        sentence-transformers), else the mean of the tokens' vectors, normalised. Raises ArgumentError where the model
        is not an encoder and its folder says nothing.
        """
        from regard.language.embedding import embed

        return embed(self, texts, prompt)

    def silence(self, seen: "Seen", module: str, head: int) -> "list[SilencedToken]":
        """What one head does for the output: the probability of every written token with it and without it.

        seen     a result of `see`
        module   the name of a record of its trace, such as "decoder.layers.5.self_attention"
        head     counted from 0; its output is set to 0

        Raises UnknownNameError and ArgumentError with the names and numbers there are.
        """
        from regard.language.seeing import silence_head

        return silence_head(self, seen, module, head)

    def predictions_without(
        self, seen: "Seen", module: str, head: int, edge: tuple[int, int] | None = None
    ) -> "tuple[np.ndarray, np.ndarray, int]":
        """Log-probabilities of the next token with a head and without it, (W,) each, and the row where they are.

        edge   (query, key): only this edge of the head is cut, and the row is its query's. For a whole head it is the
               row that moves most, for an edge of an encoder the last one.
        """
        from regard.language.seeing import predictions_without

        return predictions_without(self, seen, module, head, edge)
