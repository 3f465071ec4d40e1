"""The bundled models: the content of their folders, their model cards, and their abilities.

Exact outputs are not tested, so that a better model can replace one; formats, sizes and claims are.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from narrowing import present

import regard
from benchmarks.translator import HUNDRED, JUDGED, read_judged, read_sentences
from regard.checkpoints.tensor_file import LARGE, SCALE, TensorFile
from regard.errors import FileError
from regard.evaluation.scores import FORMS, right_lines
from regard.language import BUNDLED, LanguageModel
from regard.language.input_text import WORDS_FILE
from regard.language.loading import bundled

FILES = {"config.json", "model.safetensors", "tokenizer.json", "generation_config.json", "README.md", "LICENSE"}
LARGEST = 12_000_000

each_model = pytest.mark.parametrize("name", BUNDLED)


@pytest.fixture(scope="module")
def translator() -> LanguageModel:
    return regard.load("translator")


@pytest.fixture(scope="module")
def poet() -> LanguageModel:
    return regard.load("poet")


# --- folders ----------------------------------------------------------------------------------------------


@each_model
def test_a_folder_is_complete_and_small(name: str) -> None:
    found = list(bundled(name).iterdir())
    assert {path.name for path in found} == FILES | ({WORDS_FILE} if name == "translator" else set())
    assert sum(path.stat().st_size for path in found) <= LARGEST


@each_model
def test_every_large_matrix_is_int8(name: str) -> None:
    file = TensorFile(bundled(name) / "model.safetensors")
    large = [key for key, shape in file.shapes.items() if len(shape) == 2 and shape[0] * shape[1] >= LARGE]
    assert len(large) > 20
    assert {file.dtypes[key] for key in large} == {"int8"}
    assert {file.dtypes[key + SCALE] for key in large} == {"float32"}
    # The tensors that are not int8 are small.
    others = sum(file[key].nbytes for key in file if key not in large)
    assert others < 0.05 * sum(file[key].nbytes for key in large)


@each_model
def test_settings_match_the_task(name: str) -> None:
    model = regard.load(name)
    settings = model.settings
    if name == "translator":
        assert (settings.task, settings.source_language, settings.target_language) == ("translation", "en", "zh")
        assert settings.alignment_heads
    else:
        assert (settings.task, settings.target_language) == ("text", "zh")
        assert {header.rstrip("｜") for header in settings.forms.values()} == FORMS.keys()
    assert model.name == name


def test_a_missing_bundled_model_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.language.loading.ASSETS", tmp_path)
    with pytest.raises(FileError, match="translator"):
        regard.load("translator")


# --- model cards ------------------------------------------------------------------------------------------

CARD = {
    "translator": [
        r"tatoeba\.org",
        r"CC[- ]BY 2\.0 FR",
        "CC-CEDICT",
        r"CC[- ]BY-SA",
        "TinyStories",
        "CDLA-Sharing",
        r"making/translator/teacher\.toml",
        r"making/translator/student\.toml",
        "chrF",
        r"tok:zh",  # sacreBLEU's signature
        "alignment error rate",
    ],
    "poet": [r"public domain", r"making/poet/recipe\.toml", r"5-gram", r"bits per character", "rhyme"],
}


@each_model
def test_a_card_covers_the_required_topics(name: str) -> None:
    card = (bundled(name) / "README.md").read_text(encoding="utf-8")
    topics = [*CARD[name], "data", "licen[cs]e", "recipe", r"seeds?\b", "scores?", "limits?"]
    assert [topic for topic in topics if not re.search(topic, card, re.IGNORECASE)] == []


def test_the_card_shows_the_current_translations_of_the_hundred_sentences(translator: LanguageModel) -> None:
    card = (bundled("translator") / "README.md").read_text(encoding="utf-8")
    sentences, judged = read_sentences(HUNDRED), read_judged(JUDGED)
    assert len(sentences) == 100
    pairs = list(zip(sentences, translator.translate(sentences), strict=True))
    assert [pair for pair in pairs if pair not in judged] == [], "these are not judged yet"
    for sentence, output in pairs:
        assert any(sentence in line and output in line for line in card.splitlines()), f"{sentence} {output}"
    assert f"{sum(judged[pair].acceptable for pair in pairs)} of 100 are acceptable" in card


# --- abilities --------------------------------------------------------------------------------------------


def test_torch_is_not_needed() -> None:
    code = (
        "import regard, sys\n"
        "print(regard.load('translator').translate('I love you'), regard.load('poet').generate(max_new_tokens=5))\n"
        "print(*{'torch', 'transformers', 'matplotlib', 'sacrebleu', 'opencc', 'pypinyin'} & sys.modules.keys())\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 2
    assert done.stdout.endswith("\n\n")


@pytest.mark.parametrize("text", ["I love you", "I love you."])
def test_the_alignment_head_aligns_i_love_you(translator: LanguageModel, text: str) -> None:
    result = translator.see(text)
    assert re.findall("[我爱你]", result.output) == ["我", "爱", "你"]
    layer, head = translator.settings.alignment_heads[0]
    record = result.trace.select("cross")[layer]
    weights, written, keys = record.weights()[0, head], present(record.written)[0], present(record.key_tokens)[0]
    for word, character in (("I", "我"), ("love", "爱"), ("you", "你")):
        assert keys[int(weights[written.index(character)].argmax())] == word


def test_a_translation_does_not_depend_on_the_batch(translator: LanguageModel) -> None:
    texts = [
        "I love you.",
        "The cat sat on the mat.",
        "",
        "If it rains tomorrow, I will stay at home. What time is it?",
    ]
    together = translator.translate(texts)
    assert together == ["" if not text else translator.translate(text) for text in texts]
    assert together[3] == "".join(translator.translate(text) for text in re.split(r"(?<=\.) ", texts[3]))


@pytest.mark.parametrize("form", FORMS)
def test_poems_keep_their_form(poet: LanguageModel, form: str) -> None:
    poems = [poet.generate(form=form, seed=seed) for seed in range(3)]
    assert len(set(poems)) == 3
    right = [right_lines(poem, FORMS[form]) for poem in poems]
    assert sum(right) / 3 > 0.9, poems  # one line may be wrong: every character is sampled


def test_a_poem_begins_with_the_prompt_and_takes_its_form(poet: LanguageModel) -> None:
    five, seven = poet.generate("床前明月光", seed=1), poet.generate("朝辞白帝彩云间，", seed=1)
    assert five.startswith("床前明月光，")
    assert seven.startswith("朝辞白帝彩云间，")
    assert right_lines(five, FORMS["五绝"]) >= 0.75
    assert right_lines(seven, FORMS["七绝"]) >= 0.75
