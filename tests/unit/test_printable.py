"""Untrusted text: control characters become visible, and nothing is hidden."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import FileError
from regard.messages import Listed, say
from regard.printable import escaped_json, is_control, one_line, printable

CONTROLS = (
    "\x00\x07\x08\x0b\x0c\r\x0e\x1b\x1c\x7f\x84\x85\x90\x9b\x9d\u061c\u200b\u200e\u202e\u2028\u2029\u2066\ufeff\ud800"
)
ANY_TEXT = st.text(st.characters(categories=None, codec=None) | st.sampled_from(CONTROLS + "\n\t注👨\u200d👩é"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 注意 é 👨\u200d👩", "plain 注意 é 👨\u200d👩"),
        ("lines\n\tand tabs\r\nstay", "lines\n\tand tabs\nstay"),
        ("\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇"),
        ("done\rfake", "done␍fake"),
        ("\x9b31m\x9d0;t\x9c", "⟨9B⟩31m⟨9D⟩0;t⟨9C⟩"),
        ("a\x08b\x00c\x7f", "a␈b␀c␡"),
        ("\u202egpj.exe\u2069", "⟨202E⟩gpj.exe⟨2069⟩"),
        ("\ud800", "⟨D800⟩"),
    ],
)
def test_control_characters_are_shown_as_signs(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(ANY_TEXT)
def test_no_control_character_remains(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown
    shown.encode()
    assert not any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in shown if sign not in "\n\t")
    assert not any(
        unicodedata.bidirectional(sign) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        for sign in shown
    )
    assert "\n" not in one_line(text)


@given(ANY_TEXT)
def test_escaped_json_has_the_same_content(text: str) -> None:
    written = escaped_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(written) == {text: [text]}
    assert not any(map(is_control, written))


def test_values_in_messages_are_printable() -> None:
    name = "a\x1b]0;x\x07\u202e\x9b"
    for value in (name, FileError("file-absent", path=name), Listed([name, 1]), OSError(2, "no", name)):
        for lang in ("en", "zh"):
            assert not any(map(is_control, say("model-config", lang, path=name, reason=value)))
    assert not any(map(is_control, str(FileError("file-absent", path=name))))
