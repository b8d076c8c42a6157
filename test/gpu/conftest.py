"""Every test of this folder needs a CUDA device and is skipped where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lowlp_runtime import cuda_device_count, why_no_device


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = __file__.rpartition("/")[0]
    if not cuda_device_count():
        for item in items:
            if str(item.path).startswith(here):
                item.add_marker(pytest.mark.skip(reason=f"no CUDA device: {why_no_device()}"))


@pytest.fixture(scope="session")
def compiled_ahead(request: pytest.FixtureRequest) -> None:
    """Compiles, on all processors, the kernels of every `Product` that is a parameter of a test of this run."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
    from linear_forms import Product, compile_ahead

    from lowlp.compiler.architectures import current_arch

    parameters = [vars(item)["callspec"].params.values() for item in request.session.items if "callspec" in vars(item)]
    compile_ahead({value for values in parameters for value in values if isinstance(value, Product)}, current_arch())
