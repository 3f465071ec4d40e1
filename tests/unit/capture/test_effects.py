"""`effect`: its numbers are those of two runs, and its table prints them in both languages."""

from collections import UserDict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

from regard import edit, effect
from regard.capture import Effect
from regard.config import TransformerConfig
from regard.errors import ArgumentError, DtypeError, ShapeError, UnknownNameError
from regard.models import Transformer

NAME = "layers.1.self_attention"
SILENCE = {"silence": {NAME: [0]}}


@pytest.fixture
def model() -> Transformer:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Transformer(TransformerConfig.gpt2(vocab_size=11, d_model=16, n_heads=2, d_ff=32, n_layers=2)).eval()
        for weight in model.parameters():
            nn.init.normal_(weight, std=0.5)
        return model


IDS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])


def test_the_numbers_are_those_of_two_runs(model: Transformer) -> None:
    moved = effect(model, IDS, **SILENCE)
    with torch.no_grad():
        before = model(IDS)[:, -1].double().softmax(-1)
        with edit(model, silence={NAME: [0]}):
            after = model(IDS)[:, -1].double().softmax(-1)
    assert_close(moved.before.exp(), before, "output")
    assert_close(moved.after.exp(), after, "output")
    assert_close(moved.kl, (before * (before / after).log()).sum(-1), "statistic")
    assert (moved.kl > 1e-4).all()
    assert_same_bits(moved.token, before.argmax(-1))
    assert_close(moved.probability.after, after.gather(-1, moved.token[:, None])[:, 0], "output")
    assert_same_bits(moved.top(3).after, after.topk(3).indices)


def test_an_edit_that_changes_nothing_moves_nothing(model: Transformer) -> None:
    moved = effect(model, IDS, cut={NAME: [(1, 3)]})  # a later key, masked anyway
    assert_close(moved.kl, torch.zeros(2, dtype=torch.float64), "statistic")
    assert_same_bits(effect(model, IDS).kl, torch.zeros(2, dtype=torch.float64))


def test_a_probability_of_zero_does_not_make_kl_nan() -> None:
    before, after = torch.tensor([[0.0, -torch.inf]]).double(), torch.tensor([[0.5, 0.5]]).double().log()
    assert_close(Effect(before, after, torch.tensor([0])).kl, torch.tensor([2.0]).double().log(), "statistic")


@pytest.mark.parametrize("token", [3, [3, 3], torch.tensor([3, 3])])
def test_the_token_to_follow(model: Transformer, token: Any) -> None:
    assert effect(model, IDS, **SILENCE, token=token).token.tolist() == [3, 3]


class Answering(nn.Module):
    """Returns outputs as other libraries do, with an attention to edit."""

    def __init__(self, inner: Transformer, wrap: Any) -> None:
        super().__init__()
        self.inner, self.wrap = inner, wrap

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Any:
        return self.wrap(self.inner(input_ids))


@pytest.mark.parametrize("wrap", [lambda x: SimpleNamespace(logits=x), lambda x: (x, None), lambda x: x[:, -1]])
def test_outputs_of_models(model: Transformer, wrap: Any) -> None:
    expected = effect(model, IDS, **SILENCE)
    found = effect(Answering(model, wrap).eval(), UserDict(input_ids=IDS), **SILENCE)
    assert_same_bits(found.after, expected.after)
    assert_same_bits(effect(Answering(model, wrap).eval(), (IDS,), **SILENCE).after, expected.after)


def test_padding_at_the_end_is_not_the_last_token(model: Transformer) -> None:
    keep = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    answering = Answering(model, lambda x: x).eval()
    moved = effect(answering, {"input_ids": IDS, "attention_mask": keep}, **SILENCE)
    with torch.no_grad():
        logits = model(IDS)
    assert_close(moved.before, torch.stack([logits[0, 3], logits[1, 1]]).double().log_softmax(-1))
    for run in (answering, torch.compile(answering, backend="eager")):
        assert_same_bits(effect(run, (IDS, keep), **SILENCE).before, moved.before)  # type: ignore[arg-type]


def test_a_positional_cache_raises(model: Transformer) -> None:
    class Caching(Answering):
        def forward(self, input_ids: Tensor, past_key_values: Any = None) -> Any:
            return self.wrap(self.inner(input_ids))

    with pytest.raises(ArgumentError, match="past_key_values"):
        effect(Caching(model, lambda x: x).eval(), (IDS, ()), **SILENCE)


def test_the_table(model: Transformer) -> None:
    moved = effect(
        model, IDS[:1], **SILENCE, tokenizer=lambda ids: ["注意" if i == 3 else f" w{i}" for i in ids], token=3
    )
    english, chinese = moved.text("en", count=2), moved.text("zh", count=2)
    assert english.startswith(f"next token: moved by {float(moved.kl):.4g} nats")
    row = next(line for line in english.splitlines() if line.startswith("→ '注意'"))
    was, now = (float(side) for side in moved.probability)
    assert row.split()[2:] == [f"{was:.4f}", f"{now:.4f}", f"{now - was:+.4f}".replace("-", "−")]
    assert "Attention is not explanation" in english
    assert chinese.startswith(f"下一个词元的分布变化了 {float(moved.kl):.4g} 奈特")
    assert "编辑前" in chinese
    assert "注意力不等于解释" in chinese
    assert str(moved) == repr(moved) == moved.text()
    assert len(effect(model, IDS, **SILENCE).text("zh").split("样本")) == 3


def test_tokens_print_as_text_if_they_are_text(model: Transformer) -> None:
    class TokenSpeller:
        def decode(self, ids: list[int]) -> str:
            return "\ufffd" if ids[0] % 2 else " cat"

        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return [f"<0x{i:02X}>" for i in ids]

    moved = effect(model, IDS[:1], **SILENCE, tokenizer=TokenSpeller(), token=3)
    assert (moved.token_name(3), moved.token_name(4)) == ("'<0x03>'", "' cat'")


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"inputs": "text"}, DtypeError, "found str"),
        ({"inputs": {"ids": IDS, "past_key_values": ()}}, ArgumentError, "past_key_values"),
        (
            {"mute": {}},
            ArgumentError,
            "no argument 'mute'; its arguments are silence, cut, freeze, mean, resample, path, token, position",
        ),
        ({"silence": [NAME]}, ArgumentError, "found list"),
        ({"silence": SILENCE}, ArgumentError, r"effect\(model, inputs, silence=…\)"),
        ({"silence": {"layers.7.self_attention": [0]}}, UnknownNameError, "did you mean"),
        ({"position": 4}, ArgumentError, "from 0 to 3"),
        ({"position": [0]}, ArgumentError, "a list of 2"),
        ({"token": 11}, ArgumentError, "from 0 to 10"),
        ({"token": [1, 2, 3]}, ArgumentError, "a list of 2"),
        ({"model": "gpt2"}, ArgumentError, "found str"),
        ({"model": nn.Flatten(0).eval()}, ShapeError, r"found \(8,\)"),
        ({"model": nn.Linear(4, 4)}, ArgumentError, r"model.eval\(\)"),
    ],
)
def test_invalid_input_raises(model: Transformer, change: Any, error: type[Exception], sentence: str) -> None:
    arguments = {"model": model, "inputs": IDS, **SILENCE} | change
    with pytest.raises(error, match=sentence):
        effect(**arguments)


# --- what is predicted -------------------------------------------------------------------------------------

SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 20,
}
TEXT = torch.tensor([[2, 7, 4, 9, 3], [2, 4, 8, 9, 3]])  # 4 is the mask token
MASK = SimpleNamespace(mask_token_id=4, decode=lambda ids: f"w{ids[0]}", convert_ids_to_tokens=lambda ids: ids)


@pytest.fixture
def seeded() -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def bert(kind: str, **more: Any) -> nn.Module:
    import transformers

    model: nn.Module = getattr(transformers, kind)(transformers.BertConfig(**SMALL, **more)).eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    return model


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("name", ["BertForMaskedLM", "BertForPreTraining"])
def test_a_masked_language_model_predicts_the_masked_token(name: str) -> None:
    model = bert(name)
    moved = effect(model, {"input_ids": TEXT}, silence={1: [0]}, tokenizer=MASK)
    assert moved.kind == "masked"
    assert moved.position is not None
    assert moved.position.tolist() == [2, 1]
    with torch.no_grad():
        out = model(TEXT)
    logits = out.logits if name == "BertForMaskedLM" else out.prediction_logits
    assert_close(moved.before, logits[[0, 1], [2, 1]].double().log_softmax(-1))
    assert "masked token at position 2" in moved.text("en")
    assert "位置 1 处被掩码的词元" in moved.text("zh")
    assert "next token" not in moved.text("en")
    with pytest.raises(ArgumentError, match="sample 1 has no masked token"):
        effect(model, {"input_ids": TEXT.index_fill(1, torch.tensor([1]), 5)}, silence={1: [0]}, tokenizer=MASK)


@pytest.mark.usefixtures("seeded")
def test_without_a_mask_the_position_that_moved_most_is_used() -> None:
    model = bert("BertForMaskedLM")
    keep = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    moved = effect(model, {"input_ids": TEXT, "attention_mask": keep}, silence={1: [0, 1]})
    with torch.no_grad():
        p = model(TEXT, keep).logits.double().log_softmax(-1)
        with edit(model, silence={1: [0, 1]}):
            q = model(TEXT, keep).logits.double().log_softmax(-1)
    kl = (p.exp() * (p - q)).sum(-1).masked_fill(keep == 0, -1)
    assert moved.position is not None
    assert moved.position.tolist() == kl.argmax(-1).tolist()
    assert "of all positions the one that moved most" in moved.text("en")
    chosen = effect(model, {"input_ids": TEXT}, silence={1: [0]}, position=[1, -1])
    assert chosen.kind == "token"
    assert chosen.position is not None
    assert chosen.position.tolist() == [1, 4]
    assert "moved most" not in chosen.text("en")


@pytest.mark.usefixtures("seeded")
def test_classifiers_predict_classes() -> None:
    labels = {0: "negative", 1: "neutral", 2: "positive"}
    model = bert("BertForSequenceClassification", id2label=labels)
    moved = effect(model, {"input_ids": TEXT}, silence={0: [0]})
    assert (moved.kind, moved.position) == ("class", None)
    english = moved.text("en")
    assert english.startswith("sample 0, class: moved by")
    assert "'neutral'" in english
    assert "token" not in english
    assert "类别" in moved.text("zh")
    with pytest.raises(ArgumentError, match="no positions"):
        effect(model, {"input_ids": TEXT}, silence={0: [0]}, position=1)
    tags = effect(bert("BertForTokenClassification", id2label=labels), {"input_ids": TEXT}, silence={0: [0]})
    assert tags.kind == "token-class"
    assert "class of the token at position" in tags.text("en")


@pytest.mark.usefixtures("seeded")
def test_outputs_that_are_not_distributions_raise() -> None:
    with pytest.raises(ShapeError, match="one number each"):
        effect(bert("BertForSequenceClassification", num_labels=1), {"input_ids": TEXT}, silence={0: [0]})
    several = bert("BertForSequenceClassification", problem_type="multi_label_classification", num_labels=3)
    with pytest.raises(ArgumentError, match="its own probability"):
        effect(several, {"input_ids": TEXT}, silence={0: [0]})


def test_an_encoder_decoder_without_decoder_input_raises() -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    sizes: dict[str, Any] = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 20}
    t5 = T5ForConditionalGeneration(T5Config(**sizes | {"decoder_start_token_id": 0})).eval()
    name = "decoder.block.0.layer.1.EncDecAttention"
    with pytest.raises(ArgumentError, match=r'"decoder_input_ids": torch.tensor\(\[\[0\]\]\)'):
        effect(t5, TEXT, silence={name: [0]})
    moved = effect(t5, {"input_ids": TEXT, "decoder_input_ids": torch.zeros(2, 1, dtype=torch.long)}, silence={name: 0})
    assert moved.kind == "next"
    with pytest.raises(
        ArgumentError, match=r"layer 0 has more than one attention: 'encoder.block.0', 'decoder.block.0'"
    ):
        edit(t5, silence={0: [0]})
