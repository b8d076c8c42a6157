"""Programs in files: text of the block dialect, Python files with kernels of the DSL, and saved kernels."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
import traceback
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.errors import LowlpError, LowlpRuntimeError, LowlpTypeError, LowlpValueError

from . import output

if TYPE_CHECKING:
    from lowlp._mlir import ir
    from lowlp.compiler.compilation import BlockProgram
    from lowlp.errors import CompileError
    from lowlp.language import Kernel

_MODULE = "lowlp_program_file"
KERNEL_HELP = (
    "of a .py file: the name of a kernel, or a Python expression over the file's names that gives one, as in "
    "'make_rmsnorm(n=300)'; may be left out where the file defines one kernel"
)


@dataclass(frozen=True)
class SourceFile:
    """A file that holds a block program; diagnostics name its lines."""

    path: Path

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem

    def module(self) -> ir.Module:
        """The file, parsed and verified. Raises `CompileError` and `OSError`."""
        from lowlp._mlir import ir
        from lowlp.errors import from_mlir_error

        with self.path.open("rb"):  # says why a file cannot be read, which MLIR does not
            pass
        with ir.Context() as context:
            try:
                return ir.Module.parseFile(str(self.path), context)
            except ir.MLIRError as error:
                raise from_mlir_error(error, "parsing") from error


@dataclass(frozen=True)
class PythonKernel:
    """A kernel of a Python file; what goes wrong in the user's code becomes an error with its line."""

    path: Path
    kernel: Kernel

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.kernel.name

    def module(self) -> ir.Module:
        """A fresh module with the kernel. Raises `LowlpError`."""
        try:
            return self.kernel.module()
        except LowlpError:
            raise
        except Exception as error:
            raise _user_error(self.path, error) from error


def explained(error: CompileError, file: str, kernel: str | None) -> LowlpValueError:
    """The compiler's error with the commands that show it again for the user's file, rather than how to save it."""
    if not error.pipeline:
        return error
    said = "\n".join([*error.diagnostics, f"refused by: {error.failing_pass}"])
    if Path(file).suffix != ".py":
        return LowlpValueError(f"{said}\nreproduce: {error.command_for(file)}")
    program = f"{Path(file).stem}.mlir"
    chosen = ["--kernel", kernel] if kernel else []
    first = shlex.join(["lowlp", "compile", file, *chosen, "--emit", "block", "-o", program])
    return LowlpValueError(f"{said}\nreproduce: {first} && {error.command_for(program)}")


def open_file(file: str, kernel: str | None) -> BlockProgram | str | KernelBinary:
    """What the file holds: by its suffix a kernel of the DSL (.py), a saved kernel (.lowlp), or a program as text.

    kernel  see `KERNEL_HELP`

    Raises `LowlpError` and `OSError`, which name the file.
    """
    path = Path(file)
    if path.suffix == ".py":
        return PythonKernel(path, _kernel_of(path, kernel))
    if kernel is not None:
        raise LowlpValueError(f"--kernel: allowed for .py files only, got {file}")
    if path.suffix == ".lowlp":
        return KernelBinary.load(path)
    return _read_stdin() if file == output.STDOUT else SourceFile(path)


def _read_stdin() -> str:
    """The text; bytes that are no UTF-8 become a character that the parser refuses."""
    return sys.stdin.read().encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _makes_kernel(value: object) -> bool:
    """Whether this is a function of the file that is annotated to return a kernel."""
    if not isinstance(value, types.FunctionType) or value.__module__ != _MODULE:
        return False
    returned = value.__annotations__.get("return")
    return getattr(returned, "__name__", str(returned)).rpartition(".")[2] == "Kernel"


def _kernel_of(path: Path, wanted: str | None) -> Kernel:
    from lowlp.language import Kernel

    names = vars(_executed(path))
    if wanted is None:
        found = {name: value for name, value in names.items() if isinstance(value, Kernel)}
        if len(found) != 1:
            listed = ", ".join(found) or "none"
            makers = [f"'{name}(...)'" for name, value in names.items() if _makes_kernel(value)]
            example = f", as in --kernel {' or '.join(makers)}" if makers and not found else ""
            raise LowlpValueError(f"{path}: expected one kernel, found {listed}; say which with --kernel{example}")
        return next(iter(found.values()))
    try:
        value = eval(compile(wanted, "--kernel", "eval"), dict(names))
    except LowlpError:
        raise
    except Exception as error:
        raise LowlpValueError(f"--kernel {wanted!r}: {type(error).__name__}: {error}") from error
    if not isinstance(value, Kernel):
        raise LowlpTypeError(f"--kernel {wanted!r}: expected a kernel, got {type(value).__name__}")
    return value


def _user_error(path: Path, error: Exception) -> LowlpRuntimeError:
    """What the user's code raised, with its last line in the file."""
    # Python names an imported file by its absolute path.
    places = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in places if os.path.abspath(frame.filename) == os.path.abspath(path)]
    line = f":{lines[-1]}" if lines else ""
    return LowlpRuntimeError(f"{path}{line}: {type(error).__name__}: {error}")


def _executed(path: Path) -> types.ModuleType:
    """The file as a module; it may import its neighbours, as when it is run as a script."""
    with path.open("rb"):
        pass
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except LowlpError:
        raise
    except Exception as error:
        raise _user_error(path, error) from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module
