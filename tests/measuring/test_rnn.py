"""RNN against Transformer: equal sizes, gradients and counts that are right, and the lesson shows the report."""

import json
from pathlib import Path

import pytest
import torch

from benchmarks.rnn import costs, recall, translation
from benchmarks.rnn.contenders import CLOSE, language_models, model_table, n_parameters, recurrent_like
from benchmarks.rnn.report import markdown
from regard.config import RecurrentConfig, TransformerConfig
from regard.course.drawings.measured import measured
from regard.models import build_model
from regard.recipes.puzzles import puzzle_tokenizer
from regard.recipes.recipe import config_of

RESULTS = Path(__file__).parents[2] / "benchmarks/results"


@pytest.mark.parametrize("name", ["multi30k-en-de", "en-zh"])
def test_translators_have_equal_parameters(name: str) -> None:
    found = translation.parameters(name)
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


def test_the_lesson_shows_the_newest_report() -> None:
    newest = sorted(RESULTS.glob("rnn_*.json"))[-1]
    results = json.loads(newest.read_text(encoding="utf-8"))
    assert measured("rnn") == results
    report = newest.with_suffix(".md").read_text(encoding="utf-8")
    assert markdown(results).partition("## Parameters")[2] == report.partition("## Parameters")[2]
