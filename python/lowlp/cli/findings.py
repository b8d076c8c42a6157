"""What `lowlp doctor` looks at, one function for each thing, from what compiles kernels to what calls them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import lowlp_runtime
from lowlp import __version__
from lowlp_runtime import cache
from lowlp_runtime.assemble import ASSEMBLERS, assembler_identity, choose_assembler, find_ptxas
from lowlp_runtime.device import multiprocessors
from lowlp_runtime.driver import call
from lowlp_runtime.errors import AssembleError, DeviceError, LowlpError
from lowlp_runtime.module import ptx_runs_on
from lowlp_runtime.ptx_version import ASSEMBLER_CUDA, Version, cuda_for, cuda_of, dotted, newest_ptx

from . import output

LEAST_CAPABILITY: Final = (8, 0)
_RELEASE: Final = Path("/sys/module/nvidia/version")
_PACKAGES: Final = {
    "torch": ((2, 4), "lowlp.torch, and arrays on a GPU", "lowlp[torch]"),
    "transformers": ((5, 17), "lowlp.transformers", "lowlp[transformers]"),
    "safetensors": ((0, 5), "lowlp.checkpoints", "lowlp[checkpoints]"),
    "gguf": ((0, 17), "i-quants of GGUF", "lowlp[checkpoints]"),
}
"""Packages by what they are for: the least version, and what installs them."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    state   'has'; 'lacks', without which kernels are not compiled or not run; 'note', which only some need
    text    what there is, or why not
    advice  what to do; '' where there is nothing to do
    """

    name: str
    state: Literal["has", "lacks", "note"]
    text: str
    advice: str = ""


def findings(needs_gpu: bool = True) -> Iterator[Finding]:
    """All findings.

    needs_gpu  no GPU, or no driver for it, is something missing, and not only noted
    """
    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Finding("lowlp", "has", f"{__version__}, {python}")
    yield _compiler()
    yield from _assemblers()
    yield from _gpus("lacks" if needs_gpu else "note")
    yield _kernel_cache()
    yield _temporary_files()
    for name in _PACKAGES:
        yield _package(name)


def _compiler() -> Finding:
    try:
        from lowlp.compiler.targets import targets

        known = targets()
    except ImportError as error:
        return Finding(
            "compiler", "lacks", f"its extension cannot be loaded: {error}", "saved kernels run without it; see README"
        )
    return Finding("compiler", "has", f"{known[0].chip} to {known[-1].chip}, and the CPU target")


def _assemblers() -> Iterator[Finding]:
    try:
        chosen = choose_assembler()
    except LowlpError as error:
        text = " ".join(str(error).split())
        yield Finding("assembler", "lacks", text, "pip install nvidia-cuda-nvcc==13.0.*")
        return
    where = f", {find_ptxas()}" if chosen == "ptxas" else ""
    yield Finding("assembler", "has", f"{assembler_identity()}{where}")
    others = []
    for name in ASSEMBLERS:
        if name != chosen:
            try:
                others.append(f"{name}: {assembler_identity(name).removeprefix(name).strip()}")
            except AssembleError:
                others.append(f"{name}: not there")
    yield Finding("", "has", f"others are {'; '.join(others)}")


def _gpus(without: Literal["lacks", "note"]) -> Iterator[Finding]:
    missing = lowlp_runtime.why_no_device()
    if missing and not _driver_version():
        advice = "kernels run on the CPU target; for a GPU install the NVIDIA driver"
        yield Finding("driver", without, missing, advice)
        return
    cuda = cuda_of(int(call("cuDriverGetVersion")))
    release = f"{_RELEASE.read_text(encoding='utf-8').strip()}, " if _RELEASE.is_file() else ""
    yield Finding("driver", "has", f"{release}CUDA {dotted(cuda)}, which compiles PTX up to {dotted(newest_ptx(cuda))}")
    if missing:
        yield Finding("GPU", without, missing, "kernels run on the CPU target")
    for ordinal in range(lowlp_runtime.cuda_device_count()):
        yield _gpu(ordinal, cuda)


def _driver_version() -> bool:
    try:
        return bool(call("cuDriverGetVersion"))
    except DeviceError:
        return False


def _gpu(ordinal: int, cuda: Version) -> Finding:
    """A GPU, and whether its driver takes the code that is made for it."""
    from lowlp.compiler.targets import targets

    capability = lowlp_runtime.compute_capability(ordinal)
    text = (
        f"{lowlp_runtime.device_name(ordinal)}, compute capability {dotted(capability)}, "
        f"{multiprocessors(ordinal)} multiprocessors"
    )
    name = f"GPU {ordinal}"
    if capability < LEAST_CAPABILITY:
        return Finding(name, "lacks", text, f"compute capability {dotted(LEAST_CAPABILITY)} or newer is needed")
    best = [target for target in targets() if ptx_runs_on(target.chip, capability)][-1]
    ptx = divmod(best.ptx_version, 10)
    if cuda >= ASSEMBLER_CUDA:
        return Finding(name, "has", f"{text}; machine code for {best.chip}")
    least = cuda_for(ptx)
    if least and cuda >= least:
        return Finding(name, "has", f"{text}; the driver compiles PTX {dotted(ptx)} for {best.chip} itself")
    advice = f"update the driver to CUDA {dotted(least or ASSEMBLER_CUDA)} or newer"
    return Finding(name, "lacks", f"{text}; its kernels are PTX {dotted(ptx)}, newer than the driver takes", advice)


def _kernel_cache() -> Finding:
    """The folder of compiled kernels: whether they are kept, and who else may write there."""
    name = "kernel cache"
    try:
        kept = cache.KernelCache.from_environment()
    except LowlpError as error:
        return Finding(name, "lacks", str(error), f"correct {cache.BOUND_VARIABLE}")
    if kept is None:
        why = f"{cache.FOLDER_VARIABLE} is empty, or there is no home folder"
        return Finding(name, "note", f"kernels are not kept on disk: {why}", "each process compiles them again")
    folder = kept.folder
    if folder.exists() and not folder.is_dir():
        return Finding(name, "lacks", f"{folder} is no folder", f"name another one in {cache.FOLDER_VARIABLE}")
    if not folder.exists():
        parent = next(parent for parent in folder.parents if parent.exists())
        if not os.access(parent, os.W_OK | os.X_OK):
            advice = f"name another folder in {cache.FOLDER_VARIABLE}"
            return Finding(name, "lacks", f"{folder} cannot be made: {parent} is not writable", advice)
        return Finding(name, "has", f"{folder}, made when the first kernel is kept")
    if not kept.is_safe():
        advice = f"name another folder in {cache.FOLDER_VARIABLE}, or take it for yourself with chmod 700"
        return Finding(name, "lacks", f"{folder}: others can write to it, so it is not used", advice)
    entries = kept.entries()
    held = f"{output.count(len(entries))} kernels, {output.count(sum(entry.size for entry in entries))} bytes"
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding(name, "note", f"{folder}, read only, {held}", "new kernels are compiled again by each process")
    return Finding(name, "has", f"{folder}, {held} of at most {output.count(kept.max_bytes)}")


def _temporary_files() -> Finding:
    """ptxas reads and writes files."""
    try:
        with tempfile.TemporaryFile(prefix="lowlp-") as file:
            file.write(b"\0")
    except OSError as error:
        advice = "name a folder that can be written to in TMPDIR, or set LOWLP_ASSEMBLER=nvjitlink"
        return Finding("temporary", "lacks", f"temporary files cannot be written: {error.strerror}", advice)
    return Finding("temporary", "has", f"{tempfile.gettempdir()} can be written to")


def _package(name: str) -> Finding:
    """An optional package, by its metadata: importing it may take seconds."""
    least, use, extra = _PACKAGES[name]
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "note", f"not installed; needed for {use}", f"pip install '{extra}'")
    numbers = tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())
    if numbers < least:
        return Finding(name, "lacks", f"{version}; {use} needs {dotted(least)} or newer", f"pip install '{extra}'")
    return Finding(name, "has", version)
