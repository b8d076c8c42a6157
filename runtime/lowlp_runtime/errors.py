"""The one tree of errors that lowlp raises.

Every error is a `LowlpError` and also the built-in that fits, so that both `except lowlp.LowlpError` and
`except ValueError` do what the caller expects. A message names the argument, the value, and what is allowed.
"""

import os


class LowlpError(Exception):
    """Base of every error raised by lowlp."""


class LowlpValueError(LowlpError, ValueError):
    """An argument has the right type and a value that is not allowed."""


class LowlpTypeError(LowlpError, TypeError):
    """An argument has a type (or an element type) that is not allowed."""


class LowlpRuntimeError(LowlpError, RuntimeError):
    """The arguments are fine and the operation failed all the same."""


class DeviceError(LowlpRuntimeError):
    """The CUDA driver is missing, has no device, or reports an error."""


class KernelFileError(LowlpValueError):
    """A saved kernel is damaged, of another version, or no saved kernel at all."""


class LowlpOSError(LowlpError, OSError):
    """A file cannot be read or written; `errno`, `strerror` and `filename` say why and which."""


class LowlpFileNotFoundError(LowlpOSError, FileNotFoundError):
    """A file, or the folder that it is to be in, does not exist."""


class LowlpIsADirectoryError(LowlpOSError, IsADirectoryError):
    """A folder is where a file is expected."""


class LowlpPermissionError(LowlpOSError, PermissionError):
    """The operating system does not allow it."""


def os_error(error: OSError, path: str | os.PathLike[str]) -> LowlpOSError:
    """`error` as one of ours that names the user's `path`."""
    kinds = (LowlpFileNotFoundError, LowlpIsADirectoryError, LowlpPermissionError)
    kind = next((kind for kind in kinds if issubclass(kind, type(error)) and type(error) is not OSError), LowlpOSError)
    return kind(error.errno, error.strerror, os.fspath(path))


def check_path(path: object) -> None:
    """Raises `LowlpTypeError` unless `path` is of a type that names a file, and `LowlpValueError` for a null byte."""
    if not isinstance(path, str | os.PathLike):
        raise LowlpTypeError(f"path: expected a str or an os.PathLike, got {type(path).__name__}")
    if "\0" in os.fsdecode(path):
        raise LowlpValueError(f"path: must not hold a null byte, got {os.fsdecode(path)!r:.80}")


class AssembleError(LowlpRuntimeError):
    """ptxas is missing or refused the PTX; the message carries its text."""
