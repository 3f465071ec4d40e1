"""Text generation: determined by prompt, form and seed, the same with NumPy and torch."""

from pathlib import Path
from typing import Any

import pytest
from tiny_language import POEMS, poet_folder

import regard
from regard.errors import ArgumentError, TooLargeError
from regard.generation import GREEDY, generate
from regard.language import LanguageModel, Settings
from regard.language.generating import form_of, read_prompt

POET = Settings(task="text", forms={"5x4": "五绝｜", "7x4": "七绝｜", "5x8": "五律｜", "7x8": "七律｜"})


def test_the_same_seed_gives_the_same_text(poet: LanguageModel) -> None:
    texts = [poet.generate("明月", seed=seed) for seed in range(6)]
    assert texts == [poet.generate("明月", seed=seed) for seed in range(6)]
    assert len(set(texts)) > 3
    assert all(text.startswith("明月") for text in texts)
    assert poet.generate("明月") == texts[0]


def test_numpy_and_torch_write_the_same(tmp_path: Path) -> None:
    folder = poet_folder(tmp_path / "m", int8=True)
    ours, theirs = regard.load(folder), regard.load(folder, backend="torch")
    for seed in range(5):
        assert ours.generate(seed=seed) == theirs.generate(seed=seed)
        assert ours.generate("床前明月光，", form="七绝", seed=seed) == theirs.generate(
            "床前明月光，", form="七绝", seed=seed
        )


def test_the_header_is_read_but_not_returned(poet: LanguageModel) -> None:
    tokenizer = poet.tokenizer
    start = read_prompt(poet, "明月", "七绝")
    assert tokenizer.pieces([*start.header, *start.ids]) == ["<eos>", "七", "绝", "｜", "明", "月"]
    wanted = generate(poet.model, [*start.header, *start.ids], max_new=24, pick=GREEDY, eos=tokenizer.eos)
    assert poet.generate("明月", form="7x4", top_k=1) == "明月" + tokenizer.decode(wanted)
    texts = {form: [poet.generate(form=form, seed=seed) for seed in range(4)] for form in ("五绝", "七绝")}
    assert texts["五绝"] != texts["七绝"]


@pytest.mark.parametrize(
    ("prompt", "form", "found"),
    [
        ("", None, "5x4"),
        ("明月", None, "5x4"),
        ("床前明月光", None, "5x4"),
        ("床前明月光，疑是", None, "5x4"),
        (" 朝辞白帝彩云间。千", None, "7x4"),
        ("朝辞白帝彩云间千", None, "5x4"),
        ("朝辞白帝彩云间", "五律", "5x8"),
        ("", "7x8", "7x8"),
        ("", "七律｜", "7x8"),
    ],
)
def test_form_of(prompt: str, form: str | None, found: str) -> None:
    assert form_of(POET, prompt, form) == found


def test_an_unknown_form_is_refused(poet: LanguageModel) -> None:
    with pytest.raises(ArgumentError, match="no form '六绝'; there are: 5x4 五绝, 7x4 七绝"):
        poet.generate(form="六绝")


def test_a_model_without_forms(tmp_path: Path) -> None:
    model = regard.load(poet_folder(tmp_path / "m", forms={}))
    assert model.tokenizer.pieces(read_prompt(model, "明").header) == ["<eos>"]
    with pytest.raises(ArgumentError, match="'m' has no forms, so '五绝' is unknown"):
        model.generate(form="五绝")


def test_unknown_characters_are_listed(poet: LanguageModel) -> None:
    with pytest.raises(ArgumentError, match="'bard' does not know: '紅' 'A' '\\\\x1b' \\(3 in all\\)"):
        poet.generate("紅明A紅\x1b")
    assert poet.generate("明 月\n", seed=2) == poet.generate("明月", seed=2)  # no space in its vocabulary


def test_ascii_punctuation_becomes_chinese(poet: LanguageModel) -> None:
    assert poet.generate("床前明月光,", seed=2) == poet.generate("床前明月光，", seed=2)
    with pytest.raises(
        ArgumentError, match="does not know: ';' ':' \\(2 in all\\)"
    ):  # nor ；, which is not in the poems
        poet.generate("明,月;:")


def test_length_limits(poet: LanguageModel) -> None:
    assert all(len(poet.generate("明月", max_new_tokens=3, seed=seed)) <= 5 for seed in range(5))
    longest = POEMS[0][3:] + POEMS[1][3:]  # 24 + 16; with <eos> and header 44 of 48 positions
    assert len(poet.generate(longest)) <= len(longest) + 5
    with pytest.raises(TooLargeError, match="80 tokens long, and the model can read 44 at once"):
        poet.generate(longest * 2)
    assert len(poet.generate("明" * 44)) <= 45  # it cannot read more, but write one
    with pytest.raises(ArgumentError, match="max_new of at most 5"):
        poet.generate(longest, max_new_tokens=6)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -0.1},
        {"temperature": False},
        {"temperature": "0"},
        {"top_k": 0},
        {"top_p": 2.0},
        {"seed": -1},
        {"max_new_tokens": 0},
        {"prompt": 5},
    ],
)
def test_invalid_options_are_refused(poet: LanguageModel, options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        poet.generate(**options)


def test_a_translator_does_not_generate(translator: LanguageModel) -> None:
    with pytest.raises(ArgumentError, match="'tiny' translates"):
        translator.generate("I")


def test_without_a_start_token_a_prompt_is_needed(tmp_path: Path) -> None:
    import json

    folder = poet_folder(tmp_path / "m", forms={})
    path = folder / "tokenizer.json"
    tree = json.loads(path.read_text(encoding="utf-8"))
    for token in tree["added_tokens"]:
        token["special"] = token["content"] != "<eos>"
    path.write_text(json.dumps(tree), encoding="utf-8")
    model = regard.load(folder)
    with pytest.raises(ArgumentError, match="give a prompt"):
        model.generate()
    assert model.generate("明").startswith("明")


def test_a_temperature_of_zero_is_greedy(poet: LanguageModel) -> None:
    greedy = poet.generate("明", temperature=0)
    assert [poet.generate("明", temperature=0.0, seed=seed) for seed in range(3)] == [greedy] * 3
    assert poet.generate("明", temperature=1e-6, seed=5, top_k=None) == greedy  # the limit
    assert poet.generate("明", top_k=1) == greedy
    with pytest.raises(ArgumentError):
        poet.generate("明", temperature=0, top_p=2.0)
