"""Untrusted tokenizer.json: those of public models are accepted, hostile ones refused in little time and memory."""

import json
import os
import random
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tokenizers

import hostile_tokenizers as files
from hostile_tokenizers import try_tokenizer
from mutations import mutated
from regard.errors import ArgumentError, FileError
from regard.text import Tokenizer, process_limits, tokenizer_checks
from regard.text.regex_cost import Cost
from regard.text.tokenizer import ASSETS

TEXTS = ["The cat's 1234 dogs, don't!\n\n  x", "小明 likes cats。", "ААА ббб 한국어", " " * 50, "a" * 5000 + "!", ""]
HOSTILE = files.hostile()
GOOD = files.good()


@pytest.mark.parametrize("name", GOOD)
def test_tokenizers_of_public_models_are_accepted(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    GOOD[name].save(str(path))
    tokenizer = Tokenizer.read(path)
    for text in TEXTS:
        assert tokenizer.encode(text) == GOOD[name].encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(tokenizer.encode(text)) == GOOD[name].decode(tokenizer.encode(text))
    assert tokenizer.encode("a" * 10**5)  # no limit on the length


def assert_refused(found: dict[str, Any]) -> None:
    """Assert that the answer is a short message in both languages."""
    error = FileError(found["key"], path="model/tokenizer.json", **found["values"])
    for message in (error.text("en"), error.text("zh")):
        assert "model/tokenizer.json" in message
        assert len(message) < 600


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name: str) -> None:
    """In this process, for speed; tests/hostile reads each as a user does."""
    began = time.process_time()
    assert_refused(tokenizer_checks.try_content(HOSTILE[name]))
    assert time.process_time() - began < 3


@pytest.mark.parametrize("name", ["replacing decoders", "pattern 0", "prefix longer than the tokens", "empty objects"])
def test_a_hostile_file_is_read_in_another_process(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(HOSTILE[name])
    began = time.process_time() + children_seconds()
    with pytest.raises(FileError, match=re.escape(str(path))):
        Tokenizer.read(path)
    assert time.process_time() + children_seconds() - began < 3


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize(("regex", "character"), files.QUADRATIC_PATTERNS.items())
def test_a_quadratic_pattern_limits_the_text_length(regex: str, character: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(files.tree_of(files.small(), pre_tokenizer=files.split(regex))), encoding="utf-8")
    tokenizer = Tokenizer.read(path)
    assert tokenizer.encode("1234567") == tokenizers.Tokenizer.from_file(str(path)).encode("1234567").ids
    began = time.process_time()
    tokenizer.encode(character * 2**14)
    with pytest.raises(ArgumentError, match="16385 characters"):
        tokenizer.encode(character * (2**14 + 1))
    assert time.process_time() - began < 10


def test_memory_and_time_of_the_trial_are_limited() -> None:
    """A file that passes every check still cannot exceed the limits on memory and processor time."""
    program = (
        "import sys; sys.path[:] = {path!r}\n"
        "from regard.text import process_limits, tokenizer_checks\n"
        "process_limits.limit_process(memory=tokenizer_checks.memory_limit(1000), seconds=1)\n"
        "{bomb}\n"
    )
    endless = program.format(path=sys.path, bomb="while True: pass")
    large = program.format(path=sys.path, bomb="x = bytearray(2**28)")
    began = children_seconds()
    assert subprocess.run([sys.executable, "-c", endless], capture_output=True, timeout=60).returncode < 0
    assert children_seconds() - began < 2.5
    assert b"MemoryError" in subprocess.run([sys.executable, "-c", large], capture_output=True).stderr


@pytest.mark.parametrize(
    ("code", "message"), [("import os; os.abort()", "memory"), ("import time; time.sleep(60)", "took")]
)
def test_a_trial_that_crashes_or_stalls_is_a_refusal(
    code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_limits, "_command", lambda _: [sys.executable, "-c", code])
    monkeypatch.setattr(tokenizer_checks, "TIMEOUT", 1.0)
    with pytest.raises(FileError, match=message):
        tokenizer_checks.check_content(tmp_path / "tokenizer.json", b"another content " + code.encode())


def test_without_a_second_process_the_file_is_tried_in_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_limits, "_command", lambda _: ["/nowhere/python"])
    content = json.dumps(files.tree_of(files.small(), version="1.0")).encode() + b" "
    assert tokenizer_checks.check_content(Path("tokenizer.json"), content) is Cost.LINEAR
    with pytest.raises(FileError, match="never end"):
        tokenizer_checks.check_content(Path("tokenizer.json"), HOSTILE["pattern 0"] + b" ")


def test_bundled_tokenizers_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_limits, "_command", lambda _: pytest.fail("a process was started"))
    for name in ("poet", "translator"):
        assert Tokenizer.read(ASSETS / name / "tokenizer.json").vocab_size > 1000


def test_bundled_tokenizers_do_not_import_the_trial() -> None:
    program = f"import sys; from regard.text import Tokenizer; Tokenizer.read({str(ASSETS / 'poet/tokenizer.json')!r})"
    program += "; print({'subprocess', 'regard.text.tokenizer_checks', 'regard.text.regex_cost'} & set(sys.modules))"
    assert "regard" not in subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout


def test_accepted_files_are_tried_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    GOOD["falcon"].save(str(path))
    Tokenizer.read(path)
    monkeypatch.setattr(process_limits, "_command", lambda _: pytest.fail("a process was started"))
    Tokenizer.read(path)


def test_the_trial_imports_neither_numpy_nor_torch() -> None:
    program = "import sys, regard.text.tokenizer_checks; print({'numpy', 'torch', 'rich'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"set()\n"


def test_the_trial_of_a_large_vocabulary_is_fast(tmp_path: Path) -> None:
    alphabet = "abcdefghijklmnop"
    pieces = [["<unk>", 0.0], *([f"▁{n:x}{a}", -1.5] for n in range(15_000) for a in alphabet)]
    model = {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False}
    content = json.dumps(files.tree_of(GOOD["t5"], model=model)).encode()
    before = children_seconds()
    assert tokenizer_checks.check_content(tmp_path / "tokenizer.json", content) is Cost.LINEAR
    assert children_seconds() - before < 1.0  # about 0.4 s; tests run in parallel


def test_a_panic_during_encoding_is_an_argument_error(tmp_path: Path) -> None:
    """A pattern that passed the trial and then fails on a text."""
    inner = files.small()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("(a+)+$"), "isolated")
    with pytest.raises(ArgumentError, match="cannot process the text"):
        Tokenizer(inner).encode("a" * 3000 + "b")


def test_a_refused_text_is_an_argument_error() -> None:
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="<unk>"))
    with pytest.raises(ArgumentError, match="cannot process the text"):
        Tokenizer(inner).encode("b")


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_mutated_file_is_accepted_or_refused(name: str) -> None:
    """In this process, where any other exception shows; tests/hostile runs a hundred times as many."""
    rng, tree = random.Random(name), files.tree_of(GOOD[name])
    for _ in range(20):
        try_tokenizer(json.dumps(mutated(tree, rng)).encode())


def test_the_environment_is_not_passed_to_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert "SECRET_TOKEN" not in process_limits._environment()
    assert os.environ["SECRET_TOKEN"] == "x"
