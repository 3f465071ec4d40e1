"""attend: one call for attention, NumPy or torch; backends: who could do it, and why not; attend_within: for models."""

from regard.dispatch.backend_choice import attend, attend_within, backends

__all__ = ["attend", "attend_within", "backends"]
