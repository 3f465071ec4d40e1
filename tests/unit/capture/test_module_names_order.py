"""Names by order, where one frame runs many modules."""

from torch import nn

from regard.capture.module_names import Names, Order


class SelfAttention(nn.Module):
    pass


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn, self.mlp = SelfAttention(), nn.Linear(2, 2)


def test_attentions_take_turns() -> None:
    names = Names(nn.Sequential(Layer(), Layer()))
    order, root = Order(names), names.places[0]
    assert [order.placed(root).name for _ in range(4)] == ["0.attn", "1.attn", "0.attn", "1.attn"]
    assert order.misfit() is None
    order.placed(root)
    assert order.misfit() == (5, 2)


def test_an_attention_is_itself() -> None:
    names = Names(nn.Sequential(Layer()))
    place = next(place for place in names.places if place.name == "0.attn")
    assert Order(names).placed(place) == place


def test_a_model_without_classes_of_attention_is_itself() -> None:
    names = Names(nn.Sequential(nn.Linear(2, 2)))
    order = Order(names)
    assert order.placed(names.places[0]) == names.places[0]
    assert order.misfit() is None
