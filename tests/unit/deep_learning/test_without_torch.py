"""Without torch: the NumPy functions work, and `deep_learning.nn` names the package to install."""

import os
import subprocess
import sys

import pytest

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None\n"


def run(code: str, lang: str = "en") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_TORCH + code],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "REGARD_LANG": lang, "PYTHONIOENCODING": "utf-8"},
        timeout=60,
    )


def test_the_numpy_functions_work() -> None:
    done = run(
        "import numpy as np\n"
        "from deep_learning.activations import softmax\n"
        "from deep_learning.attention import *\n"
        "x = np.ones((1, 3, 8))\n"
        "print(softmax(x).shape, scaled_dot_product_attention(x, x, x, create_causal_mask(3))[0].shape)\n"
        "print(MultiHeadAttention(8, 2).forward(x, x, x, create_padding_mask([[1, 2, 0]])).shape)\n"
    )
    assert done.stderr == ""
    assert done.stdout.split("\n")[:2] == ["(1, 3, 8) (1, 3, 8)", "(1, 3, 8)"]


@pytest.mark.parametrize(
    ("lang", "sentence"),
    [("en", "deep_learning.nn needs torch, which is not installed"), ("zh", "deep_learning.nn 需要 torch")],
)
def test_nn_names_the_package_to_install(lang: str, sentence: str) -> None:
    done = run(
        "from regard.errors import MissingPackageError\n"
        "for attempt in range(2):\n"
        "    try:\n"
        "        import deep_learning.nn\n"
        "    except MissingPackageError as error:\n"
        "        print(isinstance(error, ImportError), error)\n",
        lang,
    )
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == second
    assert first.startswith(f"True {sentence}")
    assert "pip install 'regard[torch]'" in first


def test_the_numpy_functions_do_not_import_torch() -> None:
    code = "import deep_learning.attention, deep_learning.activations, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60)
    assert done.stdout.strip() == "False"
