"""Untrusted text made safe to print: control characters for a terminal are replaced by visible signs.

File names, names of records and metrics, keys of a configuration, tokens and the output of a learner's program may
contain escape sequences. Every text that the command line prints, and every value in a message, passes through here.
"""

import re

_CONTROL = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of text
    "\u00ad\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible, or line ends
    "\ud800-\udfff"  # half a character
    "\U000e0000-\U000e007f"  # invisible copies of ASCII
    "]"
)


def printable(text: str) -> str:
    r"""The text with every control character replaced by a visible sign; line feeds and tabs stay.

    >>> printable("a\x1b[31m\tb\r\n"), printable("\x9b0m \u202e \r")
    ('a␛[31m\tb\n', '⟨9B⟩0m ⟨202E⟩ ␍')
    """
    if _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(lambda found: sign(found[0]), text.replace("\r\n", "\n"))


def is_control(character: str) -> bool:
    """Whether a terminal would act on the character, or show nothing for it."""
    return _CONTROL.match(character) is not None


def sign(character: str) -> str:
    r"""The visible sign for a control character.

    >>> sign("\x1b"), sign("\x7f"), sign("\x85"), sign("\u202e")
    ('␛', '␡', '⟨85⟩', '⟨202E⟩')
    """
    code = ord(character)
    if code < 32:
        return chr(0x2400 + code)
    return "␡" if code == 127 else f"⟨{code:02X}⟩"


def one_line(text: str) -> str:
    r"""The printable text on one line.

    >>> one_line("你好。\n再见。")
    '你好。 再见。'
    """
    return printable(" ".join(text.split("\n")))


def escaped_json(text: str) -> str:
    r"""JSON with every control character written as a JSON escape.

    >>> escaped_json('{"name": "\x9b0m\u202e"}')
    '{"name": "\\u009b0m\\u202e"}'
    """
    return _CONTROL.sub(lambda found: _json_escape(ord(found[0])), text)


def _json_escape(code: int) -> str:
    if code < 2**16:
        return f"\\u{code:04x}"
    high, low = divmod(code - 2**16, 2**10)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
