"""PTX text to a cubin, by what is installed.

Three assemblers are known, and the first that can be used is; all three hold the same compiler of NVIDIA:

    ptxas      the program, from the `nvidia-cuda-nvcc` wheel (below the `nvidia` namespace package) or on PATH
    nvjitlink  the library of the `nvidia-nvjitlink` wheel or of a CUDA toolkit, through cuda-bindings
    driver     the driver's own; needs a GPU, though not of the architecture that is assembled for

An argument, or the environment variable LOWLP_ASSEMBLER, forces one of them. The first two need no GPU.
"""

import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lowlp_runtime.errors import AssembleError, LowlpTypeError, LowlpValueError
from lowlp_runtime.linkers import DriverLinker, NvJitLink
from lowlp_runtime.resources import ARCH

TIMEOUT_SECONDS = 600
VARIABLE = "LOWLP_ASSEMBLER"


@dataclass(frozen=True)
class FunctionResources:
    """What the assembler reports of one entry point: registers a thread, and bytes (spills and stack a thread, shared a
    block).
    """

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class AssembledCubin:
    """A cubin and what the assembler said of it.

    cubin      machine code, an ELF image
    arch       what it was assembled for ('sm_90a')
    functions  resources of every entry point by its name
    log        the assembler's text, unchanged
    assembler  'ptxas', 'nvjitlink' or 'driver'
    """

    cubin: bytes
    arch: str
    functions: dict[str, FunctionResources]
    log: str
    assembler: str = "ptxas"

    def _largest(self, field: str) -> int:
        return max((int(getattr(f, field)) for f in self.functions.values()), default=0)

    @property
    def registers(self) -> int:
        """Registers a thread, of the entry point that takes most."""
        return self._largest("registers")

    @property
    def spill_bytes(self) -> int:
        """Bytes a thread that are stored and loaded because registers ran out, of the worst entry point."""
        return max((f.spill_store_bytes + f.spill_load_bytes for f in self.functions.values()), default=0)

    @property
    def product_remarks(self) -> tuple[str, ...]:
        """What the assembler had to do about products of warpgroups: waits and fences that it has added, and products
        that it makes one after the other. Code that says itself when it waits gets none."""
        return tuple(_PRODUCT_REMARK.findall(self.log))

    @property
    def shared_bytes(self) -> int:
        """Static shared memory a block, of the entry point that takes most."""
        return self._largest("shared_bytes")


def assemble_ptx(ptx: str, arch: str, opt_level: int = 3, assembler: str | None = None) -> AssembledCubin:
    """Assembles PTX text for one architecture.

    ptx        a module with at least one entry point
    arch       'sm_80', 'sm_90a', 'sm_100f', ...
    opt_level  0..3, the assembler's -O
    assembler  'ptxas', 'nvjitlink' or 'driver'; None: see `choose_assembler`

    Raises `LowlpValueError` or `LowlpTypeError` for malformed arguments, `AssembleError` where no assembler is there or
    it refuses the text: the message then ends with what it says.
    """
    if not isinstance(ptx, str):
        raise LowlpTypeError(f"ptx: expected str, got {type(ptx).__name__}")
    if not isinstance(arch, str) or not ARCH.fullmatch(arch):
        raise LowlpValueError(f"arch: expected a name such as 'sm_80' or 'sm_90a', got {arch!r}")
    if opt_level not in (0, 1, 2, 3):
        raise LowlpValueError(f"opt_level: must be in 0..3, got {opt_level!r}")
    name = choose_assembler(assembler)
    cubin, log = _ASSEMBLERS[name].assemble(ptx, arch, int(opt_level))
    return AssembledCubin(cubin, arch, parse_resources(log), log, name)


def choose_assembler(assembler: str | None = None) -> str:
    """The assembler that is used: the argument, else what LOWLP_ASSEMBLER names, else the first that can be.

    Raises `LowlpValueError` for an unknown name, and `AssembleError`, with the reason and what to install, where the
    one that is asked for, or every one, is missing.
    """
    wanted = assembler if assembler is not None else os.environ.get(VARIABLE) or None
    if wanted is not None:
        if wanted not in _ASSEMBLERS:
            argument = "assembler" if assembler is not None else VARIABLE
            raise LowlpValueError(f"{argument}: expected one of {', '.join(ASSEMBLERS)}, got {wanted!r:.40}")
        reason = _ASSEMBLERS[wanted].why_missing()
        if reason:
            raise AssembleError(f"{wanted} was asked for and cannot be used: {reason}")
        return wanted
    reasons = []
    for name, candidate in _ASSEMBLERS.items():
        reason = candidate.why_missing()
        if not reason:
            return name
        reasons.append(f"{name}: {reason}")
    raise AssembleError("there is nothing to assemble PTX with\n  " + "\n  ".join(reasons))


def assembler_identity(assembler: str | None = None) -> str:
    """Name and version of what `choose_assembler` chooses: equal texts stand for equal machine code."""
    name = choose_assembler(assembler)
    return f"{name} {_ASSEMBLERS[name].version()}"


class _Ptxas:
    def why_missing(self) -> str:
        try:
            find_ptxas()
        except AssembleError as error:
            return str(error)
        return ""

    def version(self) -> str:
        return _ptxas_version(find_ptxas())

    def assemble(self, ptx: str, arch: str, opt_level: int) -> tuple[bytes, str]:
        try:
            return self._assemble_files(ptx, arch, opt_level)
        except OSError as error:
            raise AssembleError(f"the temporary files of ptxas cannot be written: {error}") from error

    @staticmethod
    def _assemble_files(ptx: str, arch: str, opt_level: int) -> tuple[bytes, str]:
        with tempfile.TemporaryDirectory(prefix="lowlp-ptxas-") as folder:
            source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
            source.write_text(ptx, encoding="utf-8")
            done = _run_ptxas([find_ptxas(), "-v", f"-arch={arch}", f"-O{opt_level}", source, "-o", target], arch)
            log = (done.stdout + done.stderr).replace(str(source), "kernel.ptx")
            if done.returncode != 0 or not target.is_file():
                raise AssembleError(f"ptxas refused the PTX for {arch} (exit status {done.returncode}):\n{log.strip()}")
            return target.read_bytes(), log


def _run_ptxas(command: list[str | Path], arch: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise AssembleError(f"ptxas took more than {TIMEOUT_SECONDS} s for {arch}") from error
    except OSError as error:
        raise AssembleError(f"ptxas cannot be run: {error}") from error


@functools.cache
def _ptxas_version(program: Path) -> str:
    done = _run_ptxas([program, "--version"], "--version")
    found = re.search(r"V\d+\.\d+\.\d+", done.stdout)
    return found[0] if found else hashlib.sha256(program.read_bytes()).hexdigest()


_ASSEMBLERS: "dict[str, _Ptxas | NvJitLink | DriverLinker]" = {
    "ptxas": _Ptxas(),
    "nvjitlink": NvJitLink(),
    "driver": DriverLinker(),
}
ASSEMBLERS = tuple(_ASSEMBLERS)


@functools.cache
def find_ptxas() -> Path:
    """The program ptxas. Raises `AssembleError`, with what to install, where there is none."""
    for candidate in _candidates():
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise AssembleError(
        "ptxas was found neither in the nvidia-cuda-nvcc wheel nor on PATH; "
        "install it with: pip install nvidia-cuda-nvcc"
    )


def _candidates() -> Iterator[Path]:
    namespace = importlib.util.find_spec("nvidia")
    for root in (namespace.submodule_search_locations or []) if namespace else []:
        # Since CUDA 13 all wheels share nvidia/cu13; those of CUDA 12 have a folder each.
        for folder in (*sorted(Path(root).glob("cu[0-9]*"), reverse=True), Path(root, "cuda_nvcc")):
            yield folder / "bin" / "ptxas"
            yield folder / "bin" / "ptxas.exe"
    on_path = shutil.which("ptxas")
    if on_path:
        yield Path(on_path)


# ptxas numbers what it says of wgmma C7510 to C7519.
_PRODUCT_REMARK = re.compile(r"\(C751\d\) (.*)")
_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '[^']+'")
_NUMBERS = {
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads"),
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
}


def parse_resources(log: str) -> dict[str, FunctionResources]:
    """Resources of every entry point, from the text that all assemblers print when verbose; what it leaves out is 0."""
    pieces = _ENTRY.split(log)  # text before, then name and text by turns
    functions = {}
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        # Device functions are reported after the entry's own "Used ..." line; they are not part of it.
        used = re.search(r"Used \d+ registers.*", text)
        own = text[: used.end()] if used else text
        found = {field: pattern.search(own) for field, pattern in _NUMBERS.items()}
        functions[name] = FunctionResources(**{field: int(m[1]) if m else 0 for field, m in found.items()})
    return functions
