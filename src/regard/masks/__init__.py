"""Mask: which keys are visible to which queries. True means visible, for NumPy and for torch alike.

    Mask.causal() & Mask.padding(ids, pad=0)

A Mask is a value made of rules; it holds no T × S array unless it was given one. `bind` applies it to one score
matrix, and a BoundMask is evaluated block by block.
"""

from regard.masks.bound import BoundMask
from regard.masks.mask import Mask

__all__ = ["BoundMask", "Mask"]
