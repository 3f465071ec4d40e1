import numpy as np


def mask_tokens(ids, special, choose, kind, random_ids, mask_id):
    picked = np.logical_and(choose < 0.15, np.logical_not(special))
    targets = np.full_like(ids, -100)
    targets[picked] = ids[picked]
    inputs = np.array(ids)
    random = picked & (kind < 0.9)
    inputs[random] = random_ids[random]
    inputs[random & (kind < 0.8)] = mask_id
    return [inputs, targets]
