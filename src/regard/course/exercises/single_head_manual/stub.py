import math

import torch
from torch import Tensor, nn


class SingleHeadSelfAttention_Manual(nn.Module):
    """One head with its own parameters, used as x @ W + b. No nn.Linear.

    单头自注意力，自己管理参数：x @ W + b。不用 nn.Linear。
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        # W_Q W_K W_V W_O (d_model, d_model), b_Q b_K b_V b_O (d_model,): nn.Parameter
        raise NotImplementedError

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        # x (B, T, d_model) -> (B, T, d_model), (B, T, T)
        raise NotImplementedError
