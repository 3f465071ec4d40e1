"""`trace.widget()`: the explorer in a notebook, by anywidget. The kernel answers; the output holds a picture as well.

Where scripts do not run (a notebook on GitHub, a converted one), the picture of the first head is shown instead.
"""

from functools import cache
from typing import Any

from regard.packages import require_package
from regard.views.explorer import front
from regard.views.explorer.protocol import Source, answered


def widget(source: Source, picture: str, text: str, lang: str | None = None) -> Any:
    """An anywidget that answers from `source`. Raises MissingPackageError without anywidget.

    picture, text   what is shown where scripts do not run: an SVG, and plain text
    """
    require_package("anywidget", "widget()")
    return _widget_class()(source, picture, text, lang)


@cache
def _widget_class() -> Any:
    """The class, made on first use: anywidget is an optional package."""
    import anywidget
    import traitlets

    class ExplorerWidget(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
        """The explorer in a notebook."""

        _esm = front.script("widget.js")
        sheet = traitlets.Unicode(front.style()).tag(sync=True)  # for a shadow root, which `_css` does not reach
        picture = traitlets.Unicode("").tag(sync=True)
        lang = traitlets.Unicode(None, allow_none=True).tag(sync=True)
        theme = traitlets.Unicode(None, allow_none=True).tag(sync=True)

        def __init__(self, source: Source, picture: str, text: str, lang: str | None) -> None:
            super().__init__(lang=lang, picture=picture)
            self.source, self._text = source, text
            self.on_msg(self._receive)

        def _receive(self, _widget: Any, message: Any, _buffers: Any) -> None:
            reply, buffers = answered(self.source, message)
            self.send(reply, buffers)

        def __repr__(self) -> str:
            return self._text

        def _repr_mimebundle_(self, **options: Any) -> Any:
            bundle = super()._repr_mimebundle_(**options)
            data, about = bundle if isinstance(bundle, tuple) else (bundle, {})
            return {**(data or {}), "image/svg+xml": self.picture, "text/plain": self._text}, about

    return ExplorerWidget
