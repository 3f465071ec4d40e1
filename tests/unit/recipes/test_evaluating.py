"""Evaluation of a run by its recipe: translators by split or file, language models by held-out text, puzzles."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import of_type

from regard.config import TransformerConfig
from regard.errors import ArgumentError, FileError
from regard.evaluation import chrf, paper_bleu, sacre_bleu, text_loss
from regard.models import Transformer
from regard.recipes import config_of, read_recipe, to_toml
from regard.recipes.data import split_end
from regard.recipes.evaluating import EvaluationOptions, evaluate
from regard.recipes.puzzles import puzzle_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_training import learn_tokenizer
from regard.training.batches import BlockBatches

SMALL = {"model.n_layers": "1", "model.d_model": "16", "model.n_heads": "2", "model.d_ff": "16", "data.max_len": "24"}
ENGLISH = ["A man's dog runs.", "Two red hats.", "A dog."]
GERMAN = ["Der Hund eines Mannes rennt.", "Zwei rote Hüte.", "Ein Hund."]


def a_run(folder: Path, name: str, tokenizer: Tokenizer, changes: Mapping[str, str] = SMALL) -> Path:
    """A run folder with an untrained model."""
    recipe = read_recipe(name, changes)
    torch.manual_seed(0)
    model = Transformer(of_type(TransformerConfig, config_of(recipe, tokenizer.vocab_size))).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)  # far from uniform
    folder.mkdir()
    model.save(folder / "model")
    tokenizer.save(folder / "model" / "tokenizer.json")
    (folder / "recipe.toml").write_text(to_toml(recipe), encoding="utf-8")
    return folder


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def german(tmp_path: Path) -> Path:
    words = learn_tokenizer(["a man 's dog runs . two red hats der hund eines rennt zwei hüte ein"], "words", 60)
    for split in ("test_2016_flickr", "test_2017_flickr", "own"):
        write(tmp_path / f"{split}.en", ENGLISH)
        write(tmp_path / f"{split}.de", GERMAN)
    return a_run(tmp_path / "run", "multi30k-en-de", words)


def test_test_sets_of_the_recipe_are_scored(german: Path) -> None:
    found = list(evaluate(german, EvaluationOptions(data=german.parent, beams=2, device="cpu")))
    assert [each.set for each in found] == ["test_2016_flickr", "test_2017_flickr"]
    assert [score.name for score in found[0].scores] == ["bleu", "sacrebleu", "chrf"]
    assert found[0].scores == found[1].scores  # both sets have the same sentences
    assert found[0].hypotheses is not None
    assert len(found[0].hypotheses) == 3
    assert found[0].notes == ()


def test_splits_and_beams_can_be_chosen(german: Path) -> None:
    (german.parent / "own.de").unlink()
    (german.parent / "tok").mkdir()
    write(german.parent / "tok" / "own.lc.norm.tok.de", ["x y z", "zwei", "."])
    one, two = (next(evaluate(german, EvaluationOptions(data=german.parent, splits=("own",), beams=n))) for n in (1, 4))
    assert one.hypotheses != two.hypotheses
    assert one.scores == (paper_bleu(one.hypotheses or [], ["x y z", "zwei", "."]),)
    assert [note for note in one.notes if "no sacreBLEU" in note and "own.de" in note] == list(one.notes) != []


def test_own_file(german: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    write(pairs, [f"{a}\t{b}" for a, b in zip(ENGLISH, GERMAN, strict=True)])
    [found] = evaluate(german, EvaluationOptions(data=pairs, beams=2))
    [split] = evaluate(german, EvaluationOptions(data=tmp_path, splits=("own",), beams=2))
    assert (found.set, found.scores, found.hypotheses) == ("pairs.tsv", split.scores, split.hypotheses)


def test_bad_lines_raise_or_are_counted(german: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    write(pairs, [f"{ENGLISH[0]}\t{GERMAN[0]}", "alone", f"{'a ' * 30}\t{GERMAN[1]}"])
    with pytest.raises(FileError, match="line 2"):
        evaluate(german, EvaluationOptions(data=pairs))
    [found] = evaluate(german, EvaluationOptions(data=pairs, skip_bad=True, beams=1))
    assert len(found.hypotheses or []) == 2
    assert "1 bad lines were skipped" in found.notes[0]
    assert "1 sentences were truncated to the model's maximum of 24 tokens" in found.notes[1]


def test_too_long_sentence_raises_with_its_line(german: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    write(pairs, [f"{ENGLISH[0]}\t{GERMAN[0]}", f"{ENGLISH[0]}\t{GERMAN[1]}", f"{'a ' * 30}\t{GERMAN[1]}"])
    with pytest.raises(FileError, match=r"pairs\.tsv: line 3 has 61 tokens .*the model reads at most 24"):
        evaluate(german, EvaluationOptions(data=pairs))


def test_chinese_is_scored_as_chinese(tmp_path: Path) -> None:
    pieces = learn_tokenizer(["Hi there. 你好。再见！"], "pieces", 60)
    run = a_run(tmp_path / "run", "en-zh", pieces)
    write(tmp_path / "dev.tsv", ["Hi.\t你好。", "Hi.\t嗨。", "there\t再见！"])
    [found] = evaluate(run, EvaluationOptions(data=tmp_path, beams=2))
    references = [["你好。", "嗨。"], ["再见！"]]
    hypotheses = found.hypotheses or []
    assert found.scores == (sacre_bleu(hypotheses, references, language="zh"), chrf(hypotheses, references))
    # A model without a run needs a file and a language.
    (run / "recipe.toml").unlink()
    [without_run] = evaluate(run / "model", EvaluationOptions(data=tmp_path / "dev.tsv", beams=2, language="zh"))
    assert without_run.scores == found.scores
    with pytest.raises(ArgumentError, match=r"is a folder, but the model has no recipe\.toml"):
        evaluate(run / "model", EvaluationOptions(data=tmp_path))
    # Without an option, the language comes from the model's settings or the references, with a note.
    [guessed] = evaluate(run / "model", EvaluationOptions(data=tmp_path / "dev.tsv", beams=2))
    assert (guessed.scores, len(guessed.notes)) == (found.scores, 1)
    assert guessed.notes[0].startswith("dev.tsv: scored as zh (sacreBLEU's tokenizer zh), detected from")
    (run / "model" / "generation_config.json").write_text('{"target_language": "de"}')
    [named] = evaluate(run / "model", EvaluationOptions(data=tmp_path / "dev.tsv", beams=2))
    assert "tok:13a" in (named.scores[0].signature or "")
    assert "scored as de (sacreBLEU's tokenizer 13a), the language in the model's" in named.notes[0]
    assert without_run.notes == found.notes == ()


def test_splits_of_a_single_file_raise(german: Path, tmp_path: Path) -> None:
    write(tmp_path / "pairs.tsv", [f"{ENGLISH[0]}\t{GERMAN[0]}"])
    with pytest.raises(
        ArgumentError, match=r"--split own, b chooses .* but .*pairs\.tsv is one set; leave --split out"
    ):
        evaluate(german, EvaluationOptions(data=tmp_path / "pairs.tsv", splits=("own", "b")))


# --- language models -------------------------------------------------------------------------------------

TEXT = "床前明月光，疑是地上霜。\nTo be, or not to be.\n" * 9


def test_two_plain_files_are_one_set_and_without_tests_the_held_out_end_is_scored(tmp_path: Path) -> None:
    english, chinese = ["one dog", "two dogs", "red hat", "a dog"], ["一只狗", "两只狗", "红帽子", "狗"]
    write(tmp_path / "a.en", english)
    write(tmp_path / "a.zh", chinese)
    tokenizer = learn_tokenizer([*english, *chinese], "pieces", 60)
    changes = {**SMALL, "data.train": '["a.en", "a.zh"]', "data.tests": "[]", "data.valid_share": "0.5"}
    run = a_run(tmp_path / "run", "en-zh", tokenizer, changes)
    [found] = evaluate(run, EvaluationOptions(data=tmp_path, beams=1))
    assert found.hypotheses is not None
    assert len(found.hypotheses) == 2
    [found] = evaluate(run, EvaluationOptions(data=tmp_path, beams=1, splits=("a.en", "a.zh")))
    assert found.hypotheses is not None
    assert len(found.hypotheses) == 4


def test_held_out_end_is_scored(tmp_path: Path) -> None:
    tokenizer = learn_tokenizer([TEXT], "characters", specials=())
    run = a_run(tmp_path / "run", "shakespeare-char", tokenizer)
    (tmp_path / "tinyshakespeare.txt").write_text(TEXT, encoding="utf-8")
    [found] = evaluate(run, EvaluationOptions(data=tmp_path))
    end = TEXT[int(len(TEXT) * 0.9) :]
    ids = np.array(tokenizer.encode(end))
    model = Transformer.read(run / "model")
    wanted = text_loss(model, BlockBatches(ids, block=24, batch_size=3, seed=0, shuffle=False))
    scores = {score.name: score.value for score in found.scores}
    assert scores["loss"] == pytest.approx(wanted.loss, rel=1e-5)
    assert scores["perplexity"] == pytest.approx(math.exp(wanted.loss), rel=1e-4)
    assert scores["bits-per-byte"] == pytest.approx(wanted.nats / math.log(2) / len(end.encode()), rel=1e-5)
    assert scores["bits-per-character"] == pytest.approx(wanted.nats / math.log(2) / len(end), rel=1e-5)
    assert found.hypotheses is None
    [own] = evaluate(run, EvaluationOptions(data=tmp_path / "tinyshakespeare.txt"))
    assert own.set == "tinyshakespeare.txt"
    assert own.scores != found.scores


def test_lines_are_separate_texts(tmp_path: Path) -> None:
    poems = ["床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"]
    tokenizer = learn_tokenizer(poems, "characters")
    run = a_run(tmp_path / "run", "tang-poet", tokenizer, {**SMALL, "data.valid_share": "0.5"})
    write(tmp_path / "tang_poems.tsv", [f"t\ta\t{poem}" for poem in poems])
    [found] = evaluate(run, EvaluationOptions(data=tmp_path))
    ids = tokenizer.pack(poems[2:], end=tokenizer.eos)
    wanted = text_loss(
        Transformer.read(run / "model"), BlockBatches(ids, block=24, batch_size=1, seed=0, shuffle=False)
    )
    scores = {score.name: score.value for score in found.scores}
    assert wanted.tokens == 11  # ten characters and two ends, without the first
    assert scores["loss"] == pytest.approx(wanted.loss, rel=1e-5)
    assert scores["bits-per-character"] == pytest.approx(wanted.nats / math.log(2) / 12, rel=1e-5)


@given(st.lists(st.text("ab\n", max_size=6), min_size=1, max_size=5), st.floats(0.01, 0.99))
def test_split_end_loses_nothing(texts: list[str], share: float) -> None:
    before, after = split_end(texts, share, "text")
    assert "".join(before) + "".join(after) == "".join(texts)
    assert sum(map(len, before)) == int(sum(map(len, texts)) * (1 - share))
    lines = split_end(texts, share, "lines")
    assert lines[0] + lines[1] == texts
    assert lines[1]


# --- puzzles and errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["copy", "induction"])
def test_puzzles_need_no_data(tmp_path: Path, kind: str) -> None:
    small = {"puzzle.valid_examples": "20", "model.n_layers": "2"}
    run = a_run(tmp_path / "run", kind, puzzle_tokenizer(kind), small)  # type: ignore[arg-type]
    [found] = evaluate(run, EvaluationOptions())
    scores = {score.name: score.value for score in found.scores}
    assert list(scores) == ["solved", "loss", "perplexity"]
    assert 0 <= scores["solved"] < 50
    assert found.notes == ()
    [same] = evaluate(run, EvaluationOptions(data=tmp_path))
    assert same.scores == found.scores
    assert "--data is not used" in same.notes[0]


def test_errors_come_before_the_evaluation(german: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="on which text"):
        evaluate(german, EvaluationOptions())
    with pytest.raises(FileError, match=r"there is no .*nowhere; check --data"):
        evaluate(german, EvaluationOptions(data=tmp_path / "nowhere"))
    with pytest.raises(ArgumentError, match="no device='abacus'; choose one of: cpu, cuda"):
        evaluate(german, EvaluationOptions(data=tmp_path, device="abacus"))
    with pytest.raises(FileError, match="no set 'test_1999'"):
        evaluate(german, EvaluationOptions(data=tmp_path, splits=("own", "test_1999")))
