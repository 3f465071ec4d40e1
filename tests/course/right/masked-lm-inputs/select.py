import numpy as np


def mask_tokens(ids, special, choose, kind, random_ids, mask_id):
    choose = np.where(special, 1.0, choose)
    staying = [choose >= 0.15, kind >= 0.9, kind >= 0.8]
    inputs = np.select(staying, [ids, ids, random_ids], default=mask_id)
    targets = ids * (choose < 0.15) - 100 * (choose >= 0.15)
    return inputs, targets
