"""The guide to `attend`: its blocks and commands run, both languages agree, and each corner of PyTorch has its test."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pages import Page, spans
from torch import nn

from regard import Mask, attend
from regard.errors import DtypeError
from regard.messages import LANGUAGES, Language

ROOT = Path(__file__).parents[2]
PAGE = Page("docs/attention.md", "docs/attention.zh-CN.md")
text, prose = PAGE.text, PAGE.prose
COMMANDS = "".join(PAGE.blocks("en", "bash")).splitlines()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_snippets_print_what_they_say(lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    PAGE.run(lang, monkeypatch)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_work(command: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # the demonstrations save pictures where they are run
    program, *arguments = shlex.split(command)
    start = ["-m", "regard"] if program == "regard" else []
    done = subprocess.run([sys.executable, *start, *arguments], cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout


def test_both_languages_say_the_same() -> None:
    PAGE.assert_same_code()
    PAGE.assert_same_marks(r"^#+(?= )", r"^\|(?=.)|(?<=.)\|")
    PAGE.assert_same_names()
    PAGE.assert_chinese_punctuation()
    assert PAGE.blocks("en", "bash") == PAGE.blocks("zh", "bash")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_links_lead_to_files(lang: Language) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", prose(lang)):
        assert (ROOT / "docs" / target).exists(), target


# --- the corners ------------------------------------------------------------------------------------------


def test_every_corner_has_its_test() -> None:
    rows = [line for line in text("en").splitlines() if line.startswith("|") and "`test_" in line]
    written = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(rows) >= 5
    for row in rows:
        for name in re.findall(r"`(test_\w+)`", row):
            assert f"def {name}(" in written, name


def test_torch_adds_a_mask_of_floats_and_we_refuse_it() -> None:
    """If the first half fails, PyTorch has been fixed: say so in the guide."""
    q, k, v = torch.randn(3, 1, 1, 4, 8, generator=torch.Generator().manual_seed(0))
    zero_one = torch.ones(4, 4).tril()
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=zero_one)
    torch.testing.assert_close(theirs, F.scaled_dot_product_attention(q, k, v, attn_mask=zero_one + 5))
    assert not torch.allclose(theirs, F.scaled_dot_product_attention(q, k, v, attn_mask=zero_one.bool()))
    with pytest.raises(DtypeError, match="from_keep"):
        attend(q, k, v, mask=zero_one)


def test_torch_has_two_meanings_of_true() -> None:
    module = nn.MultiheadAttention(4, 1, bias=False, batch_first=True)
    x = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0))
    upper = torch.ones(3, 3, dtype=torch.bool).triu(1)
    theirs, weights = module(x, x, x, attn_mask=upper)
    assert (weights[0] == 0).equal(upper)  # True = masked
    q, k, v = (x @ W.T for W in module.in_proj_weight.chunk(3))
    fused = F.scaled_dot_product_attention(q, k, v, attn_mask=~upper)  # True = visible
    torch.testing.assert_close(theirs, fused @ module.out_proj.weight.T)
    for ours in (attend(q, k, v, mask=~upper), attend(q, k, v, mask=Mask.from_blocked(upper))):
        torch.testing.assert_close(ours, fused)


def test_the_lowest_number_is_no_minus_infinity_in_torch() -> None:
    q, k, v = torch.randn(3, 1, 1, 4, 8, generator=torch.Generator().manual_seed(0))
    hidden = torch.full((4, 4), torch.finfo(torch.float32).min)
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden)
    torch.testing.assert_close(theirs, v.mean(2, keepdim=True).expand_as(v))
    assert (attend(q, k, v, mask=Mask.from_additive(hidden)) == 0).all()


# --- the masks --------------------------------------------------------------------------------------------


def test_every_converter_gives_the_same_mask() -> None:
    """The last cells of the table, evaluated as they stand."""
    keep = np.array([[True, True, False, True]])
    given = {
        "Mask.from_blocked(m)": np.broadcast_to(~keep, (4, 4)),
        "Mask.from_blocked(m, keys=True)": ~keep,
        "Mask.from_additive(m)": np.where(np.broadcast_to(keep, (4, 4)), 0.0, -np.inf),
        "Mask.from_keep(m)": keep.astype(int),
    }
    written = [span for span in spans(prose("en")) if span.startswith("Mask.from_")]
    assert sorted(written) == sorted(given)
    for call, m in given.items():
        mask = eval(call, {"Mask": Mask, "m": m})
        np.testing.assert_array_equal(
            np.broadcast_to(mask.dense(4, 4), (1, 1, 4, 4)), np.broadcast_to(keep, (1, 1, 4, 4))
        )
