"""A parser for the regular expressions of tokenizer.json, which are written in Oniguruma's Ruby syntax.

It finds the structure that decides the cost of a search: atoms that match one character, sequences, alternatives,
repetitions, lookaround. What an atom matches is left to the engine. Constructs that no tokenizer needs and whose cost
is not analysed (back-references, subexpression calls, conditionals, absent operators) are refused.
"""

from dataclasses import dataclass
from typing import TypeAlias

DEEPEST = 24
"""Nested groups."""


class PatternError(ValueError):
    """A malformed pattern or an unsupported construct; the message is that construct."""


class SlowPatternError(PatternError):
    """A pattern whose search may not end."""


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """Exactly one character: a literal, an escape, a class or a dot. `source` is a regular expression of its own."""

    source: str
    ignore_case: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """One part after the other; without parts, the empty string."""

    parts: tuple["Node", ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """One of the parts, tried in order."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """The part from `least` to `most` times; None for no limit."""

    part: "Node"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Lookaround:
    """Lookahead or lookbehind, which consumes no character."""

    part: "Node"


Node: TypeAlias = Atom | Sequence | Alternatives | Repeat | Lookaround

_ANCHORS = frozenset("AzZbBG")
_CLASSES = frozenset("wWdDsShHvnrtafe")
_QUANTIFIERS = frozenset("*+?{")
_NAMED_AFTER_P = frozenset("pP")


def parse(pattern: str) -> Node:
    """The structure of a pattern. Raises PatternError where it is malformed or unsupported.

    >>> parse("a|b+")
    Alternatives(parts=(Atom(source='a', ignore_case=False), Repeat(part=Atom(source='b', ignore_case=False), \
least=1, most=None)))
    """
    parser = _Parser(pattern)
    found = parser.alternatives(0)
    if parser.at < len(pattern):
        raise PatternError(")")
    return found


@dataclass(slots=True)
class _Parser:
    text: str
    at: int = 0
    ignore_case: bool = False

    def alternatives(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise PatternError("(" * depth)
        before = self.ignore_case  # a switch such as (?i) lasts to the end of its group
        parts = [self._sequence(depth)]
        while self._peek() == "|":
            self.at += 1
            parts.append(self._sequence(depth))
        self.ignore_case = before
        return parts[0] if len(parts) == 1 else Alternatives(tuple(parts))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while (character := self._peek()) and character not in "|)":
            parts.append(self._repeated(self._atom(depth)))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def _repeated(self, part: Node) -> Node:
        """The part with the quantifiers that follow it applied in order."""
        while (character := self._peek()) and character in _QUANTIFIERS:
            limits = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(character) or self._limits()
            if limits is None:
                break  # a brace that is not a quantifier is a literal
            self.at += 1 if character != "{" else 0
            part = Repeat(part, *limits)
            # Lazy and possessive quantifiers try the same ways or fewer.
            if self._peek() == "?" or (character != "{" and self._peek() == "+"):
                self.at += 1
        return part

    def _limits(self) -> tuple[int, int | None] | None:
        """The limits of {n}, {n,}, {,m} or {n,m}; the parser moves past the brace."""
        end = self.text.find("}", self.at)
        inside = self.text[self.at + 1 : end] if end > 0 else ""
        low, comma, high = inside.partition(",")
        digits = [part for part in (low, high) if part]
        if not digits or any(not part.isdecimal() or not part.isascii() or len(part) > 6 for part in digits):
            return None
        self.at = end + 1
        least = int(low) if low else 0
        most = (int(high) if high else None) if comma else least
        if most is not None and most < least:
            raise PatternError(f"{{{inside}}}")
        return least, most

    def _atom(self, depth: int) -> Node:
        start, character = self.at, self._peek()
        if character == "(":
            return self._group(depth)
        if character == "[":
            self._skip_class(0)
        elif character == "\\":
            return self._escape()
        elif character in "^$":
            self.at += 1
            return Sequence()
        else:
            self.at += 1
        return self._atom_since(start)

    def _atom_since(self, start: int) -> Atom:
        source = self.text[start : self.at]
        if source == ".":
            return Atom("(?m:.)")  # includes line ends whatever the flags: an upper bound of what it matches
        # A quantifier or brace used as a literal must be escaped to be a pattern of its own.
        return Atom("\\" + source if source in ("{", "}", "]", "*", "+", "?") else source, self.ignore_case)

    def _escape(self) -> Node:
        start, character = self.at, self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if not character:
            raise PatternError("\\")
        if character in _ANCHORS:
            return Sequence()
        if character in _NAMED_AFTER_P or (character == "x" and self._peek() == "{"):
            if self._peek() != "{" or (end := self.text.find("}", self.at)) < 0:
                raise PatternError(f"\\{character}")
            self.at = end + 1
        elif character in "xu":
            self.at += self._hexadecimal(2 if character == "x" else 4)
        elif character == "0" or not (character.isalnum() or character in _CLASSES):
            self.at += len(self._peek(2)) if character == "0" and self._peek(2).isdecimal() else 0
        elif character not in _CLASSES:  # \1 \k<n> \g<n> \K \R \X \O \y …
            raise PatternError(f"\\{character}")
        return self._atom_since(start)

    def _hexadecimal(self, most: int) -> int:
        count = 0
        while count < most and self.text[self.at + count : self.at + count + 1] in set("0123456789abcdefABCDEF"):
            count += 1
        return count

    def _skip_class(self, depth: int) -> None:
        """Move past a character class, which may contain others: [a-z&&[^aeiou]], [[:alpha:]_]."""
        if depth > DEEPEST:
            raise PatternError("[" * depth)
        self.at += 1
        if self._peek() == "^":
            self.at += 1
        first = True
        while character := self._peek():
            if character == "]" and not first:
                self.at += 1
                return
            first = False
            if self._peek(2) == "[:" and (end := self.text.find(":]", self.at + 2)) > 0:
                self.at = end + 2
            elif character == "[":
                self._skip_class(depth + 1)
            else:
                self.at += 2 if character == "\\" else 1
        raise PatternError("[")

    def _group(self, depth: int) -> Node:
        self.at += 1
        is_lookaround = False
        before = self.ignore_case
        if self._peek() == "?":
            head = self._group_head()
            if head == "#":
                self.at = self.text.index(")", self.at) + 1 if ")" in self.text[self.at :] else len(self.text)
                return Sequence()
            if head == "switch":  # (?i) lasts to the end of the enclosing group
                return self.alternatives(depth + 1)
            is_lookaround = head in ("=", "!", "<=", "<!")
        part = self.alternatives(depth + 1)
        self.ignore_case = before
        if self._peek() != ")":
            raise PatternError("(")
        self.at += 1
        return Lookaround(part) if is_lookaround else part

    def _group_head(self) -> str:
        """The text after "(?"; the parser moves to the group's content, or past a switch."""
        for head in ("?:", "?=", "?!", "?>", "?<=", "?<!", "?#"):
            if self._peek(len(head)) == head:
                self.at += len(head)
                return head[1:]
        if self._peek(2) == "?<" or self._peek(2) == "?'":
            end = self.text.find(">" if self._peek(2) == "?<" else "'", self.at + 2)
            if end > 0 and self.text[self.at + 2 : end].isidentifier():
                self.at = end + 1
                return ":"
        end = self.at + 1
        while self.text[end : end + 1] in set("imWDSPa-") and end < len(self.text):
            end += 1
        flags, closing = self.text[self.at + 1 : end], self.text[end : end + 1]
        if closing not in (":", ")") or not closing or not flags:
            raise PatternError("(" + self._peek(3))
        on, _, off = flags.partition("-")
        self.at = end + 1
        self.ignore_case = ("i" in on) or (self.ignore_case and "i" not in off)
        return ":" if closing == ":" else "switch"
