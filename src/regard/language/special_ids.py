"""SpecialIds: the control ids around the texts of a model, by the rules of its own format."""

from dataclasses import dataclass

from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialIds:
    """Control ids around texts.

    start            the first id that the decoder of an encoder–decoder model reads
    ends             the ids that end a text; the first one is shown as the end
    before_prompt    before a text that a decoder continues
    before, after    around a text that an encoder reads
    """

    start: int | None = None
    ends: tuple[int, ...] = ()
    before_prompt: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def around(self, ids: list[int]) -> list[int]:
        """The ids of a text as an encoder reads them."""
        return [*self.before, *ids, *self.after]


def special_ids_of(tokenizer: Tokenizer) -> SpecialIds:
    """The rules of models that this package trains: a text begins after an <eos>, and a source ends with one."""
    end = () if tokenizer.eos is None else (tokenizer.eos,)
    return SpecialIds(start=tokenizer.bos, ends=end, before_prompt=end, after=end)
