"""LanguageModel: a model with its tokenizer and its settings.

Its methods are implemented in `translating`, `generating` and `seeing`; `embed` is here. They do not depend on how the
model computes. Folders of sentence-transformers describe the pooling of `embed` in modules.json; without it, the mean
of all tokens, normalised.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from regard.arrays import convert_like, to_numpy
from regard.checkpoints.gguf_file import GgufFile, is_gguf
from regard.checkpoints.model_folder import file_in_folder, read_json
from regard.config import TransformerConfig
from regard.errors import ArgumentError, FileError
from regard.language.hub_files import Settings, SpecialIds
from regard.language.input_text import check_text
from regard.masks import Mask
from regard.messages import Listed
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
        """An encoder's vectors for the ids of each text, (T, D) each; the texts are one batch."""
        parameters = getattr(self.model, "parameters", None)
        like = None if parameters is None else next(parameters())
        ids, keep = (convert_like(array, like) for array in padded(texts))
        # A decoder that is stored without its output layer returns its vectors.
        run = self.model if self.config.kind == "decoder" else self.model.encode
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

    def embed(self, texts: str | Sequence[str]) -> "np.ndarray":
        """One vector for each text, float32: (D,) for a single text, (N, D) for several.

        Pooled and normalised as the model's folder says (modules.json of sentence-transformers), else the mean of the
        tokens' vectors, normalised. Raises ArgumentError where the model is not an encoder.
        """
        return embed(self, texts, read_pooling(self.folder))

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


LARGEST_BATCH, MOST_PADDING = 4096, 1.25
"""The tokens of a batch, and the longest text of a batch over its shortest: more padding costs more than it saves."""
MODULES, POOLING, LENGTH = "modules.json", "config.json", "sentence_bert_config.json"
Mode = Literal["mean", "cls", "max"]
_MODES: dict[str, Mode] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
}


class Pooling(NamedTuple):
    """How the vectors of the tokens become one vector, and the most tokens that are read."""

    mode: Mode = "mean"
    normalised: bool = True
    longest: int | None = None


def embed(model: "LanguageModel", texts: str | Sequence[str], pooling: Pooling) -> np.ndarray:
    """The implementation of `LanguageModel.embed`: (D,) for one text, (N, D) for several."""
    rows = [texts] if isinstance(texts, str) else list(texts)
    if model.settings.task != "encoding":
        raise ArgumentError("embed-task", name=model.name)
    ids = [_ids(model, text, pooling) for text in rows]
    found = np.zeros((len(rows), model.width), np.float32)
    for batch in batches([len(one) for one in ids]):
        vectors = model.token_vectors([ids[row] for row in batch])
        found[batch] = [_pooled(each, pooling) for each in vectors]
    row: np.ndarray = found[0] if isinstance(texts, str) else found
    return row


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Rows of similar length together, the shortest first; a batch has at most LARGEST_BATCH tokens, padding included.

    >>> batches([3, 4000, 2, 300, 3])
    [[2], [0, 4], [3], [1]]
    """
    found: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        size = lengths[row]
        fits = found and size * (len(found[-1]) + 1) <= LARGEST_BATCH
        if found and fits and size <= MOST_PADDING * lengths[found[-1][0]]:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def _ids(model: "LanguageModel", text: str, pooling: Pooling) -> list[int]:
    """The ids of a text with those around it, cut at the longest text that the model reads."""
    check_text(text)
    bare = model.tokenizer.encode(text)
    most = min(n for n in (pooling.longest, model.limit, 2**20) if n is not None) - len(model.special.around([]))
    ids = model.special.around(bare[:most])
    if not ids:
        raise ArgumentError("translate-empty")
    return ids


def padded(texts: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Ids (B, T), padded on the right, and which of them are of the text."""
    lengths = np.array([len(ids) for ids in texts])
    keep = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(keep.shape, np.int64)
    ids[keep] = np.concatenate(texts)
    return ids, keep


def _pooled(vectors: np.ndarray, pooling: Pooling) -> np.ndarray:
    """The vector (D,) of a text from those of its tokens (T, D)."""
    vector = {"mean": vectors.mean(0), "cls": vectors[0], "max": vectors.max(0)}[pooling.mode]
    if not pooling.normalised:
        return np.asarray(vector, np.float32)
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)


def read_pooling(folder: Path) -> Pooling:
    """The pooling of a folder, or of a GGUF file. Raises FileError for one that we do not compute."""
    if is_gguf(folder):
        return _gguf_pooling(folder)
    if not os.path.lexists(folder / MODULES):
        return Pooling()
    modules = read_json(file_in_folder(folder, MODULES))
    if not isinstance(modules, list) or not all(isinstance(one, dict) for one in modules):
        raise FileError("model-garbled", path=str(folder / MODULES), place="[…]")
    kinds = [str(one.get("type", "")).rpartition(".")[2] for one in modules]
    strange = [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
    if strange:
        raise FileError("embed-module", path=str(folder / MODULES), found=Listed.few(strange))
    mode: Mode = "mean"
    for kind, one in zip(kinds, modules, strict=True):
        if kind == "Pooling":
            mode = _mode(folder, str(one.get("path", "")))
    return Pooling(mode, "Normalize" in kinds, _longest(folder))


def _gguf_pooling(path: Path) -> Pooling:
    found = GgufFile(path).metadata.get("bert.pooling_type", 1)
    if found not in (1, 2):
        raise FileError("embed-module", path=str(path), found=f"bert.pooling_type = {found}")
    return Pooling("mean" if found == 1 else "cls")


def _mode(folder: Path, name: str) -> Mode:
    part = folder / name
    if Path(name).name != name or not name:
        raise FileError("model-garbled", path=str(folder / MODULES), place=name[:80])
    about: Any = read_json(file_in_folder(part, POOLING))
    chosen = [key for key, value in about.items() if key.startswith("pooling_mode_") and value is True]
    if len(chosen) != 1 or chosen[0] not in _MODES:
        raise FileError("embed-module", path=str(part / POOLING), found=Listed.few(chosen or ["–"]))
    return _MODES[chosen[0]]


def _longest(folder: Path) -> int | None:
    if not os.path.lexists(folder / LENGTH):
        return None
    about: Any = read_json(file_in_folder(folder, LENGTH))
    found = about.get("max_seq_length") if isinstance(about, dict) else None
    return found if isinstance(found, int) and 2 <= found <= 2**20 else None
