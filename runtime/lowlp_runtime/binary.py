"""A compiled kernel as one object and as one file.

A `.lowlp` file is a ZIP archive:

    manifest.json        magic, format version, the description, and size and SHA-256 of every other entry
    ptx/<arch>.ptx       text, per architecture
    cubin/<arch>.cubin   machine code, per architecture
    ir/<name>.mlir       optional: what the compiler saw on the way
    before.lowlp         optional: another saved kernel, which is launched before this one

Loading reads bytes and JSON and checks all of them; nothing is unpickled, executed, or written to disk. The hashes find
damage; they are no signature: a kernel runs with the rights of the process, so load files of people you trust.
"""

import functools
import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lowlp_runtime.description import FORMAT_VERSION, PACKED_FORMAT_VERSION, KernelDescription
from lowlp_runtime.errors import KernelFileError, LowlpError, LowlpTypeError, LowlpValueError, check_path, os_error
from lowlp_runtime.resources import ARCH
from lowlp_runtime.whole_file import read_regular, write_whole

MAGIC = "lowlp-kernel"
BEFORE = "before.lowlp"
MANIFEST = "manifest.json"
MAX_UNPACKED_BYTES = 1 << 30
# Code and text are packed to a tenth or so; what claims far more than that is no kernel.
_UNPACKED_BYTES_OF_A_BYTE = 256
_LEAST_LIMIT = 1 << 20
_IR_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_START = b"PK\x03\x04"
_NAME_AT = 30  # a ZIP local header is 30 bytes long; the entry's name follows


@dataclass(frozen=True)
class KernelBinary:
    """A compiled kernel: its description, and its code for one or more architectures.

    description  see `KernelDescription`
    ptx          text per architecture ('sm_90a')
    cubins       machine code per architecture
    ir           optional texts by name ('block', 'thread', 'nvvm')
    before       optional: of a product with permuted weights, what makes its x (`lowlp_runtime.ordered_rows`)

    Raises `LowlpValueError` for a malformed architecture or name and for a kernel without any code, `LowlpTypeError`
    for code of another type.
    """

    description: KernelDescription
    ptx: Mapping[str, str] = field(default_factory=dict)
    cubins: Mapping[str, bytes] = field(default_factory=dict)
    ir: Mapping[str, str] = field(default_factory=dict)
    before: "KernelBinary | None" = None

    def __post_init__(self) -> None:
        if not isinstance(self.description, KernelDescription):
            raise LowlpTypeError(f"description: expected KernelDescription, got {type(self.description).__name__}")
        for what, wanted, pattern in (("ptx", str, ARCH), ("cubins", bytes, ARCH), ("ir", str, _IR_NAME)):
            texts = getattr(self, what)
            if not isinstance(texts, Mapping):
                raise LowlpTypeError(f"{what}: expected a mapping, got {type(texts).__name__}")
            for name, value in texts.items():
                if not isinstance(name, str) or not pattern.fullmatch(name):
                    raise LowlpValueError(f"{what}: name {name!r} must match {pattern.pattern!r}")
                if not isinstance(value, wanted):
                    raise LowlpTypeError(f"{what}[{name!r}]: expected {wanted.__name__}, got {type(value).__name__}")
            object.__setattr__(self, what, dict(texts))
        if self.before is not None and not isinstance(self.before, KernelBinary):
            raise LowlpTypeError(f"before: expected None or a KernelBinary, got {type(self.before).__name__}")
        if self.before is not None and self.before.before is not None:
            raise LowlpValueError("before: expected a kernel with none before it, got one that has")
        if not self.ptx and not self.cubins:
            raise LowlpValueError("ptx, cubins: at least one architecture must be given, got none")

    def __hash__(self) -> int:
        return hash(self.content_hash)

    @functools.cached_property
    def content_hash(self) -> str:
        """SHA-256, in hexadecimal, over the description and all code: equal for equal kernels, in every process."""
        return hashlib.sha256(self._manifest(sort_keys=True)).hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the kernel to `path`, whole or not at all; an existing file is replaced.

        The same kernel gives the same bytes (with the same zlib). Raises `LowlpOSError`, an `OSError`, where the place
        cannot be written, and `LowlpTypeError` for what is no path.
        """
        check_path(path)
        try:
            write_whole(Path(path), self.to_bytes())
        except OSError as error:
            raise os_error(error, path) from error

    def to_bytes(self, comment: bytes = b"") -> bytes:
        """The bytes of the saved file; a comment stands at its end."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.comment = comment
            for name, data in {MANIFEST: self._manifest(), **self._entries()}.items():
                info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system = 3
                info.external_attr = 0o644 << 16
                archive.writestr(info, data)
        return out.getvalue()

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "KernelBinary":
        """The kernel saved at `path`.

        Raises `KernelFileError` for a file that is damaged, truncated, of another version or no saved kernel, and says
        which; `LowlpOSError`, an `OSError`, where it cannot be read; `LowlpTypeError` for what is no path.
        """
        check_path(path)
        try:
            data = read_regular(Path(path))
        except OSError as error:
            raise os_error(error, path) from error
        return KernelBinary.from_bytes(data, source=os.fspath(path))

    @staticmethod
    def from_bytes(data: bytes, source: str = "<bytes>") -> "KernelBinary":
        """The kernel whose saved file has these bytes; `source` names them in errors, which are those of `load`."""
        return _from_bytes(data, source, may_hold_another=True)

    def _entries(self) -> dict[str, bytes]:
        entries: dict[str, bytes] = {}
        for arch, text in sorted(self.ptx.items()):
            entries[f"ptx/{arch}.ptx"] = text.encode()
        for arch, cubin in sorted(self.cubins.items()):
            entries[f"cubin/{arch}.cubin"] = cubin
        for name, text in sorted(self.ir.items()):
            entries[f"ir/{name}.mlir"] = text.encode()
        if self.before is not None:
            entries[BEFORE] = self.before.to_bytes()
        return entries

    def _manifest(self, *, sort_keys: bool = False) -> bytes:
        """As JSON; unsorted, so that notes are read back in the order in which they are meant to be shown."""
        listed = {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            for name, data in self._entries().items()
        }
        manifest = {
            "magic": MAGIC,
            "format_version": FORMAT_VERSION,
            "description": self.description.to_json(),
            "entries": listed,
        }
        return (json.dumps(manifest, indent=1, sort_keys=sort_keys, allow_nan=False) + "\n").encode()


def _from_bytes(data: bytes, source: str, may_hold_another: bool) -> KernelBinary:
    # A truncated or damaged file of ours still starts so; with that, errors tell damage from a foreign file.
    name = data[_NAME_AT : _NAME_AT + len(MANIFEST)]
    if not data.startswith(_START) or not MANIFEST.encode().startswith(name):
        raise KernelFileError(f"{source}: not a saved lowlp kernel (or its first bytes are damaged)")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            manifest, contents = _read_archive(archive, source, len(data))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, MemoryError) as error:
        raise KernelFileError(f"{source}: truncated or damaged: {error}") from error
    except (NotImplementedError, RuntimeError, ValueError, OverflowError) as error:
        if isinstance(error, LowlpError):
            raise
        # zipfile's answers to an unknown compression, an encrypted entry, an undecodable name.
        raise KernelFileError(f"{source}: damaged: {error}") from error
    return _decode(manifest, contents, source, may_hold_another)


def _read_archive(archive: zipfile.ZipFile, source: str, file_bytes: int) -> tuple[dict[str, object], dict[str, bytes]]:
    """The manifest, and all other entries by name. What entries claim is checked before any of them is unpacked, and
    no more is unpacked than they claim."""
    entries = {info.filename: info for info in archive.infolist()}
    if len(entries) != len(archive.infolist()):
        raise KernelFileError(f"{source}: damaged: an entry occurs twice")
    for name, info in entries.items():
        parts = name.split("/")
        if name.startswith("/") or "\\" in name or any(part in ("", ".", "..") for part in parts):
            raise KernelFileError(f"{source}: entry {name!r} has an unsafe name")
        # Others are never written, and cannot be unpacked a bounded part at a time.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise KernelFileError(f"{source}: entry {name!r} is packed by method {info.compress_type}, not by deflate")
    limit = min(MAX_UNPACKED_BYTES, _LEAST_LIMIT + _UNPACKED_BYTES_OF_A_BYTE * file_bytes)
    claimed = sum(info.file_size for info in entries.values())
    if claimed > limit:
        raise KernelFileError(
            f"{source}: its entries claim {claimed} bytes unpacked; at most {limit} are read of {file_bytes} packed"
        )
    described = entries.pop(MANIFEST, None)
    manifest = _decode_manifest(None if described is None else _unpacked(archive, described, source), source)
    listed = manifest.get("entries")
    if not isinstance(listed, dict):
        raise KernelFileError(f"{source}: manifest: 'entries' must be an object")
    for name in sorted(set(listed) | set(entries)):
        if name not in entries:
            raise KernelFileError(f"{source}: entry {name!r} is missing")
        if name not in listed:
            raise KernelFileError(f"{source}: entry {name!r} is not in the manifest")
        facts, size = listed[name], entries[name].file_size
        if not isinstance(facts, dict) or facts.get("bytes") != size:
            raise KernelFileError(f"{source}: entry {name!r} has {size} bytes, not what the manifest says")
    contents = {name: _unpacked(archive, info, source) for name, info in entries.items()}
    for name, data in contents.items():
        if listed[name].get("sha256") != hashlib.sha256(data).hexdigest():
            raise KernelFileError(f"{source}: entry {name!r} is damaged: its SHA-256 is not the manifest's")
    return manifest, contents


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, source: str) -> bytes:
    with archive.open(info) as file:
        data = file.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise KernelFileError(f"{source}: entry {info.filename!r} holds {len(data)} bytes and claims {info.file_size}")
    return data


def _decode(
    manifest: dict[str, object], contents: dict[str, bytes], source: str, may_hold_another: bool
) -> KernelBinary:
    ptx: dict[str, str] = {}
    cubins: dict[str, bytes] = {}
    ir: dict[str, str] = {}
    before = None
    try:
        for name, data in contents.items():
            folder, _, rest = name.partition("/")
            stem, _, suffix = rest.rpartition(".")
            if (folder, suffix) == ("ptx", "ptx"):
                ptx[stem] = data.decode()
            elif (folder, suffix) == ("cubin", "cubin"):
                cubins[stem] = data
            elif (folder, suffix) == ("ir", "mlir"):
                ir[stem] = data.decode()
            elif name == BEFORE and may_hold_another:
                before = _from_bytes(data, f"{source}: {BEFORE}", may_hold_another=False)
            else:
                raise KernelFileError(f"{source}: entry {name!r} is of no known kind")
        description = KernelDescription.from_json(manifest.get("description"))
        _check_packed_format(description, source)
        return KernelBinary(description, ptx, cubins, ir, before)
    except KernelFileError:
        raise
    except (LowlpError, UnicodeDecodeError) as error:
        raise KernelFileError(f"{source}: {error}") from error


def _check_packed_format(description: KernelDescription, source: str) -> None:
    """Refuses a kernel that reads weights as another version of lowlp packed them."""
    found = description.packed_format
    if found not in (None, PACKED_FORMAT_VERSION):
        raise KernelFileError(
            f"{source}: the kernel reads weights of packed format {found}; lowlp packs them in format "
            f"{PACKED_FORMAT_VERSION}: load it with the version that saved it, or compile the kernel again and pack "
            "its weights anew"
        )


def _decode_manifest(data: bytes | None, source: str) -> dict[str, object]:
    if data is None:
        raise KernelFileError(f"{source}: not a saved lowlp kernel: it has no {MANIFEST}")
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise KernelFileError(f"{source}: manifest is not JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("magic") != MAGIC:
        raise KernelFileError(f"{source}: not a saved lowlp kernel: the manifest lacks the magic {MAGIC!r}")
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise KernelFileError(
            f"{source}: format version {version!r}; this lowlp_runtime reads version {FORMAT_VERSION}: "
            "load it with the version that saved it, or compile the kernel again"
        )
    return manifest
