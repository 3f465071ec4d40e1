"""Tiny models for these tests, loaded once."""

from pathlib import Path

import pytest
from tiny_language import poet_folder, translator_folder

import regard
from regard.language import LanguageModel


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A tiny translator from English with 64 positions, 3 beams and int8 weights."""
    return regard.load(translator_folder(tmp_path_factory.mktemp("models") / "tiny", int8=True))


@pytest.fixture(scope="session")
def poet(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A tiny decoder with two forms and 48 positions."""
    return regard.load(poet_folder(tmp_path_factory.mktemp("models") / "bard"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a translator, which a test may change."""
    return translator_folder(tmp_path / "model")
