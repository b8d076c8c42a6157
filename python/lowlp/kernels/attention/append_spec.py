"""What a kernel of `kv_append` is specialised for, and how it finds where a token goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lowlp import language as ll

from .spec import OfCache


@dataclass(frozen=True)
class AppendSpec(OfCache):
    """What a kernel of `kv_append` is specialised for; tokens and pages stay open.

    source      type of the new keys and values
    cache       name of a cache type
    head_dim, kv_heads, page   of the cache
    wide_slots  slots are int64, not int32
    aligned     rows of the new keys and values are 16-byte aligned
    recent      tokens are kept in f16 too, where other slots say
    books       type of the entries of codebooks, in place of f16 there too
    ordered     whether groups of channels take these in another order
    few_tokens  each block of the grid has eight tokens at most, or one, of caches with codebooks
    """

    source: str
    cache: str
    head_dim: int
    kv_heads: int
    page: int
    wide_slots: bool = False
    aligned: bool = True
    recent: bool = False
    books: str = "f16"
    ordered: bool = False
    few_tokens: bool = True


def slot_of(spec: AppendSpec, operands: dict[str, Any], name: str, token: Any, room: Any) -> Any:
    """The slot of a token, which is less than `room`."""
    view = ll.view_global(operands[name], shape=[operands["tokens"]], strides=[2 if spec.wide_slots else 1])
    slot = ll.load_scalar(view, offsets=[token])
    ll.assume(slot < room, f"{name}: must be less than the pages have tokens")
    return slot
