"""LanguageModel.see: one pass over text and output, with the weights of every head and their tokens."""

from pathlib import Path

import numpy as np
import pytest
from tiny_language import poet_folder, translator_folder
from tolerances import assert_close

import regard
from regard import See
from regard.errors import ArgumentError, TooLargeError
from regard.language import LanguageModel
from regard.trace.recorder import Recorder
from regard.views.explorer.source import TraceSource
from stored_pages import overview_in


def test_a_translation_records_all_its_attention(translator: LanguageModel) -> None:
    seen = translator.see(" I love you ")
    assert seen.text == "I love you"
    assert seen.output == translator.translate("I love you")
    assert seen.trace.names == [
        *(f"encoder.layers.{i}.self_attention" for i in (0, 1)),
        *(f"decoder.layers.{i}.{part}_attention" for i in (0, 1) for part in ("self", "cross")),
    ]
    cross = seen.trace["1.cross_attention"]
    assert cross.kind == "cross"
    assert cross.key_tokens == (("I", "love", "you", "<eos>"),)
    assert cross.query_tokens is not None
    assert cross.query_tokens[0][0] == "<bos>"
    assert "".join(cross.query_tokens[0][1:]) == seen.output
    assert cross.weights().shape == (1, 4, len(cross.query_tokens[0]), 4)
    np.testing.assert_allclose(cross.weights().sum(-1), 1, rtol=1e-5)


def test_the_page_has_the_text_as_written(translator: LanguageModel, tmp_path: Path) -> None:
    """Words of several tokens once had spaces inside, because labels have no spaces."""
    seen = translator.see("The cathome", output="我爱你。")
    assert len(seen.trace["0.cross_attention"].key_tokens[0]) > 3  # type: ignore[index]
    for number, trace in enumerate((seen.trace, seen.trace.select("decoder"), seen.trace[-1:])):
        trace.html(tmp_path / f"{number}.html")
        assert overview_in(tmp_path / f"{number}.html")["texts"] == ["The cathome", "我爱你。"]


def test_the_records_equal_those_of_a_direct_run(translator: LanguageModel) -> None:
    tokenizer = translator.tokenizer
    seen = translator.see("The cat", output="我爱你。")
    assert seen.output == "我爱你。"
    recorder = Recorder()
    ids = [tokenizer.special("bos"), *tokenizer.encode("我爱你。")]
    translator.model(
        np.array([ids]), np.array([[*tokenizer.encode("The cat"), tokenizer.special("eos")]]), attend=recorder
    )
    assert [record.name for record in recorder.trace] == seen.trace.names
    for record, wanted in zip(seen.trace, recorder.trace, strict=True):
        assert_close(record.map, wanted.map, "weights")
    assert seen.trace["0.cross_attention"].query_tokens == (("<bos>", "我", "爱", "你", "。"),)


def test_numpy_and_torch_record_the_same(tmp_path: Path) -> None:
    for folder in (translator_folder(tmp_path / "t"), poet_folder(tmp_path / "p")):
        ours, theirs = (
            regard.load(folder, backend=backend).see("cat" if folder.name == "t" else "明月")
            for backend in ("numpy", "torch")
        )
        assert (ours.text, ours.output, ours.trace.names) == (theirs.text, theirs.output, theirs.trace.names)
        for mine, other in zip(ours.trace, theirs.trace, strict=True):
            assert_close(other.map, mine.map, "logits")
            assert (mine.query_tokens, mine.key_tokens) == (other.query_tokens, other.key_tokens)


def test_a_poem_with_its_header(poet: LanguageModel) -> None:
    seen = poet.see("明月")
    assert "明月" + seen.output == poet.generate("明月")
    assert [record.kind for record in seen.trace] == ["decoder", "decoder"]
    queries = seen.trace[0].query_tokens
    assert queries is not None
    assert queries[0][:6] == ("<eos>", "五", "绝", "｜", "明", "月")
    assert "".join(queries[0][6:]) == seen.output
    assert {record.prompt for record in seen.trace} == {6}
    assert {record.prompt for record in poet.see("明月", output="").trace} == {None}
    forced = poet.see("明月", output="光。")
    assert forced.output == "光。"
    about = TraceSource(forced.trace).overview().about
    assert [entry["prompt"] for entry in about["records"]] == [6, 6]
    assert about["generation"]["prompt"] == 6
    assert forced.trace[0].key_tokens == (("<eos>", "五", "绝", "｜", "明", "月", "光", "。"),)


def test_see_chooses_the_fields_of_a_record(translator: LanguageModel) -> None:
    record = translator.see("cat", see=See(map=None, entropy=True)).trace[0]
    assert record.map is None
    assert record.entropy is not None


def test_longer_texts_are_refused(translator: LanguageModel, poet: LanguageModel) -> None:
    with pytest.raises(TooLargeError, match="801 tokens long, but at most 64 can be shown") as caught:
        translator.see("the cat " * 400)
    assert "`regard translate`" in caught.value.text("zh")
    with pytest.raises(TooLargeError):
        translator.see("cat", output="我" * 64)
    endless = translator.see("the cat " * 30)  # with <bos>, its output fills all 64 positions
    assert endless.trace["0.cross_attention"].shape == (1, 4, 64, 61)
    assert translator.see("cat", output="我" * 63)
    with pytest.raises(TooLargeError, match="45 tokens long, and the model can read 44 at once") as caught:
        poet.see("明" * 45)  # after four of the header
    assert "translate" not in caught.value.text("zh")
    with pytest.raises(TooLargeError, match="45 tokens long"):
        poet.see("明" * 40, output="月" * 5)
    whole = poet.see("明" * 43).trace[0]
    assert whole.shape[-2:] == (48, 48) or whole.shape[-1] == 47


def test_the_output_is_returned_as_read(translator: LanguageModel, poet: LanguageModel) -> None:
    assert translator.see("cat", output="我😀爱你").output == "我爱你"
    assert poet.see("明", output="月😀").output == "月"
    for model in (translator, poet):
        with pytest.raises(ArgumentError, match="give a text, a str; found int"):
            model.see("cat", output=5)  # type: ignore[arg-type]


def test_lines_are_joined(translator: LanguageModel) -> None:
    assert translator.see("I love\nyou", output="我").text == "I love you"


@pytest.mark.parametrize(("text", "key"), [("", "translate-empty"), ("你好", "translate-chinese")])
def test_unreadable_texts_are_refused(translator: LanguageModel, text: str, key: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        translator.see(text)
    assert caught.value.key == key
