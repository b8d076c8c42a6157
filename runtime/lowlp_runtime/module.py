"""From a kernel's code to a function on a device, once per context and content."""

import functools
import hashlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lowlp_runtime import device
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.driver import call, driver, status_text
from lowlp_runtime.errors import DeviceError, LowlpValueError
from lowlp_runtime.ptx_version import ASSEMBLER_CUDA, cuda_for, cuda_of, dotted, newest_ptx, version_of
from lowlp_runtime.resources import ARCH

# Integrated GPUs: a cubin of the desktop chip of the same major number does not run there.
_TEGRA = {(5, 3), (6, 2), (7, 2), (8, 7)}
_DEFAULT_SHARED_BYTES = 48 << 10
_LOG_BYTES = 16 << 10


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel's function in one context, its handle, which is what cuLaunchKernelEx takes, and which code it came
    from."""

    binary: KernelBinary
    function: Any
    handle: int
    module: Any
    device: int
    image_kind: str
    arch: str


_lock = threading.Lock()
_loaded: dict[tuple[int, str], LoadedKernel] = {}


@functools.cache
def split_arch(arch: str) -> tuple[int, int, str]:
    """'sm_90a' as (9, 0, 'a'). Raises `LowlpValueError` for anything that is no architecture."""
    if not ARCH.fullmatch(arch):
        raise LowlpValueError(f"arch: expected a name such as 'sm_80' or 'sm_90a', got {arch!r}")
    digits = arch[3:].rstrip("af")
    return int(digits[:-1]), int(digits[-1]), arch[3 + len(digits) :]


def cubin_runs_on(arch: str, capability: tuple[int, int]) -> bool:
    """Whether machine code for `arch` runs on a device of this compute capability.

    CUDA programming guide, "Binary compatibility" and "Family-specific features": the same major number and at least
    the minor number; with suffix a, that very capability.
    """
    major, minor, suffix = split_arch(arch)
    if (major, minor) == capability:
        return True
    return suffix != "a" and major == capability[0] and minor < capability[1] and capability not in _TEGRA


def ptx_runs_on(arch: str, capability: tuple[int, int]) -> bool:
    """Whether PTX for `arch` may be compiled for this compute capability: any later one; with suffix a, that very one;
    with suffix f, one of the same major number."""
    major, minor, suffix = split_arch(arch)
    if suffix:
        return (major, minor) == capability or (suffix == "f" and major == capability[0] and minor < capability[1])
    return (major, minor) <= capability


def _best(arches: Iterable[str]) -> str | None:
    return max(arches, key=split_arch, default=None)


def select_image(binary: KernelBinary, capability: tuple[int, int]) -> tuple[str, str]:
    """Which code to load: ('cubin', arch) where one runs on the capability, else ('ptx', arch).

    Among several the latest architecture wins, and the more specific of one number ('sm_90a' before 'sm_90'). Raises
    `DeviceError` where the kernel holds nothing for the device.
    """
    cubin = _best(arch for arch in binary.cubins if cubin_runs_on(arch, capability))
    if cubin is not None:
        return "cubin", cubin
    ptx = _best(arch for arch in binary.ptx if ptx_runs_on(arch, capability))
    if ptx is not None:
        return "ptx", ptx
    held = [f"cubin {arch}" for arch in sorted(binary.cubins)] + [f"PTX {arch}" for arch in sorted(binary.ptx)]
    major, minor = capability
    raise DeviceError(
        f"kernel {binary.description.name!r} holds nothing for compute capability {major}.{minor}; "
        f"it holds {', '.join(held)}"
    )


def load_kernel(binary: KernelBinary, ordinal: int | None = None) -> LoadedKernel:
    """The kernel's function in the current context of a device (None: the current device), loaded at most once.

    A launch loads the kernel by itself; call this first where loading must not happen later, as inside the capture of a
    CUDA graph. Thread-safe. Raises `DeviceError` where there is no device, no code for it, or the driver refuses the
    code: then with the log of its compiler.
    """
    ordinal = device.current_device() if ordinal is None else ordinal
    with device.on_device(ordinal):
        return load_in_current_context(binary, ordinal)


def load_in_current_context(binary: KernelBinary, ordinal: int) -> LoadedKernel:
    """As `load_kernel`, in a context of device `ordinal` that is current already."""
    # The context's number, unlike its address, is never used again in the life of a process.
    key = (int(call("cuCtxGetId", None)), binary.content_hash)
    found = _loaded.get(key)
    if found is not None:
        return found
    with _lock:
        if key not in _loaded:
            _loaded[key] = _load(binary, ordinal)
        return _loaded[key]


def _load(binary: KernelBinary, ordinal: int) -> LoadedKernel:
    description = binary.description
    limit = device.max_shared_bytes(ordinal)
    if description.shared_bytes > limit:
        raise DeviceError(
            f"kernel {description.name!r} needs {description.shared_bytes} bytes of shared memory a block; "
            f"{device.device_name(ordinal)} has {limit}"
        )
    kind, arch, module = _load_code(binary, device.compute_capability(ordinal))
    function = call("cuModuleGetFunction", module, description.name.encode())
    attributes = driver().CUfunction_attribute
    static = int(call("cuFuncGetAttribute", attributes.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function))
    most = description.shared_bytes
    if description.dependent_launch and description.product is not None:
        # Launches may ask for more than the kernel needs (`even_blocks`).
        most = limit - static
    if most + static > _DEFAULT_SHARED_BYTES:
        dynamic = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", function, dynamic, most)
    return LoadedKernel(binary, function, int(function), module, ordinal, kind, arch)


def _load_code(binary: KernelBinary, capability: tuple[int, int]) -> tuple[str, str, Any]:
    """What `select_image` chooses, as a module. Where the driver is older than the assembler of machine code, and
    refuses that, the kernel's PTX: the driver's own compiler makes machine code of it."""
    kind, arch = select_image(binary, capability)
    what = f"kernel {binary.description.name!r}: {kind} for {arch}"
    if kind == "ptx":
        return kind, arch, _load_ptx(binary.ptx[arch], what)
    try:
        return kind, arch, _load_image(binary.cubins[arch], what)
    except DeviceError as refused:
        cuda = cuda_of(call("cuDriverGetVersion"))
        later = _best(arch for arch in binary.ptx if ptx_runs_on(arch, capability))
        if cuda >= ASSEMBLER_CUDA:
            raise
        if later is None:
            raise DeviceError(
                f"{refused}\nthe driver is of CUDA {dotted(cuda)}, machine code of CUDA {dotted(ASSEMBLER_CUDA)} or "
                "newer, and the kernel holds no PTX for this GPU: update the driver"
            ) from None
        return "ptx", later, _load_ptx(binary.ptx[later], f"kernel {binary.description.name!r}: PTX for {later}")


def _load_ptx(ptx: str, what: str) -> Any:
    """Raises `DeviceError` that names both versions where the driver does not know that of the PTX."""
    cuda, version = cuda_of(call("cuDriverGetVersion")), version_of(ptx)
    if version and version > newest_ptx(cuda) and cuda < ASSEMBLER_CUDA:
        least = cuda_for(version)
        raise DeviceError(
            f"{what} is of version {dotted(version)}, and the driver, of CUDA {dotted(cuda)}, compiles up to "
            f"{dotted(newest_ptx(cuda))}: update the driver" + (f" to CUDA {dotted(least)} or newer" if least else "")
        )
    return _load_image(ptx.encode() + b"\0", what)


def _load_image(image: bytes, what: str) -> Any:
    """cuModuleLoadDataEx, with the text of the driver's compiler in the error."""
    module, log = driver(), bytearray(_LOG_BYTES)
    options = module.CUjit_option
    names = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    status, loaded = module.cuModuleLoadDataEx(image, len(names), names, [log, len(log)])
    if status != module.CUresult.CUDA_SUCCESS:
        text = bytes(log).split(b"\0")[0].decode(errors="replace").strip()
        digest = hashlib.sha256(image).hexdigest()[:12]
        raise DeviceError(
            f"{what} (sha256 {digest}) cannot be loaded: {status_text(module, status)}" + (f"\n{text}" if text else "")
        )
    return loaded
