"""New keys and values, quantised and put into a paged cache where slots say.

A block has a token, and eight of its heads of keys and the same of values; 8 or 16 threads have a row. Of a coded
cache a row's scale is its largest magnitude over the largest code, rounded to f16, and its codes are the row over that
scale, rounded to nearest, of two equally near ones to the even one; integers are stored counted from 0, as
code + 2**(bits - 1). So codes follow from their own row alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lowlp import language as ll
from lowlp.layouts.register_layout import local, spatial

from .spec import CACHE_TYPES, CacheType

_HEADS = 8
_NO_ROW = -(2**30)


@dataclass(frozen=True)
class AppendSpec:
    """What a kernel of `kv_append` is specialised for; tokens and pages stay open.

    source      type of the new keys and values
    cache       name of a cache type
    head_dim, kv_heads, page   of the cache
    wide_slots  slots are int64, not int32
    aligned     rows of the new keys and values are 16-byte aligned
    recent      tokens are kept in f16 too, where other slots say
    """

    source: str
    cache: str
    head_dim: int
    kv_heads: int
    page: int
    wide_slots: bool = False
    aligned: bool = True
    recent: bool = False

    @property
    def kind(self) -> CacheType:
        """How the cache is stored."""
        return CACHE_TYPES[self.cache]


def stored_element(kind: CacheType) -> str:
    """What a cache is stored as."""
    return "uint16" if kind.is_coded else kind.name


def _quantised(kind: CacheType, rows: ll.Tile) -> tuple[ll.Tile, ll.Tile]:
    """Codes of rows of f32, and the scale of each."""
    largest = ll.max(ll.abs(rows), 1, keep_dims=True)
    scales = ll.cast(largest / kind.largest, "f16")
    exact = ll.cast(scales, "f32")
    is_zero = ll.equal(exact, 0.0)
    quotients = ll.where(is_zero, 0.0, rows / ll.where(is_zero, 1.0, exact))
    codes = ll.clamp(quotients, -kind.largest, kind.largest)
    if not kind.has_offset:
        return ll.cast(codes, kind.name), scales
    return ll.cast(ll.cast(codes, "int32") + (1 << (kind.bits - 1)), f"uint{kind.bits}"), scales


def append_kernel(spec: AppendSpec) -> ll.Kernel:
    """The block program.

    Parameters: k, v [tokens, kv_heads, head_dim], tokens `k_stride` and `v_stride` elements apart; slots [tokens], each
    page * number of the page + place in it, negative ones for tokens to leave out; keys, values, key_scales and
    value_scales of the cache as for `attention_kernel`, by 16 bits where it is coded; numbers tokens, pages. With
    tokens in f16 also recent_slots [tokens], recent_keys and recent_values [recent_pages, kv_heads, page, head_dim].
    """
    kind, dim, heads = spec.kind, spec.head_dim, spec.kv_heads
    # Of codes a lane has whole units of 16 bits.
    lanes = 8 if dim % 64 else 16
    held = spatial(_HEADS, lanes) * local(1, dim // lanes)
    row = held.reduce([1], keep_dims=True)

    def slot_of(operands: dict[str, Any], name: str, token: Any) -> Any:
        view = ll.view_global(operands[name], shape=[operands["tokens"]], strides=[2 if spec.wide_slots else 1])
        return ll.load_scalar(view, offsets=[token])

    def places(slot: Any, first: Any) -> tuple[ll.Tile, Any]:
        """Rows of the cache for the heads of the block, and whether the token is an odd one of its page."""
        number = ll.assume_range(slot, 0, 1 << 31)
        start = number // spec.page * (heads * spec.page) + number % spec.page
        head = ll.iota(0, layout=row, dtype="int32") + ll.full(first, "int32", layout=row)
        place = head * spec.page + ll.full(start, "int32", layout=row)
        return ll.where(head < heads, place, ll.full(_NO_ROW, "int32", layout=row)), number % 2

    def load_rows(operands: dict[str, Any], source: str, token: Any, first: Any) -> ll.Tile:
        shape, strides = [operands["tokens"], heads, dim], [operands[f"{source}_stride"], dim, 1]
        view = ll.view_global(operands[source], shape=shape, strides=strides)
        return ll.load_global(view, offsets=[token, first, 0], layout=held)

    def trace(**operands: Any) -> None:
        token, heads_before = ll.block_indices()
        slot = slot_of(operands, "slots", token)
        ll.assume(slot < operands["pages"] * spec.page, "a slot must be less than pages * page")
        store(operands, token, heads_before * _HEADS, slot)

    @ll.inline
    def store(operands, token, first, slot):  # type: ignore[no-untyped-def]
        if slot >= 0:
            rows = {name: load_rows(operands, name, token, first) for name in ("k", "v")}
            place, odd = places(slot, first)
            store_rows(operands, "keys", rows["k"], place, None)
            store_rows(operands, "values", rows["v"], place, odd)
            if spec.recent:
                store_recent(operands, rows, first, slot_of(operands, "recent_slots", token))

    @ll.inline
    def store_recent(operands, rows, first, slot):  # type: ignore[no-untyped-def]
        ll.assume(slot < operands["recent_pages"] * spec.page, "a recent slot must be less than recent_pages * page")
        if slot >= 0:
            place, _ = places(slot, first)
            shape = [operands["recent_pages"] * (heads * spec.page), dim]
            for source, name in (("k", "recent_keys"), ("v", "recent_values")):
                view = ll.view_global(operands[name], shape=shape)
                ll.scatter_global(ll.cast(rows[source], "f16"), view, place, dim=0, offsets=[0, 0])

    def store_rows(operands: dict[str, Any], name: str, rows: ll.Tile, place: ll.Tile, odd: Any) -> None:
        count = operands["pages"] * (heads * spec.page)
        if not kind.is_coded:
            view = ll.view_global(operands[name], shape=[count, dim])
            ll.scatter_global(ll.cast(rows, kind.name), view, place, dim=0, offsets=[0, 0])
            return
        codes, scales = _quantised(kind, ll.cast(rows, "f32"))
        scale_view = ll.view_global(operands[f"{name[:-1]}_scales"], shape=[count, 1])
        ll.scatter_global(scales, scale_view, place, dim=0, offsets=[0, 0])
        units = dim * kind.bits // 16
        codes = ll.view(codes, dtype="uint16", layout=spatial(_HEADS, lanes) * local(1, units // lanes))
        if odd is None:
            view = ll.view_global(operands[name], shape=[count, units])
            ll.scatter_global(codes, view, place, dim=0, offsets=[0, 0])
        else:
            # Units of two neighbouring tokens take turns.
            view = ll.view_global(operands[name], shape=[2, count // 2, units], strides=[1, 2 * units, 2])
            ll.scatter_global(codes, view, place >> 1, dim=0, offsets=[odd, 0, 0])

    align = 16 if spec.aligned else None
    parameters = {name: ll.pointer(spec.source, align=align) for name in ("k", "v")}
    parameters["slots"] = ll.pointer("int32")
    parameters |= {name: ll.pointer(stored_element(kind), align=16) for name in ("keys", "values")}
    if kind.is_coded:
        parameters |= {name: ll.pointer("f16", align=16) for name in ("key_scales", "value_scales")}
    if spec.recent:
        parameters["recent_slots"] = ll.pointer("int32")
        parameters |= {name: ll.pointer("f16", align=16) for name in ("recent_keys", "recent_values")}
        parameters["recent_pages"] = ll.i32
    strides = dict.fromkeys(("k_stride", "v_stride"), ll.integer(64, divisible_by=8 if spec.aligned else None))
    return ll.make_kernel(
        trace,
        name=f"append_{spec.cache}",
        parameters=parameters | {"tokens": ll.i32, "pages": ll.i32} | strides,
        grid=lambda tokens: (tokens, -(-heads // _HEADS)),
        num_threads=_HEADS * lanes,
    )
