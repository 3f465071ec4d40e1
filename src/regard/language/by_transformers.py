"""TransformersModel: a LanguageModel of any architecture, computed by the package `transformers` and seen by `watch`.

For models in Hugging Face's layout that are not of one of our families; `transformers_loading` loads them.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.arrays import to_numpy
from regard.axes import in_range
from regard.capture import edit, watch
from regard.config import TransformerConfig
from regard.errors import ArgumentError, RegardError, TooLargeError
from regard.files.output import reason_of
from regard.generation.beams import max_translation_length
from regard.language.embedding import padded
from regard.language.input_text import check_text
from regard.language.model import LanguageModel
from regard.language.seeing import Seen, SilencedToken, labels
from regard.records import See
from regard.trace import Trace

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class TransformersModel(LanguageModel):
    """A LanguageModel whose `model` is a module of `transformers`."""

    @property
    def config(self) -> TransformerConfig:
        raise ArgumentError("transformers-config", name=self.name)

    @property
    def longest(self) -> int:
        """The most tokens that `see` reads at once."""
        return self.settings.longest if self.limit is None else min(self.limit, self.settings.longest)

    def __repr__(self) -> str:
        kind = self.model.config.model_type
        return f"LanguageModel({self.name!r}, {kind} by transformers, {self.settings.task}, {str(self.folder)!r})"

    @property
    def limit(self) -> int | None:
        return _limit(self.model)

    @property
    def width(self) -> int:
        return int(self.model.config.get_text_config().hidden_size)

    def token_vectors(self, texts: list[list[int]]) -> list[np.ndarray]:
        import torch

        ids, keep = (torch.from_numpy(array) for array in padded(texts))
        with torch.no_grad(), computing(self.name):
            vectors = self.model.base_model(input_ids=ids, attention_mask=keep.long()).last_hidden_state
        return [each[: len(one)].numpy() for each, one in zip(vectors, texts, strict=True)]

    @property
    def generator(self) -> "TransformersGenerator":
        return TransformersGenerator(self.model, self.name)

    def record(self, ids: list[int]) -> Trace:
        return self._watched(See(qk=True), ids)

    def _watched(self, see: See, *texts: list[int]) -> Trace:
        """The Trace of one run. ArgumentError for a model without attention, such as Mamba."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with watch(self.model, see=see) as trace:
                self._run(*texts)
        if not len(trace):
            raise ArgumentError("see-no-attention", name=self.name, kind=self.model.config.model_type)
        for one in caught:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        return trace

    def search(
        self, sources: list[list[int]], *, beams: int | None = None, length_penalty: float | None = None
    ) -> list[list[int]]:
        """The best translation of each text as ids."""
        options: dict[str, Any] = {"num_beams": beams or self.settings.beams}
        if length_penalty is not None:
            options["length_penalty"] = length_penalty
        whole = [self.special.around(ids) for ids in sources]
        return [
            self._written(ids, max_translation_length(ids, self.longest), do_sample=False, **options) for ids in whole
        ]

    def see(self, text: str, *, output: str | None = None, see: See | None = None) -> Seen:
        """Run the whole model once on a text and its output, and record the attention of every head."""
        check_text(text)
        is_prompt = self.settings.task == "text"
        ids = self._prompt_ids(text) if is_prompt else self.special.around(self.tokenizer.encode(text))
        if not ids:
            raise ArgumentError("translate-empty")
        written: list[int] = []
        if self.settings.task == "encoding":
            if output is not None:
                raise ArgumentError("see-encoder-output", name=self.name)
        elif output is None:
            of_text = self.settings.max_seen or self.settings.max_new
            most = of_text if is_prompt else max_translation_length(ids, self.longest)
            written = self._written(
                ids, most, do_sample=False, **({} if is_prompt else {"num_beams": self.settings.beams})
            )
        else:
            written = self.tokenizer.encode(output)
        texts = self._texts(ids, written)
        if (length := max(map(len, texts))) > self.longest:
            raise TooLargeError("see-too-long", found=length, most=self.longest)
        trace = self._watched(See(qk=True) if see is None else see, *texts)
        seen = Seen(text, self.tokenizer.decode(written), self._labelled(trace, texts, len(ids)))
        seen.ids = texts
        return seen

    def silence(self, seen: Seen, module: str, head: int) -> list[SilencedToken]:
        """The probability of every written token with one head and without it, as `LanguageModel.silence`."""
        record = seen.trace[module]
        in_range("head", head, record.shape[1])
        rows = next((one for one in seen.trace if one.written is not None), record)
        written = () if rows.written is None else rows.written[0]
        before, after = (
            self._probabilities(seen.ids, changed)
            for changed in (nullcontext(), edit(self.model, silence={module: [head]}))
        )
        found, ids = [], seen.ids[0]
        for row, token in enumerate(written):
            if token and row + 1 < len(ids):
                instead = labels(self, [int(after[row].argmax())])[0]
                p, q = (float(one[row, ids[row + 1]]) for one in (before, after))
                read = "" if rows.query_tokens is None else rows.query_tokens[0][row]
                found.append(SilencedToken(read, token, p, q, instead))
        return found

    # --- runs ----------------------------------------------------------------------------------------------

    def _prompt_ids(self, prompt: str) -> list[int]:
        ids = [*self.special.before_prompt, *self.tokenizer.encode(prompt)]
        return ids or list(self.special.ends[:1])

    def _texts(self, ids: list[int], written: list[int]) -> tuple[list[int], ...]:
        """What one run reads: the whole text of a decoder, or the decoder's text and the source."""
        if self.settings.task != "translation":
            return ([*ids, *written],)
        start = [] if self.special.start is None else [self.special.start]
        return [*start, *written], ids

    def _written(self, ids: list[int], max_new: int, **options: Any) -> list[int]:
        """The ids that the model adds, without the end."""
        import torch

        if self.limit is not None:
            max_new = max(1, min(max_new, self.limit - 1 - (0 if self.settings.task == "translation" else len(ids))))
        with torch.no_grad(), quiet(), computing(self.name):
            mask = torch.ones(1, len(ids), dtype=torch.long)
            found = self.model.generate(
                torch.tensor([ids]), attention_mask=mask, max_new_tokens=max_new, max_length=None, **options
            )[0].tolist()
        new = found[1:] if self.settings.task == "translation" else found[len(ids) :]
        ends = [at for at, one in enumerate(new) if one in self.special.ends]
        return new[: ends[0]] if ends else new

    def _run(self, *texts: list[int]) -> "torch.Tensor":
        import torch

        with torch.no_grad(), computing(self.name):
            ids, *source = (torch.tensor([one]) for one in texts)
            given = {"input_ids": ids} if not source else {"input_ids": source[0], "decoder_input_ids": ids}
            found = self.model(**given, use_cache=False) if self._takes_cache() else self.model(**given)
            return found.logits if hasattr(found, "logits") else found[0]

    def _takes_cache(self) -> bool:
        return self.settings.task == "text"

    def _probabilities(self, texts: tuple[list[int], ...], changed: Any) -> np.ndarray:
        with changed:
            return self._run(*texts)[0].double().softmax(-1).numpy()

    def _labelled(self, trace: Trace, texts: tuple[list[int], ...], before: int) -> Trace:
        """The records with the tokens of their texts; as many as there are queries or keys."""
        sides = {len(ids): labels(self, ids) for ids in reversed(texts)}
        found = Trace()
        ids = texts[0]
        written = None if self.settings.task == "encoding" else [*labels(self, ids[1:]), ""]
        if written is not None and self.settings.task == "text":
            written[: before - 1] = [""] * (before - 1)  # the prompt was given, not written
        for record in trace:
            T, S = record.shape[2:]
            on_target = written is not None and len(ids) == T and record.kind != "encoder"
            labelled = record.with_tokens(sides.get(T), sides.get(S), written if on_target else None)
            is_continued = self.settings.task == "text" and before < len(ids) == T
            found.append(labelled.changed(prompt=before) if is_continued else labelled)
        return found


class TransformersGenerator:
    """A module of `transformers` as `regard.generation` drives it."""

    def __init__(self, model: Any, name: str) -> None:
        self._model, self._name = model, name

    def begin(self, **options: Any) -> "TransformersDecoding":
        """An empty cache."""
        return TransformersDecoding(self._model, self._name)


class TransformersDecoding:
    """A batch of texts without padding that a module of `transformers` decodes, with its own cache."""

    def __init__(self, model: Any, name: str) -> None:
        text = model.config.get_text_config()
        self._model, self._cache, self._name = model, None, name
        self.vocab_size = int(text.vocab_size)
        self.max_len = _limit(model)
        self._read = np.zeros((1, 0), np.int64)

    @property
    def length(self) -> int:
        """The number of columns read so far."""
        return self._read.shape[1]

    def step(self, ids: Any, keep: Any = None) -> "torch.Tensor":
        """Read ids (B, T) and return the logits after them, (B, W)."""
        return self.step_each(ids, keep)[:, -1]

    def step_each(self, ids: Any, keep: Any = None) -> "torch.Tensor":
        """Read ids (B, T) and return the logits after each of them, (B, T, W)."""
        import torch

        new = to_numpy(ids).astype(np.int64)
        if keep is not None and not np.asarray(to_numpy(keep)).all():
            raise ArgumentError("transformers-padding")
        before = np.repeat(self._read[:1], len(new), 0) if not self.length else self._read
        self._read = np.concatenate((before, new), 1)
        given = self._read if self._cache is None else new
        with torch.no_grad(), quiet(), computing(self._name):
            found = self._model(input_ids=torch.from_numpy(given), past_key_values=self._cache, use_cache=True)
        self._cache = getattr(found, "past_key_values", None)
        logits: torch.Tensor = found.logits[:, -new.shape[1] :].float()
        return logits

    def select(self, rows: list[int]) -> None:
        """Continue with these samples; the cache is built again from their ids."""
        self._read, self._cache = self._read[rows], None

    def crop(self, length: int) -> None:
        """Remove everything after the first columns; what is kept of the cache depends on the model."""
        extra = self.length - length
        if extra > 0:
            self._read = self._read[:, :length]
            crop = getattr(self._cache, "crop", None)
            if crop is None or length == 0:
                self._cache = None
            else:
                crop(-extra)


def _limit(model: Any) -> int | None:
    """The most tokens of a text, None for no limit."""
    found: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if found is None or found < 1:
        return None
    # RoBERTa and its relatives count positions from the one after the padding's.
    tables = (module for name, module in model.named_modules() if name.endswith("position_embeddings"))
    padding = next((getattr(table, "padding_idx", None) for table in tables), None)
    return found if padding is None else found - padding - 1


@contextmanager
def computing(name: str) -> Iterator[None]:
    """A failure inside the package, which raises many kinds, as ArgumentError; our errors as they are."""
    try:
        yield
    except (RegardError, MemoryError):
        raise
    except Exception as error:
        raise ArgumentError("transformers-failed", name=name, reason=reason_of(error)) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Without the remarks of `transformers` about its own files and settings."""
    import logging

    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
