import numpy as np


def swiglu(x: np.ndarray, W_gate: np.ndarray, W_up: np.ndarray, W_down: np.ndarray) -> np.ndarray:
    """(SiLU(x W_gate) ∘ x W_up) W_down, the same for every position of x (…, d_model).

    (SiLU(x W_gate) ∘ x W_up) W_down，对 x (…, d_model) 的每个位置都一样。
    """
    raise NotImplementedError
