"""Quantised checkpoints of all common formats, read into `QuantizedTensor`, and lowlp's own.

    for name, value in lowlp.checkpoints.read("TheModel-GPTQ"):   # QuantizedTensor, or a numpy array
        ...
    lowlp.checkpoints.save("TheModel-lowlp", lowlp.checkpoints.read("TheModel-GPTQ"))

docs/checkpoints.md has the formats, and what is exact. Above `weights`, and used by what runs models; nothing below
knows it.
"""

from lowlp.checkpoints.checkpoint import Checkpoint as Checkpoint
from lowlp.checkpoints.checkpoint import open as open
from lowlp.checkpoints.checkpoint import read as read
from lowlp.checkpoints.layers import InputQuantization as InputQuantization
from lowlp.checkpoints.layers import Layer as Layer
from lowlp.checkpoints.layers import Transform as Transform
from lowlp.checkpoints.saving import save as save

__all__ = ["Checkpoint", "InputQuantization", "Layer", "Transform", "open", "read", "save"]
