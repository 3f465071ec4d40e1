"""The norms of the values of a head, one number for each column of its map: a second scale beside the weights."""

from typing import Literal

import numpy as np

from regard.arrays import to_numpy
from regard.attention_call import WeightsFromQK
from regard.views.exact_part import ExactPart
from regard.views.picture import Picture

Norms = tuple[Literal["output", "value"], np.ndarray]


def column_norms(drawn: Picture) -> Norms | None:
    """The mean ‖v W_o‖ ("output") or ‖v‖ ("value") of the keys of each column; None where neither was kept."""
    record = drawn.record.whole if isinstance(drawn.record, ExactPart) else drawn.record
    cols = drawn.record.cols if isinstance(drawn.record, ExactPart) else slice(0, record.shape[3])
    own = None
    if isinstance(record.exact, WeightsFromQK) and record.exact.v is not None:
        v = record.exact.of_head(drawn.sample, drawn.head).v
        own = np.linalg.norm(np.asarray(to_numpy(v), np.float64)[0, 0], axis=-1)
    kept = None if record.value_norms is None else to_numpy(record.value_norms[drawn.sample, drawn.head])
    found = own if kept is None else np.asarray(kept, np.float64)
    if found is None or not len(found[cols]):
        return None
    is_value = kept is None or (own is not None and np.allclose(own, kept, rtol=1e-3, equal_nan=True))
    starts = np.arange(0, len(found[cols]), drawn.wide)
    sizes = np.diff(np.append(starts, len(found[cols])))
    means = np.add.reduceat(found[cols], starts) / sizes
    return "value" if is_value else "output", means.astype(np.float32)
