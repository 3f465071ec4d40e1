"""Trace: the records of a run in call order, with their tokens; its file format; and Recorder, which records a model.

This package neither draws nor runs models; `regard.views` draws a Trace.
"""

from regard.trace.file import read_trace
from regard.trace.recorder import Recorder
from regard.trace.trace import Trace

__all__ = ["Recorder", "Trace", "read_trace"]
