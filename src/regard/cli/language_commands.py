"""`regard translate`, `generate` and `chat`, which run a language model; `convert` and `pull`, which bring one here."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import interrupts
from regard.cli.arguments import (
    BackendOption,
    LineNotes,
    WeightsOption,
    beam_count,
    notes_as_json,
    number_from_zero,
    open_model,
    print_notes,
    whole_number,
)
from regard.cli.entry import FILE
from regard.cli.streams import hint_at_file, join_words, print_message, put, read_stdin, stdin_batches, write_json
from regard.errors import ArgumentError, RegardError
from regard.messages import Listed, one_line, printable, say

if TYPE_CHECKING:
    from regard.language import LanguageModel
    from regard.language.chat import Conversation
    from regard.language.translating import Translation


# --- translate ---------------------------------------------------------------------------------------------


TRANSLATOR = "translator"


def translate(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="metavar-text", help="help-translate-text", show_default=False)
    ] = None,
    beams: Annotated[str | None, typer.Option("--beams", metavar="metavar-number", help="help-beams")] = None,
    model: Annotated[str, typer.Option("--model", metavar="metavar-folder", help="help-translate-model")] = TRANSLATOR,
    backend: BackendOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-translate-json")] = False,
) -> None:
    if not text:
        raise ArgumentError("translate-no-text")
    width = None if beams is None else beam_count(beams)

    from regard.language.translating import translate_each

    translator = open_model(model, backend)
    if text == ["-"]:
        if _translate_stdin(translator, width, as_json):
            raise typer.Exit(FILE)
        return
    given = join_words(text)
    (found,) = translate_each(translator, [given], beams=width)
    if isinstance(found, ArgumentError):
        raise found
    print_notes(translator, found.notes)
    if as_json:
        write_json(_as_json(translator, given, found))
    else:
        put(found.output)
    hint_at_file("translate", text)


def _translate_stdin(translator: "LanguageModel", beams: int | None, as_json: bool) -> int:
    """Print a line of output for each line of stdin; return the number of lines with an error."""
    from regard.language.input_text import EMPTY
    from regard.language.translating import Translation, translate_each

    notes = LineNotes(translator)
    number = bad = 0
    for batch in stdin_batches():
        for text, found in zip(batch, translate_each(translator, batch, beams=beams), strict=True):
            number += 1
            translation: Translation | None = None
            if not isinstance(found, ArgumentError):
                translation = found
                notes.add(number, found.notes if found.output else ())
            elif found.key == EMPTY:
                translation = Translation("")
            else:
                bad += 1
                print_message(say("translate-line", number=number, reason=found))
            if as_json:
                write_json(_as_json(translator, text, translation))
            else:
                put(one_line(translation.output if translation else ""))
        sys.stdout.flush()
    notes.print_all()
    return bad


def _as_json(translator: "LanguageModel", text: str, translation: "Translation | None") -> dict[str, Any]:
    """A line of --json; `translation` is None for a line with an error."""
    about = {"model": translator.name, "text": text, "output": None if translation is None else translation.output}
    return about | notes_as_json(translation.notes if translation and translation.output else ())


# --- generate ----------------------------------------------------------------------------------------------


POET = "poet"
MOST_SHOWN = 48
"""Characters of a prompt that a message quotes: a poem of eight short lines."""
_ENDS = re.compile(r"(?<=[。！？])(?=[^”’』」）\n])")


Temperature = Annotated[str | None, typer.Option("--temperature", metavar="metavar-value", help="help-temperature")]
TopK = Annotated[str | None, typer.Option("--top-k", metavar="metavar-number", help="help-top-k")]
TopP = Annotated[str | None, typer.Option("--top-p", metavar="metavar-value", help="help-top-p")]
MinP = Annotated[str | None, typer.Option("--min-p", metavar="metavar-value", help="help-min-p")]
Stop = Annotated[list[str] | None, typer.Option("--stop", metavar="metavar-text", help="help-stop")]
PromptLookup = Annotated[
    str | None, typer.Option("--prompt-lookup", metavar="metavar-number", help="help-prompt-lookup")
]
Seed = Annotated[str, typer.Option("--seed", metavar="metavar-number", help="help-generate-seed")]


def generate(
    prompt: Annotated[
        list[str] | None, typer.Argument(metavar="metavar-prompt", help="help-prompt", show_default=False)
    ] = None,
    form: Annotated[str | None, typer.Option("--form", metavar="metavar-form", help="help-form")] = None,
    most: Annotated[
        str | None, typer.Option("--max-tokens", metavar="metavar-number", help="help-generate-most")
    ] = None,
    seed: Seed = "0",
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    beams: Annotated[str | None, typer.Option("--beams", metavar="metavar-number", help="help-generate-beams")] = None,
    stop: Stop = None,
    lookup: PromptLookup = None,
    streamed: Annotated[bool, typer.Option("--stream", help="help-stream")] = False,
    count: Annotated[str, typer.Option("--count", metavar="metavar-number", help="help-count")] = "1",
    model: Annotated[str, typer.Option("--model", metavar="metavar-generate-model", help="help-generate-model")] = POET,
    backend: BackendOption = None,
    weights: WeightsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    first, texts = whole_number("--seed", seed, least=0), whole_number("--count", count, least=1)
    options = _options(most, temperature, top_k, top_p, min_p, stop, lookup)
    if beams is not None:
        options["beams"] = beam_count(beams)
    if streamed and as_json:
        raise ArgumentError("generate-stream-json")
    given = join_words(prompt or [])
    if given == "-":
        given = read_stdin().strip()

    from regard.language.generating import read_prompt, with_punctuation

    writer = open_model(model, backend, weights)
    streamed = streamed or (sys.stdout.isatty() and beams is None and not as_json)
    outputs = []
    for at in range(first, first + texts):
        if at > first and not as_json:
            put()
        if streamed:
            pieces = writer.generate(given, form=form, seed=at, stream=True, **options)
            beginning = writer.tokenizer.decode(read_prompt(writer, given, form).ids)
            _put_in_lines(chain([beginning], pieces))
            continue
        output = writer.generate(given, form=form, seed=at, **options)
        if as_json:
            outputs.append({"seed": at, "output": output})
        else:
            put(in_lines(output), flush=True)
    if as_json:
        write_json({"model": writer.name, "prompt": given, "outputs": outputs})
    if written := with_punctuation(writer.settings, given, form):
        print_message(
            say("generate-no-marks", written=written if len(written) <= MOST_SHOWN else f"{written[:MOST_SHOWN]}…")
        )


def _options(
    most: str | None,
    temperature: str | None,
    top_k: str | None,
    top_p: str | None,
    min_p: str | None,
    stop: list[str] | None,
    lookup: str | None,
) -> dict[str, Any]:
    """The options of `LanguageModel.generate` and `chat` that were given."""
    return {
        "max_new_tokens": None if most is None else whole_number("--max-tokens", most, least=1),
        "temperature": None if temperature is None else number_from_zero("--temperature", temperature),
        "top_k": None if top_k is None else whole_number("--top-k", top_k, least=1),
        "top_p": None if top_p is None else number_from_zero("--top-p", top_p),
        "min_p": None if min_p is None else number_from_zero("--min-p", min_p),
        "stop": stop or None,
        "prompt_lookup": None if lookup is None else whole_number("--prompt-lookup", lookup, least=1),
    }


def _put_in_lines(pieces: Iterable[str]) -> None:
    """Print a text as it is written, the same as `in_lines` of the whole."""
    last = ""
    for piece in pieces:
        if piece:
            put(in_lines(last + piece)[len(in_lines(last)) :], end="", flush=True)
            last = piece[-1]
    put(flush=True)


def in_lines(text: str) -> str:
    """The text with a line for each sentence of Chinese.

    >>> print(in_lines("白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"))
    白日依山尽，黄河入海流。
    欲穷千里目，更上一层楼。
    """
    return _ENDS.sub("\n", printable(text))


PROMPT = "› "
COMMANDS = ("/see", "/new", "/help", "/exit")
MOST_WORDS, LONGEST_BAR = 12, 24


def chat(
    model: Annotated[str | None, typer.Option("--model", metavar="metavar-chat-model", help="help-chat-model")] = None,
    system: Annotated[str | None, typer.Option("--system", metavar="metavar-text", help="help-chat-system")] = None,
    most: Annotated[str | None, typer.Option("--max-tokens", metavar="metavar-number", help="help-chat-most")] = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    stop: Stop = None,
    lookup: PromptLookup = None,
    seed: Seed = "0",
    backend: BackendOption = None,
    weights: WeightsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if model is None:
        raise ArgumentError("chat-which")
    options = _options(most, temperature, top_k, top_p, min_p, stop, lookup) | {
        "seed": whole_number("--seed", seed, least=0)
    }
    from regard.language.chat import Conversation, check_chat

    reader = open_model(model, backend, weights)
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
    """Print the answer as it is written. Ctrl-C stops this answer. An error is printed; the conversation continues."""
    pieces = talk.ask(text, **options)
    stopped, answer = False, ""
    try:
        for piece in pieces:
            answer += piece
            if not as_json:
                put(piece if answer != piece else piece.lstrip("\n"), end="", flush=True)
    except KeyboardInterrupt:
        interrupts.clear_interrupt()
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
        words = talk.attended_words()
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


def convert(
    source: Annotated[str, typer.Argument(metavar="metavar-convert-source", help="help-convert-source")],
    folder: Annotated[str, typer.Argument(metavar="metavar-convert-folder", help="help-convert-folder")],
    family: Annotated[str | None, typer.Option("--family", metavar="metavar-family", help="help-family")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.language.loading import convert as run

    done = run(source, folder, family)
    if as_json:
        write_json({"family": done.family, "folder": str(done.folder), "files": list(done.files)})
    else:
        put(say("converted", family=done.family, folder=str(done.folder)))


def pull(
    name: Annotated[str, typer.Argument(metavar="metavar-hub-id", help="help-pull-id")],
    revision: Annotated[str, typer.Option("--revision", metavar="metavar-revision", help="help-revision")] = "main",
    file: Annotated[str | None, typer.Option("--file", metavar="metavar-file-name", help="help-pull-file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.language.loading import pull as run

    folder = run(name, revision, file=file, quiet=as_json)
    if as_json:
        write_json({"name": name, "revision": revision, "folder": str(folder)})
    else:
        put(str(folder))
        print_message(say("pulled", name=name if file is None else str(folder)))
