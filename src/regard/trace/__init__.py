"""Trace: the records of a run in call order, with their tokens; and its file.

Views draw a Trace; nothing here draws, and nothing here runs a model.
"""

from regard.trace.file import read_trace
from regard.trace.trace import Trace

__all__ = ["Trace", "read_trace"]
