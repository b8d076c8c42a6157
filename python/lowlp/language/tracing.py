"""The trace of one kernel: the IR that is being built, and the values that the user's program holds meanwhile.

Every thread has a stack of traces; instructions go to the innermost one. A trace keeps the regions that are open, so
that a value can say whether it is visible where it is used, and a prologue at the entry of the kernel for constants and
for what is made of parameters once.
"""

from __future__ import annotations

import contextlib
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from lowlp._mlir import ir
from lowlp.errors import LowlpRuntimeError

from .source import Place, here, value_error


class Scope:
    """A region of one block; `what` names it in messages."""

    def __init__(self, block: ir.Block, what: str) -> None:
        self.block = block
        self.what = what


class Trace:
    """A kernel in the making. The context of `module` must be current while ops are added."""

    def __init__(self, name: str, block: ir.Block, num_threads: int, grid_rank: int) -> None:
        self.name = name
        self.num_threads = num_threads
        self.grid_rank = grid_rank
        self.parameters: Sequence[Any] = ()  # of the kernel, and
        self.arguments: Mapping[str, object] = {}  # what its function gets for them, by name
        self.has_warpgroups = False  # whether warpgroups make its products, where they can
        self._scopes = [Scope(block, f"kernel `{name}`")]
        self._prologue_end: ir.Operation | None = None
        self._prologue_length = 0
        self._constants: dict[tuple[str, bytes | int], ir.Value] = {}
        self._types: dict[str, ir.Type] = {}

    @property
    def root(self) -> Scope:
        """The body of the kernel."""
        return self._scopes[0]

    @property
    def scope(self) -> Scope:
        """The innermost open region."""
        return self._scopes[-1]

    def is_open(self, scope: Scope) -> bool:
        """True when values of `scope` are visible here."""
        return any(scope is other for other in self._scopes)

    @contextlib.contextmanager
    def opened(self, scope: Scope) -> Iterator[None]:
        """Ops go to the end of `scope`; it may be opened again."""
        self._scopes.append(scope)
        try:
            yield
        finally:
            self._scopes.pop()

    def type(self, text: str) -> ir.Type:
        """The type that is written so."""
        if text not in self._types:
            self._types[text] = ir.Type.parse(text)
        return self._types[text]

    def emit(
        self,
        name: str,
        results: Sequence[ir.Type] = (),
        operands: Sequence[ir.Value] = (),
        attributes: Mapping[str, ir.Attribute] | None = None,
        regions: int = 0,
        ip: Any = None,
    ) -> ir.Operation:
        """Adds an op at the end of the innermost region, located at the user's line."""
        return ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes=dict(attributes or {}),
            regions=regions,
            loc=location(here()),
            ip=ir.InsertionPoint(self.scope.block) if ip is None else ip,
        )

    def emit_in_prologue(
        self,
        name: str,
        results: Sequence[ir.Type],
        operands: Sequence[ir.Value] = (),
        attributes: Mapping[str, ir.Attribute] | None = None,
    ) -> ir.Value:
        """Adds an op with one result at the entry of the kernel, after those added there before."""
        if self._prologue_end is None:
            ip = ir.InsertionPoint.at_block_begin(self.root.block)
        else:
            ip = ir.InsertionPoint.after(self._prologue_end)
        self._prologue_end = self.emit(name, results, operands, attributes, ip=ip)
        self._prologue_length += 1
        return self._prologue_end.results[0]

    def mark(self) -> int:
        """A point of the innermost region, for `erase_since`."""
        return len(self.scope.block.operations) - self._num_prologue_ops()

    def erase_since(self, mark: int) -> None:
        """Removes the ops that the innermost region got since the mark; constants at the entry of the kernel stay."""
        first = mark + self._num_prologue_ops()
        for operation in reversed(list(self.scope.block.operations)[first:]):
            operation.operation.erase()

    def _num_prologue_ops(self) -> int:
        return self._prologue_length if self.scope is self.root else 0

    def constant(self, type_name: str, value: int | float) -> ir.Value:
        """The constant `value` of an index, integer or float type, made once at the entry of the kernel."""
        key = (type_name, struct.pack("<d", value) if isinstance(value, float) else value)
        if key not in self._constants:
            mlir_type = self.type(type_name)
            attribute = (
                ir.FloatAttr.get(mlir_type, value) if isinstance(value, float) else ir.IntegerAttr.get(mlir_type, value)
            )
            self._constants[key] = self.emit_in_prologue("arith.constant", [mlir_type], (), {"value": attribute})
        return self._constants[key]


class TracedValue:
    """A value that a kernel computes when it runs; while the kernel is traced it only stands for it."""

    __slots__ = ("_scope", "_trace", "_value")

    # numpy leaves `array * tile` to the tile, which refuses with the line, rather than make an array of tiles.
    __array_ufunc__ = None

    _value: ir.Value

    def __init__(self, trace: Trace, value: ir.Value, scope: Scope | None = None) -> None:
        self._trace = trace
        self._value = value
        self._scope = scope or trace.scope

    def __repr__(self) -> str:
        return f"<{self.describe()}>"

    def describe(self) -> str:
        """What the value is, for messages."""
        return "a traced value"

    def like(self, value: ir.Value) -> TracedValue:
        """Another value of the same type, of the innermost region."""
        return type(self)(self._trace, value)

    @property
    def ir_value(self) -> ir.Value:
        """The value in the IR. Raises KernelValueError where it is not visible."""
        trace = current_trace(self.describe())
        if self._trace is not trace:
            raise value_error(f"{self.describe()} of kernel `{self._trace.name}` is used in kernel `{trace.name}`")
        if not trace.is_open(self._scope):
            raise value_error(
                f"{self.describe()} is used after the end of the {self._scope.what} that computes it; assign it to a "
                "variable that exists before"
            )
        return self._value


class Unassigned:
    """The value of a variable that has none; every use raises KernelValueError with the reason."""

    __slots__ = ("_reason",)
    _reason: str

    def __init__(self, reason: str) -> None:
        object.__setattr__(self, "_reason", reason)

    def refuse(self, *_: object) -> NoReturn:
        """Raises the error."""
        raise value_error(object.__getattribute__(self, "_reason"))

    def __getattr__(self, name: str) -> Any:
        self.refuse()

    def __repr__(self) -> str:
        return "<unassigned>"


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_OTHER = ("neg", "pos", "invert", "eq", "ne", "lt", "le", "gt", "ge", "bool", "index", "int", "float")
_CONTAINER = ("iter", "len", "getitem", "setitem", "contains", "call")
for _name in (*_BINARY, *(f"r{_name}" for _name in _BINARY), *_OTHER, *_CONTAINER):
    setattr(Unassigned, f"__{_name}__", Unassigned.refuse)


_active = threading.local()


def current_trace(what: str) -> Trace:
    """The innermost trace of this thread. Raises LowlpRuntimeError where no kernel is being traced."""
    stack: list[Trace] = getattr(_active, "stack", [])
    if not stack:
        raise LowlpRuntimeError(f"{what}: allowed in a kernel only, while it is traced")
    return stack[-1]


def is_tracing() -> bool:
    """True while this thread traces a kernel."""
    return bool(getattr(_active, "stack", []))


@contextlib.contextmanager
def activated(trace: Trace) -> Iterator[None]:
    """Instructions of this thread go to `trace`."""
    stack: list[Trace] = _active.__dict__.setdefault("stack", [])
    stack.append(trace)
    try:
        yield
    finally:
        stack.pop()


def location(place: Place) -> ir.Location:
    """The place as a location of the IR."""
    return ir.Location.file(place.filename, place.line, place.column)
