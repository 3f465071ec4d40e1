"""docs/training: every command works as it stands, its tables are the recipes and the code, both languages agree.

Commands are run in this process, one after the other, on small made-up files and with few steps of a small model.
`torchrun` is left out of its command here; `tests/faults/test_ranks.py` has it.
"""

import ast
import re
import shlex
import shutil
import tomllib
from collections import Counter
from math import prod
from pathlib import Path
from typing import get_args

import pytest
from pages import Page, spans

from regard.cli import main
from regard.config.weights import weight_shapes
from regard.errors import FileError, MissingDeviceError, MissingPackageError, RegardError, RunError, TooLargeError
from regard.evaluation.scores import paper_bleu, sacre_bleu
from regard.messages import LANGUAGES, Language
from regard.recipes import config_of, read_recipe, recipe_names
from regard.recipes.data import OWN_VALID_SHARE
from regard.recipes.puzzles import solve
from regard.text.tokenizer_training import Kind
from regard.training.plan import Plan
from regard.training.processes import SECONDS

ROOT = Path(__file__).parents[2]
PAGE = Page("docs/training.md", "docs/training.zh-CN.md")
README = Page("README.md", "README.zh-CN.md")
text, blocks, prose = PAGE.text, PAGE.blocks, PAGE.prose
LANGS = LANGUAGES
PICTURES = ("copy.en.gif", "copy.zh.gif", "copy.en.png", "copy.zh.png")

QUICK = ("training.steps=2", "training.accumulate=1", "training.compile=false")
SMALL = ("model.n_layers=1", "model.d_model=8", "model.n_heads=2", "model.d_ff=8")
SHORT = ("data.max_len=16", "data.batch_size=2", "data.vocab_size=300", "model.vocab_size=300")


def commands(page: Page, lang: Language) -> list[list[str]]:
    """Everything typed in a shell, as words."""
    return [shlex.split(line, comments=True) for line in "".join(page.blocks(lang, "bash")).splitlines()]


def tables(lang: Language) -> list[list[list[str]]]:
    """Tables of rows of cells, without head and rule."""
    return [rows for _, *rows in PAGE.tables(lang)]


# --- the commands -----------------------------------------------------------------------------------------


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def make_files(folder: Path) -> None:
    """All files that the page speaks of, as small as they may be."""
    english = [f"A {colour} {animal} runs." for colour in ("red", "green", "blue") for animal in ("dog", "cat", "bird")]
    chinese = [f"一只{colour}{animal}在跑。" for colour in "红绿蓝" for animal in "狗猫鸟"]
    for split in ("train", "val", "test_2016_flickr", "test_2017_flickr"):
        for lang in ("en", "de"):
            write(folder / "multi30k" / f"{split}.{lang}", english)
    pairs = [f"{one}\t{other}" for one, other in zip(english, chinese, strict=True)]
    for name in ("tatoeba/train.tsv", "tatoeba/dev.tsv", "pairs.tsv"):
        write(folder / name, pairs)
    records = [f'{{"en": "{one}", "zh": "{other}"}}' for one, other in zip(english, chinese, strict=True)]
    write(folder / "pairs.jsonl", records)
    write(folder / "text" / "tang_poems.tsv", [f"題\t人\t{line}" for line in chinese * 10])
    for name in ("text/tinyshakespeare.txt", "notes.txt"):
        write(folder / name, english * 10)
    (folder / "src").symlink_to(ROOT / "src")


def in_a_hurry(words: list[str]) -> list[str]:
    """The same training with few steps, and where it is a large one, with a small model."""
    recipe = read_recipe(words[1])
    changes = list(QUICK)
    if recipe.task != "synthetic":
        changes += SMALL
    if recipe.task == "language":
        changes += SHORT
    return [*words, "--device", "cpu", *(word for change in changes for word in ("--set", change))]


def test_every_command_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    for program, *words in commands(PAGE, "en"):
        if program == "torchrun":
            program, words = "regard", words[words.index("-m") + 2 :]
        if program == "cp":
            shutil.copy(*words)
        elif program == "regard":
            trains = words[0] == "train" and len(words) > 1
            code = main(in_a_hurry(words) if trains else words)
            said = capsys.readouterr()
            assert code == 0, (words, said.err)
            assert trains or said.out or "saved" in said.err or "已保存" in said.err, words
        else:
            assert (program, words[0]) in {("pip", "install"), ("python", "-m")}, program
    for name in ("copy.gif", "copy.png", "hypotheses.txt"):
        assert (tmp_path / name).stat().st_size, name
    for lang in LANGS:
        listed = re.findall(r"^  (\w+(?:\.\w+|/)?)", blocks(lang, "text")[1], flags=re.MULTILINE)
        found = (f"{path.name}/" if path.is_dir() else path.name for path in (tmp_path / "runs/copy").iterdir())
        assert sorted(listed) == sorted(found)


def test_what_is_not_run_here_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"'\.\[(.*?)\]'", "".join(blocks("en", "bash")))
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    script = (ROOT / "benchmarks" / "recipes.py").read_text(encoding="utf-8")
    known = set(re.findall(r'add_argument\(\s*"([\w-]+)"', script))
    for _, _, module, recipe, *options in (words for words in commands(PAGE, "en") if words[0] == "python"):
        assert module == "benchmarks.recipes"
        assert recipe in recipe_names()
        assert {word for word in options if word.startswith("--")} <= known
    assert "--report" in known


# --- the tables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
def test_the_puzzles_are_the_recipes(lang: Language) -> None:
    puzzles, real, *_ = tables(lang)
    named = [spans(row[0])[0] for row in puzzles + real]
    assert sorted(named) == sorted(recipe_names())
    for cells in puzzles:
        (name,), (reads,), (writes,) = map(spans, cells[:3])
        recipe = read_recipe(name)
        assert recipe.puzzle is not None
        if name == "induction":  # the block, and the letter that tells that it comes again
            reads = reads[: len(reads) // 2 + 2]
            assert solve("induction", reads).target[1:] == writes
        else:
            assert solve(recipe.puzzle.kind, reads).target == writes
        printed = [tomllib.loads(span)["window"] for span in spans(cells[4]) if span.startswith("window")]
        style = recipe.model.get("attention", {})
        assert printed == ([style["window"]] if "window" in style else [])
    copy = read_recipe("copy").model
    assert (copy["n_layers"], copy["n_heads"]) == (1, 1)
    assert read_recipe("addition").puzzle.longest == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("lang", LANGS)
def test_the_guide_states_the_sizes_of_the_recipes(lang: Language) -> None:
    vocabularies = {"shakespeare-char": 65}
    for name, needed, weights, steps in tables(lang)[1]:
        recipe = read_recipe(name.strip("`"))
        vocab_size = recipe.data.vocab_size or vocabularies[recipe.name]
        count = sum(prod(shape) for shape in weight_shapes(config_of(recipe, vocab_size)).values())
        assert weights == f"{count / 1e6:.1f} M", name
        assert steps == f"{recipe.training.steps:,}", name
        files = [f"{each}.en" if recipe.data.pattern else each for each in recipe.data.train]
        assert recipe.name == "multi30k-en-fr" or files[0] in spans(needed), name


@pytest.mark.parametrize("lang", LANGS)
def test_tokenizers_codes_and_limits_are_those_of_the_code(lang: Language) -> None:
    _, _, _, tokenizers, faults, codes, scores = tables(lang)
    assert [ast.literal_eval(span) for row in tokenizers for span in spans(row[0])] == list(get_args(Kind))
    errors = (RunError, RegardError, FileError, MissingPackageError, MissingDeviceError, TooLargeError)
    assert {str(error.exit_code) for error in errors} | {"0", "70", "130"} == {row[0] for row in codes}
    printed = {code for row in faults for code in re.findall(r"(?:code|退出码) (\d+)", row[1])}
    assert printed <= {row[0] for row in codes}
    assert Plan(steps=1, lr=1.0).bad_steps == 10
    assert any(word in row[0] for row in faults for word in ("ten such", "连续十步"))
    assert f"{100 * OWN_VALID_SHARE:.0f}" in re.findall(r"(\d+) ?%", prose(lang))
    assert f"{SECONDS:.0f}" in re.findall(r"(\d+) (?:seconds|秒)", prose(lang))
    assert len(scores) == 5


def test_the_signatures_words_are_sacrebleus() -> None:
    signature = sacre_bleu(["Ein Hund."], ["Ein Hund."], lowercase=True).signature or ""
    for word in ("case:lc", "tok:13a", "smooth:exp", "nrefs"):
        assert word in signature
        assert word in spans(prose("en"))
    assert "smooth:none" in (paper_bleu(["ein hund"], ["ein hund"]).signature or "")


# --- the code and the pictures ----------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
def test_the_code_prints_what_it_says(lang: Language, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    PAGE.run(lang, monkeypatch)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_small_and_shown(name: str) -> None:
    picture, lang = ROOT / "docs/pictures" / name, name.split(".")[1]
    assert picture.stat().st_size < 400_000
    start, frames = picture.read_bytes()[:6], picture.read_bytes().count(b"\x21\xf9\x04")
    assert start == b"GIF89a" and frames > 10 if name.endswith("gif") else start.startswith(b"\x89PNG")
    assert f"](pictures/{name})" in text(lang)  # type: ignore[arg-type]


@pytest.mark.parametrize("lang", LANGS)
def test_what_is_named_is_there(lang: Language) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", prose(lang)):
        assert (ROOT / "docs" / target).exists(), target
    for span in spans(prose(lang)):
        if span.startswith(("src/", "tests/", "benchmarks/")):
            assert (ROOT / span).exists(), span


# --- both languages say the same --------------------------------------------------------------------------


def test_both_languages_have_the_same_rows_code_and_commands() -> None:
    PAGE.assert_same_code()
    assert commands(PAGE, "en") == commands(PAGE, "zh")
    for ours, theirs in zip(tables("en"), tables("zh"), strict=True):
        assert [[Counter(spans(cell)) for cell in row] for row in ours] == [
            [Counter(spans(cell)) for cell in row] for row in theirs
        ]
    PAGE.assert_same_marks(r"^#+(?= )", r"^- ", r"\]\(((?!pictures)[^)]+)\)")
    PAGE.assert_same_names()


def test_chinese_has_chinese_punctuation() -> None:
    PAGE.assert_chinese_punctuation()
