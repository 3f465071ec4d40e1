"""Word links for the training pairs, with a substitute for eflomal, which the tests do not install."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from making.translator import align
from making.translator.tatoeba import Pair
from regard.recipes.recipe import read_recipe
from regard.text.corpus import read_pairs
from regard.text.tokenizer_training import SPECIALS, learn_tokenizer

RECIPES = Path(__file__).parents[2] / "making" / "translator"


class Aligner:
    """Links the words with equal numbers."""

    seen: ClassVar[list[Any]] = []

    def align(self, source: list[str], target: list[str], links_filename_fwd: str) -> None:
        lines = (
            " ".join(f"{i}-{i}" for i in range(min(len(one.split()), len(other.split()))))
            for one, other in zip(source, target, strict=True)
        )
        self.seen.append((source, target))
        Path(links_filename_fwd).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def aligner(monkeypatch: pytest.MonkeyPatch) -> type[Aligner]:
    module: Any = ModuleType("eflomal")
    module.Aligner = Aligner
    monkeypatch.setitem(sys.modules, "eflomal", module)
    Aligner.seen.clear()
    return Aligner


def test_pairs_are_aligned_by_words_in_lower_case_and_characters(aligner: type[Aligner]) -> None:
    assert align.align([Pair("Don't go.", "别走。")]) == ["0-0 1-1 2-2"]
    assert aligner.seen == [(["don't go .\n"], ["别 走 。\n"])]


@pytest.mark.usefixtures("aligner")
def test_files_are_written_beside_their_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = tmp_path / "train.tsv", tmp_path / "own.tsv"
    one.write_text("I see.\t我看。\nI go.\t我去。\n", encoding="utf-8")
    other.write_text("I see.\t我看。\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["align", str(one), str(other)])
    align.main()
    found = read_pairs([tmp_path / "train.links.tsv", tmp_path / "own.links.tsv"], links=True)
    assert found.columns[0] == ["I see.", "I go.", "I see."]
    assert found.columns[2] == ["0-0 1-1 2-2"] * 3
    assert one.read_text(encoding="utf-8").count("\t") == 2


def test_pairs_with_unknown_characters_are_left_out() -> None:
    tokenizer = learn_tokenizer(["I see. 我看。"], "pieces", 60, SPECIALS)
    pairs = [Pair("I see.", "我看。"), Pair("I see.", "鼯看。")]
    assert align.known(pairs, tokenizer) == pairs[:1]


@pytest.mark.parametrize("name", ["teacher", "student", "continue"])
def test_recipes_are_valid(name: str) -> None:
    recipe = read_recipe(RECIPES / f"{name}.toml")
    linked = {path.endswith(".links.tsv") for path in recipe.data.train}
    assert linked == {recipe.training.alignment is not None}
    assert recipe.model["d_model"] == 320
