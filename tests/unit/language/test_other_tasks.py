"""Checkpoints of our families for other tasks, or with keys that we refuse: classifiers, base models, other layouts."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from public_folders import SMALL, byte_tokenizer, saved
from tolerances import assert_close

import regard
from regard.errors import ArgumentError, FileError, RegardError
from regard.language import LanguageModel
from regard.language.generating import without_cut_character
from regard.language.hub_files import UnusedKeysWarning

W = byte_tokenizer().get_vocab_size()
IDS: dict[str, Any] = {"vocab_size": W, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
DISTIL: dict[str, Any] = {"vocab_size": W, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
GPT2: dict[str, Any] = IDS | {"n_embd": 16, "n_layer": 2, "n_head": 2}
BART: dict[str, Any] = IDS | {"d_model": 16, "decoder_start_token_id": 0, "max_position_embeddings": 64}
for side in ("encoder", "decoder"):
    BART |= {f"{side}_layers": 2, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 32}
T5: dict[str, Any] = {"vocab_size": W, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
T5 |= {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
GROUPED: dict[str, Any] = IDS | SMALL | {"num_key_value_heads": 1}
TEXT = "The cat sat."

ENCODERS: dict[str, tuple[Callable[[], Any], int]] = {
    "bert texts": (lambda: hf.BertForSequenceClassification(hf.BertConfig(**IDS, **SMALL)), 2),
    "bert tokens": (lambda: hf.BertForTokenClassification(hf.BertConfig(**IDS, **SMALL)), 2),
    "bert questions": (lambda: hf.BertForQuestionAnswering(hf.BertConfig(**IDS, **SMALL)), 2),
    "distilbert texts": (lambda: hf.DistilBertForSequenceClassification(hf.DistilBertConfig(**DISTIL)), 4),
    "distilbert questions": (lambda: hf.DistilBertForQuestionAnswering(hf.DistilBertConfig(**DISTIL)), 2),
    "roberta texts": (lambda: hf.RobertaForSequenceClassification(hf.RobertaConfig(**IDS, **SMALL)), 4),
    "roberta tokens": (lambda: hf.RobertaForTokenClassification(hf.RobertaConfig(**IDS, **SMALL)), 2),
    "gpt2 texts": (lambda: hf.GPT2ForSequenceClassification(hf.GPT2Config(**GPT2)), 1),
    "gpt2 tokens": (lambda: hf.GPT2ForTokenClassification(hf.GPT2Config(**GPT2)), 2),
    "llama texts": (lambda: hf.LlamaForSequenceClassification(hf.LlamaConfig(**IDS, **SMALL)), 1),
    "llama base": (lambda: hf.LlamaModel(hf.LlamaConfig(**IDS, **SMALL)), 0),
    "mistral base": (lambda: hf.MistralModel(hf.MistralConfig(**GROUPED)), 0),
    "qwen3 base": (lambda: hf.Qwen3Model(hf.Qwen3Config(**GROUPED, head_dim=8)), 0),
    "t5 encoder": (lambda: hf.T5EncoderModel(hf.T5Config(**T5)), 0),
}
"""The model, and the number of its tensors that are not used."""


def made(path: Path, make: Callable[[], Any]) -> tuple[Path, Any]:
    model = make().eval()
    return saved(path, model, byte_tokenizer(template=("<s>", "</s>"))), model


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("backend", [None, "torch"])
def test_a_model_without_an_output_layer_gives_vectors(name: str, backend: Any, tmp_path: Path) -> None:
    make, others = ENCODERS[name]
    folder, theirs = made(tmp_path, make)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnusedKeysWarning)
        lm = regard.load(folder, backend=backend)
    messages = [str(one.message) for one in caught if "tensors belong to an output layer" in str(one.message)]
    assert len(messages) == bool(others)
    assert all(f"{others} tensors" in one for one in messages)
    assert lm.backend.name == (backend or "numpy")
    assert lm.settings.task == "encoding"
    ids = lm.special.around(lm.tokenizer.encode(TEXT))
    base = getattr(theirs, theirs.base_model_prefix, theirs)

    def of(ids: list[int]) -> np.ndarray:
        # RoBERTa counts positions from 2, and only here its padding is also the end of a text.
        at = {"position_ids": torch.arange(2, 2 + len(ids))[None]} if "roberta" in name else {}
        with torch.no_grad():
            found: np.ndarray = base(torch.tensor([ids]), **at).last_hidden_state[0].numpy()
        return found

    states, vectors = of(ids), lm.token_vectors([ids, ids[:3]])  # the second is padded
    assert_close(vectors[0], states, "logits")
    assert_close(vectors[1], of(ids[:3]), "logits")
    mean = states.mean(0)
    assert_close(lm.embed(TEXT), mean / np.linalg.norm(mean), "logits")
    assert len(lm.see(TEXT).trace) == 2
    for call in (lambda: lm.generate("a"), lambda: lm.translate("a"), lambda: lm.chat([])):
        with pytest.raises(ArgumentError, match=r"is an encoder and|messages"):
            call()


@pytest.mark.parametrize("make", [hf.BartForSequenceClassification, hf.BartModel])
def test_bart_without_its_output_bias(make: Any, tmp_path: Path) -> None:
    folder, theirs = made(tmp_path, lambda: make(hf.BartConfig(**BART)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedKeysWarning)
        lm = regard.load(folder)
    assert lm.backend.name == "numpy"
    seen = lm.see(TEXT, output="The cat")
    base = theirs.model if make is hf.BartForSequenceClassification else theirs
    with torch.no_grad():
        states = base(input_ids=torch.tensor([seen.ids[1]]), decoder_input_ids=torch.tensor([seen.ids[0]]))
    logits = lm.model(np.array([seen.ids[0]]), np.array([seen.ids[1]]))
    assert_close(logits, (states.last_hidden_state @ base.shared.weight.T).detach().numpy(), "logits")


def test_a_decoder_that_lacks_its_output_layer_is_damaged(tmp_path: Path) -> None:
    """`LlamaForCausalLM` without `lm_head` is not an embedding model."""
    folder, _ = made(tmp_path, lambda: hf.LlamaModel(hf.LlamaConfig(**IDS, **SMALL)))
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace('"LlamaModel"', '"LlamaForCausalLM"'))
    with pytest.raises(FileError, match=r"output\.weight"):
        regard.load(folder)


def test_dynamic_rope_is_the_default_up_to_the_trained_length(tmp_path: Path) -> None:
    rope = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 100.0}
    config = hf.LlamaConfig(**IDS, **SMALL, max_position_embeddings=24, rope_parameters=rope)
    folder, theirs = made(tmp_path, lambda: hf.LlamaForCausalLM(config))
    lm = regard.load(folder)
    assert lm.limit == 24
    ids = torch.arange(24)[None] + 2
    assert_close(lm.model(ids.numpy()), theirs(ids).logits.detach().numpy(), "logits")


OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "gpt2 scaled by layer": (
        lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2, scale_attn_by_inverse_layer_idx=True)),
        "scale_attn_by_inverse_layer_idx",
    ),
    "opt 350m": (
        lambda: hf.OPTForCausalLM(
            hf.OPTConfig(
                **IDS,
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                ffn_dim=32,
                word_embed_proj_dim=8,
                do_layer_norm_before=False,
            )
        ),
        "word_embed_proj_dim",
    ),
    "bert decoder": (lambda: hf.BertLMHeadModel(hf.BertConfig(**IDS, **SMALL, is_decoder=True)), "is_decoder"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_our_tables_refuse_is_computed_by_transformers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, key = OTHERS[name]
    folder, theirs = made(tmp_path, make)
    lm = regard.load(folder)
    assert lm.backend.name == "transformers"
    assert key in lm.backend.reason
    ids = [*lm.special.before_prompt, *lm.tokenizer.encode("The cat")]
    mask = torch.ones(1, len(ids), dtype=torch.long)
    options: dict[str, Any] = {"attention_mask": mask, "max_new_tokens": 8, "do_sample": False}
    written = theirs.generate(torch.tensor([ids]), **options)[0].tolist()
    end = written.index(1, len(ids)) if 1 in written[len(ids) :] else len(written)
    whole = without_cut_character(lm.tokenizer, written[:end])
    assert lm.generate("The cat", max_new_tokens=8) == lm.tokenizer.decode(whole)
    assert len(lm.see("The cat").trace) == 2
    with pytest.raises(FileError, match=key):  # asked for our own Transformer
        regard.load(folder, backend="numpy")
    monkeypatch.setattr("regard.language.loading.find_spec", lambda name: None)
    with pytest.raises(FileError, match=rf"{key}[\s\S]*pip install 'regard\[hub\]'"):
        regard.load(folder)


# --- models that read more than text ------------------------------------------------------------------------

VISION: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
VISION |= {"image_size": 28, "patch_size": 14}
READS_IMAGES: dict[str, Callable[[], Any]] = {
    "vit": lambda: hf.ViTForImageClassification(hf.ViTConfig(**VISION)),
    "clip": lambda: hf.CLIPModel(hf.CLIPConfig(text_config=IDS | SMALL, vision_config=VISION)),
    "whisper": lambda: hf.WhisperForConditionalGeneration(hf.WhisperConfig(**BART, num_mel_bins=8)),
}
WRITES_OF_IMAGES: dict[str, Callable[[], Any]] = {
    "gemma3": lambda: hf.Gemma3ForConditionalGeneration(
        hf.Gemma3Config(
            text_config=GROUPED | {"head_dim": 8, "sliding_window": 8},
            vision_config=VISION,
            mm_tokens_per_image=4,
            image_token_index=5,
            boi_token_index=6,
            eoi_token_index=7,
        )
    ),
    "qwen2_vl": lambda: hf.Qwen2VLForConditionalGeneration(
        hf.Qwen2VLConfig(
            text_config=GROUPED
            | {"rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}},
            vision_config={"depth": 1, "embed_dim": 16, "num_heads": 2, "hidden_size": 16, "mlp_ratio": 2},
        )
    ),
}


@pytest.mark.parametrize("name", READS_IMAGES)
def test_a_model_of_images_or_sound_names_watch(name: str, tmp_path: Path) -> None:
    folder, theirs = made(tmp_path, READS_IMAGES[name])
    with pytest.raises(FileError, match=rf"transformers\.{type(theirs).__name__}.*regard\.watch.*trace\.image"):
        regard.load(folder)


@pytest.mark.parametrize("name", WRITES_OF_IMAGES)
def test_the_text_part_of_a_model_of_images_writes(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, theirs = made(tmp_path, WRITES_OF_IMAGES[name])
    capfd.readouterr()
    lm = regard.load(folder)
    assert lm.settings.task == "text"
    kept = [*lm.special.before_prompt, *lm.tokenizer.encode("The cat")]
    mask = torch.ones(1, len(kept), dtype=torch.long)
    options: dict[str, Any] = {"attention_mask": mask, "max_new_tokens": 8, "do_sample": False}
    written = theirs.generate(torch.tensor([kept]), **options)[0].tolist()
    end = written.index(1, len(kept)) if 1 in written[len(kept) :] else len(written)
    whole = without_cut_character(lm.tokenizer, written[:end])
    assert lm.generate("The cat", max_new_tokens=8) == lm.tokenizer.decode(whole)
    assert len(lm.see("The cat").trace) == 2
    assert "REPORT" not in "".join(capfd.readouterr())


def test_mamba_writes_and_says_that_it_has_no_attention(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, lambda: hf.MambaForCausalLM(hf.MambaConfig(**IDS, hidden_size=16, num_hidden_layers=2)))
    lm: LanguageModel = regard.load(folder)
    assert lm.generate("The cat", max_new_tokens=3).startswith("The cat")
    with pytest.raises(ArgumentError, match="no attention to show"):
        lm.see("The cat")


def test_reports_of_transformers_are_not_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make = hf.CamembertForSequenceClassification
    folder, _ = made(tmp_path, lambda: make(hf.CamembertConfig(**IDS, **SMALL)))
    capfd.readouterr()
    with pytest.warns(UnusedKeysWarning, match="4 tensors belong to an output layer"):
        regard.load(folder)
    assert capfd.readouterr() == ("", "")


def test_an_unknown_family_names_the_version_of_transformers(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, lambda: hf.LlamaModel(hf.LlamaConfig(**IDS, **SMALL)))
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace('"llama"', '"nowhere9"'))
    with pytest.raises(RegardError, match=rf"nowhere9.*transformers {hf.__version__}.*pip install -U"):
        regard.load(folder)
