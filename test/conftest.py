"""What all tests share: kernels are not kept where the user keeps theirs, and random tests repeat."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import hypothesis
import pytest

# A slow or shared machine must not fail a property test, and a failure must be the same for everyone.
hypothesis.settings.register_profile("lowlp", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("lowlp")

VARIABLES = ("LOWLP_CACHE_DIR", "LOWLP_CACHE_MAX_BYTES", "LOWLP_ASSEMBLER", "LOWLP_TUNED")


def pytest_collection_finish() -> None:
    """Tests and their modules stay to the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder of this run, also for the processes that tests start, and shared by those that divide the tests among
    themselves (pytest-xdist); settings of the user do not count."""
    before = {name: os.environ.pop(name, None) for name in VARIABLES}
    of_process = tmp_path_factory.getbasetemp()
    of_run = of_process.parent if "PYTEST_XDIST_WORKER" in os.environ else of_process
    os.environ["LOWLP_CACHE_DIR"] = str(of_run / "kernel-cache")
    yield
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
