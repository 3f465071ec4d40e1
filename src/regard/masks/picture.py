"""A boolean mask in characters, small enough for a terminal."""

import numpy as np

SEEN, HIDDEN = "■", "·"
LARGEST = 32
SHEETS = 4


def draw(allowed: np.ndarray, T: int | None = None, S: int | None = None) -> str:
    """Draw (…, T, S): ■ may look, · may not, samples one below another; of a larger mask its first corner.

    Whoever has only the corner gives the sizes of the whole as T and S.

    >>> print(draw(np.tri(2, 3, dtype=bool)))
    ■ · ·
    ■ ■ ·
    """
    T, S = T if T is not None else allowed.shape[-2], S if S is not None else allowed.shape[-1]
    *lead, rows, cols = (corner := allowed[..., :LARGEST, :LARGEST]).shape
    sheets = corner.reshape(int(np.prod(lead)), rows, cols)
    lines = []
    for number, sheet in enumerate(sheets[:SHEETS]):
        if len(sheets) > 1:
            lines.append(f"[{number}]")
        lines += [" ".join(SEEN if seen else HIDDEN for seen in row) + (" …" if cols < S else "") for row in sheet]
        if rows < T or cols < S or not sheet.size:
            lines.append(f"… ({T} × {S})")
    if len(sheets) > SHEETS:
        lines.append(f"… ({len(sheets)})")
    return "\n".join(lines)
