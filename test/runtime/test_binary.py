"""The saved-kernel file: round trip, and each kind of damage."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from saved_kernel import describe

from lowlp_runtime import (
    PACKED_FORMAT_VERSION,
    KernelBinary,
    KernelFileError,
    LowlpOSError,
    LowlpTypeError,
    LowlpValueError,
)


def rewritten(kernel: KernelBinary, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """The kernel's file with its entries changed and zipped anew: all of ZIP's own checksums are right again."""
    with zipfile.ZipFile(io.BytesIO(kernel.to_bytes())) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return out.getvalue()


def edit_manifest(contents: dict[str, bytes], /, **fields: object) -> None:
    contents["manifest.json"] = json.dumps({**json.loads(contents["manifest.json"]), **fields}).encode()


def test_round_trip(kernel: KernelBinary, tmp_path: Path) -> None:
    path = tmp_path / "k.lowlp"
    kernel.save(path)
    again = KernelBinary.load(path)
    assert again == kernel
    assert again.content_hash == kernel.content_hash
    assert [entry.name for entry in tmp_path.iterdir()] == ["k.lowlp"]


def test_same_kernel_same_bytes(kernel: KernelBinary) -> None:
    turned = KernelBinary(
        kernel.description,
        dict(reversed(list(kernel.ptx.items()))),
        kernel.cubins,
        dict(reversed(list(kernel.ir.items()))),
    )
    assert turned.to_bytes() == kernel.to_bytes()


def test_content_hash_sees_everything(kernel: KernelBinary) -> None:
    d, ptx, cubins, ir = kernel.description, kernel.ptx, kernel.cubins, kernel.ir
    variants = [
        kernel,
        KernelBinary(describe(shared_bytes=1), ptx, cubins, ir),
        KernelBinary(d, {**ptx, "sm_80": "x"}, cubins, ir),
        KernelBinary(d, ptx, {"sm_90a": b"x"}, ir),
        KernelBinary(d, ptx, {"sm_90": cubins["sm_90a"]}, ir),
        KernelBinary(d, ptx, cubins, {}),
    ]
    assert len({variant.content_hash for variant in variants}) == len(variants)


def test_save_replaces_and_leaves_nothing_behind(kernel: KernelBinary, tmp_path: Path) -> None:
    path = tmp_path / "k.lowlp"
    path.write_bytes(b"old")
    kernel.save(str(path))
    assert KernelBinary.load(str(path)) == kernel
    folder = tmp_path / "taken.lowlp"
    folder.mkdir()
    with pytest.raises(OSError, match="taken"):
        kernel.save(folder)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["k.lowlp", "taken.lowlp"]


def test_flipped_bytes_never_change_a_kernel(kernel: KernelBinary) -> None:
    data = kernel.to_bytes()
    refused = 0
    for at in range(0, len(data), 97):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= mask
            try:
                assert KernelBinary.from_bytes(bytes(damaged)) == kernel
            except KernelFileError:
                refused += 1
    assert refused > len(data) // 97


def test_every_truncation_is_refused(kernel: KernelBinary) -> None:
    data = kernel.to_bytes()
    for length in range(0, len(data), 41):
        with pytest.raises(KernelFileError, match=r"truncated or damaged|not a saved lowlp kernel"):
            KernelBinary.from_bytes(data[:length])
    with pytest.raises(KernelFileError, match="half: truncated or damaged"):
        KernelBinary.from_bytes(data[: len(data) // 2], source="half")


@pytest.mark.parametrize("data", [b"", b"PK", b"\x7fELF" + bytes(100), b"{}"])
def test_foreign_files(data: bytes) -> None:
    with pytest.raises(KernelFileError, match=r"f: (not a saved lowlp kernel|truncated)"):
        KernelBinary.from_bytes(data, source="f")


def test_foreign_archive() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("manifest.json", b'{"name": "some extension"}')
    with pytest.raises(KernelFileError, match="the manifest lacks the magic 'lowlp-kernel'"):
        KernelBinary.from_bytes(out.getvalue())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: edit_manifest(e, format_version=1), "format version 1; this lowlp_runtime reads version 2"),
        (lambda e: edit_manifest(e, entries=[]), "'entries' must be an object"),
        (lambda e: edit_manifest(e, description={}), "description: missing or unknown fields"),
        (lambda e: e.update({"manifest.json": b"{" * 10}), "manifest is not JSON"),
        (lambda e: e.update({"manifest.json": b"[" * 100_000}), "manifest is not JSON"),
        (lambda e: e.pop("ir/block.mlir"), "entry 'ir/block.mlir' is missing"),
        (lambda e: e.update({"ptx/sm_70.ptx": b""}), "entry 'ptx/sm_70.ptx' is not in the manifest"),
        (lambda e: e.update({"ir/block.mlir": b"Module {}\n"}), "entry 'ir/block.mlir' is damaged: its SHA-256"),
        (lambda e: e.update({"ir/block.mlir": b""}), "has 0 bytes, not what the manifest says"),
        (lambda e: e.update({"../evil": b""}), "entry '../evil' has an unsafe name"),
        (lambda e: e.update({"/etc/evil": b""}), "entry '/etc/evil' has an unsafe name"),
        (lambda e: e.update({"ir\\..\\evil": b""}), "unsafe name"),
    ],
)
def test_tampering(kernel: KernelBinary, change: Callable[[dict[str, bytes]], None], message: str) -> None:
    with pytest.raises(KernelFileError, match=message):
        KernelBinary.from_bytes(rewritten(kernel, change))


def test_kernels_of_another_packed_format() -> None:
    for found in (PACKED_FORMAT_VERSION - 1, PACKED_FORMAT_VERSION + 1):
        kernel = KernelBinary(describe(packed_format=found), cubins={"sm_90a": b"x"})
        with pytest.raises(KernelFileError, match=rf"^f: the kernel reads weights of packed format {found}; lowlp"):
            KernelBinary.from_bytes(kernel.to_bytes(), source="f")
    # Notes hold anything.
    kernel = describe(packed_format=PACKED_FORMAT_VERSION, notes={"packed format": 1, "ptxas": {"spilled bytes": "x"}})
    binary = KernelBinary(kernel, cubins={"sm_90a": b"x"})
    assert KernelBinary.from_bytes(binary.to_bytes()) == binary


def test_unknown_kind_of_entry(kernel: KernelBinary) -> None:
    def change(entries: dict[str, bytes]) -> None:
        listed = json.loads(entries["manifest.json"])["entries"]
        listed["exec/run.py"] = listed["ir/block.mlir"]
        entries["exec/run.py"] = entries["ir/block.mlir"]
        edit_manifest(entries, entries=listed)

    with pytest.raises(KernelFileError, match=r"entry 'exec/run\.py' is of no known kind"):
        KernelBinary.from_bytes(rewritten(kernel, change))


def test_entry_that_occurs_twice(kernel: KernelBinary) -> None:
    out = io.BytesIO(kernel.to_bytes())
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("ir/block.mlir", b"other")
    with pytest.raises(KernelFileError, match="an entry occurs twice"):
        KernelBinary.from_bytes(out.getvalue())


def test_refuses_malformed_kernels() -> None:
    with pytest.raises(LowlpValueError, match="at least one architecture must be given"):
        KernelBinary(describe())
    with pytest.raises(LowlpValueError, match=r"ptx: name '\.\./x' must match"):
        KernelBinary(describe(), ptx={"../x": ""})
    with pytest.raises(LowlpTypeError, match=r"cubins\['sm_80'\]: expected bytes, got str"):
        KernelBinary(describe(), cubins={"sm_80": "text"})  # type: ignore[dict-item]
    with pytest.raises(LowlpTypeError, match="description: expected KernelDescription, got dict"):
        KernelBinary({}, ptx={"sm_80": ""})  # type: ignore[arg-type]


def claiming(kernel: KernelBinary, size: int, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The kernel's file with an entry more, of many zeros."""
    out = io.BytesIO(kernel.to_bytes())
    with zipfile.ZipFile(out, "a", method) as archive:
        archive.writestr("ir/more.mlir", bytes(size))
    return out.getvalue()


def test_what_unpacks_to_much_more_is_refused_before_it_is_unpacked(kernel: KernelBinary) -> None:
    with pytest.raises(KernelFileError, match=r"k: its entries claim \d+ bytes unpacked; at most \d+ are read of \d+"):
        KernelBinary.from_bytes(claiming(kernel, 10_000_000), source="k")
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(
            KernelFileError, match=rf"entry 'ir/more.mlir' is packed by method {method}, not by deflate"
        ):
            KernelBinary.from_bytes(claiming(kernel, 1000, method))
    # An entry whose header claims ten bytes does not unpack to more than that.
    data, size = claiming(kernel, 1_000_000), (1_000_000).to_bytes(4, "little")
    with pytest.raises(KernelFileError, match=r"truncated or damaged|not in the manifest"):
        KernelBinary.from_bytes(data.replace(size, (10).to_bytes(4, "little")))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LowlpOSError, match="Not a regular file"):
        KernelBinary.load(tmp_path / "pipe")
    with pytest.raises(LowlpValueError, match=r"path: must not hold a null byte, got 'a\\x00b'"):
        KernelBinary.load("a\0b")
