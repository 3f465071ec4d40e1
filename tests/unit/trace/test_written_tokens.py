"""The token that each query generates (`Record.written`): set by see, label, watch and stitched, and kept in copies."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from narrowing import present
from tiny_language import poet_folder, translator_folder

from regard import Record, See, Trace, load, read_trace, watch
from regard.errors import ArgumentError
from regard.trace import Recorder

READ, WRITTEN, KEYS = ["<bos>", "我", "爱", "你"], ["我", "爱", "你", "<eos>"], ["I", "love", "you", "<eos>"]


def cross(weights: Any = None, **about: Any) -> Record:
    """A record of one head of cross-attention with generated tokens."""
    record = Trace.from_weights(np.eye(4) if weights is None else weights, READ, KEYS, kind="cross", **about)[0]
    return record.with_tokens(written=WRITTEN)


def test_translation_has_the_token_of_each_row(tmp_path: Path) -> None:
    model = load(translator_folder(tmp_path))
    text, output, trace = model.see("I love you.", output="我爱你。")
    assert trace.texts == (text, output)
    for record in trace.select(kind="cross"):
        assert record.query_tokens == (("<bos>", "我", "爱", "你", "。"),)
        assert record.written == (("我", "爱", "你", "。", "<eos>"),)
    assert trace.select(kind="decoder")[0].written == trace.select(kind="cross")[0].written
    assert trace.select(kind="encoder")[0].written is None


def test_continued_text_has_generated_tokens_only(tmp_path: Path) -> None:
    model = load(poet_folder(tmp_path))
    seen = model.see("明月")
    record = seen.trace[0]
    read, written = present(record.query_tokens)[0], present(record.written)[0]
    before = len(read) - len(model.tokenizer.encode(seen.output))
    assert set(written[: before - 1]) <= {""}
    assert written[before - 1 : -1] == read[before:]
    assert model.see("明月", output="").trace[0].written is None


def test_labelled_translator_generates_the_next_token() -> None:
    recorder, x = Recorder(), np.eye(3)[None, None]
    recorder(x, x, x, name="decoder.0", kind="decoder")
    recorder(x, x, x, name="cross.0", kind="cross")
    for tokens, last in ((["<s>", "a", "b"], ""), (["<s>", "a", "b", "</s>"], "</s>")):
        assert recorder.label(tokens, ["x", "y", "z"])["cross.0"].written == (("a", "b", last),)
    assert recorder.label(["a", "b", "c"], written=["", "d", ""])["decoder.0"].written == (("", "d", ""),)
    with pytest.raises(ArgumentError, match="written names 2 tokens, but tokens names 3"):
        recorder.label(["a", "b", "c"], written=["d", ""])


class NumberTokenizer:
    """A tokenizer of numbers: w5 is 5."""

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"w{i}" for i in ids]


@pytest.fixture(scope="module")
def bart() -> Any:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": 40,
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "max_position_embeddings": 40,
    }
    heads: dict[str, Any] = {
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
    }
    ids: dict[str, Any] = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = transformers.BartConfig(**sizes, **heads, **ids, forced_eos_token_id=None)
    return transformers.BartForConditionalGeneration(config).eval()


SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 10, 11, 12, 2]])


@pytest.mark.parametrize("labels", [False, True])
def test_watched_encoder_decoder_has_generated_tokens(bart: Any, labels: bool) -> None:
    targets = torch.tensor([[20, 21, 22], [23, 24, -100]])
    given = {"labels": targets} if labels else {"decoder_input_ids": torch.tensor([[2, 20, 21], [2, 23, 24]])}
    with torch.no_grad(), watch(bart, NumberTokenizer()) as trace:
        bart(SOURCE, **given)
    last = ("w22", "") if labels else ("", "")
    for kind in ("decoder", "cross"):
        for record in trace.select(kind=kind):
            assert record.query_tokens == (("w2", "w20", "w21"), ("w2", "w23", "w24"))
            assert record.written == (("w20", "w21", last[0]), ("w23", "w24", last[1]))
    assert trace.select(kind="encoder")[0].written is None


@pytest.mark.parametrize(("beams", "cache"), [(1, True), (3, True), (1, False)])
def test_stitched_text_has_the_token_of_each_row(bart: Any, beams: int, cache: bool) -> None:
    how = {"num_beams": beams, "do_sample": False, "max_new_tokens": 6, "min_new_tokens": 6, "use_cache": cache}
    with torch.no_grad(), watch(bart, NumberTokenizer(), see=See(qk=True)) as trace:
        ids = bart.generate(SOURCE, **how)
    whole = trace.stitched(ids)
    for kind in ("decoder", "cross"):
        for record in whole.select(kind=kind):
            T = record.shape[2]
            assert record.written == tuple(tuple(f"w{i}" for i in row[1 : T + 1]) for row in ids.tolist())
    if beams == 1 and cache:  # without ids, the last token is unknown
        rows = trace.stitched().select(kind="cross")[0].written
        assert rows == tuple((*(f"w{i}" for i in row[1:-1]), "") for row in ids.tolist())


def test_prompt_is_not_generated() -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"vocab_size": 30, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=None)).eval()
    with torch.no_grad(), watch(model, NumberTokenizer(), see=See(qk=True)) as trace:
        ids = model.generate(torch.tensor([[3, 4, 5, 6]]), max_new_tokens=3, do_sample=False, pad_token_id=0)
    (written,) = present(trace.stitched(ids)[0].written)
    assert written == ("", "", "", *(f"w{i}" for i in ids[0, 4:].tolist()))
    with torch.no_grad(), watch(model, NumberTokenizer()) as trace:
        model(ids)
    assert trace[0].written is None  # the whole text was given


# --- kept -------------------------------------------------------------------------------------------------


def test_copies_of_a_trace_keep_generated_tokens(tmp_path: Path) -> None:
    trace = Trace([cross(name="a.0"), cross(name="a.1")])
    trace.texts, trace.opening = ("I love you", "我爱你"), ("a.1", 0)
    trace.save(tmp_path / "t")
    made = [
        trace[1:],
        trace.select(kind="cross"),
        trace.merged("characters"),
        trace.stitched(),
        read_trace(tmp_path / "t"),
    ]
    for each in made:
        assert (each.texts, each.opening) == (trace.texts, trace.opening)
        assert all(record.written == (tuple(WRITTEN),) for record in each)


def test_merged_rows_of_cross_attention_generate_one_word() -> None:
    """The rows that generate one word are averaged; they have read the previous word."""
    weights = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.5, 0.5]])
    read, written = ["<s>", " un", "likely", " yes"], [" un", "likely", " yes", "</s>"]
    record = Trace.from_weights(weights, read, ["a", "b"], kind="cross")[0].with_tokens(written=written)
    found = Trace(record).merged("words")[0]
    assert found.written == (("unlikely", "yes", "</s>"),)
    assert found.query_tokens == (("<s>", "unlikely", "yes"),)
    np.testing.assert_allclose(found.weights()[0, 0], [[0.55, 0.45], [0.4, 0.6], [0.5, 0.5]])
    own = Trace.from_weights(np.eye(4), read, kind="decoder")[0].with_tokens(written=written)
    found = Trace(own).merged("words")[0]  # in self-attention rows are merged like the keys
    assert found.query_tokens == found.key_tokens == (("<s>", "unlikely", "yes"),)
    assert found.written == (("unlikely", "yes", "</s>"),)


# --- heads ------------------------------------------------------------------------------------------------


def test_alignment_head_is_found_by_generated_tokens() -> None:
    """The first head attends to the word of the token just read, the second to that of the generated token."""
    read = np.array([[0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], float)
    written = np.eye(4)
    record = cross(np.stack([read, written]))
    scores = {head.head: head.scores["alignment"].value for head in Trace(record).heads()}
    assert scores[1] == pytest.approx(1)
    assert scores[0] < 0.5
    from regard.views.caption import opening_head

    assert opening_head(Trace(record), [record]) == (0, 1)
    unknown = record.changed(written=None)
    assert {head.scores["alignment"].value for head in Trace(unknown).heads()} == {1.0}
