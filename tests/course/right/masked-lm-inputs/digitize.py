import numpy as np


def mask_tokens(ids, special, choose, kind, random_ids, mask_id):
    options = np.stack([np.full(ids.shape, mask_id), random_ids, ids])
    which = np.digitize(kind, [0.8, 0.9])
    which[special | (choose >= 0.15)] = 2
    inputs = np.take_along_axis(options, which[None], axis=0)[0]
    return inputs, np.where(special, -100, np.where(choose < 0.15, ids, -100)).astype(np.int32)
