"""A chat template rendered in a separate process, in Jinja's sandbox: one that loops or allocates is stopped.

    {"template": …, "values": {…}} on stdin  →  {"text": …}, or {"key": …, "values": {…}} on stdout

`chat_template` starts the process and reads its answer. The names that templates use are those of Hugging Face.
"""

import json
import os
import sys
from datetime import datetime
from typing import Any

SECONDS = 3
"""Of processor time."""
MEMORY = 128 * 2**20
"""Bytes beyond what the process has when it begins to render."""
LONGEST_TEXT = 2**22
"""Characters of the result."""


class TemplateRaisedError(Exception):
    """The template itself refuses the messages."""


def render(template: str, values: dict[str, Any]) -> str:
    """The text of a template. Raises what Jinja raises, and TemplateRaisedError."""
    from jinja2 import nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
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
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda layout: datetime.now().strftime(layout)
    return environment.from_string(template).render(**values)


def answer(given: dict[str, Any]) -> dict[str, Any]:
    """The answer of the process; every error is an answer too."""
    try:
        text = render(given["template"], given["values"])
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

    from regard.text.process_limits import limit_process

    limit_process(memory=MEMORY, seconds=SECONDS)
    print(json.dumps(answer(given)), flush=True)
    os._exit(0)
