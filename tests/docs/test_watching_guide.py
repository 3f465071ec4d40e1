"""docs/watching: every block and command works as it stands, the tables are the code, both languages agree."""

import io
import re
import shlex
import sys
import warnings
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from architectures import ARCHITECTURES
from pages import Page, spans
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, NystromformerConfig, NystromformerModel

import regard
from benchmarks.cases import CASES
from regard import See
from regard.capture.budget import FREE_MEMORY_DIVISOR
from regard.cli import main
from regard.errors import RegardError
from regard.messages import LANGUAGES, Language
from regard.patterns import check_name, names
from regard.records import Record
from regard.trace.measures.heads import MOST_QUERIES

ROOT = Path(__file__).parents[2]
GUIDE = Page("docs/watching.md", "docs/watching.zh-CN.md")
README = Page("README.md", "README.zh-CN.md")
EACH = pytest.mark.parametrize("lang", LANGUAGES)


def table(lang: Language, first: str) -> list[list[str]]:
    """The rows below the head of the table in whose first row `first` stands in backticks."""
    (found,) = [rows for rows in GUIDE.tables(lang) if first in spans("|".join(rows[1]))]
    return found[1:]


# --- what is written works --------------------------------------------------------------------------------


@EACH
def test_the_code_prints_what_it_says(lang: Language, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    GUIDE.run(lang, monkeypatch)
    for name in ("attention.html", "poem.safetensors"):
        assert (tmp_path / name).stat().st_size, name


def test_every_command_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`torchrun` is left out of its command; `tests/unit/surveys` has several processes."""
    monkeypatch.chdir(tmp_path)
    Path("poems.txt").write_text("床前明月光，疑是地上霜。\n白日依山尽，黄河入海流。\n", encoding="utf-8")
    for line in "".join(GUIDE.blocks("en", "bash")).splitlines():
        echoed, _, command = line.rpartition(" | ")
        program, *given = shlex.split(command.partition(" -m ")[2] if command.startswith("torchrun") else command)
        if program == "python":
            assert (ROOT / given[1].replace(".", "/")).with_suffix(".py").is_file()
            assert set(given[2:]) <= set(CASES)
            continue
        assert program == "regard", line
        stdin = " ".join(shlex.split(echoed)[1:]).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        assert main(given) == 0, line
        assert capsys.readouterr().out, line


def test_the_rhyme_is_what_the_picture_shows() -> None:
    """The poem of the picture is the one of the guide, and the cell in its frame what the words beside it say."""
    script = (ROOT / "docs/pictures/explorer.py").read_text(encoding="utf-8")
    (poem,) = re.findall(r'^POEM = "(.*)"$', script, flags=re.MULTILINE)
    assert f'encode("{poem}")' in GUIDE.text("en")
    poet = regard.load("poet", backend="torch")
    ids = torch.tensor([poet.tokenizer.encode(poem)])
    with torch.no_grad(), regard.watch(poet.model, poet.tokenizer) as trace:
        poet.model(ids)
    ((layer, head),) = re.findall(r"^LAYER, HEAD = (\d), (\d)$", script, flags=re.MULTILINE)
    record = trace[int(layer)]
    assert record.key_tokens is not None
    assert [record.key_tokens[0][int(record.weights()[0, int(head), at].argmax())] for at in (-1, 12)] == ["霜", "光"]
    (named,) = (one for one in trace.heads() if (one.name, one.head) == (record.name, int(head)))
    assert named.best is not None
    assert named.best.pattern == "separator"  # what the guide says that the table calls it
    moved = regard.effect(poet.model, ids, silence={record.name: [int(head)]})
    assert poet.tokenizer.decode(moved.token.tolist()) == "乡"
    before, after = (f"{side.item():.4f}" for side in moved.probability)
    assert f"'乡'  {before}  {after}" in GUIDE.text("en")


# --- the tables -------------------------------------------------------------------------------------------


@EACH
def test_what_can_be_asked_for_is_see(lang: Language) -> None:
    printed = {spans(row[0])[0]: spans(row[1])[0] for row in table(lang, "256")}
    assert printed == {field.name: repr(getattr(See(), field.name)) for field in fields(See)}


@EACH
def test_the_guide_lists_every_pattern(lang: Language) -> None:
    listed = [name for row in table(lang, "previous") for name in spans(row[0])]
    assert listed[: len(names())] == list(names())
    for name in listed[len(names()) :]:
        check_name(name)


@EACH
def test_the_measures_are_there(lang: Language) -> None:
    for row in table(lang, 'trace.measure("entropy")'):
        call = spans(row[0])[0]
        trace = regard.Trace(regard.Trace.from_weights(torch.eye(4))[0] for _ in range(2))
        if "value" in call or "loss" in call:
            with pytest.raises(RegardError, match="values" if "value" in call else "loss"):
                eval(call, {"trace": trace, "loss": None})
        else:
            assert len(eval(call, {"trace": trace})) in (1, 2), call


@EACH
def test_numbers_in_the_prose_are_those_of_the_code(lang: Language) -> None:
    words = GUIDE.prose(lang)
    assert re.findall(r"(\d+) (?:architectures|种架构)", words) == [str(len(ARCHITECTURES))]
    assert re.findall(r"(\d+) (?:queries, evenly|个均匀)", words) == [str(MOST_QUERIES)]
    assert ({"en": "a quarter of the memory", "zh": "内存的四分之一"}[lang] in words, FREE_MEMORY_DIVISOR) == (True, 4)


# --- what is not seen -------------------------------------------------------------------------------------


class Exponentials(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        shares = (x @ x.mT).exp()
        return shares / shares.sum(-1, keepdim=True) @ x


class Fused(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x)


def landmarks() -> tuple[Any, Tensor]:
    sizes: Any = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = NystromformerConfig(vocab_size=30, num_landmarks=4, segment_means_seq_len=16, **sizes)
    return NystromformerModel(config).eval(), torch.arange(3, 19)[None]


def nested() -> tuple[Any, Tensor]:
    texts = [torch.randn(length, 2, 8) for length in (4, 6)]
    return Fused(), torch.nested.nested_tensor(texts, layout=torch.jagged).transpose(1, 2)


@pytest.mark.parametrize("made", [landmarks, nested, lambda: (Exponentials(), torch.randn(2, 4, 8))])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_the_guide_says_is_not_recorded(made: Any) -> None:
    """If this fails, it is seen by now: say so in the guide."""
    model, given = made()
    with (
        torch.no_grad(),
        pytest.warns(UserWarning, match="nothing was seen|not recorded|nothing is recorded"),
        regard.watch(model),
    ):
        model(given)


# --- odd input --------------------------------------------------------------------------------------------

ANSWERS = [
    "module-wanted",
    "watch-meta",
    "watch-layer-unknown",
    "watch-budget",
    "watch-budget-small",
    "",
    "record-unknown",
    "weights-not-kept",
    "image-none",
    "edit-head-range",
    "edit-edge-missed",
    "monitor-log",
    "gather-alone",
    "effect-training",
    "attribution-training",
    "trace-unreadable",
]


@EACH
def test_odd_input_is_answered(lang: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("床前明月光", encoding="utf-8")
    sizes: Any = {"vocab_size": 8, "n_embd": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 0, "eos_token_id": 7}
    model = GPT2LMHeadModel(GPT2Config(**sizes)).eval()
    ids = torch.randint(0, 8, (1, 300))
    with torch.no_grad(), regard.watch(model) as trace:
        model(ids)
    given = {"regard": regard, "nn": nn, "Record": Record, "model": model, "ids": ids, "trace": trace}

    def answer(code: str) -> str:
        try:
            found = eval(code, given)
            if isinstance(found, AbstractContextManager):
                with found, torch.no_grad():
                    model(ids)
        except RegardError as error:
            return error.key
        return ""

    rows = table(lang, 'regard.watch("gpt2")')
    with warnings.catch_warnings(record=True) as printed:
        warnings.simplefilter("always")
        assert [answer(spans(row[0])[0]) for row in rows] == ANSWERS
    assert len(printed) == 1


# --- both languages ---------------------------------------------------------------------------------------


@EACH
def test_what_is_named_is_there(lang: Language) -> None:
    folder = (ROOT / GUIDE.path(lang)).parent
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", GUIDE.prose(lang)):
        assert (folder / target).exists(), target
    assert f"](pictures/page.{lang}.png)" in GUIDE.prose(lang)
    for span in spans(GUIDE.prose(lang)):
        if span.startswith(("src/", "tests/", "benchmarks/")):
            assert (ROOT / span).exists(), span


def test_both_languages_have_the_same_code_commands_and_rows() -> None:
    assert GUIDE.blocks("en", "bash") == GUIDE.blocks("zh", "bash")
    GUIDE.assert_same_code()
    english, chinese = (
        [[[spans(cell) for cell in row] for row in rows] for rows in GUIDE.tables(lang)] for lang in LANGUAGES
    )
    assert english == chinese
    GUIDE.assert_same_marks(r"^#+(?= )", r"^\|(?=.)|(?<=.)\|")
    GUIDE.assert_same_names()


def test_chinese_has_chinese_punctuation() -> None:
    GUIDE.assert_chinese_punctuation()
