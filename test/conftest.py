"""What all Python tests share: tests below test/gpu are skipped, with the reason, where there is no GPU."""

from __future__ import annotations

import functools
from pathlib import Path

import hypothesis
import pytest

GPU_TESTS = Path(__file__).parent / "gpu"

# A slow or shared machine must not fail a property test, and a failure must be the same for everyone.
hypothesis.settings.register_profile("lowlp", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("lowlp")


@functools.cache
def missing_gpu() -> str | None:
    """Why no GPU can be used, or None if one can."""
    from cuda.bindings import driver

    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:  # the driver library is not installed
        return f"no NVIDIA driver: {error}"
    if status != driver.CUresult.CUDA_SUCCESS:
        return f"no NVIDIA GPU: cuInit returned {status.name}"
    status, count = driver.cuDeviceGetCount()
    return None if status == driver.CUresult.CUDA_SUCCESS and count else "no NVIDIA GPU"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if GPU_TESTS in item.path.parents:
            item.add_marker("gpu")
        if item.get_closest_marker("gpu") and (reason := missing_gpu()):
            item.add_marker(pytest.mark.skip(reason=reason))
