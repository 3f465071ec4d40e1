"""Architectures that are not of our families, by `transformers`: see, generate, translate, heads, effect and embed."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from public_folders import SMALL, TEXTS, byte_tokenizer, saved
from tolerances import assert_close
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BloomConfig,
    BloomForCausalLM,
    DebertaV2Config,
    DebertaV2Model,
    ElectraConfig,
    ElectraForPreTraining,
    FalconConfig,
    FalconForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    PegasusConfig,
    PegasusForConditionalGeneration,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

import regard
from regard.errors import ArgumentError
from regard.generation.beams import max_translation_length
from regard.language import LanguageModel
from regard.language.generating import without_cut_character
from regard.language.hub_files import UnusedKeysWarning

W = byte_tokenizer().get_vocab_size()
IDS: dict[str, Any] = {"vocab_size": W, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
SEQ2SEQ: dict[str, Any] = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in {"layers": 2, "attention_heads": 2, "ffn_dim": 32}.items()
}
DECODERS: dict[str, Callable[[], Any]] = {
    "bloom": lambda: BloomForCausalLM(BloomConfig(**IDS, hidden_size=16, n_layer=2, n_head=2)),
    "falcon": lambda: FalconForCausalLM(
        FalconConfig(**IDS, hidden_size=16, num_hidden_layers=2, num_attention_heads=2)
    ),
    "olmo2": lambda: Olmo2ForCausalLM(Olmo2Config(**IDS, **SMALL)),
}
ENCODERS: dict[str, Callable[[], Any]] = {
    "xlm-roberta": lambda: XLMRobertaForMaskedLM(XLMRobertaConfig(**IDS, **SMALL, max_position_embeddings=34)),
    "albert": lambda: AlbertForMaskedLM(AlbertConfig(**IDS, **SMALL, embedding_size=8, max_position_embeddings=64)),
    "electra": lambda: ElectraForPreTraining(ElectraConfig(**IDS, **SMALL, embedding_size=8)),
    "deberta-v2": lambda: DebertaV2Model(DebertaV2Config(**IDS, **SMALL)),
}
TRANSLATORS: dict[str, Callable[[], Any]] = {
    "pegasus": lambda: PegasusForConditionalGeneration(
        PegasusConfig(**IDS | {"pad_token_id": 0}, **SEQ2SEQ, d_model=16, decoder_start_token_id=0)
    ),
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LanguageModel]:
    found = {}
    for name, make in (DECODERS | ENCODERS | TRANSLATORS).items():
        template = ("<s>", "</s>") if name in ENCODERS else ("", "</s>") if name in TRANSLATORS else None
        folder = saved(tmp_path_factory.mktemp(name), make(), byte_tokenizer(template=template))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnusedKeysWarning)  # of Electra's discriminator
            found[name] = regard.load(folder)
    return found


@pytest.mark.parametrize("name", [*DECODERS, *ENCODERS, *TRANSLATORS])
def test_see_shows_every_layer_with_its_tokens(name: str, loaded: dict[str, LanguageModel]) -> None:
    lm = loaded[name]
    assert lm.backend.name == "transformers"
    assert name.replace("-", "_") in lm.backend.reason.replace("-", "_")
    seen = lm.see("The cat sat.")
    assert len(seen.trace) == (6 if name in TRANSLATORS else 2)
    for record in seen.trace:
        weights = np.asarray(record.weights())
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert record.query_tokens is not None
        assert len(record.query_tokens[0]) == weights.shape[2]
        given = None if record.written is None else next(at for at, token in enumerate(record.written[0]) if token) + 1
        assert record.prompt == (given if name in DECODERS else None)
    assert seen.trace.heads().text()


@pytest.mark.parametrize("name", DECODERS)
def test_generate_is_that_of_transformers(name: str, loaded: dict[str, LanguageModel]) -> None:
    lm = loaded[name]
    ids = lm.tokenizer.encode("The cat")
    theirs = lm.model.generate(torch.tensor([ids]), max_new_tokens=20, do_sample=False)[0].tolist()
    end = theirs.index(1) if 1 in theirs else len(theirs)
    new = without_cut_character(lm.tokenizer, theirs[len(ids) : end])
    assert lm.generate("The cat", max_new_tokens=20) == lm.tokenizer.decode([*ids, *new])
    assert "".join(lm.generate("The cat", max_new_tokens=20, stream=True)) == lm.tokenizer.decode(new)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_translate_is_that_of_transformers(name: str, loaded: dict[str, LanguageModel]) -> None:
    lm = loaded[name]
    ids = lm.special.around(lm.tokenizer.encode("The cat."))
    most = max_translation_length(ids, lm.longest)
    theirs = lm.model.generate(torch.tensor([ids]), max_new_tokens=most, do_sample=False, num_beams=2)[0].tolist()
    end = theirs.index(1) if 1 in theirs else len(theirs)
    assert lm.translate("The cat.", beams=2) == lm.tokenizer.decode(theirs[1:end])


@pytest.mark.parametrize("name", [*DECODERS, "xlm-roberta", "albert", *TRANSLATORS])  # the others have no logits
def test_effect_of_a_head(name: str, loaded: dict[str, LanguageModel]) -> None:
    lm = loaded[name]
    seen = lm.see("The cat sat.")
    record = seen.trace[-1]
    texts = [torch.tensor([ids]) for ids in seen.ids]
    given = {"input_ids": texts[-1]} | ({"decoder_input_ids": texts[0]} if name in TRANSLATORS else {})
    assert float(regard.effect(lm.model, given, silence={record.name: [0]}).kl.max()) > 0
    if name not in ENCODERS:
        assert lm.silence(seen, record.name, 0)


@pytest.mark.parametrize("name", ENCODERS)
def test_embed_pools_the_last_hidden_states(name: str, loaded: dict[str, LanguageModel]) -> None:
    lm = loaded[name]
    texts = [*TEXTS, "a", "The"]  # of several lengths: some share a batch with padding
    found = lm.embed(texts)
    assert found.dtype == np.float32
    most = 32 if name == "xlm-roberta" else 512
    for row, text in zip(found, texts, strict=True):
        ids = lm.special.around(lm.tokenizer.encode(text)[: most - 2])
        with torch.no_grad():
            states = lm.model(torch.tensor([ids]), output_hidden_states=True).hidden_states[-1][0].numpy()
        mean = states.mean(0)
        assert_close(row, mean / np.linalg.norm(mean), "logits")
    assert_close(lm.embed(texts[0]), found[0], "logits")
    assert lm.embed([]).shape == (0, 16)


def test_embed_needs_an_encoder(loaded: dict[str, LanguageModel]) -> None:
    with pytest.raises(ArgumentError, match="needs an encoder"):
        loaded["falcon"].embed("a")
