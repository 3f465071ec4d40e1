"""A boolean mask in characters, small enough for a terminal."""

import numpy as np

SEEN, HIDDEN = "■", "·"
LARGEST = 32


def draw(allowed: np.ndarray) -> str:
    """Draw (…, T, S): ■ may look, · may not, samples one below another; larger masks show their first corner.

    >>> print(draw(np.tri(2, 3, dtype=bool)))
    ■ · ·
    ■ ■ ·
    """
    T, S = allowed.shape[-2:]
    # Heads that a mask does not tell apart are drawn once.
    sheets = allowed.reshape(-1, T, S)
    lines = []
    for number, sheet in enumerate(sheets[:4]):
        if len(sheets) > 1:
            lines.append(f"[{number}]")
        cut = sheet[:LARGEST, :LARGEST]
        more = " …" if S > LARGEST else ""
        lines += [" ".join(SEEN if seen else HIDDEN for seen in row) + more for row in cut]
        if T > LARGEST:
            lines.append(f"… ({T} × {S})")
    if len(sheets) > 4:
        lines.append(f"… ({len(sheets)})")
    return "\n".join(lines)
