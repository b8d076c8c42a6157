"""More of the mistakes that docs/errors.md lists: when kernels run on either target, and with saved kernels.

Importing this file adds them to `mistakes.MISTAKES`.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from mistakes import copy, kernel, mistake, ran

import lowlp
from lowlp import language as ll
from lowlp.cli.device import choose_device
from lowlp.compiler.compilation import compile_cpu
from lowlp_runtime import KernelBinary, assemble_ptx

# --- running on the CPU target ----------------------------------------------------------------------------------------


@mistake("an argument by a name that the kernel does not have")
def _(folder: Path) -> object:
    return kernel(copy)(np.zeros(128, np.float16), np.zeros(96, np.uint8), n=1)


@mistake("too few arguments")
def _(folder: Path) -> object:
    return kernel(copy)(np.zeros(128, np.float16))


@mistake("an array of the wrong type")
def _(folder: Path) -> object:
    return kernel(copy)(np.zeros(128, np.float32), np.zeros(96, np.uint8), 1)


@mistake("a CPU tensor of another library than numpy")
def _(folder: Path) -> object:
    class Tensor:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    return kernel(copy)(Tensor(), np.zeros(96, np.uint8), 1)


@mistake("text where a number is expected")
def _(folder: Path) -> object:
    return kernel(copy)(np.zeros(128, np.float16), np.zeros(96, np.uint8), "1")


@mistake("an output that is read-only")
def _(folder: Path) -> object:
    frozen = np.zeros(128, np.float16)
    frozen.flags.writeable = False
    return kernel(copy)(frozen, np.zeros(96, np.uint8), 1)


@mistake("a tile out of range: an array smaller than its view")
def _(folder: Path) -> object:
    return kernel(copy)(np.zeros(64, np.float16), np.zeros(96, np.uint8), 1)


@mistake("blocks that write to one place")
def _(folder: Path) -> object:
    return ran(copy, grid=(2,))


@mistake("a barrier that is missing")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        shared = ll.alloc_shared("f16", shape=[64])
        ll.store_shared(ll.full(1.0, "f16", layout=lowlp.spatial(64)), shared, offsets=[0])
        backwards = lowlp.column_spatial(2, 32).reshape(64)
        ll.store_global(
            ll.load_shared(shared, offsets=[0], layout=backwards), ll.view_global(x, shape=[64]), offsets=[0]
        )

    program = compile_cpu(kernel(body, num_threads=64))
    return program(np.zeros(128, np.float16), np.zeros(96, np.uint8), 16, checks="races")


@mistake("shared memory that is read before it is written")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        shared = ll.alloc_shared("f16", shape=[32])
        tile = ll.load_shared(shared, offsets=[0], layout=lowlp.spatial(32))
        ll.store_global(tile, ll.view_global(x, shape=[32]), offsets=[0])

    return ran(body)


@mistake("blocks that wait for ever")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        (block,) = ll.block_indices()
        words = ll.alloc_global("int32", shape=[1], zeroed=True)
        ll.semaphore_acquire(words, offsets=[0], value=block + 1)

    return ran(body)


@mistake("zeroed memory that a kernel does not leave zero")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        words = ll.alloc_global("int32", shape=[2], zeroed=True)
        ll.semaphore_release(words, offsets=[1], value=1)

    return ran(body)


# --- running on a GPU -------------------------------------------------------------------------------------------------


@mistake("a GPU is asked for and there is none")
def _(folder: Path) -> object:
    with mock.patch("lowlp_runtime.why_no_device", lambda: "the driver sees no CUDA device"):
        return choose_device("cuda")


@mistake("numpy arrays for a kernel that was compiled for a GPU")
def _(folder: Path) -> object:
    with mock.patch("lowlp_runtime.device.why_no_device", lambda: "the driver sees no CUDA device"):
        return lowlp.compile(kernel(copy))(np.zeros(128, np.float16), np.zeros(96, np.uint8), 1)


@mistake("an assembler is asked for and is not there")
def _(folder: Path) -> object:
    with mock.patch("lowlp_runtime.device.why_no_device", lambda: "the driver sees no CUDA device"):
        return assemble_ptx("", "sm_80", assembler="driver")


# --- saved kernels ----------------------------------------------------------------------------------------------------


def save(folder: Path) -> Path:
    path = folder / "k.lowlp"
    lowlp.compile(kernel(copy), assemble=False).save(path)
    return path


def rewrite(path: Path, entry: str, change: Callable[[bytes], bytes]) -> None:
    """Replaces one entry of the archive."""
    with zipfile.ZipFile(path) as archive:
        contents = {info.filename: archive.read(info) for info in archive.infolist()}
    contents[entry] = change(contents[entry])
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)


@mistake("a file that is not there")
def _(folder: Path) -> object:
    return lowlp.load(folder / "k.lowlp")


@mistake("a file that is truncated")
def _(folder: Path) -> object:
    path = save(folder)
    path.write_bytes(path.read_bytes()[:-100])
    return lowlp.load(path)


@mistake("a file whose PTX was tampered with")
def _(folder: Path) -> object:
    path = save(folder)
    rewrite(path, "ptx/sm_90a.ptx", lambda ptx: ptx.replace(b"ld.global", b"st.global"))
    return lowlp.load(path)


@mistake("a file of another version")
def _(folder: Path) -> object:
    path = save(folder)

    def newer(manifest: bytes) -> bytes:
        return json.dumps({**json.loads(manifest), "format_version": 99}).encode()

    rewrite(path, "manifest.json", newer)
    return lowlp.load(path)


@mistake("a kernel for weights of another packed format")
def _(folder: Path) -> object:
    path = save(folder)
    found = KernelBinary.load(path)
    older = replace(found.description, packed_format=1)
    replace(found, description=older).save(path)
    return lowlp.load(path)


@mistake("a file that is not ours")
def _(folder: Path) -> object:
    path = folder / "k.lowlp"
    path.write_bytes(b"\x80\x04 a pickle, for example")
    return lowlp.load(path)


@mistake("a ZIP archive that is not ours")
def _(folder: Path) -> object:
    path = folder / "k.lowlp"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", '{"magic": "another program"}')
    return lowlp.load(path)


@mistake("IR that a saved kernel does not hold")
def _(folder: Path) -> object:
    return lowlp.load(save(folder)).ir("llvm")


@mistake("machine code of a kernel that was not assembled")
def _(folder: Path) -> object:
    return lowlp.load(save(folder)).cubin


@mistake("saving to a folder that is not there")
def _(folder: Path) -> object:
    return lowlp.load(save(folder)).save(folder / "missing" / "k.lowlp")
