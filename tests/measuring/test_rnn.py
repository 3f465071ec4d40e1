"""RNN against Transformer: equal sizes, gradients and counts that are right, and the lesson shows the report."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.rnn import costs, recall, translation, tuning
from benchmarks.rnn.__main__ import merged
from benchmarks.rnn.contenders import CLOSE, language_models, model_table, n_parameters, recurrent_like
from benchmarks.rnn.report import markdown
from benchmarks.rnn.source_use import loss_with_wrong_source
from regard.config import RecurrentConfig, TransformerConfig
from regard.course.drawings import measured
from regard.models import build_model
from regard.recipes.puzzles import puzzle_tokenizer
from regard.recipes.recipe import config_of
from regard.training.batches import PairBatches

RESULTS = Path(__file__).parents[2] / "benchmarks/results"


@pytest.mark.parametrize("size", ["full", "small"])
@pytest.mark.parametrize("name", translation.SMALL)
def test_translators_have_equal_parameters(name: str, size: translation.Size) -> None:
    found = translation.parameters(name, size)
    for count in found.values():
        assert abs(count / found["Transformer"] - 1) < CLOSE


def test_models_of_recall_have_equal_parameters() -> None:
    vocab_size = puzzle_tokenizer("copy").vocab_size
    found = {name: n_parameters(config_of(recipe, vocab_size)) for name, recipe in recall.recipes(10).items()}
    assert len(found) == 5
    for count in found.values():
        assert abs(count / found["Transformer"] - 1) < CLOSE


def test_language_models_have_equal_parameters_as_counted_in_the_modules() -> None:
    configs = language_models()
    wanted = n_parameters(configs["Transformer"])
    for config in configs.values():
        counted = sum(weight.numel() for weight in build_model(config).parameters())
        assert counted == n_parameters(config)
        assert abs(counted / wanted - 1) < CLOSE


def test_a_recipe_table_gives_the_same_model() -> None:
    transformer = TransformerConfig.paper_2017(vocab_size=50, d_model=32, n_heads=2, d_ff=64, n_layers=1, max_len=9)
    config = recurrent_like(transformer, "lstm", "bahdanau")
    table = model_table(config)
    kind = table.pop("kind")
    assert RecurrentConfig(cell=kind, vocab_size=50, max_len=9, **table) == config


def test_an_open_forget_gate_carries_the_gradient() -> None:
    found = costs.gradients([4, 32], samples=2)
    assert found["LSTM, forget bias 5"]["32"] > 100 * found["LSTM"]["32"]
    assert found["Transformer"]["32"] > 100 * found["Elman"]["32"]


def test_counts_of_work() -> None:
    found = costs.work([32, 64])
    assert found["Transformer"]["steps"] == {"32": 13.0, "64": 13.0}
    assert found["LSTM"]["steps"] == {"32": 35.0, "64": 67.0}
    memory = costs.generation_memory([32, 64])
    assert memory["Transformer"]["64"] == 2 * memory["Transformer"]["32"]
    assert memory["LSTM"]["64"] == memory["LSTM"]["32"]


def test_memory_counts_each_tensor_once() -> None:
    torch.manual_seed(0)
    found = costs.training_memory([8, 16])
    for each in found.values():
        assert 1 < each["16"] / each["8"] < 3


def test_only_model_differs_between_contenders() -> None:
    made = translation.recipes("en-zh", "small")
    for recipe in made.values():
        assert replace(recipe, model=made["Transformer"].model) == made["Transformer"]
        assert recipe.model.get("forget_bias") == (1.0 if recipe.model.get("kind") == "lstm" else None)


def test_a_shorter_run_with_another_rate_keeps_its_schedule() -> None:
    plan = tuning.with_rate(tuning.shortened(recall.recipes(800)["LSTM"], 80), 0.03).training
    assert (plan.steps, plan.warmup, plan.lr) == (80, 5, 0.03)
    assert plan.lr_end == pytest.approx(0.0015)


@pytest.mark.parametrize(
    ("best", "tried"),
    [
        (0.001, ["0.0003", "0.001", "0.003", "0.01"]),
        (0.003, ["0.001", "0.003", "0.01"]),
        (0.01, ["0.001", "0.003", "0.01", "0.03"]),
        (0.03, ["0.001", "0.003", "0.01", "0.03", "0.1"]),
    ],
)
def test_rates_beyond_an_end_are_tried_if_the_best_is_there(best: float, tried: list[str]) -> None:
    found = tuning.losses_by_rate(lambda rate: abs(rate - best))
    assert list(found) == tried
    assert tuning.best_rate(found) == best


@pytest.mark.long
def test_recall_and_its_report(tmp_path: Path) -> None:
    place = tuning.Place(None, tmp_path, "cpu")
    found = recall.recall(4, 2, [1, 2], place)
    assert list(found["models"]) == ["Transformer", "LSTM + Bahdanau", "LSTM + Luong", "LSTM", "Elman"]
    for each in found["models"].values():
        first, second = (run["accuracy"]["2"] for run in each["runs"])
        assert each["accuracy"]["2"] == pytest.approx((first + second) / 2, abs=1e-4)
        assert each["lr"] == tuning.best_rate(each["trials"])
    assert recall.recall(4, 2, [1, 2], place) == found  # read from the folder
    assert "The mean of 2 seeds" in markdown({"recall": found})


@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.long)])
def test_translation_and_its_report(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the models, or all."""
    some = dict(list(translation.recipes("multi30k-en-de", "small", 2).items())[:count])
    monkeypatch.setattr(translation, "recipes", lambda *_: some)
    words = ["ein", "zwei", "drei", "vier", "fuenf", "sechs", "sieben", "acht"]
    (tmp_path / "data").mkdir()
    for split in ("train", "val", "test_2016_flickr"):
        for lang in ("en", "de"):
            lines = "".join(f"{a} {b} {lang} .\n" for a in words for b in words)
            (tmp_path / "data" / f"{split}.{lang}").write_text(lines, encoding="utf-8")
    place = tuning.Place(tmp_path / "data", tmp_path / "runs", "cpu")
    found = translation.translation("multi30k-en-de", "small", 2, 1, place)
    assert (found["steps"], found["trial_steps"], found["beams"]) == (2, 1, 1)
    assert len(found["models"]) == count
    for each in found["models"].values():
        assert list(each["losses"]) == ["2"]
        assert each["losses"]["2"] == each["loss"]
        assert set(each["scores"]["test_2016_flickr"]) == {"bleu", "sacrebleu", "chrf"}
        assert each["seconds_per_step"] > 0
        assert each["loss"] == min(run["loss"] for run in each["runs"].values())
        assert list(map(float, each["runs"])) == tuning.finalists(each["trials"])
    report = markdown({"translation": {"multi30k-en-de, small": found}})
    assert "the ranking after 2 steps, not the quality" in report
    assert "recipe multi30k-en-de at full size" in report.partition("## Not run")[2]


class Shifted(torch.nn.Module):
    """Predicts the source itself, or without `reads` always the same."""

    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.reads = reads

    def forward(self, ids: torch.Tensor, source: torch.Tensor, **_: object) -> torch.Tensor:
        return 5.0 * torch.nn.functional.one_hot(source if self.reads else torch.zeros_like(ids), 12).float()


@pytest.mark.parametrize("reads", [True, False])
def test_a_wrong_source_costs_only_a_model_that_reads_it(reads: bool) -> None:
    sentences = [[4, 5, 6], [7, 8, 9], [10, 11, 4]]
    data = PairBatches(sentences, sentences, tokens_per_batch=99, seed=0, pad=0, bos=1, eos=2, shuffle=False)
    batch, model = data.batch(0, 0), Shifted(reads)
    logits = model(batch.inputs["ids"], batch.inputs["source"]).flatten(0, 1)
    right = torch.nn.functional.cross_entropy(logits, batch.targets.flatten()).item()
    wrong = loss_with_wrong_source(model, data, "cpu")
    assert wrong > right + 3 if reads else wrong == pytest.approx(right)


def test_results_of_other_parts_and_recipes_are_kept() -> None:
    known = {"work": 1, "translation": {"a": 1, "b": 1}}
    assert merged(known, {"translation": {"b": 2}}) == {"work": 1, "translation": {"a": 1, "b": 2}}
    assert merged({"work": 1}, {"work": 2, "memory": 3}) == {"work": 2, "memory": 3}


def test_times_of_a_gpu_stand_beside_those_of_the_cpu() -> None:
    times = {"32": 1e-6}
    each = {"tokens": 32, "training": {"one text": {"LSTM": times}, "a batch": {"LSTM": times}}}
    each["generation"] = {"LSTM": times}
    on_gpu = {"device": "cuda", "versions": "Commit 0123abc, python 3.12.3, torch 2.11.0", **each}
    report = markdown({"time": {"device": "cpu", **each}, "time on a GPU": on_gpu})
    assert "## Time\n" in report
    assert "## Time on a GPU\n\nCommit 0123abc, python 3.12.3, torch 2.11.0; " in report
    assert "time on a GPU:" not in report


@pytest.mark.parametrize("name", ["training.md", "training.zh-CN.md"])
def test_the_guide_shows_the_scores_of_the_report(name: str) -> None:
    guide = (RESULTS.parents[1] / "docs" / name).read_text(encoding="utf-8")
    for found in measured("rnn")["translation"].values():
        for model, each in found["models"].items():
            scores = next(iter(each["scores"].values()))
            row = f"{model:16} {each['lr']:<6} {each['loss']:6.2f} {scores['sacrebleu']:6.1f} {scores['chrf']:6.1f}"
            assert f"{row}\n" in guide


def test_the_lesson_shows_the_newest_report() -> None:
    newest = sorted(RESULTS.glob("rnn_*.json"))[-1]
    results = json.loads(newest.read_text(encoding="utf-8"))
    assert measured("rnn") == results
    report = newest.with_suffix(".md").read_text(encoding="utf-8")
    assert markdown(results).partition("## Parameters")[2] == report.partition("## Parameters")[2]
