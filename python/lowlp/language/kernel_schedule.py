"""What a kernel tells the compiler's passes: `#lowlp.schedule` of the block dialect."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Final

from lowlp._mlir import ir
from lowlp.errors import LowlpTypeError, LowlpValueError

MATRIX_UNITS: Final = ("warp", "warpgroup")
TABLE_FORMS: Final = ("auto", "pair", "entry", "register")
TABLE_COPIES: Final = (0, 1, 2, 4, 8, 16, 32)
DECODE_OFFSETS: Final = ("auto", "weights", "accumulators")
CODEBOOKS: Final = ("auto", "gc", "sc", "o1", "o2", "o3", "o4")

_CHOICES: Final = {
    "matrix_unit": MATRIX_UNITS,
    "table_form": TABLE_FORMS,
    "decode_offsets": DECODE_OFFSETS,
    "codebooks": CODEBOOKS,
}
_KINDS: Final = {str: "a str", int: "an int", bool: "a bool"}


@dataclass(frozen=True)
class KernelSchedule:
    """How passes are to divide the work of a kernel of the DSL: `schedule=` of `lowlp.kernel`. None of it changes what
    the kernel computes, but for the last bits that `decode_offsets` and `reassociate` round; passes follow it where
    they optimise.

    matrix_unit         what makes products whose operand b is a transposed load of shared memory: 'warp', or
                        'warpgroup' where the architecture has `wgmma`
    products_in_flight  products of warpgroups at once, 1 to 8: as many operands a are held in registers
    ping_pong           warpgroups begin the products of an iteration one after the other, so that one multiplies
                        while another does what comes before and after; with matrix_unit='warpgroup'
    exchange_registers  a producer (`ll.range(..., producer=True)`) is a whole warpgroup, which gives its registers to
                        the others, where the architecture has `setmaxnreg`; for blocks of whole warpgroups of 128
    blocks_per_sm       for how many blocks at once a multiprocessor has registers, 1 to 32: a thread may use all that
                        this leaves (PTX ISA, `.minnctapersm`); 0 leaves the choice to the assembler
    cluster             how many neighbouring blocks run at the same time and may exchange tiles, 1 to 8; the grid then
                        has one extent, a multiple of it (PTX ISA, "Cluster of Cooperative Thread Arrays")
    table_form          how codes are looked up in shared memory: 'pair', 'entry', 'register', or 'auto', the one that
                        is estimated to cost least
    table_copies        of the lookup tables for that, a power of two up to 32, one a bank; 0 chooses
    decode_offsets      where the offsets of decode plans are taken off: 'weights', 'accumulators', or 'auto', where
                        that is cheaper
    reassociate         products may be added in another order, so that scales and zero points of rows go on
                        accumulators rather than on weights, where that takes fewer instructions (`lowlp-fold-scales`)
    codebooks           where codebooks are kept (`ll.load_codebook`), by the names of table IV of VQ-LLM: 'gc' all in
                        global memory, 'sc' all in shared memory, 'o1' in shared memory what has room there, 'o2' to
                        'o4' the most frequent entries in registers too; or 'auto', with as many copies in shared memory
                        as avoid bank conflicts

    Raises `LowlpTypeError` and `LowlpValueError`, which name the field, for anything else.
    """

    matrix_unit: str = "warp"
    products_in_flight: int = 2
    ping_pong: bool = False
    exchange_registers: bool = False
    blocks_per_sm: int = 0
    cluster: int = 1
    table_form: str = "auto"
    table_copies: int = 0
    decode_offsets: str = "auto"
    reassociate: bool = False
    codebooks: str = "auto"

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, kind = getattr(self, field.name), type(field.default)
            if type(value) is not kind:
                raise LowlpTypeError(f"{field.name}: must be {_KINDS[kind]}, got {value!r}")
            allowed = _CHOICES.get(field.name)
            if allowed and value not in allowed:
                raise LowlpValueError(f"{field.name}: must be one of {', '.join(allowed)}, got {value!r}")
        _verify(self.mlir)

    @property
    def mlir(self) -> str:
        """The attribute of the block dialect; it names the fields that differ from their defaults."""
        given = [(field.name, getattr(self, field.name), field.default) for field in dataclasses.fields(self)]
        texts = (f"{name} = {str(value).lower()}" for name, value, usual in given if value != usual)
        return f"#lowlp.schedule<{', '.join(texts)}>"


@functools.lru_cache(maxsize=256)
def _verify(text: str) -> None:
    """Raises LowlpValueError where the dialect, which knows the bounds of all numbers, refuses the attribute."""
    try:
        ir.Attribute.parse(text, ir.Context())
    except ir.MLIRError as error:
        raise LowlpValueError(f"schedule: {error.error_diagnostics[0].message}") from None
