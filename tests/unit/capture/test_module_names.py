"""Names: who is computing, told by the frames of the stack, without a hook and without keeping anything alive."""

import gc
import weakref

import torch
from torch import Tensor, nn

from regard.capture.module_names import Names, at_work, given, is_writing


class Asking(nn.Module):
    """Asks who is running, in the middle of its forward."""

    def __init__(self, ask: object) -> None:
        super().__init__()
        self.ask = ask
        self.softmax = nn.Softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        self.ask()  # type: ignore[operator]
        return self.softmax(x)


def asked(depth: int = 1) -> tuple[nn.Module, list[object]]:
    found: list[object] = []
    names: list[Names] = []
    model = nn.Sequential(nn.ModuleDict({"inner": Asking(lambda: found.append(list(names[0].running())))})["inner"])
    names.append(Names(model))
    model(torch.ones(2))
    return model, found


def test_the_innermost_comes_first() -> None:
    model, found = asked()
    assert found == [[("0", model[0]), ("", model)]]


def test_nobody_is_running() -> None:
    assert Names(nn.Linear(2, 2)).innermost() is None
    assert list(at_work()) == []


def test_another_model_is_not_ours() -> None:
    found = []
    other = Names(nn.Linear(2, 2))
    Asking(lambda: found.append(other.innermost()))(torch.ones(1))
    assert found == [None]


def test_another_model_at_ours_bidding_is_not_ours() -> None:
    """`generate` asks an assistant from inside the model that is watched."""
    found = []
    assistant = Asking(lambda: found.append(names.innermost()))
    model = Asking(lambda: assistant(torch.ones(1)))
    names = Names(model)
    model(torch.ones(1))
    assert found == [None]


def test_a_graph_of_the_model_is_the_model() -> None:
    found = []
    model = Asking(lambda: None)
    names = Names(model)

    def graph(self: nn.Module) -> None:
        found.append(names.innermost())

    model.ask = lambda: graph(torch.fx.GraphModule({}, torch.fx.Graph()))
    model(torch.ones(1))
    assert found == [("", model)]


def test_a_function_that_helps_a_module() -> None:
    """Hugging Face's attention is a function whose first argument is `module`."""
    layer = nn.Linear(2, 2)
    names = Names(nn.Sequential(layer))

    def attention(module: nn.Module, x: int) -> object:
        return names.innermost()

    assert attention(layer, 3) == ("0", layer)


def test_modules_that_hold_nothing_are_passed_over(monkeypatch: object) -> None:
    found = []

    class Softmax(nn.Softmax):
        __module__ = "torch.nn.modules.activation"

        def forward(self, x: Tensor) -> Tensor:
            found.append(names.innermost())
            return x

    model = Asking(lambda: None)
    model.softmax = Softmax(-1)
    names = Names(model)
    model(torch.ones(1))
    assert [place.name for place in found] == [""]


def test_names_of_compiled_modules_are_those_of_what_they_wrap() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1] = torch.compile(model[1])  # type: ignore[assignment]
    assert list(Names(model)) == ["", "0", "1"]
    assert list(Names(torch.compile(model))) == ["", "0", "1"]  # type: ignore[arg-type]


def test_around_goes_from_the_model_to_the_module() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))
    names = Names(model)
    assert names.around("0.0") == [model, model[0], model[0][0]]
    assert names.around("") == [model]


def test_a_part_of_a_place() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    names = Names(model)
    (root, *_) = names.places
    assert names.part(root, "0") == ("0", model[0])
    assert names.part(root, "nothing") == root
    assert names.part(root, "") == root


def test_looking_keeps_nothing_alive() -> None:
    """The locals of a frame, once read, stay with it in Python 3.11: a tensor that was deleted there would live on."""
    names = Names(nn.Linear(2, 2))

    class Model(nn.Module):
        def forward(self) -> bool:
            large = torch.ones(3)
            ghost = weakref.ref(large)
            names.innermost()
            del large
            gc.collect()
            return ghost() is None

    names = Names(Model())
    assert Model()()


def test_what_a_model_was_called_with() -> None:
    class Model(nn.Module):
        def forward(self, ids: Tensor, **more: Tensor) -> list[str]:
            return [name for name, _ in given()]

    found = Model()(torch.ones(1), mask=torch.ones(1))
    assert {"ids", "mask"} <= set(found)


def test_writing_is_told_by_the_function() -> None:
    def generate() -> bool:
        return is_writing()

    assert generate()
    assert not is_writing()
