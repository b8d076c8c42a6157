"""Kernels that were compiled before are found again, and only those."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.cli import main
from lowlp.compiler import compilation, kernel_cache
from lowlp.errors import CpuTargetError, LowlpValueError
from lowlp_runtime import KernelBinary, KernelCache
from lowlp_runtime import assemble as assemble_module
from lowlp_runtime import cache as cache_module

ROOT = Path(__file__).resolve().parents[2]
FIG2 = (ROOT / "examples" / "fig2.mlir").read_text(encoding="utf-8")
SMALL = """
lowlp.kernel @small(%x: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh cache on disk and none in memory."""
    monkeypatch.setenv("LOWLP_CACHE_DIR", str(tmp_path / "cache"))
    kernel_cache.forget()
    return tmp_path / "cache"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The architectures for which something is compiled, as it happens."""
    made: list[str] = []
    build = compilation._build

    def note(source: Any, arch: str, *rest: Any) -> KernelBinary:
        made.append(arch)
        return build(source, arch, *rest)

    monkeypatch.setattr(compilation, "_build", note)
    return made


# --- the key ----------------------------------------------------------------------------------------------------------


def key_of(**changes: Any) -> str:
    arguments: dict[str, Any] = {"program": SMALL, "arch": "sm_90a", "opt_level": 3, "assemble": True, "notes": {}}
    return kernel_cache.kernel_key(**{**arguments, **changes})


@pytest.mark.parametrize(
    "change",
    [
        {"program": FIG2},
        {"program": SMALL + " "},
        {"arch": "sm_80"},
        {"opt_level": 2},
        {"assemble": False},
        {"notes": {"plan": "another"}},
    ],
    ids=str,
)
def test_every_argument_changes_the_key(change: dict[str, Any]) -> None:
    assert key_of(**change) != key_of()
    assert key_of(**change) == key_of(**change)


@pytest.mark.parametrize("part", ["version", "sources", "libraries", "llvm"])
def test_every_part_of_the_compiler_changes_the_key(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of()
    identity = kernel_cache.compiler_identity()
    assert set(identity) == {"version", "sources", "libraries", "llvm"}
    monkeypatch.setattr(kernel_cache, "compiler_identity", lambda: {**identity, part: "other"})
    assert key_of() != before


def test_assembler_and_format_change_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of()
    with monkeypatch.context() as patch:
        patch.setattr(kernel_cache, "assembler_identity", lambda assembler: "ptxas V99.0.1")
        assert key_of() != before
        assert key_of(assemble=False) != before
    with monkeypatch.context() as patch:
        patch.setattr(kernel_cache, "assembler_identity", lambda assembler=None: f"{assembler} 1.0")
        assert len({key_of(), key_of(assembler="ptxas"), key_of(assembler="driver")}) == 3
    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "FORMAT_VERSION", 99)
        assert key_of() != before
    assert key_of() == before


def test_the_identity_of_the_assembler_has_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "ptxas"
    said = []
    for version in ("V13.0.1", "V13.0.2"):
        program.write_text(f"#!/bin/sh\necho Cuda compilation tools, release 13.0, {version}\n")
        program.chmod(0o755)
        monkeypatch.setattr(assemble_module, "find_ptxas", lambda: program)
        assemble_module._ptxas_version.cache_clear()
        said.append(assemble_module.assembler_identity("ptxas"))
    assemble_module._ptxas_version.cache_clear()
    assert said == ["ptxas V13.0.1", "ptxas V13.0.2"]


def test_hashes_see_every_change(tmp_path: Path) -> None:
    (tmp_path / "pass").mkdir()
    inner = tmp_path / "pass" / "inner.py"
    inner.write_text("x = 1\n")
    (tmp_path / "other.txt").write_text("not Python")

    def current() -> str:
        return kernel_cache.hash_of_files(kernel_cache.files_below(tmp_path, ".py"))

    seen = [current()]
    inner.write_text("x = 2\n")
    seen.append(current())
    inner.rename(tmp_path / "pass" / "renamed.py")
    seen.append(current())
    (tmp_path / "new.py").write_text("")
    seen.append(current())
    assert len(set(seen)) == 4
    # Size and first bytes stand for a large library.
    large = tmp_path / "libLLVM.so"
    large.write_bytes(b"a" * 100)
    first = kernel_cache.hash_of_files([large], first_bytes=10)
    large.write_bytes(b"a" * 101)
    assert kernel_cache.hash_of_files([large], first_bytes=10) != first


def test_the_identity_covers_what_makes_code() -> None:
    names = {path.name for path in kernel_cache.files_below(Path(kernel_cache.__file__).parents[1], ".py")}
    assert {"compilation.py", "plain.py", "rewriting.py", "passmanager.py"} <= names
    libraries = {path.name for path in kernel_cache.files_below(Path(kernel_cache.__file__).parents[1], ".so")}
    assert "libLowlpPythonCAPI.so" in libraries


# --- compiling --------------------------------------------------------------------------------------------------------


def test_a_kernel_is_compiled_once(folder: Path, builds: list[str]) -> None:
    first = lowlp.compile(FIG2)
    assert lowlp.compile(FIG2) == first  # from memory
    kernel_cache.forget()
    assert lowlp.compile(FIG2) == first  # from disk
    assert builds == ["sm_90a"]
    assert len(list(folder.iterdir())) == 1
    assert folder.stat().st_mode & 0o777 == 0o700
    assert lowlp.compile(FIG2, "sm_80") != first
    assert lowlp.compile(FIG2, cache=False) == first
    assert builds == ["sm_90a", "sm_80", "sm_90a"]


def test_notes_must_be_json() -> None:
    for notes in ({"plan": object()}, {"plan": float("nan")}):
        for cache in (True, False):
            with pytest.raises(LowlpValueError, match="notes: not JSON"):
                lowlp.compile(SMALL, notes=notes, cache=cache)


def test_places_in_the_program_do_not_count(builds: list[str]) -> None:
    assert lowlp.compile(SMALL) == lowlp.compile("\n\n" + SMALL)
    assert len(builds) == 1


def make_copy(scale: float) -> ll.Kernel:
    @lowlp.kernel(grid=(1,), num_threads=32)
    def copy(x: ll.pointer("f16"), y: ll.pointer("f16")) -> None:
        tile = ll.load_global(ll.view_global(x, shape=[32]), offsets=[0], layout=lowlp.spatial(32))
        ll.store_global(tile * scale, ll.view_global(y, shape=[32]), offsets=[0])

    return copy


def test_kernels_of_the_dsl_are_found_by_what_they_do(builds: list[str]) -> None:
    for scale in (2.0, 2.0, 3.0):
        lowlp.compile(make_copy(scale))
    assert len(builds) == 2


def test_linear_is_found_again(builds: list[str]) -> None:
    first = lowlp.compile_linear(n=16, k=32, weight="int3", group_size=32)
    kernel_cache.forget()
    assert lowlp.compile_linear(n=16, k=32, weight="int3", group_size=32) == first
    assert lowlp.compile_linear(n=16, k=32, weight="int3", group_size=32, m=(1, 4)).report() != first.report()
    assert len(builds) == 2


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_kernel_is_compiled_anew(damage: bytes | None, folder: Path, builds: list[str]) -> None:
    first = lowlp.compile(SMALL)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    kernel_cache.forget()
    assert lowlp.compile(SMALL) == first
    assert len(builds) == 2
    assert path.read_bytes() == whole


def test_a_bit_that_flipped_is_noticed(folder: Path, builds: list[str]) -> None:
    first = lowlp.compile(SMALL)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for position in random.Random(0).sample(range(len(whole)), 12):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        kernel_cache.forget()
        assert lowlp.compile(SMALL) == first


def test_the_folder_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lowlp.compile(SMALL)
    size = next(folder.iterdir()).stat().st_size
    monkeypatch.setenv("LOWLP_CACHE_MAX_BYTES", str(3 * size))
    for number in range(6):
        lowlp.compile(SMALL.replace("small", f"smal{number}"))
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 3 * size
    monkeypatch.setenv("LOWLP_CACHE_MAX_BYTES", "1 GiB")
    with pytest.raises(
        LowlpValueError, match="LOWLP_CACHE_MAX_BYTES: expected a positive number of bytes, got '1 GiB'"
    ):
        lowlp.compile(FIG2)


def test_an_empty_variable_keeps_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOWLP_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    lowlp.compile(SMALL)
    assert not (tmp_path / "xdg").exists()
    monkeypatch.delenv("LOWLP_CACHE_DIR")
    kernel_cache.forget()
    lowlp.compile(SMALL)
    assert len(list((tmp_path / "xdg" / "lowlp" / "kernels").iterdir())) == 1


# --- where the disk does not do what it should ------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["mkdir", "replace", "fsync"])
def test_without_a_writable_folder_all_works(
    call: str, folder: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(os, call)

    def refuse(what: Any, *arguments: Any, **named: Any) -> Any:
        if isinstance(what, int) or str(folder) in str(what):
            raise OSError(28, "No space left on device")
        return real(what, *arguments, **named)

    expected = lowlp.compile(SMALL, cache=False)
    monkeypatch.setattr(os, call, refuse)
    assert lowlp.compile(SMALL) == expected
    kernel_cache.forget()
    assert lowlp.compile(SMALL) == expected
    assert len(builds) == 3
    assert not folder.exists() or not list(folder.iterdir())


def compile_in_read_only_home(folder: str) -> str:
    """Compiles where the folder cannot be made; root, who may make it all the same, becomes nobody first."""
    os.environ.update(LOWLP_CACHE_DIR=folder)
    lowlp.compile(SMALL, assemble=False)  # loads what nobody may not read
    kernel_cache.forget()
    Path(folder).parent.chmod(0o500)
    if os.geteuid() == 0:
        os.setuid(65534)
    os.environ.update(LOWLP_CACHE_DIR=f"{folder}-of-another-name")
    return lowlp.compile(SMALL, assemble=False).ptx


def test_a_read_only_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    try:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert ".entry small" in pool.apply(compile_in_read_only_home, (str(home / "cache"),))
        assert [path.name for path in home.iterdir()] == ["cache"]
    finally:
        home.chmod(0o700)


def test_a_file_where_the_folder_should_be(folder: Path, builds: list[str]) -> None:
    folder.write_text("in the way")
    lowlp.compile(SMALL)
    assert len(builds) == 1
    assert folder.read_text() == "in the way"


def test_no_home(monkeypatch: pytest.MonkeyPatch, builds: list[str]) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("LOWLP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    lowlp.compile(SMALL)
    assert len(builds) == 1


def compile_with_little_room(folder: str) -> bool:
    """Compiles where no file may grow beyond 1 KiB, as on a full disk."""
    os.environ.update(LOWLP_CACHE_DIR=folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
    return "mma.sync" in lowlp.compile(FIG2, assemble=False).ptx  # ptxas would write files of its own


def test_a_full_disk(folder: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(compile_with_little_room, (str(folder),))
    assert list(folder.iterdir()) == []


# --- many processes, some of them killed ------------------------------------------------------------------------------

WORKER = """
import sys
from lowlp_runtime import KernelBinary, KernelCache, KernelDescription, cache_key
cache = KernelCache(sys.argv[1], max_bytes=400_000)
print("ready", flush=True)
number = 0
while True:
    number += 1
    name = f"kernel{number % 7}"
    text = "".join(chr(97 + (i * i * number) % 23) for i in range(60_000))
    description = KernelDescription(name, (), (1, 1, 1), (32, 1, 1))
    kernel = KernelBinary(description, ptx={"sm_80": text})
    key = cache_key({"name": name})
    found = cache.get(key)
    assert found is None or found.description.name == name, found
    cache.put(key, kernel)
"""


def test_processes_killed_at_random_leave_a_sound_cache(folder: Path) -> None:
    rng = random.Random(0)
    for _ in range(6):
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for _ in range(2)
        ]
        for worker in workers:
            assert worker.stdout and worker.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.0, 0.15))
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
            _, said = worker.communicate()
            assert worker.returncode == -signal.SIGKILL, said.decode()
    cache = KernelCache(folder, max_bytes=400_000)
    entries = cache.entries()
    assert entries
    assert all(cache.get(entry.key) is not None for entry in entries)
    # What was half written goes when it is old.
    left = folder / f".{'0' * 64}.lowlp.1.{'0' * 16}.tmp"
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    last = cache.get(entries[0].key)
    assert last
    cache.put(entries[0].key, last)
    assert not left.exists()


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["cache", "list"]) == 0
    assert capsys.readouterr().out.startswith(f"0 kernels in {folder}, 0 bytes of at most 1,073,741,824\n")
    lowlp.compile(SMALL)
    (folder / f"{'0' * 64}.lowlp").write_bytes(b"garbage")
    assert main(["cache", "list"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"2 kernels in {folder}, ")
    assert "  small for sm_90a\n" in out
    assert "  damaged, or of another version\n" in out
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out == f"{folder}\n"
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 2 kernels from {folder}\n"
    assert list(folder.iterdir()) == []
    monkeypatch.setenv("LOWLP_CACHE_DIR", "")
    assert main(["cache", "path"]) == 1
    assert "no kernels are kept on disk" in capsys.readouterr().err


def test_once_keeps_what_was_used_last() -> None:
    once = kernel_cache.Once(max_values=2)
    made: list[int] = []

    def get(key: int) -> int:
        return int(once.get(key, lambda: made.append(key) or key))

    assert [get(key) for key in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert made == [1, 2, 3, 2]


def test_equal_kernels_at_two_lines_are_told_apart() -> None:
    """What is compiled for the CPU target is kept, and an error still names the line of the kernel that was called."""

    def first(x: ll.Pointer) -> None:
        ll.store_global(ll.full(1.0, "f32", layout=lowlp.spatial(32)), ll.view_global(x, shape=[32]), offsets=[0])

    def second(x: ll.Pointer) -> None:
        ll.store_global(ll.full(1.0, "f32", layout=lowlp.spatial(32)), ll.view_global(x, shape=[32]), offsets=[0])

    for body in (first, second, first):
        kernel = ll.make_kernel(body, name="k", parameters={"x": ll.pointer("f32")}, grid=(1,), num_threads=32)
        with pytest.raises(CpuTargetError, match=rf":{body.__code__.co_firstlineno + 1}:\d+: write of 4 bytes"):
            kernel(np.zeros(16, np.float32))
