"""docs/families: its tables are the presets, its drawings name weights, its code prints what it says, either language.

In the first table a row's code is a field of the config and each cell's code its value, both evaluated as they stand;
a class stands for any value of its kind. And `python examples/families.py`, which shows the same in a terminal.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import pytest
from pages import Page, spans

import regard.config
from regard.checkpoints.families import FAMILIES as CHECKPOINT_FAMILIES
from regard.config import TransformerConfig
from regard.config.transformer import SIZES
from regard.config.weights import weight_shapes
from regard.messages import LANGUAGES, Language

ROOT = Path(__file__).parents[2]
PAGE = Page("docs/families.md", "docs/families.zh-CN.md")
text, blocks, prose, tables = PAGE.text, PAGE.blocks, PAGE.prose, PAGE.tables
LANGS = LANGUAGES
EXAMPLE = "examples/families.py"
FAMILIES = ("paper_2017", "bert", "gpt2", "llama")

# torch made impossible to import before the example runs.
CORE_ONLY = (
    "import runpy, sys; sys.modules['torch'] = None; sys.argv = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def evaluated(code: str) -> Any:
    return eval(code, dict(vars(regard.config)))


def count(config: TransformerConfig) -> int:
    return sum(prod(shape) for shape in weight_shapes(config).values())


# --- the tables and the drawings are the presets ----------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
def test_every_choice_is_the_presets(lang: Language) -> None:
    _, makers, *rows = tables(lang)[0]
    configs = [evaluated(maker) for (maker,) in map(spans, makers[1:])]
    assert configs == [getattr(TransformerConfig, family)() for family in FAMILIES]
    assert len(rows) >= 12
    for head, *cells in rows:
        (field,) = spans(head)
        for config, cell in zip(configs, cells, strict=True):
            (code,) = spans(cell)
            found, said = eval(f"config.{field}", {"config": config}), evaluated(code)
            assert isinstance(found, said) if isinstance(said, type) else found == said, f"{field}: {found}, not {code}"


@pytest.mark.parametrize("lang", LANGS)
def test_every_size_is_in_the_table(lang: Language) -> None:
    head, *rows = tables(lang)[1]
    fields = [field for (field,) in map(spans, head[3:-1])]
    assert [spans(row[0]) for row in rows] == [[f'{family}("{size}")'] for family in FAMILIES for size in SIZES[family]]
    for maker, known_as, layers, *numbers, weights in rows:
        config = evaluated(f"TransformerConfig.{maker.strip('`')}")
        stacks = (config.n_encoder_layers, config.n_decoder_layers)
        assert layers == " + ".join(str(n) for n in stacks if n is not None)
        assert numbers == [f"{getattr(config, field):,}" for field in fields], maker
        assert weights == f"{count(config) / 1e6:,.0f} M", maker
        assert known_as


@pytest.mark.parametrize("lang", LANGS)
def test_every_family_of_checkpoints_is_in_the_table(lang: Language) -> None:
    _, *rows = tables(lang)[2]
    assert sorted(family for row in rows for family in spans(row[0])) == sorted(CHECKPOINT_FAMILIES)


@pytest.mark.parametrize("lang", LANGS)
def test_the_drawings_name_weights(lang: Language) -> None:
    """Every word of them is a part of a weight's name, an input, a result, or a value that can be built."""
    pre, post = (getattr(TransformerConfig, family)() for family in ("gpt2", "paper_2017"))
    parts = {part for config in (pre, post) for name in weight_shapes(config) for part in name.split(".")}
    whole, block = blocks(lang, "text")
    values = re.findall(r"Norm\(.*?\)", block)
    assert [evaluated(value) for value in values] == [post.norm, pre.norm]
    drawn = re.findall(r"[A-Za-z]\w+", whole) + re.findall(r"[A-Za-z]\w+", re.sub(r"Norm\(.*?\)", "", block))
    assert set(drawn) - parts == {"source", "ids", "positions", "output", "logits"} - parts
    assert {"self_attention", "cross_attention", "feed_forward", "self_attention_norm", "norm"} <= set(drawn)


def test_what_the_reasons_say_is_so() -> None:
    seven, eight, one = (TransformerConfig.llama(size) for size in ("7B", "8B", "1B"))
    assert seven.d_ff / seven.d_model == pytest.approx(8 / 3, rel=0.02)
    assert TransformerConfig.gpt2().d_ff / TransformerConfig.gpt2().d_model == 4
    assert one.key_value_heads / one.n_heads == 1 / 4
    assert seven.key_value_heads == seven.n_heads
    tied = {size: TransformerConfig.llama(size).output.tied for size in SIZES["llama"]}  # type: ignore[union-attr]
    assert [size for size in tied if not tied[size]] == ["7B", "8B"]
    assert count(eight) > count(seven) > max(count(TransformerConfig.llama(size)) for size in tied if tied[size])


@pytest.mark.parametrize("lang", LANGS)
def test_what_is_named_can_be_had(lang: Language) -> None:
    (changed,) = [span for span in spans(prose(lang)) if span.startswith("TransformerConfig.gpt2(n_layers")]
    assert evaluated(changed).norm.kind == "rms"
    for target in re.findall(r"\]\(([^)#]+)\)", prose(lang)):
        assert (ROOT / "docs" / target).exists(), target
    (command,) = [span for span in spans(prose(lang)) if span.startswith("python ")]
    assert command == f"python {EXAMPLE}"


# --- the code ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
def test_the_code_prints_what_it_says(lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(blocks(lang, "python")) >= 5
    PAGE.run(lang, monkeypatch)


# --- both languages say the same --------------------------------------------------------------------------


def test_both_languages_have_the_same_rows_code_and_drawings() -> None:
    PAGE.assert_same_code()
    assert blocks("en", "text") == blocks("zh", "text")
    for ours, theirs in zip(tables("en"), tables("zh"), strict=True):
        assert [[spans(cell) for cell in row] for row in ours] == [[spans(cell) for cell in row] for row in theirs]
    PAGE.assert_same_marks(r"^#+(?= )", r"^- \*\*", r"\]\(([^)]+)\)")
    PAGE.assert_same_names()


def test_chinese_has_chinese_punctuation() -> None:
    PAGE.assert_chinese_punctuation()


# --- the example ------------------------------------------------------------------------------------------


def run(*command: str, lang: Language) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *command, "--lang", lang],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", "COLUMNS": "80"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def screens() -> dict[Language, str]:
    return {lang: run(EXAMPLE, lang=lang) for lang in LANGS}


KINDS: dict[Language, tuple[str, str, str]] = {
    "en": ("encoder self-attention", "decoder self-attention", "cross-attention"),
    "zh": ("编码器自注意力", "解码器自注意力", "交叉注意力"),
}


@pytest.mark.parametrize("lang", LANGS)
def test_the_example_shows_four_families(lang: Language, screens: dict[Language, str]) -> None:
    names = re.findall(r"^\d  (.+)$", screens[lang], flags=re.MULTILINE)
    assert names == ["Transformer 2017", "BERT", "GPT-2", "Llama"]
    _, *parts = re.split(r"^\d  .+$", screens[lang], flags=re.MULTILINE)
    encoder, decoder, cross = KINDS[lang]
    shown = [[kind for kind in KINDS[lang] if f"· {kind} ·" in part] for part in parts]
    assert shown == [[encoder, decoder, cross], [encoder], [decoder], [decoder]]
    for family, part in zip(FAMILIES, parts, strict=True):
        config = getattr(TransformerConfig, family)()
        assert f"{count(config) / 1e6:,.0f} M" in part
        assert part.count("0.00000") == (1 if config.kind == "encoder" else 2)  # the cache, and PyTorch
        (moved,) = re.findall(r"(?:by|变化) (\d[\d.]*)[:：]", part)
        assert (float(moved) == 0) == (config.kind == "decoder")


def test_the_example_is_the_same_in_both_languages(screens: dict[Language, str]) -> None:
    """All numbers, those of the pictures included; only their column widths differ."""
    english, chinese = (Counter(re.findall(r"\d*\.?\d+", screens[lang])) for lang in LANGS)
    assert english == chinese
    assert re.search(r"[\u4e00-\u9fff]，", screens["zh"])


@pytest.mark.parametrize("lang", LANGS)
def test_the_example_runs_without_torch(lang: Language, screens: dict[Language, str]) -> None:
    bare = run("-c", CORE_ONLY, EXAMPLE, lang=lang)
    assert bare.count("pip install 'regard[torch]'") == 4
    differing = [line for line in screens[lang].splitlines() if line not in bare.splitlines()]
    assert differing
    assert all("PyTorch" in line for line in differing)
