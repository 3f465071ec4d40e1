"""The generated text in the overview, its likeliest tokens, and the norms of values beside a head."""

from pathlib import Path

import numpy as np
import pytest
from tiny_language import poet_folder, translator_folder

import regard
from regard import See
from regard.arrays import to_numpy
from regard.dispatch import attend_in_model
from regard.language import LanguageModel
from regard.language.seeing import run_model
from regard.reference import softmax
from regard.trace import Trace
from regard.views.explorer.source import TraceSource


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return regard.load(translator_folder(tmp_path_factory.mktemp("models") / "translator"))


def test_a_translation_begins_after_its_first_token(translator: LanguageModel) -> None:
    seen = translator.see("I love you", output="我爱你。")
    about = TraceSource(seen.trace).overview().about["generation"]
    assert about["prompt"] == 1
    assert "".join(about["tokens"]) == "<bos>我爱你。<eos>"
    assert len(about["candidates"]) == len(about["tokens"]) - 1
    silenced = translator.silence(seen, "decoder.layers.0.self_attention", 0)
    for row, (one, candidates) in enumerate(zip(silenced, about["candidates"], strict=True)):
        assert len(candidates) == 5
        assert [p for _, p in candidates] == sorted((p for _, p in candidates), reverse=True)
        known = dict(map(tuple, candidates))
        assert known.get(about["tokens"][row + 1], one.before) == pytest.approx(one.before)


def test_beams_come_with_the_trace_that_a_file_keeps(translator: LanguageModel, tmp_path: Path) -> None:
    seen = translator.see("I love you")
    seen.trace.save(tmp_path / "t.safetensors")
    about, read = (
        TraceSource(trace).overview().about["generation"]
        for trace in (seen.trace, regard.read_trace(tmp_path / "t.safetensors"))
    )
    assert read["beams"] == about["beams"]
    assert [[token for token, _ in one] for one in read["candidates"]] == [
        [token for token, _ in one] for one in about["candidates"]
    ]
    assert about["tokens"][1:] == about["beams"][0]["tokens"]
    scores = [beam["score"] for beam in about["beams"]]
    assert 1 < len(scores) <= translator.settings.beams
    assert scores == sorted(scores, reverse=True)


def test_temperatures_make_the_candidates_exact(translator: LanguageModel, tmp_path: Path) -> None:
    seen = translator.see("I love you", output="我爱你。")
    seen.trace.save(tmp_path / "t.safetensors")
    assert seen.ids is not None
    logits = np.asarray(to_numpy(run_model(translator, attend_in_model, *seen.ids)), np.float64)[0]
    about = TraceSource(regard.read_trace(tmp_path / "t.safetensors")).overview().about["generation"]
    stops, log_sums = about["temperatures"]["stops"], about["temperatures"]["logSums"]
    assert len(log_sums) == len(about["candidates"]) == len(logits)
    for T, at in ((stop, number) for number, stop in enumerate(stops)):
        expected = softmax(logits / T)
        for row, listed in enumerate(about["candidates"]):
            found = [np.exp(np.log(p) / T - log_sums[row][at]) for _, p in listed]
            np.testing.assert_allclose(found, np.sort(expected[row])[::-1][: len(found)], rtol=1e-4)


def test_a_poem_continues_its_prompt(tmp_path_factory: pytest.TempPathFactory) -> None:
    poet = regard.load(poet_folder(tmp_path_factory.mktemp("models") / "poet"))
    seen = poet.see("床前明月", output="光，")
    about = TraceSource(seen.trace).overview().about["generation"]
    assert about["tokens"][about["prompt"] :][:2] == ["光", "，"]
    assert len(about["temperatures"]["logSums"]) == len(about["tokens"]) - about["prompt"]
    assert TraceSource(seen.trace).overview().about["texts"] == ["五绝｜床前明月", "光，"]


def test_a_text_without_written_tokens_is_no_generation() -> None:
    assert TraceSource(Trace.from_weights(np.eye(2), ["a", "b"])).overview().about["generation"] is None


@pytest.mark.parametrize("bins", [3, 8])
def test_norms_of_values_are_averaged_over_columns(bins: int) -> None:
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, 8, 4))
    record = regard.attend(q, k, v, see=See(map=bins, qk=True, v=True))[1]
    answer = TraceSource(Trace(record)).head(0, 1)
    wide = answer.about["wide"]
    norms = np.linalg.norm(v[0, 1], axis=-1)
    expected = [norms[at : at + wide].mean() for at in range(0, 8, wide)]
    np.testing.assert_allclose(answer.arrays["norms"], expected, rtol=1e-5)
    assert answer.about["norms"] == "value"
    projected = TraceSource(Trace(record.changed(value_norms=2 * norms[None, None].repeat(2, 1)))).head(0, 1)
    assert projected.about["norms"] == "output"
    np.testing.assert_allclose(projected.arrays["norms"], 2 * np.array(expected), rtol=1e-5)


def test_without_values_there_are_no_norms() -> None:
    assert "norms" not in TraceSource(Trace.from_weights(np.eye(2))).head(0, 0).arrays
