"""The weights of a stored model as tensors, one after the other: never a second copy of the model in memory."""

import numpy as np
import torch
from torch import Tensor

from regard.checkpoints.hub_folder import HubWeights
from regard.checkpoints.tensor_file import Weights, widened


def stored_tensors(
    weights: Weights | HubWeights, dtype: str | None = None, *, mapped: bool = False
) -> dict[str, Tensor]:
    """Each weight by name, contiguous.

    dtype    of all weights, such as "float32"; by default each has the one in which it is stored
    mapped   a weight that needs no conversion is not copied: its part of the file is read on access. The file must not
             be changed in place while the model is used; changing the weight does not change the file
    """
    dtypes, found = weights.dtypes, dict[str, Tensor]()
    for name in weights:
        raw = weights.raw(name)
        tensor = _as_tensor(raw, getattr(torch, dtype or dtypes[name])).contiguous()
        is_copy = tensor.data_ptr() != raw.ctypes.data
        if not (is_copy or mapped):
            tensor, is_copy = tensor.clone(), True
        if is_copy:
            weights.release(name)
        found[name] = tensor
    return found


def _as_tensor(array: np.ndarray, dtype: torch.dtype) -> Tensor:
    """The array as a tensor of that dtype; bfloat16 is given as uint16."""
    if array.dtype == np.uint16:
        if dtype == torch.float32:
            return torch.from_numpy(widened(array))  # by one thread as fast as by several of torch
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(dtype)
    if not array.flags.writeable:  # torch has no read-only tensors
        array = array.copy()
    return torch.from_numpy(array).to(dtype)
