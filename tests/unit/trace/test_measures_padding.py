"""A padded text has the same measures as the text alone: padding left or right, in a batch, from any source."""

from io import StringIO
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import three
from tolerances import assert_close
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

import regard
from regard import Mask, See
from regard.errors import NotKeptError
from regard.records import Record
from regard.trace import Trace
from regard.trace.measures import distance_profile, mean_distance, mean_entropy, sink_share
from regard.trace.measures.heads import Heads
from regard.trace.measures.visibility import Visibility

TEXTS = [[5, 6, 7, 8, 9, 5, 6, 7, 8, 9], [11, 12, 11, 13], [7, 8, 9, 10, 7, 8, 9]]
PADS = 6
"""Padding of the longest text, too."""
MEASURES = ("entropy", "sink", "distance")


def padded(texts: list[list[int]], side: str) -> torch.Tensor:
    length = max(map(len, texts)) + PADS
    pads = [[0] * (length - len(text)) for text in texts]
    return torch.tensor([p + t if side == "left" else t + p for p, t in zip(pads, texts, strict=True)])


def as_tokens(ids: Any) -> list[str]:
    return ["<pad>" if i == 0 else str(int(i)) for i in ids]


def model(family: str, implementation: str) -> torch.nn.Module:
    torch.manual_seed(0)
    common: dict[str, Any] = {"vocab_size": 50, "attn_implementation": implementation}
    wide: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    made: torch.nn.Module
    if family == "gpt2":
        made = GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=1, **common))
    elif family == "llama":
        made = LlamaForCausalLM(LlamaConfig(num_key_value_heads=2, **wide, **common))
    else:
        made = BertModel(BertConfig(**wide, **common))
    for weights in made.parameters():
        weights.data *= 2  # makes attention less even
    return made.eval()


def watched_run(made: torch.nn.Module, ids: torch.Tensor, see: See | None = None) -> Trace:
    keep = (ids != 0).long()
    with torch.no_grad(), regard.watch(made, tokenizer=as_tokens, see=see or See()) as trace:
        made(ids, attention_mask=keep, position_ids=(keep.cumsum(1) - 1).clamp_min(0))
    return trace


def scores_of(heads: Heads) -> dict[tuple[str, int, str], tuple[float, ...]]:
    return {
        (head.name, head.head, name): (round(score.value, 5), score.queries, round(score.even, 5))
        for head in heads
        for name, score in head.scores.items()
    }


# --- Hugging Face -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "see", [See(), See(qk=True), See(entropy=True, distance=True, received=True)], ids=["map", "qk", "statistics"]
)
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_watched_texts_in_a_batch_and_alone(family: str, implementation: str, see: See) -> None:
    made = model(family, implementation)
    alone = [watched_run(made, torch.tensor([text]), see) for text in TEXTS]
    for side in ("left", "right"):
        together = watched_run(made, padded(TEXTS, side), see)
        for name in MEASURES:
            expected = np.mean([trace.measure(name) for trace in alone], axis=0)
            assert_close(together.measure(name), expected, "statistic", "float32")
        profile = distance_profile(together[0])
        for sample, trace in enumerate(alone):
            short = distance_profile(trace[0])[0]
            assert_close(profile[sample, :, : short.shape[-1]], short, "statistic", "float32")
        one = watched_run(made, padded(TEXTS[:1], side), see).heads()
        assert scores_of(one) == scores_of(alone[0].heads())
        assert (one.queries, one.of) == (10, 10)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_given_weights(family: str, side: str) -> None:
    """`eager` gives equal weights to all keys, padding included, where a query is fully masked."""
    made = model(family, "eager")
    ids = padded(TEXTS, side)
    keep = (ids != 0).long()
    with torch.no_grad():
        out = made(
            ids, attention_mask=keep, position_ids=(keep.cumsum(1) - 1).clamp_min(0), output_attentions=True
        ).attentions
    alone = [watched_run(made, torch.tensor([text])) for text in TEXTS]
    for name in MEASURES:
        expected = np.mean([trace.measure(name) for trace in alone], axis=0)
        assert_close(Trace.from_weights(out).measure(name), expected, "statistic", "float32")


def test_even_attention_is_no_pattern_in_a_left_padded_generation() -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    made = LlamaForCausalLM(LlamaConfig(vocab_size=50, num_key_value_heads=2, **sizes)).eval()
    ids = padded(TEXTS, "left")
    options: dict[str, Any] = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    with regard.watch(made, tokenizer=as_tokens) as trace:
        out = made.generate(ids, attention_mask=(ids != 0).long(), **options)
    whole = trace.stitched(out)
    assert all(head.best is None for head in whole.heads())
    assert all(Visibility(record).first.tolist() == [16 - len(text) for text in TEXTS] for record in whole)
    even = np.mean([even_sink(len(text) + 5) for text in TEXTS])
    assert whole.measure("sink") == pytest.approx(np.full((2, 4), even), abs=0.02)


def even_sink(length: int) -> float:
    return float(np.mean(1 / np.arange(1, length + 1)))


def test_padding_queries_of_cross_attention() -> None:
    torch.manual_seed(0)
    start: dict[str, Any] = {"decoder_start_token_id": 0}
    made = T5ForConditionalGeneration(
        T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, **start)
    ).eval()

    def watched(source: torch.Tensor, target: torch.Tensor) -> Trace:
        with torch.no_grad(), regard.watch(made, tokenizer=as_tokens) as trace:
            made(
                input_ids=source,
                attention_mask=(source != 0).long(),
                decoder_input_ids=target,
                decoder_attention_mask=(target != 0).long(),
            )
        return trace

    alone = [watched(torch.tensor([text]), torch.tensor([text[:4]])) for text in TEXTS]
    together = watched(padded(TEXTS, "right"), padded([text[:4] for text in TEXTS], "right"))
    for name in ("entropy", "sink"):
        assert_close(
            together.measure(name), np.mean([trace.measure(name) for trace in alone], axis=0), "statistic", "float32"
        )
    one = watched(padded(TEXTS[:1], "right"), padded([TEXTS[0][:4]], "right"))
    assert scores_of(one.heads()) == scores_of(alone[0].heads())


# --- attend -----------------------------------------------------------------------------------------------


def attended(keep: np.ndarray, mask: Mask | None, see: See, seed: int = 0, torch_too: bool = False) -> Record:
    B, T = keep.shape
    q, k = np.random.default_rng(seed).normal(size=(2, B, 2, T, 4))
    arrays = three(torch.tensor(x) if torch_too else x for x in (q, k, k))
    kept = Mask.from_keep(torch.tensor(keep) if torch_too else keep)
    record: Record = regard.attend(*arrays, mask=kept if mask is None else mask & kept, see=see)[1]
    return record.named("h.0", "self" if mask is None else "decoder")


MASKS = {"all": None, "causal": Mask.causal(), "window": Mask.window(2, 0), "both sides": Mask.window(2, 1)}
REQUESTS: dict[str, dict[str, Any]] = {
    "map": {},
    "qk": {"qk": True},
    "coarse": {"map": 4, "qk": True, "entropy": True},
    "bare": {"lse": False},
}


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize(
    ("requested", "mask_name"), [(a, f) for a in REQUESTS for f in MASKS if a != "bare" or f in ("all", "causal")]
)
def test_attended_texts_in_a_batch_and_alone(kind: str, mask_name: str, requested: str) -> None:
    """Weights without an LSE do not show windows: their zeros may have been set by hand."""
    lengths, T, mask = [9, 4, 7], 11, MASKS[mask_name]
    for left in (False, True):
        keep = np.stack([np.arange(T) < n for n in lengths])
        keep = keep[:, ::-1].copy() if left else keep
        record = attended(keep, mask, See(**REQUESTS[requested]), torch_too=kind == "torch")
        whole = softmaxed(keep, mask)
        for measure in (mean_entropy, sink_share, mean_distance):
            found = measure(record)
            for sample, n in enumerate(lengths):
                text = slice(T - n, T) if left else slice(n)
                alone = Trace.from_weights(whole[sample, :, text, text])[0]
                assert_close(found[sample], measure(alone, Visibility(alone, np.ones((1, n), bool)))[0], "statistic")


def softmaxed(keep: np.ndarray, mask: Mask | None) -> np.ndarray:
    """The weights of `attended`, by the definition."""
    B, T = keep.shape
    q, k = np.random.default_rng(0).normal(size=(2, B, 2, T, 4))
    seen = keep[:, None, None] & (np.ones((T, T), bool) if mask is None else mask.dense(T, T))
    powers = np.exp(q @ k.swapaxes(-1, -2) / 2) * seen
    found: np.ndarray = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)
    return found


@given(
    keep=st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=1, max_size=3),
    mask=st.sampled_from([None, Mask.causal(), Mask.window(2, 0), Mask.window(1, 1)]),
    seed=st.integers(0, 9),
)
def test_visibility_by_weights_equals_visibility_by_mask(keep: list[list[bool]], mask: Mask | None, seed: int) -> None:
    """For every text and any position of padding."""
    flags = np.array(keep)
    by_mask = Visibility(attended(flags, mask, See(qk=True), seed))
    by_weights = Visibility(attended(flags, mask, See(), seed))
    texts = flags.any(1)
    assert by_weights.first[texts].tolist() == by_mask.first[texts].tolist()
    assert by_weights.keys[texts].tolist() == flags[texts].tolist()
    rows = slice(0, 7)
    for found in (by_mask, by_weights):
        assert found.queries[texts].tolist() == flags[texts].tolist()
    both = [found.of(rows)[texts, 0][flags[texts]] for found in (by_mask, by_weights)]
    assert both[0].tolist() == both[1].tolist()


def test_window_is_inferred_from_softmax_weights() -> None:
    record = attended(np.ones((1, 30), bool), Mask.window(2, 0), See())
    (head, _) = Trace([record]).heads()
    assert "local" not in head.scores  # no other key is visible


# --- coarse maps ------------------------------------------------------------------------------------------


def coarse(left: bool, **requested: Any) -> Record:
    keep = np.arange(40)[None] < 30
    return attended(keep[:, ::-1].copy() if left else keep, Mask.causal(), See(map=8, **requested))


@pytest.mark.parametrize("left", [True, False])
def test_measures_that_need_weights_are_refused_for_a_coarse_map(left: bool) -> None:
    without_padding = coarse(left, distance=True).changed(padding=None)  # as in files of older versions
    for measure in (sink_share, mean_distance, distance_profile):
        with pytest.raises(NotKeptError, match=r"See\(qk=True\)"):
            measure(without_padding)
    with pytest.raises(NotKeptError, match=r"See\(entropy=True\), which is enough, or see=See\(qk=True\)"):
        mean_entropy(coarse(left))


@pytest.mark.parametrize("left", [True, False])
def test_record_with_known_padding_needs_no_weights(left: bool) -> None:
    with_padding = coarse(left, distance=True)
    without_padding = coarse(left, qk=True).changed(padding=None, sink=None)
    assert_close(sink_share(with_padding), sink_share(without_padding))
    assert_close(distance_profile(with_padding), distance_profile(without_padding))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("received", [True, False])
def test_mean_entropy_from_kept_entropies(left: bool, received: bool) -> None:
    """Ten padding positions fill two bins of five, so that the map shows them, too."""
    exact = mean_entropy(coarse(left, qk=True))
    assert_close(mean_entropy(coarse(left, entropy=True, received=received)), exact)


def test_inner_key_without_weight_is_not_padding() -> None:
    record = Record(shape=(1, 1, 4, 4), received=np.array([[[2.0, 1.0, 0.0, 1.0]]]), sink=np.array([[0.5]]))
    assert Visibility(record).keys.all()
    assert sink_share(record).tolist() == [[0.5]]


# --- weights set by hand ----------------------------------------------------------------------------------


def test_zeros_set_by_hand_are_not_padding() -> None:
    ends = np.zeros((4, 4))
    ends[:, [0, 3]] = 0.5
    one_each = [np.eye(4)[keys] for keys in ([0, 0, 0, 0], [0, 0, 1, 2], [0, 1, 2, 3], [2, 2, 2, 2])]
    for weights in (ends, *one_each):
        visibility = Visibility(Trace.from_weights(weights)[0])
        assert visibility.queries.all()
        assert visibility.keys.all()


# --- captions ---------------------------------------------------------------------------------------------


def caption_of(trace: Trace, lang: Any, **how: Any) -> str:
    file = StringIO()
    trace.show(0, head=0, file=file, width=100, lang=lang, **how)
    return file.getvalue()


@pytest.fixture(scope="module")
def sink_traces() -> dict[str, Trace]:
    """One head that attends mostly to the first token, without and with padding."""
    found = {}
    for side, (before, behind) in {"alone": (0, 0), "left": (4, 0), "right": (0, 4)}.items():
        T = before + 8 + behind
        q = np.zeros((1, 1, T, 2))
        k = q.copy()
        q[..., 0] = k[0, 0, before, 0] = 1.6
        keep = (np.arange(T) >= before) & (np.arange(T) < before + 8)
        _, record = regard.attend(q, k, k, mask=Mask.causal() & Mask.from_keep(keep[None]), see=See())
        found[side] = Trace([record.named("h.0", "decoder")])
    return found


def test_kept_sink_leaves_padding_out(sink_traces: dict[str, Trace]) -> None:
    share = sink_traces["alone"].measure("sink")
    for side in ("alone", "left", "right"):
        assert_close(sink_traces[side].measure("sink"), share, "statistic")
        assert_close(np.asarray(sink_traces[side][0].sink)[0, 0], share[0, 0], "statistic")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_caption_shows_the_share_of_the_first_token(sink_traces: dict[str, Trace], lang: str) -> None:
    share = f"{100 * sink_traces['alone'].measure('sink')[0, 0]:.0f}"
    sentence = f"first token receives {share} %" if lang == "en" else f"第一个词元得到 {share}% 的注意力"
    for trace in sink_traces.values():
        assert sentence in caption_of(trace, lang)


def test_picture_without_the_first_token_hides_the_first_of_the_text(sink_traces: dict[str, Trace]) -> None:
    from regard.views.picture import picture

    for trace, before in ((sink_traces["left"], 4), (sink_traces["alone"], 0)):
        one = picture(trace[0], 0, 0, "hidden")
        assert one.first_column == before
        assert not one.cells[:, before].any()
        assert one.cells[:, before + 1].any()


def test_padded_short_text_has_no_caption_about_the_first_token() -> None:
    """The first token of a short text always has a large share, so the caption does not mention it."""
    for T in (2, 9):
        record = attended((np.arange(T) >= T - 2)[None], Mask.causal(), See())
        assert Visibility(record).keys.sum() == 2
        assert "receives" not in caption_of(Trace([record]), "en")
