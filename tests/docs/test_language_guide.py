"""docs/language and making/README: every command works as it stands, the tables are the code, both languages agree.

Commands of the guide are run in this process, one after the other, beside a tiny model. Those of `making` need texts
that are not here: their options and files are looked up instead.
"""

import io
import json
import re
import shlex
import sys
import tomllib
from math import prod
from pathlib import Path
from typing import Any

import pytest
from pages import Page, spans
from tiny_language import translator_folder

import regard
from regard.checkpoints.tensor_file import CONFIG, TENSORS
from regard.cli import main
from regard.config.weights import weight_shapes
from regard.evaluation.scores import form_of
from regard.language import BUNDLED
from regard.language.hub_files import FIELDS, SETTINGS
from regard.language.loading import TOKENIZER, bundled
from regard.messages import LANGUAGES, Language
from regard.recipes import read_recipe

ROOT = Path(__file__).parents[2]
GUIDE = Page("docs/language.md", "docs/language.zh-CN.md")
MAKING = Page("making/README.md", "making/README.zh-CN.md")
README = Page("README.md", "README.zh-CN.md")
PAGES = pytest.mark.parametrize("page", [GUIDE, MAKING], ids=["language", "making"])
EACH = pytest.mark.parametrize("lang", LANGUAGES)


def commands(page: Page, lang: Language) -> list[str]:
    """Everything typed in a shell, line by line."""
    return "".join(page.blocks(lang, "bash")).splitlines()


def typed(line: str, stdin: bytes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The exit code, stdout and stderr of one `regard …`."""
    program, *words = shlex.split(line)
    assert program == "regard", line
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    code = main(words)
    return code, *capsys.readouterr()


# --- the commands -----------------------------------------------------------------------------------------


def test_every_command_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs/zh").mkdir(parents=True)
    translator_folder(tmp_path / "runs/zh/model")
    (tmp_path / "english.txt").write_text("I love you.\n\nThank you.\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for line in commands(GUIDE, "en"):
        echoed, _, piped = line.rpartition(" | ")
        command, _, source = piped.partition(" > ")[0].partition(" < ")
        stdin = Path(source).read_bytes() if source else " ".join(shlex.split(echoed)[1:]).encode()
        code, out, err = typed(command, stdin, capsys, monkeypatch)
        assert (code, bool(out)) == (0, True), (line, err)
        if source:
            assert len(out.splitlines()) == 3, line
    for name in ("love.safetensors", "love.png"):
        assert (tmp_path / name).stat().st_size, name


@EACH
def test_odd_input_is_answered_as_the_table_says(
    lang: Language, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    *asked, too_long, bad_line, not_utf8 = GUIDE.tables(lang)[-1][1:]
    for command, _, code in asked:
        found, out, err = typed(spans(command)[0], b"", capsys, monkeypatch)
        assert str(found) == code, command
        assert bool(out) == (code == "0"), command
        assert len(err.splitlines()) == 1, command
    (most,) = set(re.findall(r"(?<![\d,])(\d+) (?:tokens|个词元)", GUIDE.prose(lang)))
    assert int(most) == regard.load("translator").longest
    assert str(typed("regard see " + "very " * int(most), b"", capsys, monkeypatch)[0]) == too_long[2]
    code, out, err = typed("regard translate -", "I love you.\n我\nThank you.\n".encode(), capsys, monkeypatch)
    assert (str(code), out.split("\n")[1], err.count("2")) == (bad_line[2][0], "", 1)
    assert str(typed("regard translate -", b"\xff", capsys, monkeypatch)[0]) == not_utf8[2]


def test_the_json_has_the_keys_of_the_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def keys(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [name for key, each in value.items() for name in (key, *keys(each))]
        return keys(value[0]) if isinstance(value, list) and value else []

    shown = GUIDE.blocks("en", "text")[0]
    real = json.loads(typed("regard see --json I love you", b"", capsys, monkeypatch)[1])
    assert re.findall(r'"(\w+)":', shown) == keys(real)
    assert [len(real["records"][0][axis]) for axis in ("queries", "keys")] == [4, 4]
    for command, printed in (("regard translate --json I love you", "text"), ("regard generate --json 明月", "prompt")):
        real = json.loads(typed(command, b"", capsys, monkeypatch)[1])
        (span,) = [span for span in spans(GUIDE.prose("en")) if span.startswith("{") and f'"{printed}"' in span]
        assert re.findall(r'"(\w+)"', span) == list(real)
    assert {"seed", "output"} == set(real["outputs"][0])


# --- the tables -------------------------------------------------------------------------------------------


@EACH
def test_the_options_are_those_of_see(
    lang: Language, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = typed("regard see --help", b"", capsys, monkeypatch)[1]
    options = set(re.findall(r"^  (--\w+)", page, flags=re.MULTILINE)) - {"--lang", "--debug", "--help"}
    printed = [span for row in GUIDE.tables(lang)[0][2:] for span in spans(row[0])]
    assert sorted(printed) == sorted(options)


@EACH
def test_the_forms_are_the_poets(lang: Language) -> None:
    forms = regard.load("poet").settings.forms
    for (short,), (name,), width, lines in [
        (spans(row[0]), spans(row[1]), *row[2:]) for row in GUIDE.tables(lang)[1][1:]
    ]:
        assert forms.pop(short) == f"{name}｜"
        assert short == f"{width}x{lines}"
    assert not forms


@EACH
def test_the_guide_states_the_sizes_of_the_two_models(lang: Language) -> None:
    head, _, layers, sizes, weights, disk, *_ = GUIDE.tables(lang)[2]
    assert [spans(cell)[0] for cell in head[1:]] == list(BUNDLED)
    for name, *printed in zip(BUNDLED, layers[1:], sizes[1:], weights[1:], disk[1:], strict=True):
        config = regard.load(name).config
        counts = [config.layers_of(stack) for stack in ("encoder", "decoder")]
        assert [int(number) for number in re.findall(r"\d+", printed[0])] == [count for count in counts if count]
        assert [int(number) for number in re.findall(r"\d+", printed[1])] == [config.d_model, config.n_heads]
        count = sum(prod(shape) for shape in weight_shapes(config).values())
        assert printed[2] == f"{count / 1e6:.1f} M"
        size = sum(path.stat().st_size for path in bundled(name).iterdir())
        assert abs(float(printed[3].removesuffix(" MB")) - size / 1e6) < 0.1, size


@EACH
def test_sources_and_licences_are_those_of_the_licences(lang: Language) -> None:
    *_, texts, their_licences, licences, _ = GUIDE.tables(lang)[2]
    for at, name in enumerate(BUNDLED, start=1):
        licence = (bundled(name) / "LICENSE").read_text(encoding="utf-8")
        assert re.findall(r"SPDX: ([\w.-]+)", licence) == [licences[at]]
        for source in ("Tatoeba", "CC-CEDICT", "TinyStories"):
            assert (source in texts[at]) == (source in licence), source
    assert "tatoeba.org" in their_licences[1]
    assert "MIT" in their_licences[2]


@EACH
def test_files_and_settings_are_those_that_are_read(lang: Language) -> None:
    files, settings = GUIDE.tables(lang)[3:5]
    assert [spans(row[0])[0] for row in files[1:]] == [CONFIG, TENSORS, TOKENIZER, SETTINGS]
    assert len({row[2] for row in files[1:4]} | {files[4][2]}) == 2
    assert sorted(name for row in settings[1:] for name in spans(row[0])) == sorted(FIELDS)


@EACH
def test_a_poem_that_is_shown_keeps_its_form(lang: Language) -> None:
    shown = [block for block in GUIDE.blocks(lang, "text") if block.startswith("明月松间照")]
    assert [form_of(block.replace("\n", "")) for block in shown] == ["五绝"]


# --- making -----------------------------------------------------------------------------------------------


def test_what_makes_the_models_can_be_had() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    made = {"translator": 0, "poet": 0}
    for line in commands(MAKING, "en"):
        program, *words = shlex.split(re.sub(r"^for seed in [\d ]+; do (.*); done$", r"\1", line))
        options = {word for word in words if word.startswith("--")}
        if program == "pip":
            assert re.fullmatch(r"\.\[(\w+)\]", words[-1])[1] in project["optional-dependencies"]  # type: ignore[index]
        elif program == "regard":
            assert {"--data", "--out"} <= options <= {"--data", "--out", "--seed", "--set", "--start"}
            assert read_recipe(ROOT / words[1]).task == ("translation" if "translator" in words[1] else "language")
        elif words[0] == "-m":
            script = (ROOT / words[1].replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
            assert options <= set(re.findall(r'add_argument\(\s*"(--\w+)"', script)), words
            made[words[-1]] = made.get(words[-1], 0) + (words[1] == "making.bundle")
        else:
            assert (program, (ROOT / words[0]).is_file()) == ("python", True)
    assert [made[name] for name in BUNDLED] == [1, 1]


# --- both pages, both languages ---------------------------------------------------------------------------


@EACH
def test_the_code_prints_what_it_says(lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    GUIDE.run(lang, monkeypatch)


@PAGES
@EACH
def test_what_is_named_is_there(page: Page, lang: Language) -> None:
    folder = (ROOT / page.path(lang)).parent
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.prose(lang)):
        assert (folder / target).exists(), target
    for target, anchor in re.findall(r"\]\(([^)#]+)#([^)]*)\)", page.prose(lang)):
        headings = re.findall(r"^#+ (.*)$", (folder / target).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert anchor in [heading.lower().replace(" ", "-") for heading in headings]
    for span in spans(page.prose(lang)):
        if span.startswith(("src/", "tests/", "benchmarks/")):
            assert (ROOT / span).exists(), span


@PAGES
def test_both_languages_have_the_same_code_commands_and_rows(page: Page) -> None:
    assert commands(page, "en") == commands(page, "zh")
    assert page.blocks("en", "text") == page.blocks("zh", "text")
    page.assert_same_code()
    rows = ([[[spans(cell) for cell in row] for row in table] for table in page.tables(lang)] for lang in LANGUAGES)
    english, chinese = rows
    assert english == chinese
    page.assert_same_marks(r"^#+(?= )", r"^\|(?=.)|(?<=.)\|")
    page.assert_same_names()


@PAGES
def test_chinese_has_chinese_punctuation(page: Page) -> None:
    page.assert_chinese_punctuation()
