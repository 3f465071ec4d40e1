"""Silencing a head and cutting an edge: the same numbers as `regard.effect`, and as running a LanguageModel again.

TraceSource: the numbers of the overview and of each head are those of the Trace, and of the other views.
"""

import json
import re
from pathlib import Path
from typing import Any

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
from regard.masks import Mask
from regard.messages import LANGUAGES, Language, say
from regard.models import Transformer
from regard.trace import Trace
from regard.trace.measures.per_head import mean_distance, mean_entropy
from regard.views.colours import Scale
from regard.views.explorer.answers import sentence
from regard.views.explorer.source import TraceSource, edit_of, effects_of
from regard.views.picture import picture
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
        before, after, row = translator.predictions_without(seen, name, 1, (query, 0))
        assert row == query
        assert np.abs(before - after).max() > 0
        np.testing.assert_allclose(np.exp(before).sum(), 1)
    # Cutting every key but one by hand: only the cut query's output of this layer changes.
    record = seen.trace[name]
    first, _, _ = translator.predictions_without(seen, name, 1, (1, 0))
    second, _, _ = translator.predictions_without(seen, name, 1, (1, record.shape[3] - 1))
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


def causal(heads: int, T: int, seed: int = 0) -> np.ndarray:
    weights = np.tril(np.random.default_rng(seed).random((heads, T, T)) + 1e-3)
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def overview(trace: Trace, **options: Any) -> dict[str, Any]:
    about = TraceSource(trace, **options).overview().about
    return json.loads(json.dumps(about, allow_nan=False))  # what the front end reads


def test_a_head_has_the_cells_of_the_picture() -> None:
    trace = Trace.from_weights(causal(3, 300), map=100)
    answer = TraceSource(trace).head(0, 2)
    drawn = picture(trace[0], 2, 0)
    assert answer.about == {"R": 100, "C": 100, "high": 3, "wide": 3}
    np.testing.assert_allclose(answer.arrays["cells"].astype(float), drawn.cells, rtol=1e-3, atol=1e-7)
    assert answer.arrays["attending"].tolist() == drawn.attending.tolist()


def test_the_overview_describes_every_record() -> None:
    trace = Trace.from_weights([causal(2, 5)[None]] * 3, queries=list("abcde"), name="h", kind="decoder")
    about = overview(trace, lang="zh", scale="log")
    assert (about["version"], about["lang"], about["scale"]) == (1, "zh", "log")
    first = about["records"][0]
    assert [entry["name"] for entry in about["records"]] == ["h.0", "h.1", "h.2"]
    assert {name: first[name] for name in ("heads", "T", "S", "R", "C", "high", "wide")} == {
        "heads": 2, "T": 5, "S": 5, "R": 5, "C": 5, "high": 1, "wide": 1,
    }  # fmt: skip
    assert about["labels"][first["labels"]["tokens"]["queries"]] == list("abcde")
    assert first["titles"]["zh"] == "第 0 层 · 解码器自注意力"
    assert first["measures"]["entropy"] == pytest.approx(mean_entropy(trace[0])[0], rel=1e-3)
    assert first["measures"]["distance"] == pytest.approx(mean_distance(trace[0])[0], rel=1e-3)


def test_colours_are_viridis_and_a_diverging_map_with_a_middle() -> None:
    colours = overview(Trace.from_weights(np.eye(2)))["colours"]
    assert len(colours["sequential"]) == 256
    assert colours["sequential"][0] == [68, 1, 84]
    assert colours["sequential"][-1] == [253, 231, 37]
    assert len(colours["diverging"]) == 255
    assert colours["diverging"][127] == [245, 245, 245]


def test_thumbnails_follow_the_scale_of_the_head() -> None:
    weights = np.array([[1.0, 0.0], [0.25, 0.75]])
    trace = Trace.from_weights(weights)
    small = TraceSource(trace).overview().arrays["thumbnails"][0]
    assert small.shape == (48, 48)
    level = Scale.of([picture(trace[0], 0, 0)]).level(0.25)
    assert small[0, 0] == 254
    assert small[0, 47] == 0  # masked
    assert small[47, 0] == 1 + round(level * 253)


def test_nan_is_marked_in_thumbnails() -> None:
    weights = np.array([[1.0, 0.0], [np.nan, np.nan]])
    small = TraceSource(Trace.from_weights(weights)).overview().arrays["thumbnails"][0]
    assert small[47, 0] == 255


def test_words_are_groups_that_the_front_end_merges() -> None:
    trace = Trace.from_weights(np.eye(3), ["un", "likely", " yes"])
    labels = overview(trace)["records"][0]["labels"]
    assert labels["characters"] is None
    assert labels["words"]["queryGroups"] == labels["words"]["keyGroups"] == [0, 2]
    assert overview(trace)["labels"][labels["words"]["keys"]] == ["unlikely", "yes"]
    assert overview(trace)["merge"] == "tokens"
    assert overview(trace, merge="words")["merge"] == "words"


def test_parts_of_characters_are_merged_at_the_start() -> None:
    about = overview(Trace.from_weights(np.eye(3), ["<0xE6>", "<0xB3>", "<0xA8>"]))
    assert about["merge"] == "characters"
    assert about["records"][0]["labels"]["characters"]["keyGroups"] == [0]
    assert about["labels"][about["records"][0]["labels"]["characters"]["keys"]] == ["注"]


def test_hostile_tokens_are_bounded_and_show_control_characters() -> None:
    tokens = ["<img src=x onerror=alert(1)>", "</script>", "\u202eevil\u202c", "x" * 10**6]
    about = overview(Trace.from_weights(np.eye(4), tokens))
    labels = about["labels"][0]
    assert labels[:3] == ["<img src=x onerror=alert(1)>", "</script>", "⟨202E⟩evil⟨202C⟩"]
    assert len(labels[3]) == 120


def test_measures_that_need_weights_are_none_for_a_map_alone() -> None:
    record = Trace.from_weights(causal(2, 600))[0].changed(exact=None, sink=None)
    entry = overview(Trace(record))["records"][0]
    assert entry["measures"]["entropy"] == [None, None]
    assert entry["measures"]["distance"] == [None, None]
    assert entry["labels"]["tokens"] == {"queries": None, "keys": None, "written": None}


def test_an_empty_trace_is_one_sentence_in_both_languages() -> None:
    with pytest.raises(ArgumentError) as caught:
        TraceSource(Trace())
    found = sentence(caught.value)
    assert found["key"] == "trace-empty"
    assert set(found["text"]) == {"en", "zh"}


@pytest.mark.parametrize(("layer", "head"), [(1, 0), (0, 2), (0, -3)])
def test_an_index_out_of_range_is_refused(layer: int, head: int) -> None:
    with pytest.raises(ArgumentError, match=str(layer if layer else head)):
        TraceSource(Trace.from_weights(causal(2, 3))).head(layer, head)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_both_languages_have_titles(lang: Language) -> None:
    about = overview(Trace.from_weights(np.eye(2)), lang=lang)
    assert about["records"][0]["titles"] == {"en": "attention", "zh": "attention"}


def test_where_maps_are_pooled_the_clearest_of_the_exact_patterns_opens() -> None:
    rng = np.random.default_rng(0)
    T, E = 24, 32
    at = np.linalg.qr(rng.standard_normal((E, E)))[0][:T]  # one direction for each position
    previous = np.roll(at, 1, 0)
    q = np.stack([rng.standard_normal((T, E)), 40 * previous])[None]
    k = np.stack([rng.standard_normal((T, E)), at])[None]
    _, record = regard.attend(q, k, k, mask=Mask.causal(), see=See(qk=True, map=4), kind="decoder")
    trace = Trace(record.named("h.0.attn", "decoder"))
    source = TraceSource(trace)
    assert source.picture(0, 1).high > 1
    assert source.patterns[0].pattern[1] == "previous"
    assert source.opening == (0, 1)
    trace.opening = ("h.0.attn", 0)
    assert TraceSource(trace).opening == (0, 0)


def test_a_trace_without_texts_shows_its_tokens_above_the_view() -> None:
    tokens = ["Once", " upon", "\u202e a", " time"]
    assert overview(Trace.from_weights(causal(1, 4), tokens))["texts"] == ["Once upon⟨202E⟩ a time", ""]
    assert overview(Trace.from_weights(causal(1, 4)))["texts"] is None
