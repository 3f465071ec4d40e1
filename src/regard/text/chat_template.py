"""Conversations as text: messages, checked, and rendered by the chat template of a tokenizer.

The template is untrusted: a separate process renders it in Jinja's sandbox, and one that loops or allocates is stopped.

    {"template": …, "values": {…}} on stdin  →  {"text": …}, or {"key": …, "values": {…}} on stdout

Text of a message that looks like a control token stays text. The names that templates use are those of Hugging Face.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from regard.errors import ArgumentError, FileError, require_package
from regard.memory import format_bytes
from regard.text.process_limits import limit_process, start

TIMEOUT = 20.0
LONGEST_CONVERSATION = 2**22
"""Characters of all messages together."""
MOST_MESSAGES = 10_000
SEPARATOR = "\ufdd1"
"""A character that no text may contain: it splits the names of control tokens within messages."""

Message = Mapping[str, Any]


def check_messages(messages: Any) -> list[dict[str, Any]]:
    """A copy of the messages: at least one, each with a role and a text. Raises ArgumentError."""
    if isinstance(messages, str | bytes) or not isinstance(messages, Sequence) or not messages:
        raise ArgumentError("chat-messages", found=repr(messages)[:80])
    if len(messages) > MOST_MESSAGES:
        raise ArgumentError("chat-long", found=len(messages), most=MOST_MESSAGES)
    size = 0
    for at, message in enumerate(messages):
        role, content = (message.get("role"), message.get("content")) if isinstance(message, Mapping) else (None, None)
        if not (isinstance(role, str) and role and isinstance(content, str)):
            raise ArgumentError("chat-message", place=f"messages[{at}]", found=repr(message)[:80])
        size += len(content)
    if size > LONGEST_CONVERSATION:
        raise ArgumentError("chat-long", found=size, most=LONGEST_CONVERSATION)
    return [dict(message) for message in messages]


def render(template: str, messages: Sequence[Message], values: Mapping[str, Any], path: Path) -> str:
    """The text of a conversation up to the place where the model writes.

    values   what the template may read besides: bos_token and so on

    Raises FileError where the template fails or takes too long; `path` is the file that has it.
    """
    require_package("jinja2", "chat")
    given = {"messages": list(messages), "add_generation_prompt": True, "tools": None, "documents": None}
    try:
        content = json.dumps({"template": template, "values": given | dict(values)}).encode()
    except (TypeError, ValueError) as error:
        raise ArgumentError("chat-message", place="messages", found=str(error)[:80]) from error
    with start(__name__) as process:
        try:
            output = process.communicate(content, timeout=TIMEOUT)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            raise _too_slow(path) from None
        except BaseException:
            process.kill()
            raise
    try:
        answer = json.loads(output)
    except ValueError:  # it was ended by its limits
        raise _too_slow(path) from None
    if "text" in answer:
        return str(answer["text"])
    if answer["key"] == "chat-template-large":
        raise FileError("chat-template-large", path=str(path), most=format_bytes(MEMORY))
    if answer["key"] == "chat-template-raised":
        raise FileError("chat-template-raised", path=str(path), reason=answer["values"]["reason"])
    raise FileError("chat-template-fails", path=str(path), reason=answer["values"]["reason"])


def _too_slow(path: Path) -> FileError:
    return FileError("chat-template-slow", path=str(path), seconds=SECONDS)


def split_control_tokens(messages: Sequence[Message], names: Iterable[str]) -> list[dict[str, Any]]:
    """The messages with a separator inside every name of a control token, so that it is not read as one."""

    def split(text: str) -> str:
        text = text.replace(SEPARATOR, "")
        for name in found:
            text = text.replace(name, name[0] + SEPARATOR + name[1:])
        return text

    found = sorted((name for name in names if len(name) > 1), key=len, reverse=True)
    return [{key: split(one) if isinstance(one, str) else one for key, one in each.items()} for each in messages]


# --- the separate process --------------------------------------------------------------------------------

SECONDS = 3
"""Of processor time."""
MEMORY = 128 * 2**20
"""Bytes beyond what the process has when it begins to render."""
LONGEST_TEXT = 2**22
"""Characters of the result."""


class TemplateRaisedError(Exception):
    """The template itself refuses the messages."""


def _rendered(template: str, values: dict[str, Any]) -> str:
    """The text of a template. Raises what Jinja raises, and TemplateRaisedError."""
    from jinja2 import nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class GenerationTag(Extension):
        """{% generation %} marks what the model writes; it changes no text."""

        tags = {"generation"}  # noqa: RUF012 - Jinja's own way

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def raise_exception(message: str) -> None:
        raise TemplateRaisedError(str(message))

    def to_json(value: Any, ensure_ascii: bool = False, **layout: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **layout)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda layout: datetime.now().strftime(layout)
    return environment.from_string(template).render(**values)


def answer(given: dict[str, Any]) -> dict[str, Any]:
    """The answer of the process; every error is an answer too."""
    try:
        text = _rendered(given["template"], given["values"])
    except TemplateRaisedError as error:
        return {"key": "chat-template-raised", "values": {"reason": str(error)[:300]}}
    except MemoryError:
        return {"key": "chat-template-large", "values": {}}
    except Exception as error:  # a template may raise anything
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        return {"key": "chat-template-fails", "values": {"reason": f"{type(error).__name__}: {reason}"}}
    if len(text) > LONGEST_TEXT:
        return {"key": "chat-template-large", "values": {}}
    return {"text": text}


def main() -> None:
    """Read the template and the messages, limit the process, render, and print the answer."""
    given = json.loads(sys.stdin.buffer.read())
    import jinja2.ext
    import jinja2.sandbox  # noqa: F401 - before the limits

    limit_process(memory=MEMORY, seconds=SECONDS)
    print(json.dumps(answer(given)), flush=True)
    os._exit(0)
