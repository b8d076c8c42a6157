"""Operands made of the arrays that quantised weights are stored as, in numpy: no compiler is needed.

>>> arguments = host_operands(product.operands, arrays)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.operands import Operand
from lowlp_runtime.permutations import check_permutation
from lowlp_runtime.spread_books import with_second_places
from lowlp_runtime.weight_range import LEAST_EXPONENT_OF_SCALES, Fit, range_of, top_exponent

if TYPE_CHECKING:
    from numpy.typing import NDArray

STORED_AS: Final = {
    "packed": "packed",
    "scales": "scales",
    "zeros": "zeros",
    "offsets": "offsets",
    "lut": "lut",
    "lut_unscale": "lut",
    "codebooks": "codebooks",
    "codebooks_unscale": "codebooks",
    "book_scales": "book_scales",
    "scale2": "scale2",
    "super_scales": "super_scales",
    "super_offsets": "super_offsets",
    "permutation": "permutation",
}
"""Role -> the stored array that the operand is made of; 'fit' and 'unfit' are made of several."""

TABLE_EXPONENT: Final = {"f16": 16, "bf16": 0}
"""Entries of tables come times a power of two, and are at most two to this power: near the top of f16's range, where
least is lost; bf16's range is that of f32."""

# What kernels load at a time at the most.
_WIDE_BYTES: Final = 16
# So that f32 holds the inverse of the power of two.
_LEAST_POWER: Final = -127
_MOST_POWER: Final = 149
# The bits of infinity.
_INFINITY: Final = {"f16": 0x7C00, "bf16": 0x7F80}
_F32_MAX: Final = (2.0 - 2.0**-23) * 2.0**127


def host_operands(operands: Sequence[Operand], stored: Mapping[str, Any]) -> dict[str, NDArray[Any] | float]:
    """The operands whose source is 'weights', by name, as the kernel reads them: arrays and numbers.

    operands  of a kernel
    stored    numpy arrays by name, those of `STORED_AS`; scales, zeros and offsets [N, K / group] or [1, 1]

    Elements of one byte come as uint8, and entries of tables in bf16 as their bits, uint16. Arrays are contiguous and
    begin at 16 bytes; those that are stored so are not copied. Raises `LowlpValueError` where an array is lacking, no
    transform leads to the shape, or a permutation does not name each column once.
    """
    # Entries and the inverse of their factor are made of the same tables, in the type of the entries.
    entries = next((operand.element for operand in operands if operand.role in ("lut", "codebooks")), "")
    made: dict[str, NDArray[Any] | float] = {}
    for operand in operands:
        if operand.role in ("fit", "unfit"):
            elements = {STORED_AS[other.role]: other.element for other in operands if other.role in STORED_AS}
            exponent = exponent_that_fits(operand.transform, elements, stored)
            made[operand.name] = 2.0 ** (exponent if operand.role == "unfit" else -exponent)
        elif operand.source == "weights":
            made[operand.name] = _made(operand, stored, entries)
    return made


def exponent_that_fits(transform: str, elements: Mapping[str, str], stored: Mapping[str, Any]) -> int:
    """p of `weight_range`, for the transform of operands 'fit' and 'unfit'.

    elements, stored  as `range_of` takes them
    """
    import numpy as np

    fit = Fit.parse(transform)
    if fit is None:
        raise LowlpValueError(f"transform: expected the text of a Fit, got {transform!r:.40}")
    found = range_of(fit, elements, stored)
    if fit.what == "weights":
        return found.exponent
    if fit.what == "scales":
        return max(found.exponent, LEAST_EXPONENT_OF_SCALES)
    # Entries times 2^-p are numbers of f16 too, as they are where that loses nothing.
    table = np.asarray(stored["lut"])
    bits, unscale = filled(table, "f16")
    entries = _values(bits.view(np.uint16), "f16") * unscale
    with np.errstate(over="ignore"):
        are_held = (entries.astype(np.float16).astype(np.float64) == entries).all()
    if found.exponent == 0 and are_held:
        return 0
    return max(top_exponent(found.largest), top_exponent(float(np.abs(entries).max())))


def _made(operand: Operand, stored: Mapping[str, Any], entries: str) -> NDArray[Any] | float:
    import numpy as np

    name = STORED_AS[operand.role]
    if stored.get(name) is None:
        raise LowlpValueError(f"qw: has no {name}, which the kernel takes as its operand {operand.name!r}")
    array = np.asarray(stored[name])
    # So that f16 holds the sums of entries of several books.
    room = (array.shape[-3] - 1).bit_length() if "sums" in operand.transform.split() else 0
    if operand.transform.startswith("unfill"):
        return filled(array, entries, room)[1]
    if not operand.is_array:
        if array.size != 1:
            raise LowlpValueError(
                f"qw: its {name} are {list(array.shape)}, one for each row, and the kernel takes one number; "
                "compile_linear(scale2='row') makes one for them"
            )
        return float(array.reshape(())[()])
    if operand.transform.startswith("filled"):
        array = filled(array, entries, room)[0]
    if operand.transform.endswith("copies"):
        array = with_second_places(array)
    if operand.transform == "by_group":
        groups, rows = operand.shape
        if array.shape not in ((rows, groups), (1, 1)):
            raise LowlpValueError(f"qw: {name} must have shape [{rows}, {groups}] or [1, 1], got {list(array.shape)}")
        array = np.broadcast_to(array, (int(rows), int(groups))).T
    elif operand.transform == "by_row" and array.size == 1:
        array = np.broadcast_to(array.reshape(1), (int(operand.shape[0]),))
    if operand.role in ("codebooks", "book_scales") and array.shape == (1, 1, *operand.shape):
        # Books of one block are those of all weights.
        array = array[0, 0]
    if array.shape != operand.shape:
        raise LowlpValueError(f"qw: {name} must have shape {list(operand.shape)}, got {list(array.shape)}")
    if operand.role == "permutation":
        check_permutation(array, int(operand.shape[0]), "qw: permutation")
    array = _at_wide_address(array)
    # Launches know floats of 8 bits as bytes.
    return array.view(np.uint8) if array.itemsize == 1 else array


def _at_wide_address(array: NDArray[Any]) -> NDArray[Any]:
    """The array, contiguous, where kernels may load 16 bytes at a time; a copy if it does not lie so."""
    import numpy as np

    if array.flags.c_contiguous and array.ctypes.data % _WIDE_BYTES == 0:
        return array
    memory = np.empty(array.nbytes + _WIDE_BYTES, np.uint8)
    first = -memory.ctypes.data % _WIDE_BYTES
    copied = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def filled(entries: NDArray[Any], element: str, room: int = 0) -> tuple[NDArray[Any], float]:
    """The entries of tables times a power of two, in the type `element`, 'f16' or 'bf16' (as bits, uint16), and the
    inverse of that power.

    The power brings the largest entry, of all tables, to the top of f16's range, to at least 2^15, or 2^(15 - room); or
    in bf16 between 1/2 and 1 (to 2, where it is 2^127 and more). Entries are rounded to nearest even, so they are exact
    where any power makes all of them exact (in bf16: and they span less than 2^126). None overflows, and those that
    become subnormal are 2^-29 of the largest or less, or 2^(room - 29).

    Where scales of f16 go on weights, kernels multiply entries by another power of two (`exponent_that_fits`).
    """
    import numpy as np

    largest = float(np.abs(entries.astype(np.float64)).max())
    exponent = TABLE_EXPONENT[element] - room - int(np.frexp(largest)[1]) if largest else 0
    factor = 2.0 ** min(max(exponent, _LEAST_POWER), _MOST_POWER)
    bits = _rounded_bits(entries, factor, element)
    if (bits & 0x7FFF).max() >= _INFINITY[element]:
        # By rounding up; half of it is a power of two then.
        factor /= 2
        bits = _rounded_bits(entries, factor, element)
    # The largest numbers of float32 may not become infinite by rounding up: one step towards zero.
    bits -= (np.abs(_values(bits, element)) > _F32_MAX * factor).astype(np.uint16)
    return (bits.view(np.float16) if element == "f16" else bits), 1.0 / factor


def _rounded_bits(entries: NDArray[Any], factor: float, element: str) -> NDArray[Any]:
    import numpy as np

    # By way of float32, which has all 24 bits of an entry.
    with np.errstate(over="ignore"):
        scaled = (entries.astype(np.float64) * factor).astype(np.float32)
        if element == "f16":
            return scaled.astype(np.float16).view(np.uint16)
    bits = scaled.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _values(bits: NDArray[Any], element: str) -> NDArray[Any]:
    import numpy as np

    if element == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
