"""`LanguageModel.chat` and `Conversation`: turns of a conversation, by the chat template of the model's tokenizer."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.arrays import check_counts, to_numpy
from regard.errors import ArgumentError, TooLargeError
from regard.generation import Session, stream
from regard.generation.sampling import Pick
from regard.kernels.division import one_blas_thread
from regard.language.generating import CHUNK, chosen_pick, stop_texts, text_pieces
from regard.language.input_text import check_task
from regard.text.chat_template import SEPARATOR, check_messages, render, split_control_tokens
from regard.text.segmentation import text_or_hex, token_bytes, word_groups
from regard.text.tokenizer import IdTokenizer

if TYPE_CHECKING:
    from regard.language.model import LanguageModel

DEFAULT_MOST = 512
"""Tokens of an answer where the caller does not say."""


def check_chat(model: "LanguageModel") -> None:
    """Raise ArgumentError for a model that holds no conversations."""
    check_task(model, "text")
    if model.template is None or isinstance(model.tokenizer, IdTokenizer):
        raise ArgumentError("chat-no-template", name=model.name)


def conversation_text(model: "LanguageModel", messages: Any) -> str:
    """A conversation as the model reads it. Raises ArgumentError for a model without a chat template."""
    return _rendered(model, messages).replace(SEPARATOR, "")


def conversation_ids(model: "LanguageModel", messages: Any) -> list[int]:
    """The ids of a conversation, up to the place where the model answers."""
    text = _rendered(model, messages)
    tokenizer = model.tokenizer
    assert not isinstance(tokenizer, IdTokenizer)  # it has no template
    return tokenizer.encode_template(text, SEPARATOR)


def _rendered(model: "LanguageModel", messages: Any) -> str:
    given = check_messages(messages)
    check_chat(model)
    assert model.template is not None
    assert not isinstance(model.tokenizer, IdTokenizer)
    given = split_control_tokens(given, model.tokenizer.control_tokens)
    return render(model.template.text, given, model.template.values, model.folder)


def answer_ids(
    model: "LanguageModel",
    ids: Sequence[int],
    pick: Pick,
    most: int | None,
    session: Session | None = None,
    lookup: int | None = None,
) -> Iterator[int]:
    """The ids of the model's answer to a prompt, one by one. Raises TooLargeError where the prompt is too long."""
    limit = model.limit
    if limit is not None and len(ids) >= limit:
        raise TooLargeError("generate-too-long", found=len(ids), most=limit - 1)
    most = DEFAULT_MOST if most is None else most
    check_counts(max_new_tokens=(most, 1))
    if limit is not None:
        most = min(most, limit - len(ids) + 1)
    reader = session if session is not None else model.generator
    with one_blas_thread():
        ends = model.special.ends or None
        yield from stream(reader, list(ids), max_new=most, pick=pick, eos=ends, chunk=CHUNK, lookup=lookup)


def chat(
    model: "LanguageModel",
    messages: Any,
    *,
    max_new_tokens: int | None,
    stop: str | Sequence[str] | None,
    streamed: bool,
    session: Session | None = None,
    prompt_lookup: int | None = None,
    **sampling: Any,
) -> str | Iterator[str]:
    """The implementation of `LanguageModel.chat`."""
    stops, pick = stop_texts(stop), chosen_pick(model, **sampling)
    ids = conversation_ids(model, messages)
    answer = answer_ids(model, ids, pick, max_new_tokens, session, prompt_lookup)
    pieces = text_pieces(model.tokenizer, answer, ids, stops)
    return pieces if streamed else "".join(pieces).strip()


class Word(NamedTuple):
    """A word of the text before an answer, and the share of attention that the answer gave it."""

    text: str
    share: float


class Conversation:
    """Several turns with one model, which keeps what it has read: a new turn reads only what is new.

    messages   all turns so far; a turn that was interrupted ends where it was
    """

    def __init__(self, model: "LanguageModel", system: str | None = None) -> None:
        self.model = model
        self.messages: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]
        self._session = Session(model.generator.begin())
        self._read: list[int] = []
        self._written: list[int] = []

    def ask(
        self,
        text: str,
        *,
        max_new_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        prompt_lookup: int | None = None,
        **sampling: Any,
    ) -> Generator[str]:
        """The answer, piece by piece. The turn is recorded when the iterator ends or is closed."""
        turn = [*self.messages, {"role": "user", "content": text}]
        stops, pick = stop_texts(stop), chosen_pick(self.model, **sampling)
        self._read, self._written = conversation_ids(self.model, turn), []
        answer = ""
        try:
            ids = answer_ids(self.model, self._read, pick, max_new_tokens, self._session, prompt_lookup)
            for piece in text_pieces(self.model.tokenizer, self._recorded(ids), self._read, stops):
                answer += piece
                yield piece
        finally:
            if self._written:
                self.messages = [*turn, {"role": "assistant", "content": answer.strip()}]

    def _recorded(self, ids: Iterator[int]) -> Iterator[int]:
        for one in ids:
            self._written.append(one)
            yield one

    def attended_words(self) -> list[Word]:
        """The words before the last answer with the attention that its tokens gave them, in the order of the text.

        The mean of all layers and heads, in shares of what the text before the answer got, without its first token,
        on which many heads put what they do not need. [] where nothing was answered.
        """
        if not self._written:
            return []
        ids, first = [*self._read, *self._written], len(self._read)
        most = self.model.longest
        if len(ids) > most:
            raise TooLargeError("see-too-long", found=len(ids), most=most)
        shares = _mean_attention(self.model, ids, first)[:first]
        shares[0] = 0
        pieces = token_bytes(self.model.tokenizer.raw_tokens(self._read))
        total = shares.sum() or 1.0
        controls = self.model.tokenizer.control_tokens
        found = []
        for at in word_groups(pieces):
            text = text_or_hex(b"".join(pieces[at])).strip()
            if text and text not in controls:
                found.append(Word(text, float(shares[at].sum() / total)))
        return found


def _mean_attention(model: "LanguageModel", ids: list[int], first: int) -> np.ndarray:
    """The mean weight of every key for the queries that wrote the ids from `first` on, over layers and heads, (T,)."""
    trace = model.record(ids)
    rows = slice(first - 1, len(ids) - 1)  # a query that has read a token writes the next
    means = [to_numpy(record.weights(rows=rows))[0].mean((0, 1)) for record in trace if record.shape[2] == len(ids)]
    found: np.ndarray = np.mean(means, axis=0)
    return found


class ChatTemplate(NamedTuple):
    """The chat template of a tokenizer, and the values that it may read."""

    text: str
    values: dict[str, Any]


def template_values(about: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a template may read, from tokenizer_config.json: the names of control tokens."""
    found = {}
    for name, value in about.items():
        if name.endswith("_token"):
            value = value.get("content") if isinstance(value, Mapping) else value
            if isinstance(value, str):
                found[name] = value
    return found
