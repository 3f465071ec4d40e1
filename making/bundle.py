"""python -m making.bundle RUN NAME: copies a finished run's model to src/regard/assets/NAME, with matrices as int8.

RUN is a folder of `regard train`, or its `model`. Card, licence and generation_config.json are written by hand and not
changed. Prints the size of the folder; for scores run `regard evaluate src/regard/assets/NAME --data …`.
"""

import argparse
from pathlib import Path

from regard.checkpoints import read_model, save_model
from regard.language.loading import ASSETS, BUNDLED
from regard.text.tokenizer import Tokenizer

TOKENIZER = "tokenizer.json"
LARGEST = 12_000_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m making.bundle", description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("name", choices=BUNDLED)
    options = parser.parse_args()
    folder = options.run / "model" if (options.run / "model").is_dir() else options.run
    size = bundle(folder, ASSETS / options.name)
    print(f"{size:,} bytes in {ASSETS / options.name}")
    if size > LARGEST:
        raise SystemExit(f"too large: a bundled model may have at most {LARGEST:,} bytes")


def bundle(model: Path, target: Path) -> int:
    """Write the model as int8, and its tokenizer. Returns the size of the folder in bytes."""
    stored = read_model(model)
    save_model(target, stored.config, stored.tensors.arrays("float32"), int8=True)
    Tokenizer.read(model / TOKENIZER).save(target / TOKENIZER)
    return sum(path.stat().st_size for path in target.iterdir())


if __name__ == "__main__":
    main()
