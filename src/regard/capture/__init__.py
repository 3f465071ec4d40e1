"""Watch and edit the attention of any PyTorch model without changing its code."""

from importlib.util import find_spec

from regard.errors import MissingPackageError

if find_spec("torch") is None:
    raise MissingPackageError("missing-package", what="regard.capture", package="torch", extra="torch")

from regard.capture.attribution import LogitAttribution, logit_attribution
from regard.capture.editing import edit
from regard.capture.effects import Effect, effect
from regard.capture.monitoring import Monitor, monitor
from regard.capture.watching import watch

__all__ = ["Effect", "LogitAttribution", "Monitor", "edit", "effect", "logit_attribution", "monitor", "watch"]
