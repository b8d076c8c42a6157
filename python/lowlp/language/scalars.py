"""Scalars: numbers that are the same in all threads of a block, of type index, f32 or bool.

Integers of Python mix freely with index, and numbers of Python with f32; what is known while tracing is computed by
Python. Integers behave as Python's do: `//` rounds towards minus infinity and `%` has the sign of the divisor. Where
both operands are known not to be negative (block indices, loop variables from 0, constants, and what is added,
multiplied and divided of those) the plain `arith.divsi` and `arith.remsi` are used, which then mean the same.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable
from typing import Any, NoReturn

from lowlp._mlir import ir

from .grid import Extent
from .source import type_error, value_error
from .tracing import Scope, Trace, TracedValue, Unassigned, current_trace

# Predicates of arith.cmpi (signed) and arith.cmpf (ordered; `!=` unordered, so that NaN differs from everything).
_INTEGER_PREDICATES = {"==": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}
_FLOAT_PREDICATES = {"==": 1, "!=": 13, "<": 4, "<=": 5, ">": 2, ">=": 3}
_INTEGER_OPS = {"+": "arith.addi", "-": "arith.subi", "*": "arith.muli"}
_FLOAT_OPS = {"+": "arith.addf", "-": "arith.subf", "*": "arith.mulf", "/": "arith.divf"}
_MLIR_TYPES = {"index": "index", "f32": "f32", "bool": "i1"}
_PYTHON_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Scalar(TracedValue):
    """A number that a kernel computes; `dtype` is 'index', 'f32' or 'bool'.

    index  + - * // %, unary -, comparisons
    f32    + - * /, unary -, comparisons
    bool   & | ^ ~, and `and`, `or`, `not`, `if`, `while` in a kernel
    """

    __slots__ = ("_below", "_nonnegative", "dtype")

    def __init__(
        self, trace: Trace, value: ir.Value, dtype: str, nonnegative: bool = False, scope: Scope | None = None
    ) -> None:
        super().__init__(trace, value, scope)
        self.dtype = dtype
        self._nonnegative = nonnegative
        self._below: int | None = None

    def describe(self) -> str:
        """What the value is, for messages."""
        return f"{'a' if self.dtype == 'bool' else 'an'} {self.dtype} scalar"

    def like(self, value: ir.Value) -> Scalar:
        """Another value of the same type, of the innermost region."""
        return Scalar(self._trace, value, self.dtype)

    def __add__(self, other: object) -> Scalar:
        return _arithmetic("+", self, other)

    def __radd__(self, other: object) -> Scalar:
        return _arithmetic("+", other, self)

    def __sub__(self, other: object) -> Scalar:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: object) -> Scalar:
        return _arithmetic("-", other, self)

    def __mul__(self, other: object) -> Scalar:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: object) -> Scalar:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: object) -> Scalar:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: object) -> Scalar:
        return _arithmetic("/", other, self)

    def __floordiv__(self, other: object) -> Scalar:
        return _arithmetic("//", self, other)

    def __rfloordiv__(self, other: object) -> Scalar:
        return _arithmetic("//", other, self)

    def __mod__(self, other: object) -> Scalar:
        return _arithmetic("%", self, other)

    def __rmod__(self, other: object) -> Scalar:
        return _arithmetic("%", other, self)

    def __neg__(self) -> Scalar:
        if self.dtype == "f32":
            return _emit("arith.negf", "f32", [self])
        return _arithmetic("-", 0, self)

    def __pos__(self) -> Scalar:
        return self

    def __eq__(self, other: object) -> Any:
        return compare("==", self, other)

    def __ne__(self, other: object) -> Any:
        return compare("!=", self, other)

    def __lt__(self, other: object) -> Any:
        return compare("<", self, other)

    def __le__(self, other: object) -> Any:
        return compare("<=", self, other)

    def __gt__(self, other: object) -> Any:
        return compare(">", self, other)

    def __ge__(self, other: object) -> Any:
        return compare(">=", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: object) -> Scalar:
        return logical("&", self, other)

    __rand__ = __and__

    def __or__(self, other: object) -> Scalar:
        return logical("|", self, other)

    __ror__ = __or__

    def __xor__(self, other: object) -> Scalar:
        return logical("^", self, other)

    __rxor__ = __xor__

    def __invert__(self) -> Scalar:
        return logical("^", self, True)

    def __bool__(self) -> bool:
        self._refuse(
            "no truth value while the kernel is traced",
            "use `if`, `while`, `and`, `or` and `not` in the kernel or in a function decorated with @ll.inline, and "
            "ll.minimum and ll.maximum for min and max",
        )

    def __index__(self) -> int:
        self._refuse("no number while the kernel is traced", "use ll.range for a loop, and Python ints for shapes")

    def __int__(self) -> int:
        self._refuse("no number while the kernel is traced", "drop the conversion")

    def __float__(self) -> float:
        self._refuse("no number while the kernel is traced", "drop the conversion")

    def __iter__(self) -> Any:
        self._refuse("nothing to iterate over", "use ll.range for a loop")

    def _refuse(self, has: str, advice: str) -> NoReturn:
        raise type_error(f"{self.describe()} is known when the kernel runs, and has {has}: {advice}")


class IntegerParameter(Scalar):
    """An i32 or i64 parameter as an index; it is converted once, at the entry of the kernel, when it is first used."""

    __slots__ = ("_argument",)

    def __init__(self, trace: Trace, argument: ir.Value) -> None:
        super().__init__(trace, argument, "index")
        self._argument = argument

    @property
    def ir_value(self) -> ir.Value:
        """The value in the IR. Raises KernelValueError where it is not visible."""
        if self._value is self._argument:
            trace = self._trace
            self._value = trace.emit_in_prologue("arith.index_cast", [trace.type("index")], [self._argument])
        return super().ir_value


# --- from Python ------------------------------------------------------------------------------------------------------


def is_bool(value: object) -> bool:
    """True for Python's and NumPy's bool."""
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def is_int(value: object) -> bool:
    """True for integers of Python and NumPy, and not for bool."""
    return isinstance(value, numbers.Integral) and not is_bool(value)


def is_number(value: object) -> bool:
    """True for real numbers of Python and NumPy, and not for bool."""
    return isinstance(value, numbers.Real) and not is_bool(value)


def lift(value: object) -> Scalar | None:
    """A number of Python as a scalar: int as index, float as f32, bool as bool; None for what is no number."""
    if isinstance(value, Scalar):
        return value
    if is_bool(value):
        return constant("bool", bool(value))
    if is_int(value):
        return constant("index", operator.index(value))  # type: ignore[arg-type]
    if is_number(value):
        return constant("f32", float(value))  # type: ignore[arg-type]
    return None


def constant(dtype: str, value: int | float) -> Scalar:
    """A constant of the kernel that is being traced."""
    trace = current_trace("a constant")
    if dtype == "index" and not -(2**63) <= value < 2**63:
        raise value_error(f"an index has 64 bits, which cannot hold {value}")
    result = trace.constant(_MLIR_TYPES[dtype], float(value) if dtype == "f32" else int(value))
    return Scalar(trace, result, dtype, dtype == "index" and value >= 0, trace.root)


def convert(value: object, dtype: str) -> Scalar | None:
    """`value` as a scalar of `dtype` if that needs no conversion while the kernel runs, else None."""
    if isinstance(value, Scalar):
        return value if value.dtype == dtype else None
    allowed = {"bool": is_bool, "index": is_int, "f32": is_number}[dtype]
    return constant(dtype, value) if allowed(value) else None  # type: ignore[arg-type]


def as_index(argument: str, value: object) -> Scalar:
    """An index scalar; raises KernelTypeError that names the argument."""
    scalar = convert(value, "index")
    if scalar is None:
        raise type_error(f"{argument}: must be an int or an index scalar, found {describe(value)}")
    return scalar


def describe(value: object) -> str:
    """What a value is, for messages; a variable that has none says why instead."""
    if isinstance(value, Unassigned):
        value.refuse()
    if isinstance(value, TracedValue):
        return value.describe()
    return f"{type(value).__name__} {value!r}"


def known_nonnegative(value: object) -> bool:
    """True for values that are known not to be negative."""
    return value._nonnegative if isinstance(value, Scalar) else is_int(value) and value >= 0  # type: ignore[operator]


# --- operations -------------------------------------------------------------------------------------------------------


def _emit(
    name: str, dtype: str, operands: list[Scalar], nonnegative: bool = False, predicate: int | None = None
) -> Scalar:
    trace = current_trace(name)
    attributes = {}
    if predicate is not None:
        attributes["predicate"] = ir.IntegerAttr.get(trace.type("i64"), predicate)
    values = [operand.ir_value for operand in operands]
    operation = trace.emit(name, [trace.type(_MLIR_TYPES[dtype])], values, attributes)
    return Scalar(trace, operation.results[0], dtype, nonnegative)


def _common(symbol: str, lhs: object, rhs: object) -> tuple[Scalar, Scalar]:
    """Both operands with one dtype; one of them is a scalar."""
    for left, right in ((lhs, rhs), (rhs, lhs)):
        if isinstance(left, Scalar):
            converted = convert(right, left.dtype)
            if converted is not None:
                return (left, converted) if left is lhs else (converted, left)
    raise type_error(f"operands of {symbol} must have one type, found {describe(lhs)} and {describe(rhs)}")


def _arithmetic(symbol: str, lhs: object, rhs: object) -> Scalar:
    if isinstance(rhs, TracedValue) and not isinstance(rhs, Scalar):
        return NotImplemented  # type: ignore[no-any-return]  # a tile knows what to do with a scalar
    nonnegative = known_nonnegative(lhs) and known_nonnegative(rhs)
    left, right = _common(symbol, lhs, rhs)
    if left.dtype == "bool":
        raise type_error(f"{symbol} is for numbers, found {describe(lhs)} and {describe(rhs)}")
    if left.dtype == "f32":
        if symbol not in _FLOAT_OPS:
            raise type_error(f"{symbol} is for integers, found {describe(lhs)} and {describe(rhs)}")
        return _emit(_FLOAT_OPS[symbol], "f32", [left, right])
    if symbol == "/":
        raise type_error("/ is for floats; integers are divided by // or ll.ceildiv")
    if symbol in ("//", "%"):
        return _divide(symbol, left, right, rhs, nonnegative)
    return _emit(_INTEGER_OPS[symbol], "index", [left, right], nonnegative and symbol != "-")


def _check_divisor(symbol: str, divisor: object) -> None:
    """Refuses a divisor of 0: now if it is known, else when the CPU target runs, where the processor would trap."""
    if is_int(divisor) and divisor == 0:
        raise value_error(f"{symbol}: division by zero")
    if isinstance(divisor, Scalar) and divisor.dtype == "index":
        attributes: dict[str, ir.Attribute] = {"message": ir.StringAttr.get("division by zero")}
        current_trace(symbol).emit("lowlp.assume", [], [compare("!=", divisor, 0).ir_value], attributes)


def _divide_narrow(symbol: str, left: Scalar, right: Scalar, least: int, most: int) -> Scalar:
    """`//` or `%` of numbers of 32 bits, the divisor from `least` to `most`: a third of the instructions that 64 bits
    take."""
    trace = current_trace(symbol)
    narrow = trace.type("i32")

    def emit(name: str, kind: ir.Type, *operands: ir.Value) -> ir.Value:
        return trace.emit(name, [kind], list(operands)).results[0]

    value = emit("arith.index_castui", narrow, left.ir_value)
    by = emit("arith.index_castui", narrow, right.ir_value)
    value = emit("arith.divui" if symbol == "//" else "arith.remui", narrow, value, by)
    result = Scalar(trace, emit("arith.index_castui", trace.type("index"), value), "index", nonnegative=True)
    assert left._below is not None
    result._below = -(-left._below // least) if symbol == "//" else min(left._below, most)
    return result


def _divide(symbol: str, left: Scalar, right: Scalar, divisor: object, nonnegative: bool) -> Scalar:
    _check_divisor(symbol, divisor)
    is_narrow = left._below is not None and left._below <= 1 << 32
    least, most = (divisor, divisor) if isinstance(divisor, int) else (1, right._below)
    if nonnegative and is_narrow and most is not None and most < 1 << 32:
        return _divide_narrow(symbol, left, right, least, most)
    if nonnegative:
        return _emit("arith.divsi" if symbol == "//" else "arith.remsi", "index", [left, right], True)
    if symbol == "//":
        return _emit("arith.floordivsi", "index", [left, right])
    if is_int(divisor) and divisor > 0:  # type: ignore[operator]
        rest = _emit("arith.remsi", "index", [left, right])
        result = select(compare("<", rest, 0), rest + right, rest)
        result._nonnegative = True
        return result
    quotient = _emit("arith.floordivsi", "index", [left, right])
    return left - quotient * right


def compare(symbol: str, lhs: object, rhs: object) -> Any:
    """A comparison, of type bool."""
    if isinstance(rhs, TracedValue) and not isinstance(rhs, Scalar):
        return NotImplemented
    left, right = _common(symbol, lhs, rhs)
    if left.dtype == "f32":
        return _emit("arith.cmpf", "bool", [left, right], predicate=_FLOAT_PREDICATES[symbol])
    if left.dtype == "bool" and symbol not in ("==", "!="):
        raise type_error(f"{symbol} is for numbers, found {describe(lhs)} and {describe(rhs)}")
    return _emit("arith.cmpi", "bool", [left, right], predicate=_INTEGER_PREDICATES[symbol])


def logical(symbol: str, lhs: object, rhs: object) -> Scalar:
    """`&`, `|` or `^` of two conditions."""
    left, right = _common(symbol, lhs, rhs)
    if left.dtype != "bool":
        raise type_error(f"{symbol} is for conditions, found {describe(lhs)} and {describe(rhs)}")
    name = {"&": "arith.andi", "|": "arith.ori", "^": "arith.xori"}[symbol]
    return _emit(name, "bool", [left, right])


def select(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    """`yes` where the condition holds, else `no`; both are of one dtype."""
    return _emit("arith.select", yes.dtype, [condition, yes, no], yes._nonnegative and no._nonnegative)


def ceildiv(a: Any, b: Any) -> Any:
    """The quotient of two integers, rounded up: of Python ints, of index scalars, or in a grid.

    Raises KernelValueError for a divisor of 0, KernelTypeError for operands that are no integers.
    """
    if isinstance(a, Extent):
        return a.ceildiv(b)
    _check_divisor("ceildiv", b)
    if is_int(a) and is_int(b):
        return -(-a // b)
    nonnegative = known_nonnegative(a) and known_nonnegative(b)
    left, right = as_index("a", a), as_index("b", b)
    if nonnegative:
        return (left + (right - 1 if isinstance(b, Scalar) else int(b) - 1)) // b
    return _emit("arith.ceildivsi", "index", [left, right])


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two numbers; index or f32, where NaN wins over numbers."""
    return _extreme("minimum", min, ("arith.minsi", "arith.minimumf"), a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two numbers; index or f32, where NaN wins over numbers."""
    return _extreme("maximum", max, ("arith.maxsi", "arith.maximumf"), a, b)


def _extreme(name: str, of_python: Callable[[Any, Any], Any], ops: tuple[str, str], a: object, b: object) -> Any:
    if is_number(a) and is_number(b):
        return of_python(a, b)
    if not isinstance(a, Scalar) and not isinstance(b, Scalar):
        raise type_error(f"{name}: operands must be numbers, found {describe(a)} and {describe(b)}")
    either = name == "maximum" and (known_nonnegative(a) or known_nonnegative(b))
    both = known_nonnegative(a) and known_nonnegative(b)
    left, right = _common(f"ll.{name}", a, b)
    if left.dtype == "bool":
        raise type_error(f"{name}: operands must be numbers, found {describe(a)} and {describe(b)}")
    return _emit(ops[left.dtype == "f32"], left.dtype, [left, right], left.dtype == "index" and (either or both))
