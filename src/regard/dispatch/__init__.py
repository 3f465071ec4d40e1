"""attend: one call for attention, NumPy or torch; backends: who could do it, and why not; attend_within: for models."""

from regard.dispatch.choice import attend, backends
from regard.dispatch.within import attend_within

__all__ = ["attend", "attend_within", "backends"]
