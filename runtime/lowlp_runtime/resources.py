"""What the assembler says of a kernel's code for one architecture."""

import re
from dataclasses import asdict, dataclass
from typing import Final

from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

ARCH: Final = re.compile(r"sm_[1-9][0-9]{1,2}[af]?")


@dataclass(frozen=True)
class Resources:
    """What the machine code of a kernel takes.

    arch             the architecture, 'sm_90a'
    assembler        what made the code: 'ptxas', 'nvjitlink' or 'driver'
    registers        of a thread
    spilled_bytes    of registers that a thread keeps in local memory
    shared_bytes     of a block, static and dynamic
    product_remarks  how often the assembler made products of warpgroups wait, or one after the other

    Raises `LowlpTypeError` and `LowlpValueError` for anything else.
    """

    arch: str
    assembler: str
    registers: int
    spilled_bytes: int
    shared_bytes: int
    product_remarks: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.arch, str) or not isinstance(self.assembler, str):
            raise LowlpTypeError(
                f"resources: arch and assembler must be text, got {self.arch!r:.40}, {self.assembler!r:.40}"
            )
        if not ARCH.fullmatch(self.arch):
            raise LowlpValueError(f"resources: arch must be an architecture such as 'sm_90a', got {self.arch!r:.40}")
        for name in ("registers", "spilled_bytes", "shared_bytes", "product_remarks"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise LowlpValueError(f"resources: {name} must be an int of at least 0, got {value!r:.40}")

    def in_words(self) -> dict[str, int]:
        """The numbers as they are shown: what they are of, and how many."""
        return {
            "registers per thread": self.registers,
            "spilled bytes per thread": self.spilled_bytes,
            "shared bytes per block": self.shared_bytes,
            **({"remarks on products": self.product_remarks} if self.product_remarks else {}),
        }

    def to_json(self) -> dict[str, object]:
        """As JSON, the inverse of `Resources(**data)`."""
        return asdict(self)
