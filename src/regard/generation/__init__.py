"""Text generation: reads a prompt, then picks ids one by one, or searches with beams.

Works on token ids and the protocol `Decoding` only: no text, no weights, no torch. The same code serves the models of
`regard.reference` and `regard.models`.
"""

from regard.generation.beams import Beam, beam_search, search_many
from regard.generation.loop import Session, generate, stream
from regard.generation.prompts import Decoding, prefill
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
