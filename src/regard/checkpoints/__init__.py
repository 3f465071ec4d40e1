"""Models on disk: a folder with config.json and safetensors, written atomically, read lazily. No torch, no pickle."""

from regard.checkpoints.hub_folder import write_hub_model
from regard.checkpoints.model_folder import Stored, is_recurrent, read_model, read_recurrent, save_model
from regard.checkpoints.tensor_file import TensorFile, Weights, quantise

__all__ = [
    "Stored",
    "TensorFile",
    "Weights",
    "is_recurrent",
    "quantise",
    "read_model",
    "read_recurrent",
    "save_model",
    "write_hub_model",
]
