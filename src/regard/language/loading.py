"""A LanguageModel from a folder: each file looked at first, and all of them held against each other."""

import os
from pathlib import Path
from typing import Any, Literal, get_args

from regard.checkpoints import read_model
from regard.checkpoints.model_folder import inside
from regard.errors import ArgumentError, FileError
from regard.language.bundled import find_model
from regard.language.model import LanguageModel
from regard.language.settings import read_settings
from regard.language.vocabulary import WORDS, read_words
from regard.reference import Transformer
from regard.text.tokenizer import Tokenizer
from regard.words import Listed

TOKENIZER, SETTINGS = "tokenizer.json", "generation_config.json"
Backend = Literal["numpy", "torch"]


def load(source: str | os.PathLike[str], *, backend: Backend = "numpy") -> LanguageModel:
    """A model that reads text: "translator" or "poet", which come with regard, or the folder of another or of a run.

    source    a folder holds config.json, model.safetensors, tokenizer.json and, if it likes, generation_config.json
              and words.txt, the words that the model has read; nothing else is opened, and nothing outside of it.
              A folder that is called as a bundled model: "./poet"
    backend   "torch" needs the extra of that name; both give the same text

    Raises FileError with the file and what is wrong with it.
    """
    if backend not in get_args(Backend):
        raise ArgumentError("unknown-choice", name="backend", value=backend, choices=Listed(get_args(Backend)))
    folder = find_model(source)
    stored = read_model(folder)
    config = stored.config
    if config.kind == "encoder" or config.output is None or config.vocab_size is None:
        raise FileError("language-kind", path=str(folder), kind=config.kind)
    tokenizer = Tokenizer.read(inside(folder, TOKENIZER))
    for size in (config.vocab_size, config.embeddings.source_vocab_size or config.vocab_size):
        if size != tokenizer.vocab_size:
            raise FileError("language-vocabulary", path=str(folder), found=tokenizer.vocab_size, wanted=size)
    if config.kind == "encoder-decoder" and None in (tokenizer.bos, tokenizer.eos):
        raise FileError("language-marks", path=str(folder / TOKENIZER))
    given = os.path.lexists(folder / SETTINGS)  # a link that leads nowhere is not the same as no settings
    settings = read_settings(inside(folder, SETTINGS) if given else None, config)
    listed = os.path.lexists(folder / WORDS)
    words = read_words(inside(folder, WORDS)) if listed else frozenset()
    model: Any
    if backend == "torch":
        from regard.models import Transformer as TorchTransformer

        model = TorchTransformer.read(folder).float().requires_grad_(False)
    else:
        model = Transformer(config, stored.tensors.arrays("float32"))
    return LanguageModel(Path(source).resolve().name, folder, model, tokenizer, settings, words)
