"""Settings: every name of the file is read, and invalid content raises FileError with its place."""

import json
from pathlib import Path
from typing import Any

import pytest
from models import CONFIGS

from regard.errors import FileError
from regard.language.hub_files import FIELDS, Settings, read_settings

CONFIG = CONFIGS["marian"]  # three decoder layers, two heads
GIVEN: dict[str, Any] = {
    "task": "translation",
    "source_language": "en",
    "target_language": "zh-CN",
    "max_source_length": 100,
    "num_beams": 4,
    "length_penalty": 0.6,
    "temperature": 0.8,
    "top_k": 30,
    "top_p": 0.9,
    "max_new_tokens": 50,
    "alignment_heads": [[2, 1], [0, 0]],
    "forms": {"5x4": "五绝｜"},
}


def read(path: Path, given: Any, config: Any = CONFIG) -> Settings:
    file = path / "generation_config.json"
    file.write_text(given if isinstance(given, str) else json.dumps(given), encoding="utf-8")
    return read_settings(file, config)


def test_every_name_is_read(tmp_path: Path) -> None:
    assert set(GIVEN) == set(FIELDS)
    assert read(tmp_path, GIVEN) == Settings(
        task="translation",
        source_language="en",
        target_language="zh-CN",
        longest=100,
        beams=4,
        length_penalty=0.6,
        temperature=0.8,
        top_k=30,
        top_p=0.9,
        max_new=50,
        alignment_heads=((2, 1), (0, 0)),
        forms={"5x4": "五绝｜"},
    )


def test_absent_settings_have_defaults(tmp_path: Path) -> None:
    assert read(tmp_path, {}) == read_settings(None, CONFIG) == Settings(task="translation")
    assert read_settings(None, CONFIGS["gpt2"]) == Settings(task="text")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "text"),  # for a translator
        ("task", "poetry"),
        ("source_language", ""),
        ("target_language", "Chinese (simplified)"),
        ("target_language", 5),
        ("max_source_length", 0),
        ("num_beams", 0),
        ("num_beams", 2.0),
        ("num_beams", True),
        ("num_beams", "5"),
        ("num_beams", 10**6),
        ("length_penalty", None),
        ("length_penalty", 1e300),
        ("temperature", 0),
        ("temperature", -1.0),
        ("top_k", 0),
        ("top_p", 0),
        ("top_p", 1.5),
        ("max_new_tokens", -1),
        ("alignment_heads", {"0": 1}),
        ("alignment_heads", [[3, 0]]),
        ("alignment_heads", [[0, 2]]),
        ("alignment_heads", [[-1, 0]]),
        ("alignment_heads", [[0]]),
        ("alignment_heads", [5]),
        ("alignment_heads", [[0, 1.0]]),
        ("forms", []),
        ("forms", {"5x4": ""}),
        ("forms", {"5x4": 5}),
    ],
)
def test_an_invalid_value_is_reported_with_its_place(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(FileError, match=rf"generation_config\.json: {name}.* must be .*; found") as caught:
        read(tmp_path, GIVEN | {name: value})
    assert "应为" in caught.value.text("zh")


@pytest.mark.parametrize("text", ["", "[]", "5", '{"top_k": NaN}', '{"top_k": 1, "top_k": 2}', "{" * 10**5])
def test_malformed_files_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(FileError, match=r"generation_config\.json"):
        read(tmp_path, text)


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="has an unknown setting 'beams'; known settings: task, "):
        read(tmp_path, {"beams": 3})
