"""Folders of tiny language models: random weights, a tokenizer trained on a few lines, and settings.

`translator_folder(path)` and `poet_folder(path)` write folders for `regard.load(path)`, in milliseconds.
"""

import json
from pathlib import Path
from typing import Any

from models import random_weights

from regard.checkpoints import save_model
from regard.config import Output, Rotary, TransformerConfig
from regard.text import learn_tokenizer

PAIRS = [
    ("I love you.", "我爱你。"),
    ("You love me, don't you?", "你爱我，不是吗？"),
    ("The cat sat on the mat.", "猫坐在垫子上。"),
    ("He went home, then she went to the shop!", "他回家了，然后她去了商店！"),
]
POEMS = ["五绝｜床前明月光，疑是地上霜。举头望明月，低头思故乡。", "七绝｜朝辞白帝彩云间，千里江陵一日还。"]
TRANSLATION: dict[str, Any] = {
    "task": "translation",
    "source_language": "en",
    "target_language": "zh",
    "num_beams": 3,
    "length_penalty": 0.8,
    "alignment_heads": [[1, 2], [0, 1]],
}
POETRY: dict[str, Any] = {
    "task": "text",
    "temperature": 0.9,
    "top_k": 20,
    "max_new_tokens": 24,
    "alignment_heads": [[0, 1]],
    "forms": {"5x4": "五绝｜", "7x4": "七绝｜"},
}


def translator_folder(path: Path, *, int8: bool = False, max_len: int | None = 64, **changes: Any) -> Path:
    """An encoder and a decoder of two layers and four heads; `changes` are other settings."""
    tokenizer = learn_tokenizer([text for pair in PAIRS for text in pair] * 2, "pieces", 160)
    sizes: dict[str, Any] = {"d_model": 32, "n_heads": 4, "d_ff": 128, "n_layers": 2, "max_len": max_len}
    # Tied to the embedding, random weights would repeat the last token.
    config = TransformerConfig.paper_2017(vocab_size=tokenizer.vocab_size, output=Output(tied=False), **sizes)
    return _folder(path, config, tokenizer, TRANSLATION | changes, int8)


def poet_folder(path: Path, *, int8: bool = False, **changes: Any) -> Path:
    """A decoder of two layers and two heads; `changes` are other settings."""
    tokenizer = learn_tokenizer(POEMS, "characters")
    sizes: dict[str, Any] = {"d_model": 32, "n_heads": 2, "d_ff": 128, "n_layers": 2, "max_len": 48}
    options: dict[str, Any] = {"positions": Rotary(), "output": Output(tied=False)}
    config = TransformerConfig.gpt2(vocab_size=tokenizer.vocab_size, **options, **sizes)
    return _folder(path, config, tokenizer, POETRY | changes, int8)


def _folder(path: Path, config: TransformerConfig, tokenizer: Any, settings: dict[str, Any], int8: bool) -> Path:
    save_model(path, config, random_weights(config), int8=int8)
    tokenizer.save(path / "tokenizer.json")
    (path / "generation_config.json").write_text(json.dumps(settings, ensure_ascii=False), encoding="utf-8")
    return path
