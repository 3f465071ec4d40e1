"""`load`: a LanguageModel from a folder, or a bundled model by its name.

Every file is checked before it is used, and the files are checked against each other.
"""

import os
from pathlib import Path
from typing import Any, Literal, get_args

from regard.checkpoints import read_model
from regard.checkpoints.model_folder import inside, model_of
from regard.errors import ArgumentError, FileError
from regard.language.input_text import WORDS, read_words
from regard.language.model import LanguageModel
from regard.language.settings import read_settings
from regard.messages import Listed
from regard.reference import Transformer
from regard.text.tokenizer import Tokenizer

BUNDLED = ("translator", "poet")
"""English to Chinese; Tang poems. What they can do stands in the README.md beside each."""

ASSETS = Path(__file__).parents[1] / "assets"


def find_model(source: str | os.PathLike[str]) -> Path:
    """The folder of a model: a bundled one's by its name, a folder's own, or of a run the one that holds its model."""
    folder = bundled(str(source)) if source in BUNDLED else Path(source)
    if not (os.fspath(source) and folder.exists()):
        raise FileError("language-no-folder", found=str(source), names=Listed(BUNDLED))
    return model_of(folder)


def bundled(name: str) -> Path:
    """The folder of a bundled model. FileError where this installation lacks it."""
    folder = ASSETS / name
    if not folder.is_dir():
        raise FileError("bundled-absent", name=name, path=str(folder))
    return folder


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
