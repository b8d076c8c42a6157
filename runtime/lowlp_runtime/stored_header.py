"""What the header of stored weights may say, field by field: for those that load weights, and those that launch."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, NoReturn

from lowlp_runtime.errors import LowlpValueError

PERMUTATION_TYPE: Final = "int32"
# What codes of vectors are (dialect/include/lowlp/Numeric/Codec.h).
_VECTORS: Final = re.compile(r"vec\d+:\d+x\d+(\+1)?:(f16|bf16|int8|f8e4m3)(:[\d*x]+)?|e8p(\+e8(p|1b))?")


def check_fields(fields: Mapping[str, Any], where: str, types: Mapping[str, Collection[str]]) -> None:
    """Raises `LowlpValueError`, which names the field, its value and what is allowed, for a field that is malformed.

    fields  of the header, with all that headers must have
    where   what the message begins with
    types   the names that a field may have: of 'scales', 'zeros', 'offsets', 'lut', of the type in 'super', and of
            'family' where it is one of a few
    """

    def refuse(name: str, allowed: str) -> NoReturn:
        raise LowlpValueError(f"{where}: {name} must be {allowed}, got {fields[name]!r:.80}")

    shape, group = fields["shape"], fields["group"]
    if not isinstance(shape, list) or len(shape) not in (2, 3) or not all(map(_is_extent, shape)):
        refuse("shape", "[N, K] or [E, N, K] of positive ints below 2**31")
    k = shape[-1]
    if group not in ("channel", "tensor") and not (_is_positive(group) and k % group == 0):
        refuse("group", f"a positive int that divides K = {k}, 'channel' or 'tensor'")
    for name in ("family", "dtype"):
        if not isinstance(fields[name], str) or fields[name] not in types.get(name, (fields[name],)):
            refuse(name, f"one of {', '.join(types[name])}" if name in types else "a str")
    if type(fields["scale2"]) is not bool:
        refuse("scale2", "true or false")
    if fields.get("permutation", PERMUTATION_TYPE) != PERMUTATION_TYPE:
        refuse("permutation", PERMUTATION_TYPE)
    vectors = fields.get("vectors")
    if vectors is not None and not (isinstance(vectors, str) and _VECTORS.fullmatch(vectors)):
        refuse("vectors", "such as 'vec8:2x8:f16'")
    supers = fields.get("super")
    if supers is not None and not _is_super(supers, k if isinstance(group, str) else group, types["super"]):
        refuse("super", f"a type of {', '.join(types['super'])} and a group, 'channel' or a multiple of that of scales")
    for name in ("scales", "zeros", "offsets", "lut"):
        if fields[name] is None and name != "scales":
            continue
        if not isinstance(fields[name], str) or fields[name] not in types[name]:
            refuse(name, f"one of {', '.join(types[name])}" + (" or null" if name != "scales" else ""))


def _is_positive(value: object) -> bool:
    return type(value) is int and value > 0


def _is_extent(value: object) -> bool:
    return type(value) is int and 0 < value < 1 << 31


def _is_super(value: object, group: int, types: Collection[str]) -> bool:
    if not isinstance(value, dict) or set(value) != {"type", "group"}:
        return False
    kind, supers = value["type"], value["group"]
    if not isinstance(kind, str) or kind not in types:
        return False
    return bool(supers == "channel" or (_is_positive(supers) and supers % group == 0))
