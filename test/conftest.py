"""What all tests share: kernels are not kept where the user keeps theirs, random tests repeat, and of large matrices a
sample is run."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import hypothesis
import pytest
from sampled_cases import sample_of

# A slow or shared machine must not fail a property test, and a failure must be the same for everyone.
hypothesis.settings.register_profile("lowlp", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("lowlp")

VARIABLES = ("LOWLP_CACHE_DIR", "LOWLP_CACHE_MAX_BYTES", "LOWLP_ASSEMBLER", "LOWLP_TUNED")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sampled(cases): of all cases only so many, unless LOWLP_WHOLE_MATRIX is set")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what `sampled` does, but for cases that are named: `pytest 'test_x.py::test_y[a case]'`."""
    if os.environ.get("LOWLP_WHOLE_MATRIX") or any("[" in argument for argument in config.args):
        return
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            tests.setdefault(item.nodeid.split("[")[0], []).append(item)
    left_out = set[pytest.Item]()
    for name, cases in tests.items():
        marker = cases[0].get_closest_marker("sampled")
        assert marker
        left_out |= set(cases) - set(sample_of(cases, marker.args[0], name))
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))


def pytest_collection_finish() -> None:
    """Tests and their modules stay to the end: the garbage collector need not look at them again and again. Tracing
    makes many objects that live for long, which are no reason to look for cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


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
