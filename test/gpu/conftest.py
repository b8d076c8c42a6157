"""Every test of this folder needs a CUDA device and is skipped where there is none."""

import pytest

from lowlp_runtime import cuda_device_count, why_no_device


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = __file__.rpartition("/")[0]
    if not cuda_device_count():
        for item in items:
            if str(item.path).startswith(here):
                item.add_marker(pytest.mark.skip(reason=f"no CUDA device: {why_no_device()}"))
