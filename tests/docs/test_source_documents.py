"""The source documents' own code, run as it stands, where the documents are at hand beside the repository.

Nothing of the documents is copied here: blocks are found by their number, lines by how they start.
"""

import contextlib
import io
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from tolerances import assert_close

import deep_learning.nn
from deep_learning.activations import softmax
from deep_learning.attention import scaled_dot_product_attention
from regard.course.catalogue import exercise
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process
from regard.functional.attention import merge_heads, split_heads

SEEDS = Path(__file__).parents[2].parent / "shared" / "seeds"

pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason=f"the source documents are not at {SEEDS}")


@cache
def text(number: str) -> str:
    """A document, its broken encoding undone; 001 was saved well."""
    (path,) = SEEDS.glob(f"{number}_*.txt")
    saved = path.read_text(encoding="utf-8")
    if number == "001":
        return saved
    return saved.encode("cp1254", errors="replace").decode("utf-8", errors="replace")


def python_blocks(number: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text(number), flags=re.DOTALL | re.MULTILINE)


def printed(code: str, namespace: dict[str, Any]) -> str:
    """What the code prints; its names stay in the namespace."""
    with contextlib.redirect_stdout(io.StringIO()) as screen:
        exec(compile(code, "<document>", "exec"), namespace)
    return screen.getvalue()


# --- 003: 13 of 14 blocks, in order, in one namespace ----------------------------------------------------


class Ran(NamedTuple):
    """A block after its run: what it printed, and the names as they stood then."""

    screen: str
    names: dict[str, Any]


@pytest.fixture(scope="module")
def tutorial() -> Iterator[dict[int, Ran]]:
    """003's blocks by number, all but 11, run from top to bottom."""
    matplotlib = pytest.importorskip("matplotlib", reason="the last block draws with matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    namespace: dict[str, Any] = {}
    ran = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plt, "show", lambda: print("shown"))
        for number, block in enumerate(python_blocks("003"), 1):
            if number != 11:
                ran[number] = Ran(printed(block, namespace), dict(namespace))
        yield ran
    plt.close("all")


def test_003_runs_from_top_to_bottom(tutorial: dict[int, Ran]) -> None:
    assert sorted(tutorial) == [number for number in range(1, 15) if number != 11]
    with pytest.raises(SyntaxError):  # the answer to exercise 1 is arithmetic, not Python
        compile(python_blocks("003")[10], "<document>", "exec")
    assert tutorial[14].screen == "shown\n"


def test_003_by_hand(tutorial: dict[int, Ran]) -> None:
    # Erratum 1: what the document's own code computes, whatever it says that it prints.
    names = tutorial[5].names
    np.testing.assert_allclose(names["scores"], [[1, 0, 1]])
    np.testing.assert_allclose(names["scaled_scores"], [[0.707, 0, 0.707]], atol=5e-4)
    np.testing.assert_allclose(names["attention_weights"], [[0.40111, 0.19778, 0.40111]], atol=5e-6)
    np.testing.assert_allclose(names["output"], [[16.0445, 3.9555]], atol=5e-5)


def test_003_with_our_names(tutorial: dict[int, Ran]) -> None:
    assert tutorial[6].names["output"].shape == (1, 3, 4)
    assert tutorial[6].names["attention_weights"].shape == (1, 3, 3)
    assert tutorial[7].names["output"].shape == (2, 10, 128)
    assert tutorial[7].names["mha"].d_k == 16
    as_printed = re.search(r"^```\n(\[\[.*?\]\])\n```", text("003"), flags=re.DOTALL | re.MULTILINE)
    assert as_printed is not None
    assert tutorial[8].screen.rstrip("\n") == as_printed[1]
    assert tutorial[9].screen.strip() == "(2, 1, 5)"


def test_003_exercises(tutorial: dict[int, Ran]) -> None:
    names = tutorial[10].names
    output, weights = scaled_dot_product_attention(names["Q"], names["K"], names["V"])
    np.testing.assert_allclose(weights, [[0.23122, 0.62853, 0.14024]], atol=5e-6)
    np.testing.assert_allclose(output, [[15.5841]], atol=5e-5)  # erratum 2
    names = tutorial[13].names
    answer = names["simple_attention"](names["Q"], names["K"], names["V"])
    np.testing.assert_allclose(answer, [[3.3488, 3.3024]], atol=5e-5)


# --- 004: blocks 1, 2, 3, 4 and 6, each alone -------------------------------------------------------------

CLASSES = {
    2: "SingleHeadSelfAttention_Manual",
    3: "SingleHeadSelfAttention",
    4: "SingleHeadSelfAttentionWithMask",
    6: "MultiHeadSelfAttention",
}


@pytest.mark.parametrize("number", [1, *CLASSES])
def test_004_runs_block_by_block(number: int) -> None:
    blocks = python_blocks("004")
    assert len(blocks) == 7
    namespace: dict[str, Any] = {"__name__": "__main__"}
    assert "torch.Size" in printed(blocks[number - 1], namespace)
    if number == 1:
        # Erratum 3: not (2, 8, 5, 5).
        assert namespace["attn_weights"].shape == (2, 5, 5)


@pytest.mark.parametrize("number", CLASSES)
def test_004_prints_the_same_with_our_class(number: int) -> None:
    block = python_blocks("004")[number - 1]
    theirs = printed(block, {"__name__": "__main__"})
    head, demonstration = block.split("if __name__", 1)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed(head, namespace)
    namespace[CLASSES[number]] = getattr(deep_learning.nn, CLASSES[number])
    assert printed("if __name__" + demonstration, namespace) == theirs


@pytest.mark.parametrize("number", CLASSES)
def test_004_and_we_hold_the_same_numbers(number: int) -> None:
    namespace: dict[str, Any] = {"__name__": "document"}
    printed(python_blocks("004")[number - 1], namespace)
    sizes = (16, 4) if number == 6 else (8,)
    modules = []
    for kind in (namespace[CLASSES[number]], getattr(deep_learning.nn, CLASSES[number])):
        torch.manual_seed(7)
        modules.append(kind(*sizes))
    theirs, ours = modules
    for (name, expected), (own_name, found) in zip(theirs.state_dict().items(), ours.state_dict().items(), strict=True):
        assert own_name == name
        assert torch.equal(found, expected)

    x = torch.randn(2, 5, sizes[0])
    mask = torch.ones(5, 5).tril().expand(2, 1, 5, 5)[:, slice(None) if number == 6 else 0]
    for source, target in ((theirs, ours), (ours, theirs)):
        target.load_state_dict({name: value + 0.1 for name, value in source.state_dict().items()})
        source.load_state_dict(target.state_dict())
        for found, expected in zip(ours(x, mask), theirs(x, mask), strict=True):
            assert_close(found.detach(), expected.detach())


def test_004s_fragment_and_pseudo_code_are_neither() -> None:
    # Erratum 18: block 5 names what it does not define, block 7 adds a caret that Python reads as XOR.
    blocks = python_blocks("004")
    with pytest.raises(NameError):
        printed(blocks[4], {})
    with pytest.raises((NameError, SyntaxError)):
        printed(blocks[6], {})


# --- 002: the template ------------------------------------------------------------------------------------


def test_002s_template_and_ours_exchange_their_weights() -> None:
    (block,) = python_blocks("002")
    namespace: dict[str, Any] = {}
    printed(block, namespace)
    torch.manual_seed(1)
    theirs = namespace["SelfAttention"](8, 2)
    torch.manual_seed(1)
    ours = deep_learning.nn.SelfAttention(8, 2)
    assert (theirs.d_model, theirs.n_heads, theirs.d_k) == (ours.d_model, ours.n_heads, ours.d_k)
    assert [name for name, _ in theirs.named_parameters()] == [name for name, _ in ours.named_parameters()]
    assert all(torch.equal(a, b) for a, b in zip(theirs.parameters(), ours.parameters(), strict=True))
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    assert theirs(torch.ones(1, 3, 8)) is None  # both of its methods are left to the reader


# --- 000 and 001: the mask fragment, and the lines about heads -------------------------------------------


@pytest.mark.parametrize("number", ["000", "001"])
def test_the_mask_fragment_of_the_notes(number: str) -> None:
    (fragment,) = python_blocks(number)
    namespace: dict[str, Any] = {"torch": torch}
    body = textwrap.indent(fragment, "        ")
    printed(
        f"class Notes:\n    causal = True\n    def mask(self, scores):\n{body}        return scores\n",
        namespace,
    )
    Q, K = torch.randn(2, 4, 8), torch.randn(2, 4, 8)
    scores = namespace["Notes"]().mask(Q @ K.mT / 8**0.5)
    _, weights = deep_learning.nn.ScaledDotProductAttention(causal=True)(Q, K, K)
    assert_close(weights, softmax(scores.numpy()), "weights")
    with pytest.raises(RuntimeError):  # erratum 6: made from the key length alone
        namespace["Notes"]().mask(torch.zeros(2, 3, 4))


@pytest.mark.parametrize("number", ["000", "001"])
def test_the_lines_about_heads(number: str) -> None:
    mha, x = deep_learning.nn.MultiHeadAttention(8, 2), torch.randn(2, 4, 8)
    sizes = {"batch_size": 2, "seq_len": 4, "num_heads": 2, "d_k": 4, "d_model": 8}

    def after(name: str, given: torch.Tensor, *starts: str) -> torch.Tensor:
        namespace: dict[str, Any] = {**sizes, name: given, "self": mha}
        for start in starts:
            (line,) = [line for line in text(number).splitlines() if line.startswith(start)]
            printed(line, namespace)
        return namespace[name]

    assert torch.equal(after("Q", x, "Q = Q.view("), split_heads(x, 2))
    assert torch.equal(after("K", x, "K = self.W_k(K).view("), split_heads(mha.W_k(x), 2))
    merged = after("output", split_heads(x, 2), "output = output.transpose(", "output = output.contiguous()")
    assert torch.equal(merged, x)
    assert torch.equal(merged, merge_heads(split_heads(x, 2)))


def test_a_minus_one_in_view_hides_a_mistake() -> None:
    # Erratum 12: three heads of two out of width eight, and a position too many.
    (line,) = [line for line in text("000").splitlines() if line.startswith("K = self.W_k(K).view(")]
    wrong = SimpleNamespace(W_k=lambda x: x, num_heads=3, d_k=2)
    namespace: dict[str, Any] = {"K": torch.zeros(2, 3, 8), "batch_size": 2, "self": wrong}
    printed(line, namespace)
    assert namespace["K"].transpose(1, 2).shape == (2, 4, 3, 2)


# --- the documents' own answers, checked as a learner's ----------------------------------------------------

ANSWERS = {2: "single-head-manual", 4: "masked-self-attention-module", 6: "multi-head-self-attention-module"}


@pytest.mark.parametrize("number", ANSWERS)
def test_the_classes_of_004_pass_as_they_stand(number: int) -> None:
    verdict = grade(exercise(ANSWERS[number]), python_blocks("004")[number - 1], seed=1, run=in_process)
    assert verdict.passed, str(verdict)


def test_the_answer_of_003_passes_as_it_stands() -> None:
    """In a process of its own, where only softmax is given; NumPy is imported by the document's first line of code."""
    numpy, answer = python_blocks("003")[0].splitlines()[0], python_blocks("003")[12]
    assert "from deep_learning.activations import softmax" in answer
    verdict = grade(exercise("simple-attention"), f"{numpy}\n{answer}")
    assert verdict.passed, str(verdict)


def test_the_template_of_002_is_reported_as_not_written() -> None:
    (template,) = (block for block in python_blocks("002") if "class SelfAttention" in block)
    head = "import torch\nfrom torch import nn\n"
    assert grade(exercise("self-attention-module"), head + template, seed=1, run=in_process).mistake == "not-written"
