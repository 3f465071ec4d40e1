"""`load`: a LanguageModel from a folder, or a bundled one by name.

Every file is validated before use, and the files are checked against each other.
"""

import os
from pathlib import Path
from typing import Any, Literal, get_args

from regard.checkpoints import read_model
from regard.checkpoints.model_folder import file_in_folder, model_folder_of
from regard.errors import ArgumentError, FileError
from regard.language.input_text import WORDS_FILE, read_words
from regard.language.model import LanguageModel
from regard.language.settings import read_settings
from regard.messages import Listed
from regard.reference import Transformer
from regard.text.tokenizer import Tokenizer

BUNDLED = ("translator", "poet")
"""English to Chinese; Tang poems. The README.md of each describes it."""

ASSETS = Path(__file__).parents[1] / "assets"


def find_model(source: str | os.PathLike[str]) -> Path:
    """The folder of a model: of a bundled one by its name, a model folder itself, or the model folder of a run."""
    folder = bundled(str(source)) if source in BUNDLED else Path(source)
    if not (os.fspath(source) and folder.exists()):
        raise FileError("language-no-folder", found=str(source), names=Listed(BUNDLED))
    return model_folder_of(folder)


def bundled(name: str) -> Path:
    """The folder of a bundled model. Raises FileError where it is not installed."""
    folder = ASSETS / name
    if not folder.is_dir():
        raise FileError("bundled-absent", name=name, path=str(folder))
    return folder


TOKENIZER, SETTINGS = "tokenizer.json", "generation_config.json"
Backend = Literal["numpy", "torch"]


def load(source: str | os.PathLike[str], *, backend: Backend = "numpy") -> LanguageModel:
    """A model that reads text: the bundled "translator" or "poet", or the folder of another model or of a run.

    source    a folder holds config.json, model.safetensors, tokenizer.json and optionally generation_config.json and
              words.txt, the words of the training text; no other file is opened, and none outside the folder.
              Write "./poet" for a folder with the name of a bundled model
    backend   "torch" needs the extra of that name; both give the same text

    Raises FileError with the file and the reason.
    """
    if backend not in get_args(Backend):
        raise ArgumentError("unknown-choice", name="backend", value=backend, choices=Listed(get_args(Backend)))
    folder = find_model(source)
    stored = read_model(folder)
    config = stored.config
    if config.kind == "encoder" or config.output is None or config.vocab_size is None:
        raise FileError("language-kind", path=str(folder), kind=config.kind)
    tokenizer = Tokenizer.read(file_in_folder(folder, TOKENIZER))
    for size in (config.vocab_size, config.embeddings.source_vocab_size or config.vocab_size):
        if size != tokenizer.vocab_size:
            raise FileError("language-vocabulary", path=str(folder), found=tokenizer.vocab_size, wanted=size)
    if config.kind == "encoder-decoder" and None in (tokenizer.bos, tokenizer.eos):
        raise FileError("language-marks", path=str(folder / TOKENIZER))
    has_settings = os.path.lexists(folder / SETTINGS)  # a broken link is not the same as no settings
    settings = read_settings(file_in_folder(folder, SETTINGS) if has_settings else None, config)
    has_words = os.path.lexists(folder / WORDS_FILE)
    words = read_words(file_in_folder(folder, WORDS_FILE)) if has_words else frozenset()
    model: Any
    if backend == "torch":
        from regard.models import Transformer as TorchTransformer

        model = TorchTransformer.read(folder).float().requires_grad_(False)
    else:
        model = Transformer(config, stored.tensors.arrays("float32"))
    return LanguageModel(Path(source).resolve().name, folder, model, tokenizer, settings, words)
