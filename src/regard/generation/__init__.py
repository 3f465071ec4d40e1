"""Generation: a prompt is read, then ids are picked one after the other, or many at once with beams.

The room knows token ids and `Decoding`, nothing else: no text, no weights, no torch. The same code drives the models
of `regard.reference` and of `regard.models`.
"""

from regard.generation.beams import Beam, beam_search, search_many
from regard.generation.decoding import Decoding
from regard.generation.loop import Session, generate, stream
from regard.generation.prompt_reading import prefill
from regard.generation.sampling import GREEDY, Sampling

__all__ = [
    "GREEDY",
    "Beam",
    "Decoding",
    "Sampling",
    "Session",
    "beam_search",
    "generate",
    "prefill",
    "search_many",
    "stream",
]
