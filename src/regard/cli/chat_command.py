"""`regard chat`: a conversation with a model in the terminal, or through a pipe with one turn per line."""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import interrupts
from regard.cli.number_options import number_from_zero, whole_number
from regard.cli.streams import print_message, put, stdin_batches, write_json
from regard.errors import ArgumentError, RegardError
from regard.messages import Listed, say

if TYPE_CHECKING:
    from regard.language.chat import Conversation

PROMPT = "› "
COMMANDS = ("/see", "/new", "/help", "/exit")
MOST_WORDS, LONGEST_BAR = 12, 24


def chat(
    model: Annotated[str | None, typer.Option("--model", metavar="metavar-chat-model", help="help-chat-model")] = None,
    system: Annotated[str | None, typer.Option("--system", metavar="metavar-text", help="help-chat-system")] = None,
    most: Annotated[str | None, typer.Option("--max-tokens", metavar="metavar-number", help="help-chat-most")] = None,
    temperature: Annotated[
        str | None, typer.Option("--temperature", metavar="metavar-value", help="help-temperature")
    ] = None,
    seed: Annotated[str, typer.Option("--seed", metavar="metavar-number", help="help-generate-seed")] = "0",
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if model is None:
        raise ArgumentError("chat-which")
    options = {
        "seed": whole_number("--seed", seed, least=0),
        "max_new_tokens": None if most is None else whole_number("--max-tokens", most, least=1),
        "temperature": None if temperature is None else number_from_zero("--temperature", temperature),
    }
    from regard.language.chat import Conversation, check_chat
    from regard.language.loading import load

    reader = load(model)
    check_chat(reader)
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    if is_terminal:
        print_message(say("chat-begin", name=reader.name))
    talk = Conversation(reader, system)
    for line in _lines(is_terminal):
        text = line.strip()
        if text in ("/exit", "/quit"):
            return
        if text == "/new":
            talk = Conversation(reader, system)
        elif text.startswith("/") and text.split()[0].rstrip("?") in (*COMMANDS, "/"):
            _run(talk, text)
        elif text.startswith("/") and text[1:2].isalpha() and " " not in text:
            print_message(say("chat-unknown", found=text[:40], names=Listed(COMMANDS)))
        elif text:
            _answer(talk, text, options, as_json)


def _lines(is_terminal: bool) -> Iterator[str]:
    """The turns of the user: what is typed, or the lines of stdin."""
    if not is_terminal:
        for batch in stdin_batches():
            yield from batch
        return
    import contextlib

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - arrows and history in `input`
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            put()
            return


def _answer(talk: "Conversation", text: str, options: Mapping[str, Any], as_json: bool) -> None:
    """Print the answer as it is written. Ctrl-C stops this answer; an error is a message, and the talk goes on."""
    pieces = talk.ask(text, **options)
    stopped, answer = False, ""
    try:
        for piece in pieces:
            answer += piece
            if not as_json:
                put(piece if answer != piece else piece.lstrip("\n"), end="", flush=True)
    except KeyboardInterrupt:
        interrupts.forget()
        stopped = True
    except RegardError as error:
        if not (sys.stdin is not None and sys.stdin.isatty()):
            raise
        print_message(str(error))
    finally:
        pieces.close()
    if as_json:
        write_json({"text": text, "answer": answer.strip(), "stopped": stopped})
    else:
        put(flush=True)
    if stopped:
        print_message(say("chat-stopped"))


def _run(talk: "Conversation", command: str) -> None:
    if not command.startswith("/see"):
        put(say("chat-help"))
        return
    try:
        words = talk.looked_at()
    except RegardError as error:
        print_message(str(error))
        return
    if not words:
        print_message(say("chat-see-nothing"))
        return
    from regard.views.labels import pad

    put(say("chat-see"))
    best = sorted(words, key=lambda word: -word.share)[:MOST_WORDS]
    width = min(24, max(6, *(len(word.text) * 2 for word in best)))
    for word in best:
        bar = "█" * max(1, round(LONGEST_BAR * word.share / best[0].share))
        put(f"  {pad(word.text, width)} {bar} {100 * word.share:.1f} %")
