"""Tiny models for these tests, loaded once."""

from pathlib import Path

import pytest
from tiny_language import poet_folder, translator_folder

import regard
from regard.language import LanguageModel


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """Reads English, or so it is told; 64 positions, 3 beams, whole-number weights."""
    return regard.load(translator_folder(tmp_path_factory.mktemp("models") / "tiny", int8=True))


@pytest.fixture(scope="session")
def poet(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """Two forms, 48 positions."""
    return regard.load(poet_folder(tmp_path_factory.mktemp("models") / "bard"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A translator's folder that may be spoilt."""
    return translator_folder(tmp_path / "model")
