"""Names of GPU architectures: as arguments, and of the devices that are here."""

from __future__ import annotations

import re

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.device import compute_capability, current_device

DEFAULT_ARCH = "sm_90a"
_ARCH = re.compile(r"sm_[1-9][0-9]{1,2}[af]?")


def check_arch(arch: object, argument: str = "target") -> str:
    """`arch` if it is spelled as an architecture; the compiler then knows it or not.

    Raises `LowlpTypeError` and `LowlpValueError`, which name `argument`.
    """
    if not isinstance(arch, str):
        raise LowlpTypeError(f"{argument}: expected an architecture such as 'sm_90a', got {arch!r:.40}")
    if not _ARCH.fullmatch(arch):
        raise LowlpValueError(
            f"{argument}: expected an architecture such as 'sm_90a', got {arch!r:.40}; `lowlp targets` lists all"
        )
    return arch


def current_arch() -> str:
    """The architecture of the current CUDA device. Raises `DeviceError` where there is none."""
    return arch_of(current_device())


def arch_of(ordinal: int) -> str:
    """The architecture of a CUDA device. Raises `DeviceError`, or `LowlpValueError` where it is not there."""
    major, minor = compute_capability(ordinal)
    suffix = "a" if major in (9, 10, 12) else ""
    return f"sm_{major}{minor}{suffix}"
