"""Kernels: functions of Python that are traced into a `lowlp.kernel` of the block dialect."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeVar

from lowlp._mlir import ir
from lowlp.errors import LowlpError, LowlpTypeError, LowlpValueError
from lowlp.numeric.dtypes import dtype

from .grid import affine_map, grid_extents
from .kernel_schedule import KernelSchedule
from .parameters import Parameter, named_parameters
from .rewriting import rewrite
from .scalars import IntegerParameter, Scalar
from .source import Place, VerificationError, type_error
from .tiles import Pointer
from .trace_reads import Reads
from .tracing import Trace, activated, is_tracing, location

_P = ParamSpec("_P")
_R = TypeVar("_R")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_THREADS = 1024
_WARP = 32
_MAX_KEPT = 8


class _Kept(NamedTuple):
    """A trace: what it has read, and the hash of its text."""

    reads: Reads
    locations: bool
    key: str


class Kernel:
    """A program that every block of a grid runs; made by `kernel` and `make_kernel`.

    It is traced whenever its IR is asked for, so that it sees globals and closures as they are then; launches use an
    earlier trace while nothing that it has read has changed. All methods may be called from several threads.
    """

    def __init__(
        self,
        function: types.FunctionType,
        name: str,
        parameters: tuple[Parameter, ...],
        grid: object,
        num_threads: int,
        schedule: KernelSchedule | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise LowlpTypeError(f"name: must be a str, found {name!r}")
        if not _NAME.fullmatch(name):
            raise LowlpValueError(f"name: must be an identifier, found {name!r}")
        if isinstance(num_threads, bool) or not isinstance(num_threads, int):
            raise LowlpTypeError(f"num_threads: must be an int, found {num_threads!r}")
        if not _WARP <= num_threads <= _MAX_THREADS or num_threads % _WARP:
            raise LowlpValueError(f"num_threads: must be a multiple of 32 up to 1024, found {num_threads}")
        if not isinstance(schedule, KernelSchedule | None):
            raise LowlpTypeError(f"schedule: must be an ll.KernelSchedule or None, found {schedule!r}")
        self._function = rewrite(function)
        self._arguments = () if _takes_all(function) else tuple(inspect.signature(function).parameters)
        self._place = Place(function.__code__.co_filename, function.__code__.co_firstlineno)
        self._name = name
        self._parameters = parameters
        self._schedule = schedule or KernelSchedule()
        self._num_threads = num_threads
        self._extents = grid_extents(grid, parameters)
        self._kept: tuple[_Kept, ...] = ()
        self._retraced_because = ""
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """The name of the kernel in IR and PTX."""
        return self._name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, in order: name, kind, dtype, align, divisible_by, constant."""
        return self._parameters

    @property
    def num_threads(self) -> int:
        """Threads of a block."""
        return self._num_threads

    @property
    def schedule(self) -> KernelSchedule:
        """What it tells the passes."""
        return self._schedule

    @property
    def mlir(self) -> str:
        """The kernel as text of the block dialect, without locations. Raises what `module` raises."""
        return str(self.module().operation.get_asm(enable_debug_info=False))

    def trace_key(self, locations: bool = False) -> str:
        """A hash of the kernel's text: kernels with equal keys compile to the same code; with `locations` their errors
        name the same lines too. The kernel is traced where it has changed since, or cannot be watched."""
        for kept in self._kept:
            if kept.locations == locations and kept.reads.unchanged():
                return kept.key
        reads = None if self._retraced_because else Reads(self._function)
        text = self.module().operation.get_asm(enable_debug_info=locations)
        key = hashlib.sha256(text.encode()).hexdigest()
        if reads is not None and reads.unwatched:
            self._retraced_because = reads.unwatched
        # What tracing itself changes would be something else the next time.
        elif reads is not None and reads.unchanged():
            self._kept = (_Kept(reads, locations, key), *self._kept[: _MAX_KEPT - 1])
        return key

    @property
    def retraced_because(self) -> str:
        """What the kernel reads that may change unseen, for which it is traced anew at each launch, milliseconds of the
        host; '' where an earlier trace is used, or it was not launched yet."""
        return self._retraced_because

    def module(self) -> ir.Module:
        """A fresh module, in a context of its own, with this kernel and nothing else; verified.

        Raises `KernelValueError`, `KernelTypeError` and `VerificationError`, with the line of the kernel that is wrong.
        """
        with ir.Context(), location(self._place):
            module = ir.Module.create()
            self._trace(module)
            verify(module)
            return module

    def __call__(self, *args: object, **options: Any) -> Any:
        """Compiles the kernel where that is needed, and launches it: arguments by position or by name, options as
        `lowlp.compiler.launching.launch` has them."""
        if is_tracing():
            raise type_error(f"kernel `{self.name}` cannot be called in a kernel; call a plain function instead")
        return importlib.import_module("lowlp.compiler.launching").launch(self, args, **options)

    def __repr__(self) -> str:
        return f"<lowlp kernel {self.name}({', '.join(parameter.name for parameter in self.parameters)})>"

    def _trace(self, module: ir.Module) -> None:
        operation = ir.Operation.create(
            "lowlp.kernel", attributes=self._attributes(), regions=1, ip=ir.InsertionPoint(module.body)
        )
        argument_types = [ir.Type.parse(parameter.mlir) for parameter in self.parameters]
        block = operation.regions[0].blocks.append(
            *argument_types, arg_locs=[location(self._place)] * len(argument_types)
        )
        trace = Trace(self.name, block, self.num_threads, len(self._extents))
        arguments: dict[str, object] = dict.fromkeys(self._arguments)
        for parameter, value in zip(self.parameters, block.arguments, strict=True):
            arguments[parameter.name] = _argument(trace, parameter, value)
        trace.parameters, trace.arguments = self.parameters, arguments
        trace.has_warpgroups = self.schedule.matrix_unit == "warpgroup"
        with activated(trace):
            result = self._function(**arguments)
        if result is not None:
            raise type_error(f"kernel `{self.name}` must not return a value, found {result!r}", self._place)
        ir.Operation.create("lowlp.return", ip=ir.InsertionPoint(block))

    def _attributes(self) -> dict[str, ir.Attribute]:
        argument_types = [ir.Type.parse(parameter.mlir) for parameter in self.parameters]
        i64 = ir.IntegerType.get_signless(64)
        attributes = {
            "sym_name": ir.StringAttr.get(self.name),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(argument_types, [])),
            "grid": ir.AffineMapAttr.get(affine_map(self._extents, self.parameters)),
            "num_threads": ir.IntegerAttr.get(i64, self.num_threads),
        }
        if self.parameters:
            promises = []
            for parameter in self.parameters:
                entries: dict[str, ir.Attribute] = {"lowlp.name": ir.StringAttr.get(parameter.name)}
                if parameter.align is not None:
                    entries["lowlp.align"] = ir.IntegerAttr.get(i64, parameter.align)
                if parameter.divisible_by is not None:
                    entries["lowlp.divisible_by"] = ir.IntegerAttr.get(i64, parameter.divisible_by)
                if parameter.constant:
                    entries["lowlp.constant"] = ir.UnitAttr.get()
                promises.append(ir.DictAttr.get(entries))
            attributes["arg_attrs"] = ir.ArrayAttr.get(promises)
        if self.schedule != KernelSchedule():
            attributes["schedule"] = ir.Attribute.parse(self.schedule.mlir)
        return attributes


def _argument(trace: Trace, parameter: Parameter, value: ir.Value) -> object:
    """What the kernel's function gets for a parameter."""
    if parameter.kind == "pointer":
        return Pointer(trace, value, dtype(parameter.dtype), parameter.name)
    return IntegerParameter(trace, value) if parameter.kind == "integer" else Scalar(trace, value, "f32")


def kernel(
    *, grid: object, num_threads: int, name: str | None = None, schedule: KernelSchedule | None = None
) -> Callable[[Callable[..., None]], Kernel]:
    """Makes a kernel of the function below it (Tilus, section 5: one program, run by every block).

    grid         one to three extents: a tuple of ints, or a callable whose parameters are named as integer parameters
                 of the kernel; it may use + - * // % and ll.ceildiv
    num_threads  threads of a block, a multiple of 32 up to 1024
    name         the kernel's name in IR and PTX; that of the function if left out
    schedule     how passes are to divide the work; an `ll.KernelSchedule()` if left out

    Every parameter is annotated with `ll.pointer(...)`, `ll.integer(...)`, `ll.i32`, `ll.i64` or `ll.f32`. Raises
    LowlpTypeError and LowlpValueError for anything else, KernelValueError for statements that a kernel cannot hold.

        @lowlp.kernel(grid=lambda m: ll.ceildiv(m, 16), num_threads=32)
        def double(x: ll.pointer("f16"), y: ll.pointer("f16"), m: ll.i32):
            (bi,) = ll.block_indices()
            rows = lowlp.local(2, 1).spatial(8, 4).local(1, 2)
            tile = ll.load_global(ll.view_global(x, shape=[m, 8]), offsets=[bi * 16, 0], layout=rows)
            ll.store_global(tile * 2.0, ll.view_global(y, shape=[m, 8]), offsets=[bi * 16, 0])
    """

    def decorate(function: Callable[..., None]) -> Kernel:
        plain = _plain_function(function)
        visible = dict(sys._getframe(1).f_locals)
        parameters = {}
        for parameter in inspect.signature(plain).parameters.values():
            if parameter.annotation is parameter.empty:
                raise LowlpTypeError(
                    f"parameter {parameter.name!r}: must be annotated, as in `{parameter.name}: ll.i32`"
                )
            parameters[parameter.name] = _evaluated(plain, visible, parameter.name, parameter.annotation)
        return make_kernel(
            plain,
            name=name or plain.__name__,
            parameters=parameters,
            grid=grid,
            num_threads=num_threads,
            schedule=schedule,
        )

    return decorate


def make_kernel(
    function: Callable[..., None],
    *,
    name: str,
    parameters: Mapping[str, Any],
    grid: object,
    num_threads: int,
    schedule: KernelSchedule | None = None,
) -> Kernel:
    """A kernel whose parameters are chosen by a program.

    parameters  by name, in the kernel's order: `ll.pointer(...)` and so on; a parameter of the function that is not
                among them is None. A function of `**` alone gets all of them by name

    All else is as for `kernel`.
    """
    plain = _plain_function(function)
    names = inspect.signature(plain).parameters
    takes_all = _takes_all(plain)
    for parameter in () if takes_all else names.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise LowlpTypeError(f"parameter {parameter.name!r}: must be an ordinary one, without * and /")
        if parameter.default is not parameter.empty:
            raise LowlpTypeError(f"parameter {parameter.name!r}: a kernel's parameters have no defaults")
    for key in parameters:
        if key not in names and not takes_all:
            raise LowlpValueError(f"parameters: {key!r} is no parameter of the function, which has {', '.join(names)}")
    return Kernel(plain, name, named_parameters(parameters), grid, num_threads, schedule)


def _takes_all(function: types.FunctionType) -> bool:
    """Whether the one parameter of the function is a dictionary of all, as in `def body(**operands)`."""
    parameters = list(inspect.signature(function).parameters.values())
    return len(parameters) == 1 and parameters[0].kind is parameters[0].VAR_KEYWORD


def inline(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function for kernels with traced control flow of its own; a plain function may be called without this.

    Its loops over ll.range and its branches are traced as those of a kernel are. Raises KernelValueError for
    statements that a kernel cannot hold.
    """
    result: Any = rewrite(_plain_function(function))
    return result  # type: ignore[no-any-return]


def _plain_function(function: object) -> types.FunctionType:
    if not isinstance(function, types.FunctionType):
        raise LowlpTypeError(f"function: must be a plain function, found {type(function).__name__}")
    return function


def _evaluated(function: types.FunctionType, visible: Mapping[str, object], name: str, annotation: object) -> object:
    """The annotation, also where annotations are kept as text; `visible` is where the kernel is defined."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__, visible)
    except LowlpError:
        raise
    except Exception as error:
        raise LowlpTypeError(
            f"parameter {name!r}: the annotation {annotation!r} cannot be evaluated: {error}"
        ) from error


def verify(module: ir.Module) -> None:
    """Runs the verifier. Raises VerificationError with its first message and the user's line."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        # In the generic form, which the parser takes before it verifies.
        source = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
        raise verification_error(error, source) from None


def verification_error(error: ir.MLIRError, source: str = "") -> VerificationError:
    """MLIR's diagnostics as an error of ours, which carries the program `source`; the first one counts."""
    infos = list(error.error_diagnostics)
    if not infos:
        return VerificationError(str(error.message), None, source=source)
    notes = [note.message for note in infos[0].notes if not note.message.startswith("see current operation")]
    diagnostics = [": ".join(filter(None, (str(_place(info.location) or ""), info.message))) for info in infos]
    return VerificationError(infos[0].message, _place(infos[0].location), notes, diagnostics, source)


def _place(where: ir.Location) -> Place | None:
    return Place(where.filename, where.start_line, where.start_col) if where.is_a_file() else None
