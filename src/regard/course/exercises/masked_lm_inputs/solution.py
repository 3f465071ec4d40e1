import numpy as np


def mask_tokens(
    ids: np.ndarray, special: np.ndarray, choose: np.ndarray, kind: np.ndarray, random_ids: np.ndarray, mask_id: int
) -> tuple[np.ndarray, np.ndarray]:
    chosen = (choose < 0.15) & ~special
    targets = np.where(chosen, ids, -100)
    masked = chosen & (kind < 0.8)
    replaced = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs = np.where(masked, mask_id, ids)
    inputs = np.where(replaced, random_ids, inputs)
    return inputs, targets
