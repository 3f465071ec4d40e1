import numpy as np


def mask_tokens(ids, special, choose, kind, random_ids, mask_id):
    inputs, targets = ids.copy(), np.full(ids.shape, -100)
    for place in np.ndindex(ids.shape):
        if special[place] or choose[place] >= 0.15:
            continue
        targets[place] = ids[place]
        if kind[place] < 0.8:
            inputs[place] = mask_id
        elif kind[place] < 0.9:
            inputs[place] = random_ids[place]
    return inputs, targets
