"""Models on disk: a folder with config.json and safetensors, written atomically, read lazily. No torch, no pickle."""

from regard.checkpoints.model_folder import Stored, read_model, save_model
from regard.checkpoints.quantised import Weights, quantise
from regard.checkpoints.tensor_file import TensorFile

__all__ = ["Stored", "TensorFile", "Weights", "quantise", "read_model", "save_model"]
