"""`survey`: its numbers against `trace.heads` and loops, resuming, merging, and invalid input."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from surveyed_poems import POEMS, assert_same

import regard
from regard.errors import ArgumentError, FileError, RegardError
from regard.surveys import Survey, read_survey
from regard.surveys.running import reader_of
from regard.surveys.sums import HeadSums, TextSums, columns_of, groups

# --- numbers ---------------------------------------------------------------------------------------------


def test_one_text_scores_as_trace_heads(poet: Any) -> None:
    found = regard.survey(poet, POEMS[:1])
    trace = reader_of(poet, None).read(POEMS[0]).trace
    expected = {(head.name, head.head): head for head in trace.heads(queries=None)}
    assert len(found) == len(expected) == 48
    checked = 0
    for head in found:
        theirs = expected[head.name, head.head]
        for name, one in head.scores.items():
            score = theirs.score(name)
            assert score is not None
            assert one.queries == score.queries
            assert one.value == pytest.approx(score.value, abs=1e-5)
            checked += 1
    assert checked > 48 * 20
    entropy, sink, distance = (trace.measure(name) for name in ("entropy", "sink", "distance"))
    for head in found:
        layer = trace.names.index(head.name)
        for measure, table in ((head.entropy, entropy), (head.sink, sink), (head.distance, distance)):
            assert measure is not None
            assert measure.value == pytest.approx(table[layer, head.head], abs=1e-4)
            assert (measure.low, measure.texts) == (None, 1)


def test_interval_is_that_of_a_ratio_of_means(poet: Any, whole: Survey) -> None:
    """Value and interval of every estimate, from the sums of each text in float64."""
    reader, columns = reader_of(poet, None), columns_of()
    above, of = [], []
    for text in filter(None, POEMS):
        (group,) = groups(reader.read(text).trace, 64)
        found = TextSums(group, columns)
        above.append(found.above)
        of.append(found.of)
    names = [(layer, head) for layer, _, count in whole.sums.names for head in range(count)]
    a, h, n = np.array(above), np.array(of), len(above)
    for row, (layer, head) in enumerate(names):
        mine = next(one for one in whole if (one.name, one.head) == (layer, head))
        for column in ("previous", "local", "sink", "entropy"):
            x, y = a[:, row, columns.index(column)], h[:, row, columns.index(column)]
            ratio = x.sum() / y.sum()
            half = 1.96 * np.sqrt(((x - ratio * y) ** 2).sum() * n / (n - 1)) / y.sum()
            one = mine.estimates[column]
            assert one.low is not None
            assert one.high is not None
            if ratio - half > 0:
                assert (one.low, one.value, one.high) == pytest.approx((ratio - half, ratio, ratio + half), abs=2e-3)


def test_passages_show_the_pattern(whole: Survey) -> None:
    for head in whole.ranked("previous")[:3]:
        for passage in head.passages("previous"):
            assert passage.key == passage.query - 1
            assert (
                passage.tokens[passage.at - 1 : passage.at + 1] == passage.tokens[passage.key_at : passage.key_at + 2]
            )
            assert POEMS[passage.text].find("".join(passage.tokens).replace("<eos>", "")) >= 0
    scores = [one.score for one in whole.heads[0].passages()]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 3


def test_a_translator_has_three_kinds_and_alignment() -> None:
    found = regard.survey("translator", ["I love you.\t我爱你。", "He likes tea.\t他喜欢茶。"])
    assert {head.kind for head in found} == {"encoder", "decoder", "cross"}
    cross = [head for head in found if head.kind == "cross"]
    assert all(head.distance is None for head in cross)
    assert any("alignment" in head.scores for head in cross)


def test_a_pytorch_module_with_a_tokenizer(poet: Any, whole: Survey) -> None:
    model = regard.load("poet", backend="torch")
    found = regard.survey(model, POEMS)
    assert found.model == "poet"
    for one, other in zip(sorted(found, key=_place), sorted(whole, key=_place), strict=True):
        assert one.name == other.name
        for name, score in one.scores.items():
            assert score.value == pytest.approx(other.scores[name].value, abs=1e-4)
    module = regard.survey(model.model, POEMS, poet.tokenizer)
    assert (module.model, module.texts) == ("Transformer", 4)


def _place(head: Any) -> tuple[str, int]:
    return head.name, head.head


def test_rows_of_a_long_text_are_sampled(poet: Any) -> None:
    long = POEMS[0] * 3
    few, all_ = (regard.survey(poet, [long], queries=queries) for queries in (16, None))
    one, other = (
        next(head for head in found if (head.name, head.head) == ("decoder.layers.2.self_attention", 5)).scores["local"]
        for found in (few, all_)
    )
    assert 8 < one.queries <= 16
    assert other.queries > 70
    assert abs(one.value - other.value) < 0.1


# --- merging, resuming -----------------------------------------------------------------------------------


def test_sums_merge_in_any_order(poet: Any, whole: Survey) -> None:
    reader, columns = reader_of(poet, None), columns_of()
    parts = []
    for number in (4, 0, 3, 1):
        part = HeadSums(columns, 3)
        part.add(reader.read(POEMS[number]).trace, number, 64)
        parts.append(part)
    total = HeadSums(columns, 3)
    for part in parts:
        total.merge(HeadSums.from_json(json.loads(json.dumps(part.as_json()))))
    assert total.as_json() == whole.sums.as_json()


class StopError(Exception):
    """A kill between two texts."""


def interrupted(texts: list[str], after: int) -> Iterator[str]:
    yield from texts[:after]
    raise StopError


@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_survey_continues(poet: Any, whole: Survey, tmp_path: Path, after: int) -> None:
    with pytest.raises(StopError):
        regard.survey(poet, interrupted(POEMS, after), out=tmp_path)
    with pytest.raises(FileError, match="no finished survey"):
        read_survey(tmp_path)
    read: list[int] = []
    found = regard.survey(poet, iter(POEMS), out=tmp_path, progress=lambda texts, tokens: read.append(texts))
    assert len(read) == len(POEMS) - after
    assert_same(found, whole)
    assert_same(read_survey(tmp_path), whole)
    assert str(read_survey(tmp_path)) == str(whole)
    again = regard.survey(poet, POEMS, out=tmp_path, progress=lambda texts, tokens: read.append(texts))
    assert len(read) == len(POEMS) - after  # nothing is read twice
    assert_same(again, whole)


def test_changed_texts_and_settings_raise(poet: Any, tmp_path: Path) -> None:
    regard.survey(poet, POEMS[:2], out=tmp_path)
    with pytest.raises(FileError, match=r"texts that .* have changed"):
        regard.survey(poet, [POEMS[1], POEMS[0], POEMS[3]], out=tmp_path)
    with pytest.raises(FileError, match="have changed"):
        regard.survey(poet, POEMS[:1], out=tmp_path)
    with pytest.raises(FileError, match="other settings"):
        regard.survey(poet, POEMS, out=tmp_path, queries=8)
    assert regard.survey(poet, POEMS, out=tmp_path).texts == 4


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"world": 1}', b"\xff"])
def test_a_damaged_state_is_named(poet: Any, tmp_path: Path, damage: bytes) -> None:
    regard.survey(poet, POEMS[:2], out=tmp_path)
    (tmp_path / "state-0-of-1.json").write_bytes(damage)
    with pytest.raises(FileError, match=r"state-0-of-1\.json is damaged"):
        regard.survey(poet, POEMS, out=tmp_path)
    (tmp_path / "survey.json").write_bytes(damage)
    with pytest.raises(FileError, match=r"survey\.json"):
        read_survey(tmp_path)


def test_processes_without_a_folder(monkeypatch: pytest.MonkeyPatch, poet: Any) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ArgumentError, match="--out"):
        regard.survey(poet, POEMS)


# --- texts, and invalid input ----------------------------------------------------------------------------


def test_empty_and_long_texts_are_counted(poet: Any) -> None:
    found = regard.survey(poet, ["", POEMS[0] * 50, "  "])
    assert found.skipped == {"cut": 1, "empty": 2}
    assert found.tokens == poet.longest
    assert "only the beginning counts: 1" in found.text(lang="en")


@pytest.mark.parametrize(
    ("texts", "error", "text"),
    [
        ([], ArgumentError, "no text"),
        (["", " "], ArgumentError, "all 2 are empty"),
        ([3], ArgumentError, "strings"),
        (3, ArgumentError, "strings"),
        ("absent.txt", RegardError, r"absent\.txt"),
    ],
)
def test_invalid_texts(poet: Any, texts: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        regard.survey(poet, texts)


def test_invalid_models_and_files(tmp_path: Path, poet: Any) -> None:
    from torch import nn

    with pytest.raises(ArgumentError, match="tokenizer="):
        regard.survey(nn.Linear(2, 2), POEMS)
    with pytest.raises(ArgumentError, match=r"regard\.load"):
        regard.survey(3, POEMS)
    path = tmp_path / "texts.txt"
    path.write_bytes("好\n".encode() + b"\xff\n")
    with pytest.raises(FileError, match="line 2 of"):
        regard.survey(poet, path)


class Spelling:
    """A tokenizer of letters."""

    def encode(self, text: str) -> list[int]:
        if "!" in text:
            raise ValueError("no exclamation marks")
        return [ord(letter) % 90 for letter in text if letter != "?"]

    def pieces(self, ids: list[int]) -> list[str]:
        return [chr(97 + at % 26) for at in ids]


def built(name: str, **more: Any) -> Any:
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    kind = getattr(transformers, name)
    return kind(kind.config_class(**({"vocab_size": 90} | sizes | more))).eval()


def test_a_module_in_training_mode_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"model\.eval\(\)"):
        regard.survey(built("BertModel").train(), ["abc"], Spelling())


def test_a_text_that_fails_does_not_end_the_survey() -> None:
    model = built("BertModel", vocab_size=89)
    found = regard.survey(model, ["abc", "d!", "Y" * 20 + chr(179), "???", "cab"], Spelling())
    assert (found.texts, found.skipped) == (2, {"unreadable": 3})
    with pytest.raises(ArgumentError, match="id 89, but the model knows 89 ids"):
        regard.survey(model, [chr(179)], Spelling())


def test_a_survey_ends_early_where_no_text_can_be_read() -> None:
    seen: list[int] = []

    def texts() -> Iterator[str]:
        for at in range(1000):
            seen.append(at)
            yield "!"

    with pytest.raises(ArgumentError, match="none of the first 16 texts: ValueError: no exclamation marks"):
        regard.survey(built("BertModel"), texts(), Spelling())
    assert len(seen) == 16


def test_roberta_reads_fewer_tokens_than_its_table_has_rows() -> None:
    found = regard.survey(built("RobertaModel", max_position_embeddings=34), ["x" * 50], Spelling())
    assert (found.tokens, found.skipped) == (32, {"cut": 1})


def test_an_encoder_decoder_reads_source_and_target() -> None:
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    t5 = built("T5ForConditionalGeneration", **sizes)
    found = regard.survey(t5, ["abc\tdefg"], Spelling())
    assert [(head.name, head.kind) for head in found if not head.head] == [
        ("encoder.block.0.layer.0.SelfAttention", "encoder"),
        ("decoder.block.0.layer.0.SelfAttention", "decoder"),
        ("decoder.block.0.layer.1.EncDecAttention", "cross"),
    ]
    with pytest.raises(ArgumentError, match="source, tab, target"):
        regard.survey(t5, ["abc"], Spelling())


def test_other_modules_and_a_single_text() -> None:
    from torch import nn

    with pytest.raises(ArgumentError, match="dtype"):
        regard.survey(nn.Linear(2, 2).eval(), ["abc"], Spelling())
    with pytest.raises(ArgumentError, match="meta"):
        regard.survey(nn.MultiheadAttention(2, 1, device="meta").eval(), ["abc"], Spelling())
    with pytest.raises(FileError, match=r"no file hello; .* list of strings such as \['hello'\]"):
        regard.survey(built("BertModel"), "hello", Spelling())
