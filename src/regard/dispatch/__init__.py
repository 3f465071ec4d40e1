"""Attention calls for NumPy and torch: `attend`, `attend_in_model` for models, and `backends`, which can run a call."""

from regard.dispatch.backend_choice import attend, attend_in_model, backends

__all__ = ["attend", "attend_in_model", "backends"]
