"""The CUDA driver, loaded when first needed, with its status codes turned into errors.

Everything else in the package reaches CUDA through `driver()` and `call()`, so that importing the package touches no
GPU and one place decides what a missing driver means.
"""

import functools
import importlib
from types import ModuleType
from typing import Any

from lowlp_runtime.errors import DeviceError


@functools.cache
def driver() -> ModuleType:
    """`cuda.bindings.driver`, initialised (cuInit). Raises `DeviceError` where that fails, and says why."""
    try:
        module = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DeviceError(
            f"cuda-bindings cannot be imported ({error}); install it with: pip install cuda-bindings"
        ) from error
    try:
        (status,) = module.cuInit(0)
    except (RuntimeError, OSError) as error:  # the bindings' answer where libcuda is not on the machine
        raise DeviceError(f"the NVIDIA driver cannot be loaded: {error}") from error
    if status != module.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"the NVIDIA driver cannot be initialised: {status_text(module, status)}")
    return module


def status_text(module: ModuleType, status: Any) -> str:
    """Name and sentence of a driver status, such as 'CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected'."""
    _, name = module.cuGetErrorName(status)
    _, sentence = module.cuGetErrorString(status)
    parts = [part.decode(errors="replace") for part in (name, sentence) if part]
    return ": ".join(parts) or str(status)


def check_status(name: str, status: Any) -> None:
    """Raises `DeviceError` with the name of the driver function and the driver's text for any status but success."""
    module = driver()
    if status != module.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"{name} failed: {status_text(module, status)}")


def call(name: str, *arguments: Any) -> Any:
    """Calls driver function `name`. Returns its result, a tuple where it has several, None where it has none.

    Raises `DeviceError` with the function's name and the driver's text for any status but success.
    """
    status, *results = getattr(driver(), name)(*arguments)
    if status:
        check_status(name, status)
    if not results:
        return None
    return results[0] if len(results) == 1 else tuple(results)
