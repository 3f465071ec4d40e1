"""Mask: which query may look at which key. True means "may look", for NumPy and for torch alike.

    Mask.causal() & Mask.padding(ids, pad=0)

A Mask is a value made of rules; it holds no T × S array unless it was given one. Lowering it onto a score
matrix, block by block, is `bind`.
"""

from regard.masks.bound import BoundMask
from regard.masks.mask import Mask

__all__ = ["BoundMask", "Mask"]
