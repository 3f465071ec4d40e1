"""Conversations, streaming, stop texts and beams: the same in NumPy, torch and `transformers`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_folders import byte_tokenizer, gpt2, llama, saved
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models
from transformers import BloomConfig, BloomForCausalLM

from regard import load
from regard.errors import ArgumentError, FileError, TooLargeError
from regard.language import LanguageModel
from regard.language.chat import Conversation, conversation_ids
from regard.language.generating import text_pieces, without_cut_character
from regard.text.tokenizer import Tokenizer

TEMPLATE = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}<s>{% endif %}"
TALK = [{"role": "user", "content": "The cat 猫"}, {"role": "assistant", "content": "sat"}]
TALK += [{"role": "user", "content": "and then? </s>"}]


def with_template(folder: Path, template: str = TEMPLATE) -> Path:
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, "eos_token": "</s>"}))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_template(llama(tmp_path_factory.mktemp("chat") / "llama"))


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return load(folder, backend="numpy")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """Of a family that is not ours."""
    inner = byte_tokenizer()
    config = BloomConfig(vocab_size=inner.get_vocab_size(), hidden_size=16, n_layer=2, n_head=2, eos_token_id=1)
    path = saved(tmp_path_factory.mktemp("chat") / "bloom", BloomForCausalLM(config), inner)
    return load(with_template(path))


def test_every_backend_answers_the_same(folder: Path, model: LanguageModel) -> None:
    answer = model.chat(TALK, max_new_tokens=12)
    for backend in ("torch", "transformers"):
        assert load(folder, backend=backend).chat(TALK, max_new_tokens=12) == answer
    ids = conversation_ids(model, TALK)
    starts = [at for at, one in enumerate(ids) if one == 0]
    assert len(starts) == 4
    assert ids.count(1) == 3, "</s> in a message is text"


def test_streamed_pieces_are_the_whole_text(model: LanguageModel, other: LanguageModel) -> None:
    for one in (model, other):
        for temperature in (0.0, 2.0):
            whole = one.generate("The cat", max_new_tokens=40, temperature=temperature, seed=3)
            pieces = list(one.generate("The cat", max_new_tokens=40, temperature=temperature, seed=3, stream=True))
            assert "The cat" + "".join(pieces) == whole
            assert len(pieces) > 3
            assert "".join(one.chat(TALK, max_new_tokens=20, stream=True)).strip() == one.chat(TALK, max_new_tokens=20)


def test_bytes_of_a_character_are_held_back(model: LanguageModel) -> None:
    text = "床前🙂明月"
    ids = model.tokenizer.encode(text)
    assert len(ids) > len(text)
    pieces = list(text_pieces(model.tokenizer, iter(ids)))
    assert "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces)
    broken = list(text_pieces(model.tokenizer, iter(model.tokenizer.encode("鿆")[:1] * 20)))
    assert "".join(broken) == "\ufffd" * 19, "the last may begin a character"
    assert len(broken) > 10, "bytes that are no character are given out at last"


def test_an_unfinished_character_is_left_out(model: LanguageModel) -> None:
    """The limit of tokens may cut a character: what is shown, returned and kept ends before it."""
    tokenizer = model.tokenizer
    assert isinstance(tokenizer, Tokenizer)
    text = "猫🙂鿆"
    ids = tokenizer.encode(text)
    for cut in range(len(ids) + 1):
        whole = b"".join(tokenizer.token_bytes(ids[:cut])).decode(errors="ignore")
        assert "".join(text_pieces(tokenizer, iter(ids[:cut]))) == whole
        assert tokenizer.decode(without_cut_character(tokenizer, ids[:cut])) == whole
    written = tokenizer.encode("\ufffd") + tokenizer.encode("鿆")[:1]
    assert without_cut_character(tokenizer, written) == written[:-1], "the model wrote U+FFFD itself"
    fallback = RustTokenizer(models.BPE({f"<0x{one:02X}>": one for one in range(256)}, [], byte_fallback=True))
    fallback.decoder = decoders.ByteFallback()
    other, raw = Tokenizer(fallback), list(text.encode())
    for cut in range(len(raw) + 1):
        whole = bytes(raw[:cut]).decode(errors="ignore")
        assert other.decode(without_cut_character(other, raw[:cut])) == whole


def test_no_text_ends_in_part_of_a_character(folder: Path, model: LanguageModel) -> None:
    """Random weights write bytes of no character; each limit cuts the same text elsewhere."""
    whole = model.generate("猫", max_new_tokens=16, temperature=0)
    for most in range(1, 16):
        options: Any = {"max_new_tokens": most, "temperature": 0}
        text = model.generate("猫", **options)
        assert whole.startswith(text)
        assert "猫" + "".join(model.generate("猫", stream=True, **options)) == text
        talk = Conversation(model)
        answer = "".join(talk.ask("猫", **options))
        assert talk.messages[-1]["content"] == answer.strip()


@pytest.mark.parametrize("stop", ["o", ["zzz", "on th"], "mat"])
def test_the_text_ends_before_a_stop_text(model: LanguageModel, stop: Any) -> None:
    ids = model.tokenizer.encode(" sat on the mat")
    found = "".join(text_pieces(model.tokenizer, iter(ids), stop=[stop] if isinstance(stop, str) else stop))
    first = min(at for one in ([stop] if isinstance(stop, str) else stop) if (at := " sat on the mat".find(one)) >= 0)
    assert found == " sat on the mat"[:first]


def test_stop_and_beams(model: LanguageModel) -> None:
    whole = model.generate("The cat", max_new_tokens=30, temperature=0)
    middle = whole[len("The cat") + 4 : len("The cat") + 6]
    assert model.generate("The cat", max_new_tokens=30, temperature=0, stop=middle) == whole[: whole.find(middle, 7)]
    assert model.generate("The cat", max_new_tokens=8, beams=1) == model.generate("The cat", max_new_tokens=8)
    assert model.generate("The cat", max_new_tokens=8, beams=4).startswith("The cat")
    for options in ({"stream": True}, {"temperature": 1.0}, {"top_k": 3}):
        with pytest.raises(ArgumentError, match="beam"):
            model.generate("The cat", beams=2, **options)
    with pytest.raises(ArgumentError, match="stop"):
        model.generate("The cat", stop=["a", ""])


def test_a_new_turn_reads_only_what_is_new(model: LanguageModel, other: LanguageModel) -> None:
    for one in (model, other):
        talk = Conversation(one, system="Be brief.")
        for text in ("The cat", "and then?"):
            before = [*talk.messages, {"role": "user", "content": text}]
            answer = "".join(talk.ask(text, max_new_tokens=6))
            assert answer.strip() == one.chat(before, max_new_tokens=6)
            assert talk.messages[-1] == {"role": "assistant", "content": answer.strip()}
        assert [message["role"] for message in talk.messages] == ["system", *["user", "assistant"] * 2]


def test_prompt_lookup_answers_the_same(folder: Path, model: LanguageModel, other: LanguageModel) -> None:
    for one in (model, other, load(folder, backend="torch")):
        plain, sooner = Conversation(one), Conversation(one)
        for text in ("The cat sat. The cat", "sat. The cat sat."):
            answers = [
                "".join(talk.ask(text, max_new_tokens=16, temperature=0, prompt_lookup=most))
                for talk, most in ((plain, None), (sooner, 5))
            ]
            assert answers[0] == answers[1]
        written = one.generate("The cat sat. The cat", max_new_tokens=16, temperature=0)
        assert one.generate("The cat sat. The cat", max_new_tokens=16, temperature=0, prompt_lookup=4) == written
    with pytest.raises(ArgumentError, match="temperature"):
        model.generate("The cat", temperature=1.0, prompt_lookup=4)
    with pytest.raises(ArgumentError, match="prompt_lookup"):
        model.generate("The cat", beams=2, prompt_lookup=4)


def test_a_long_prompt_is_read_in_parts(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = model.generate("The cat sat on the mat.", max_new_tokens=6, temperature=0)
    talk = [{"role": "user", "content": "The cat sat on the mat."}]
    answer = model.chat(talk, max_new_tokens=6)
    for module in ("generating", "chat"):
        monkeypatch.setattr(f"regard.language.{module}.CHUNK", 3)
    assert model.generate("The cat sat on the mat.", max_new_tokens=6, temperature=0) == expected
    assert model.chat(talk, max_new_tokens=6) == answer


def test_an_answer_that_is_interrupted_is_kept(model: LanguageModel) -> None:
    talk = Conversation(model)
    pieces = talk.ask("The cat", max_new_tokens=50)
    first = next(pieces) + next(pieces)
    pieces.close()
    assert talk.messages[-1]["content"] == first.strip()
    assert "".join(talk.ask("more", max_new_tokens=3)) is not None


def test_the_words_that_an_answer_attended_to(model: LanguageModel, other: LanguageModel) -> None:
    for one in (model, other):
        talk = Conversation(one)
        assert talk.attended_words() == []
        "".join(talk.ask("The cat sat", max_new_tokens=5))
        words = talk.attended_words()
        assert {"cat", "sat"} <= {word.text for word in words}
        assert 0.3 < sum(word.share for word in words) <= 1.0 + 1e-6
        assert all(word.share >= 0 for word in words)
        ids = [*conversation_ids(one, talk.messages[:1]), *talk._written]
        weights = np.mean([np.asarray(record.weights())[0].mean(0) for record in one.record(ids)], axis=0)
        rows = weights[len(ids) - len(talk._written) - 1 : -1].mean(0)
        assert max(word.share for word in words) <= rows[1:].max() * 12


def test_what_is_refused(tmp_path: Path, model: LanguageModel) -> None:
    with pytest.raises(ArgumentError, match="chat template"):
        load(gpt2(tmp_path / "gpt2")).chat(TALK)
    with pytest.raises(TooLargeError):
        model.chat([{"role": "user", "content": "cat " * 4000}])
    with pytest.raises(ArgumentError, match="messages"):
        model.chat([])
    evil = load(with_template(llama(tmp_path / "evil"), "{{ raise_exception('not you') }}"))
    with pytest.raises(FileError, match="not you"):
        evil.chat(TALK)
    with pytest.raises(ArgumentError, match="translator"):
        load("translator").chat(TALK)


def test_a_template_in_its_own_file_or_in_a_list(tmp_path: Path) -> None:
    path = llama(tmp_path / "a")
    (path / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    found = load(path).template
    assert found is not None
    assert found.text == TEMPLATE
    other = llama(tmp_path / "b")
    several = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": TEMPLATE}]
    bos = {"content": "<s>", "lstrip": False}
    (other / "tokenizer_config.json").write_text(json.dumps({"chat_template": several, "bos_token": bos}))
    listed = load(other).template
    assert listed is not None
    assert (listed.text, listed.values) == (TEMPLATE, {"bos_token": "<s>"})
