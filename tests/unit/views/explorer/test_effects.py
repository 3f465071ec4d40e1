"""Silencing a head and cutting an edge: the same numbers as `regard.effect`, and as running a LanguageModel again."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_language import translator_folder

import regard
from regard import See
from regard.capture import effect, watch
from regard.config import TransformerConfig
from regard.errors import ArgumentError
from regard.language import LanguageModel
from regard.messages import LANGUAGES, Language, say
from regard.models import Transformer
from regard.views.explorer.effects import edit_of, effects_of
from regard.views.explorer.source import TraceSource
from stored_pages import overview_in


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return regard.load(translator_folder(tmp_path_factory.mktemp("models") / "translator"))


def test_a_torch_model_gives_the_numbers_of_effect() -> None:
    torch.manual_seed(0)
    model = Transformer(TransformerConfig.gpt2(vocab_size=9, d_model=8, n_heads=2, d_ff=16, n_layers=2)).eval()
    ids = torch.tensor([[1, 2, 3, 4]])
    with watch(model, see=See(qk=True)) as trace:
        model(ids)
    source = TraceSource(trace, effects=effects_of(model, ids))
    name = trace[1].name
    assert source.overview().about["records"][1]["can"]["effect"] is True
    for request, expected in (
        ({"silence": {"layer": 1, "head": 0}}, effect(model, ids, silence={name: [0]})),
        ({"cut": {"layer": 1, "head": 1, "query": 3, "key": 0}}, effect(model, ids, cut={name: [(1, 3, 0)]})),
    ):
        about = source.effect(**request).about
        assert about["kl"] == pytest.approx(float(expected.kl[0]), abs=1e-12)
        assert about["position"] == 3
        tokens = dict(about["after"])
        assert tokens[about["before"][0][0]] == pytest.approx(float(expected.probability.after[0]))
        assert [p for _, p in about["before"]] == sorted((p for _, p in about["before"]), reverse=True)


def test_a_language_model_needs_no_torch_model(translator: LanguageModel) -> None:
    seen = translator.see("I love you")
    source = TraceSource(seen.trace, effects=effects_of(translator, seen))
    layer = seen.trace.names.index("decoder.layers.1.cross_attention")
    about = source.effect(silence={"layer": layer, "head": 2}).about
    row = about["position"]
    token = translator.silence(seen, "decoder.layers.1.cross_attention", 2)[row]
    ids = [*seen.ids[0], translator.tokenizer.special("eos")]
    written = translator.tokenizer.pieces([ids[row + 1]])[0]
    assert dict(map(tuple, about["before"])).get(written, token.before) == pytest.approx(token.before)
    assert about["kl"] > 0


def test_a_cut_edge_leaves_other_queries_alone(translator: LanguageModel) -> None:
    seen = translator.see("I love you", output="我爱你。")
    name = "decoder.layers.1.cross_attention"
    for query in (0, 2):
        before, after, row = translator.moved(seen, name, 1, (query, 0))
        assert row == query
        assert np.abs(before - after).max() > 0
        np.testing.assert_allclose(np.exp(before).sum(), 1)
    # Cutting every key but one by hand: only the cut query's output of this layer changes.
    record = seen.trace[name]
    first, _, _ = translator.moved(seen, name, 1, (1, 0))
    second, _, _ = translator.moved(seen, name, 1, (1, record.shape[3] - 1))
    np.testing.assert_allclose(first, second)  # the same run before the edit


def test_a_text_is_read_again(translator: LanguageModel) -> None:
    found = effects_of(translator, "I love you")
    assert found is not None
    assert found.of(translator.see("I love you").trace[0], 0, None).position is not None


@pytest.mark.parametrize(("model", "inputs", "key"), [(None, [1], "widget-model"), (object(), None, "widget-inputs")])
def test_a_model_without_inputs_is_one_sentence(model: object, inputs: object, key: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        effects_of(model, inputs)
    assert caught.value.key == key


def test_a_language_model_needs_what_it_saw(translator: LanguageModel) -> None:
    with pytest.raises(ArgumentError, match=r"seen.trace.widget\(lm, seen\)"):
        effects_of(translator, torch.tensor([[1]]))


@pytest.mark.parametrize("both", [True, False])
def test_a_request_names_one_edit(both: bool) -> None:
    head = {"layer": 0, "head": 0}
    with pytest.raises(ArgumentError, match="one of them"):
        edit_of(head if both else None, head if both else None)
    with pytest.raises(ArgumentError, match="one of them"):
        edit_of(None, head)


def test_without_a_model_there_is_no_effect(tmp_path: Path, translator: LanguageModel) -> None:
    seen = translator.see("I love you")
    assert TraceSource(seen.trace).overview().about["records"][0]["can"]["effect"] is False


def test_a_file_with_the_model_shows_the_effect_of_every_head(translator: LanguageModel, tmp_path: Path) -> None:
    seen = translator.see("I love you")
    seen.trace.html(tmp_path / "t.html", model=translator, inputs=seen)
    records = overview_in(tmp_path / "t.html")["records"]
    source = TraceSource(seen.trace, effects=effects_of(translator, seen))
    for layer, record in enumerate(records):
        assert record["can"]["effect"] is False
        for head, kl in enumerate(record["measures"]["effect"]):
            assert kl == pytest.approx(source.effect(silence={"layer": layer, "head": head}).about["kl"], rel=1e-3)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("by", ["torch", "numpy"])
def test_the_advice_on_screen_works(by: str, lang: Language, translator: LanguageModel) -> None:
    found = re.search(r"trace\.widget\([^)]*\)", say("explorer-effect-how", lang))
    assert found is not None
    if by == "numpy":
        seen = translator.see("I love you")
        names = {"trace": seen.trace, "model": translator, "inputs": seen}
    else:
        model = Transformer(TransformerConfig.gpt2(vocab_size=9, d_model=8, n_heads=2, d_ff=16, n_layers=2)).eval()
        inputs = torch.tensor([[1, 2, 3, 4]])
        with watch(model) as trace:
            model(inputs)
        names = {"trace": trace, "model": model, "inputs": inputs}
    widget = eval(found[0], names)
    assert widget.source.effect(silence={"layer": 1, "head": 0}).about["kl"] > 0
