"""attend: one call for attention, NumPy or torch; backends: who could do it, and why not."""

from regard.dispatch.choice import attend, backends

__all__ = ["attend", "backends"]
