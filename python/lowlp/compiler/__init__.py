"""From a block program to PTX, machine code and code for the CPU, with what is kept on disk."""

from .architectures import current_arch as current_arch
from .compilation import CpuKernel as CpuKernel
from .compilation import compile as compile
from .compilation import compile_cpu as compile_cpu
from .compiled_kernel import CompiledKernel as CompiledKernel
from .compiled_kernel import load as load
