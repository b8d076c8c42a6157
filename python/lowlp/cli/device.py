"""Where a command runs a kernel: a GPU, or the CPU target."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import lowlp_runtime
from lowlp_runtime.errors import DeviceError

CHOICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Device:
    """Where the kernel runs, and why not elsewhere."""

    is_cuda: bool
    label: str
    note: str = ""


def choose_device(wanted: str) -> Device:
    """The device for 'auto', 'cpu' or 'cuda'. Raises `DeviceError` where 'cuda' cannot be had."""
    missing = lowlp_runtime.why_no_device()
    if not missing and importlib.util.find_spec("torch") is None:
        missing = "a GPU is there, but PyTorch, which holds its arrays, is not installed: pip install torch"
    if wanted == "cuda" and missing:
        raise DeviceError(f"--device cuda: {missing}")
    if wanted == "cpu" or missing:
        note = f"no GPU is used: {missing}" if wanted == "auto" else ""
        return Device(False, "the CPU target", note)
    return Device(True, lowlp_runtime.device_name())
