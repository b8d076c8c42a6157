"""The fake driver proves nothing about names: each one that the package uses must exist in cuda-bindings."""

import re
from pathlib import Path

import pytest

import lowlp_runtime
from lowlp_runtime.launch_call import LaunchLibrary

SOURCES = "\n".join(path.read_text() for path in Path(lowlp_runtime.__file__).parent.glob("*.py"))


def test_functions_exist() -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    names = set(re.findall(r"call\(\s*\"(cu\w+)\"|(?:module|driver\(\))\.(cu\w+)\(", SOURCES))
    names = {called or attribute for called, attribute in names} | set(LaunchLibrary._fields)
    assert {"cuLaunchKernelEx", "cuInit", "cuModuleLoadDataEx", "cuMemsetD8Async"} <= names
    assert [name for name in sorted(names) if not hasattr(driver, name)] == []


def test_enumerators_exist() -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    enums = (
        driver.CUdevice_attribute,
        driver.CUfunction_attribute,
        driver.CUpointer_attribute,
        driver.CUjit_option,
        driver.CUjitInputType,
        driver.CUjit_target,
        driver.CUevent_flags,
        driver.CUlaunchAttributeID,
        driver.CUstreamCaptureMode,
        driver.CUstreamCaptureStatus,
        driver.CUstream_flags,
        driver.CUtensorMapDataType,
        driver.CUtensorMapSwizzle,
        driver.CUtensorMapInterleave,
        driver.CUtensorMapL2promotion,
        driver.CUtensorMapFloatOOBfill,
    )
    names = set(re.findall(r"\.(CU_[A-Z0-9_]+)", SOURCES))
    names |= {f"CU_DEVICE_ATTRIBUTE_{name}" for name in re.findall(r"attribute\(\"([A-Z0-9_]+)\"", SOURCES)}
    assert {"CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE", "CU_JIT_ERROR_LOG_BUFFER"} <= names
    assert [name for name in sorted(names) if not any(hasattr(enum, name) for enum in enums)] == []
