"""Scalar types: what a code of 1 to 8 bits means, and the wide types that tiles and arrays also hold.

The types are `int1` to `int8`, `uint1` to `uint8`, `bipolar1` to `bipolar8`, every float `f{b}e{X}m{Y}` of b = 1 + X
+ Y = 3 to 8 bits with X >= 1 exponent bits; and `f16`, `bf16`, `f32`, `int16`, `uint16`, `int32` and `uint32`, which
have no codes here and are no types of weights. Integers are two's complement; floats have the bias 2^(X-1) - 1 and
subnormals; a bipolar code is a sign per bit, with the value 2q - (2^b - 1). `f8e4m3` is OCP's FN form, `f8e5m2` and
`f8e3m4` are IEEE-like, and in every other type every code is a finite number.

Sources: Tilus, sections 5.1 and 6; APT-LLM for bipolar.

    >>> lowlp.f4e2m1.decode(np.arange(8, dtype=np.uint8))
    array([0. , 0.5, 1. , 1.5, 2. , 3. , 4. , 6. ], dtype=float32)
    >>> lowlp.int6.encode([-3.5, 100.0])
    array([60, 31], dtype=uint8)
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import lowlp._layout as _layout
from lowlp.numeric.named_codecs import NAMED_BOOKS, NAMED_CODECS
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

# No type's name is as long; what is cut off need not fill an error message.
_MAX_NAME: Final = 40

# Floats that MLIR has itself; other floats are types of our dialect.
_MLIR_FLOATS: Final = {
    "f8e4m3": "f8E4M3FN",
    "f8e5m2": "f8E5M2",
    "f8e3m4": "f8E3M4",
    "f6e3m2": "f6E3M2FN",
    "f6e2m3": "f6E2M3FN",
    "f4e2m1": "f4E2M1FN",
}


class DType:
    """A scalar type; immutable, equal to another exactly when it is the same type.

    `DType(name)` is for this module; use `lowlp.dtype`, which also takes a `DType`.
    """

    __slots__ = ("_format", "_table", "name")

    name: str
    """The short name: `int6`, `f6e3m2`, `bf16`."""

    def __init__(self, name: str) -> None:
        if len(name) > _MAX_NAME:
            name = f"{name[: _MAX_NAME - 3]}..."
        try:
            scalar_format = _layout.ScalarFormat.parse(name)
        except ValueError as error:
            raise LowlpValueError(str(error)) from None
        object.__setattr__(self, "_format", scalar_format)
        object.__setattr__(self, "_table", None)
        object.__setattr__(self, "name", str(scalar_format.name))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a DType is immutable; {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a DType is immutable; {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[type[DType], tuple[str]]:
        return DType, (self.name,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DType) and self.name == other.name

    def __hash__(self) -> int:
        return hash((DType, self.name))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"lowlp.{self.name}"

    @property
    def bits(self) -> int:
        """Bits of a code (1 to 8), or of a value of a wide type (16 or 32)."""
        return int(self._format.bits)

    @property
    def exponent_bits(self) -> int:
        """Exponent bits of a float, 0 for other types."""
        return int(self._format.exponent_bits)

    @property
    def mantissa_bits(self) -> int:
        """Mantissa bits of a float without the implicit one, 0 for other types."""
        return int(self._format.mantissa_bits)

    @property
    def is_float(self) -> bool:
        """True for floats, the wide ones included."""
        return bool(self._format.is_float)

    @property
    def is_integer(self) -> bool:
        """True for `int{b}` and `uint{b}`."""
        return bool(self._format.is_integer)

    @property
    def is_signed(self) -> bool:
        """True when negative numbers have codes."""
        return bool(self._format.is_signed)

    @property
    def min(self) -> float:
        """The smallest finite value; an int unless the type is a float."""
        value = float(self._format.min)
        return value if self.is_float else int(value)

    @property
    def max(self) -> float:
        """The largest finite value; an int unless the type is a float."""
        value = float(self._format.max)
        return value if self.is_float else int(value)

    @property
    def mlir(self) -> str:
        """The element type in MLIR: `si6`, `ui4`, `f6E3M2FN`, `!lowlp.float<e2m2>`, `bf16`.

        Raises LowlpTypeError for bipolar types: their tiles hold unsigned integers, and the codec gives the meaning.
        """
        if self.is_integer:
            return f"{'s' if self.is_signed else 'u'}i{self.bits}"
        if not self.is_float:
            raise LowlpTypeError(f"{self.name} is no element type of MLIR; tiles hold its codes as ui{self.bits}")
        if not self._format.has_codes:
            return self.name
        return _MLIR_FLOATS.get(self.name, f"!lowlp.float<e{self.exponent_bits}m{self.mantissa_bits}>")

    def decode(self, codes: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """The values of codes, exactly.

        codes: an integer array of any shape, uint8 as a rule, each code in the low `bits` bits.

        Returns a float32 array of the same shape; codes of NaN and infinity give these. Raises LowlpValueError when a
        code is 2**bits or more, LowlpTypeError when the array holds no integers or the type has no codes.
        """
        self._require_codes()
        array = _as_array(codes, "codes")
        if array.dtype.kind not in "iu" and array.size:
            raise LowlpTypeError(f"codes must be an array of uint8; found {array.dtype}")
        max_code = 2**self.bits - 1
        if array.size and (array.min() < 0 or array.max() > max_code):
            found = array.max() if array.max() > max_code else array.min()
            raise LowlpValueError(f"codes of {self.name} must be 0 to {max_code}; found {found}")
        # Indexing by an array of no dimensions gives a number, not an array.
        return np.asarray(self._decode_table()[array.astype(np.intp, copy=False)])

    def encode(self, values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """The codes of the nearest values, of two equally near ones the even code.

        values: an array of any shape of float16, float32, float64, or a type that float64 holds exactly.

        Returns a uint8 array of the same shape. Values beyond the range, infinities too, become the largest finite
        value of their sign; floats keep the sign of zero. Raises LowlpValueError for NaN, LowlpTypeError when the
        array holds no real numbers or the type has no codes.
        """
        self._require_codes()
        array = _as_array(values, "values")
        if array.dtype.kind == "b" or not np.can_cast(array.dtype, np.float64):
            raise LowlpTypeError(f"values must be an array of float16, float32 or float64; found {array.dtype}")
        wide = np.ascontiguousarray(array, dtype=np.float64).reshape(-1)
        nans = np.isnan(wide)
        if nans.any():
            index = tuple(int(i) for i in np.unravel_index(int(nans.argmax()), array.shape))
            raise LowlpValueError(f"values must not be NaN, which has no code in {self.name}; found NaN at {index}")
        codes: npt.NDArray[np.uint8] = self._format.encode(wide)
        return codes.reshape(array.shape)

    def _require_codes(self) -> None:
        if not self._format.has_codes:
            raise LowlpTypeError(f"{self.name} has no codes; types of 1 to 8 bits have")

    def _decode_table(self) -> npt.NDArray[np.float32]:
        """The values of all codes in order, made on first use."""
        if self._table is None:
            object.__setattr__(self, "_table", np.array(self._format.decode_table(), dtype=np.float32))
        table: npt.NDArray[np.float32] = self._table
        return table

    _format: Any
    _table: Any


def dtype(name: str | DType) -> DType:
    """The type with this name, or the type itself.

    name: `int1` to `int8`, `uint1` to `uint8`, `bipolar1` to `bipolar8`, `f6e3m2` and the like (also `float6_e3m2`),
    `int16`, `uint16`, `int32`, `uint32`, `f16`, `bf16`, `f32` (also `float16`, `bfloat16`, `float32`).

    Raises LowlpValueError for other names, LowlpTypeError for other objects.
    """
    if not isinstance(name, str | DType):
        raise LowlpTypeError(f"name: expected a name such as 'int6' or a DType, got {type(name).__name__}")
    return named_dtype(name, "name")


def named_dtype(value: object, argument: str) -> DType:
    """As `dtype`, with the argument's name in errors; types of PyTorch and numpy are taken too."""
    if isinstance(value, DType):
        return value
    name = library_name(value)
    if name is None:
        raise LowlpTypeError(f"{argument}: expected a name such as 'int6' or a DType, got {type(value).__name__}")
    if name in NAMED_CODECS:
        raise LowlpValueError(
            f"{argument}: {name} names a codec, not the type of its codes: lowlp.quantize(w, {name!r}) makes it, with "
            f"{NAMED_CODECS[name]}"
        )
    if name in NAMED_BOOKS:
        raise LowlpValueError(
            f"{argument}: {name} names codebooks, not the type of their codes: lowlp.quantize(w, {name!r}) learns them"
        )
    try:
        return DType(_OCP_NAMES.get(name, name))
    except LowlpValueError as error:
        raise LowlpValueError(f"{argument}: {error}{_meant(name)}") from None


def _meant(name: str) -> str:
    """The names that a misspelt one may stand for, as the end of an error; '' where none is near.

    Only names with the same digits are near, so that no width is guessed: 'itn4' may be int4, and 'int9' is nothing.
    """
    types = [known.name for known in all_dtypes()]
    written = name[:_MAX_NAME].lower()
    near = [known for known in types if known.endswith(written) and written.startswith("e")]
    if not near:
        digits = [letter for letter in written if letter.isdigit()]
        known = [one for one in (*types, *NAMED_CODECS, *NAMED_BOOKS) if [c for c in one if c.isdigit()] == digits]
        near = difflib.get_close_matches(written, known, n=2)
        near = near[:1] if near[:1] == [written] else near
    return f"; did you mean {' or '.join(repr(one) for one in near)}?" if near else ""


# As PyTorch and ml_dtypes call them.
_OCP_NAMES: Final = {"float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "float4_e2m1fn": "f4e2m1"}


def library_name(value: object) -> str | None:
    """A name as it is; that of a type of PyTorch or numpy, as 'float16'; None for anything else."""
    if isinstance(value, str):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "dtype", ())):
        return str(value).removeprefix("torch.")
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return str(np.dtype(value).name)
    return None


def dtype_among(value: object, argument: str, allowed: Sequence[str]) -> str:
    """The short name of one of the `allowed` types, given by name or as a `DType`; other ones are refused."""
    try:
        found = named_dtype(value, argument).name
    except LowlpValueError:
        found = ""
    if found not in allowed:
        got = value.name if isinstance(value, DType) else value
        raise LowlpValueError(f"{argument}: must be one of {', '.join(allowed)}, got {got!r:.40}")
    return found


def _as_array(values: npt.ArrayLike, argument: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, OverflowError) as error:  # rows of different lengths
        raise LowlpValueError(f"{argument} must be an array: {error}") from None


def all_dtypes() -> tuple[DType, ...]:
    """Every type: integers, bipolar types, floats by bits and exponent bits, wide integers, and f16, bf16, f32."""
    return tuple(DType(scalar_format.name) for scalar_format in _layout.ScalarFormat.all())


def __getattr__(name: str) -> DType:
    # The other names of the types: float6_e3m2 is f6e3m2.
    if name.startswith(("float", "bfloat")):
        try:
            return DType(name)
        except LowlpValueError:
            pass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


int1: Final = DType("int1")
int2: Final = DType("int2")
int3: Final = DType("int3")
int4: Final = DType("int4")
int5: Final = DType("int5")
int6: Final = DType("int6")
int7: Final = DType("int7")
int8: Final = DType("int8")

uint1: Final = DType("uint1")
uint2: Final = DType("uint2")
uint3: Final = DType("uint3")
uint4: Final = DType("uint4")
uint5: Final = DType("uint5")
uint6: Final = DType("uint6")
uint7: Final = DType("uint7")
uint8: Final = DType("uint8")

bipolar1: Final = DType("bipolar1")
bipolar2: Final = DType("bipolar2")
bipolar3: Final = DType("bipolar3")
bipolar4: Final = DType("bipolar4")
bipolar5: Final = DType("bipolar5")
bipolar6: Final = DType("bipolar6")
bipolar7: Final = DType("bipolar7")
bipolar8: Final = DType("bipolar8")

f3e1m1: Final = DType("f3e1m1")
f3e2m0: Final = DType("f3e2m0")

f4e1m2: Final = DType("f4e1m2")
f4e2m1: Final = DType("f4e2m1")
f4e3m0: Final = DType("f4e3m0")

f5e1m3: Final = DType("f5e1m3")
f5e2m2: Final = DType("f5e2m2")
f5e3m1: Final = DType("f5e3m1")
f5e4m0: Final = DType("f5e4m0")

f6e1m4: Final = DType("f6e1m4")
f6e2m3: Final = DType("f6e2m3")
f6e3m2: Final = DType("f6e3m2")
f6e4m1: Final = DType("f6e4m1")
f6e5m0: Final = DType("f6e5m0")

f7e1m5: Final = DType("f7e1m5")
f7e2m4: Final = DType("f7e2m4")
f7e3m3: Final = DType("f7e3m3")
f7e4m2: Final = DType("f7e4m2")
f7e5m1: Final = DType("f7e5m1")
f7e6m0: Final = DType("f7e6m0")

f8e1m6: Final = DType("f8e1m6")
f8e2m5: Final = DType("f8e2m5")
f8e3m4: Final = DType("f8e3m4")
f8e4m3: Final = DType("f8e4m3")
f8e5m2: Final = DType("f8e5m2")
f8e6m1: Final = DType("f8e6m1")
f8e7m0: Final = DType("f8e7m0")

int16: Final = DType("int16")
uint16: Final = DType("uint16")
int32: Final = DType("int32")
uint32: Final = DType("uint32")

f16: Final = DType("f16")
bf16: Final = DType("bf16")
f32: Final = DType("f32")
