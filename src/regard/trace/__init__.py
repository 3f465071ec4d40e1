"""Trace: the records of a run in call order, with their tokens; its file; and Looking, which fills one.

Views draw a Trace; nothing here draws, and nothing here runs a model.
"""

from regard.trace.file import read_trace
from regard.trace.recorder import Looking
from regard.trace.trace import Trace

__all__ = ["Looking", "Trace", "read_trace"]
