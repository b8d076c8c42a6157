"""lowlp's run time: launches compiled kernels, and keeps them in files.

It needs cuda-bindings and a driver to launch, ptxas to assemble, and nothing at all to read a saved kernel. It
imports no compiler. Importing it loads no driver and no array library.
"""

from lowlp_runtime.array import DeviceArray, as_device_array
from lowlp_runtime.assemble import AssembledCubin, FunctionResources, assemble_ptx, find_ptxas
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.cache import KernelCache, cache_key
from lowlp_runtime.dependent_launch import no_dependent_launch
from lowlp_runtime.description import FORMAT_VERSION, PACKED_FORMAT_VERSION, KernelDescription, Parameter
from lowlp_runtime.device import compute_capability, cuda_device_count, device_name, why_no_device
from lowlp_runtime.errors import (
    AssembleError,
    DeviceError,
    KernelFileError,
    LowlpError,
    LowlpFileNotFoundError,
    LowlpIsADirectoryError,
    LowlpOSError,
    LowlpPermissionError,
    LowlpRuntimeError,
    LowlpTypeError,
    LowlpValueError,
)
from lowlp_runtime.kernel import Kernel, load
from lowlp_runtime.launch import launch
from lowlp_runtime.module import LoadedKernel, load_kernel
from lowlp_runtime.operands import Operand
from lowlp_runtime.product import Product
from lowlp_runtime.resources import Resources
from lowlp_runtime.tensor_map import TensorMap
from lowlp_runtime.timing import Timing, measure
from lowlp_runtime.workspace import WorkspacePart

__all__ = [
    "FORMAT_VERSION",
    "PACKED_FORMAT_VERSION",
    "AssembleError",
    "AssembledCubin",
    "DeviceArray",
    "DeviceError",
    "FunctionResources",
    "Kernel",
    "KernelBinary",
    "KernelCache",
    "KernelDescription",
    "KernelFileError",
    "LoadedKernel",
    "LowlpError",
    "LowlpFileNotFoundError",
    "LowlpIsADirectoryError",
    "LowlpOSError",
    "LowlpPermissionError",
    "LowlpRuntimeError",
    "LowlpTypeError",
    "LowlpValueError",
    "Operand",
    "Parameter",
    "Product",
    "Resources",
    "TensorMap",
    "Timing",
    "WorkspacePart",
    "as_device_array",
    "assemble_ptx",
    "cache_key",
    "compute_capability",
    "cuda_device_count",
    "device_name",
    "find_ptxas",
    "launch",
    "load",
    "load_kernel",
    "measure",
    "no_dependent_launch",
    "why_no_device",
]
