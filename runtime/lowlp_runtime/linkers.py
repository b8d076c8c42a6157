"""Assembling PTX in this process: by the library nvJitLink, or by the driver.

Both are linkers, which assemble what they are given as PTX. They need no temporary files and no program, and both print
what ptxas prints. See `lowlp_runtime.assemble` for when each is used.
"""

import contextlib
import ctypes
import hashlib
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from lowlp_runtime import device
from lowlp_runtime.driver import call, driver, status_text
from lowlp_runtime.errors import AssembleError, DeviceError

_LOG_BYTES = 64 << 10
_FIRST_PAGE = 4096
_DRIVER_VERSION = Path("/proc/driver/nvidia/version")


class NvJitLink:
    """nvJitLink, through `cuda.bindings.nvjitlink`."""

    def why_missing(self) -> str:
        """A sentence; '' where it can be used."""
        try:
            self._module().version()
        except Exception as error:  # cuda-bindings has classes of its own for each way of not finding the library
            first = (str(error).splitlines() or [type(error).__name__])[0]
            return f"nvJitLink cannot be loaded ({first}); install it with: pip install nvidia-nvjitlink"
        return ""

    def version(self) -> str:
        """Major and minor number, and a hash of the library's first page, which has its build id."""
        numbers = ".".join(map(str, self._module().version()))
        pathfinder = importlib.import_module("cuda.pathfinder")
        path = Path(pathfinder.load_nvidia_dynamic_lib("nvJitLink").abs_path)
        with path.open("rb") as file:
            first_page = file.read(_FIRST_PAGE)
        return f"{numbers} {path.stat().st_size} {hashlib.sha256(first_page).hexdigest()[:16]}"

    def assemble(self, ptx: str, arch: str, opt_level: int) -> tuple[bytes, str]:
        """Machine code and log. Raises `AssembleError` with the log."""
        module = self._module()
        options = [f"-arch={arch}", f"-O{opt_level}", "-verbose"]
        try:
            handle = module.create(len(options), options)
        except module.nvJitLinkError as error:
            raise AssembleError(f"nvJitLink refused its options {' '.join(options)}: {error}") from error
        try:
            data = ptx.encode() + b"\0"
            module.add_data(handle, module.InputType.PTX, data, len(data), "kernel.ptx")
            module.complete(handle)
            cubin = bytearray(module.get_linked_cubin_size(handle))
            module.get_linked_cubin(handle, cubin)
            return bytes(cubin), _log(module.get_info_log_size, module.get_info_log, handle)
        except module.nvJitLinkError as error:
            log = _log(module.get_error_log_size, module.get_error_log, handle)
            raise AssembleError(f"nvJitLink refused the PTX for {arch} ({error}):\n{log.strip()}") from error
        finally:
            module.destroy(handle)

    @staticmethod
    def _module() -> ModuleType:
        return importlib.import_module("cuda.bindings.nvjitlink")


def _log(size_of: Any, read: Any, handle: Any) -> str:
    text = bytearray(max(1, size_of(handle)))
    read(handle, text)
    return bytes(text).split(b"\0")[0].decode(errors="replace")


class DriverLinker:
    """The driver's linker, cuLink, in the context of the current device."""

    def why_missing(self) -> str:
        """A sentence; '' where it can be used."""
        reason = device.why_no_device()
        return f"needs a GPU: {reason}" if reason else ""

    def version(self) -> str:
        """The driver's API version and, where the system tells it, its release."""
        release = ""
        if _DRIVER_VERSION.exists():
            release = _DRIVER_VERSION.read_text(encoding="utf-8", errors="replace").splitlines()[0]
        return f"{call('cuDriverGetVersion')} {release}".strip()

    def assemble(self, ptx: str, arch: str, opt_level: int) -> tuple[bytes, str]:
        """Machine code and log. Raises `AssembleError` with the log, or `DeviceError`."""
        with device.on_device(device.current_device()):
            return self._link(ptx, arch, opt_level)

    def _link(self, ptx: str, arch: str, opt_level: int) -> tuple[bytes, str]:
        module = driver()
        target = getattr(module.CUjit_target, f"CU_TARGET_COMPUTE_{arch.removeprefix('sm_').upper()}", None)
        if target is None:
            raise AssembleError(f"the driver's bindings know no target {arch}; use ptxas or nvjitlink")
        said, refused = bytearray(_LOG_BYTES), bytearray(_LOG_BYTES)
        options = module.CUjit_option
        settings = {
            options.CU_JIT_TARGET: target,
            options.CU_JIT_OPTIMIZATION_LEVEL: 4 if opt_level == 3 else opt_level,  # the driver counts to 4
            options.CU_JIT_LOG_VERBOSE: True,
            options.CU_JIT_INFO_LOG_BUFFER: said,
            options.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: len(said),
            options.CU_JIT_ERROR_LOG_BUFFER: refused,
            options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: len(refused),
        }
        state = call("cuLinkCreate", len(settings), list(settings), list(settings.values()))
        try:
            data = ptx.encode() + b"\0"
            kind = module.CUjitInputType.CU_JIT_INPUT_PTX
            status, *_ = module.cuLinkAddData(state, kind, data, len(data), b"kernel.ptx", 0, [], [])
            if status == module.CUresult.CUDA_SUCCESS:
                status, address, size = module.cuLinkComplete(state)
            if status != module.CUresult.CUDA_SUCCESS:
                what = f"the driver refused the PTX for {arch} ({status_text(module, status)})"
                raise AssembleError(f"{what}:\n{_text(refused)}")
            # The memory is the linker's, and goes with it.
            return ctypes.string_at(int(address), int(size)), _text(said)
        finally:
            # Where this fails too, what went wrong before is what counts.
            with contextlib.suppress(DeviceError):
                call("cuLinkDestroy", state)


def _text(log: bytearray) -> str:
    return bytes(log).split(b"\0")[0].decode(errors="replace").strip()
