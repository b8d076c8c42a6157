"""Layouts: the examples of the public surface, and laws on random layouts."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowlp.layouts.register_layout import (
    Layout,
    column_local,
    column_spatial,
    from_modes,
    layout,
    local,
    reduce,
    spatial,
)
from lowlp.layouts.shared_layout import shared_layout
from lowlp_runtime.errors import LowlpError

MMA_A = local(2, 1).spatial(8, 4).local(1, 2)


@st.composite
def layouts(draw, rank=None, max_modes=3):
    """Layouts of modes of extent 1 to 4 in any order, with up to one replica."""
    rank = draw(st.integers(1, 3)) if rank is None else rank
    extents = [draw(st.lists(st.integers(1, 4), max_size=max_modes if rank == 1 else 2)) for _ in range(rank)]
    digits = list(enumerate(extent for dim in extents for extent in dim))
    in_thread = draw(st.lists(st.booleans(), min_size=len(digits), max_size=len(digits)))
    threads = [digit for digit, flag in zip(digits, in_thread, strict=True) if flag]
    threads += draw(st.lists(st.tuples(st.none(), st.integers(2, 3)), max_size=1))
    locals_ = [digit for digit, flag in zip(digits, in_thread, strict=True) if not flag]
    return from_modes(extents, draw(st.permutations(threads)), draw(st.permutations(locals_)))


def pairs(count):
    """So many layouts of one rank."""
    return st.integers(1, 2).flatmap(lambda rank: st.tuples(*[layouts(rank, 2)] * count))


def test_public_surface():
    assert (MMA_A.shape, MMA_A.num_threads, MMA_A.num_local) == ((16, 8), 32, 4)
    assert MMA_A(6, 3) == (9, 5)
    assert str(MMA_A) == "local(2, 1).spatial(8, 4).local(1, 2)"
    assert repr(MMA_A) == "lowlp.layout('local(2, 1).spatial(8, 4).local(1, 2)')"
    assert layout("local(2,1).spatial(8,4)") == local(2, 1).spatial(8, 4)
    assert layout(MMA_A) is MMA_A
    assert MMA_A / spatial(8, 4).local(1, 2) == local(2, 1)
    assert MMA_A.left_divide(local(2, 1)) == spatial(8, 4).local(1, 2)
    assert local(16, 8) != MMA_A
    assert MMA_A != "local"
    assert len({MMA_A, local(2, 1) * spatial(8, 4) * local(1, 2)}) == 1


def test_tensor_core_operand():
    t, i = np.meshgrid(np.arange(32), np.arange(4), indexing="ij")
    expected = np.stack([t // 4 + i // 2 * 8, t % 4 * 2 + i % 2], axis=-1)
    np.testing.assert_array_equal(MMA_A.table(), expected)


def test_spatial_of_local():
    f = spatial(2, 4) * local(2, 1)
    assert (f.num_threads, f.num_local, f.shape) == (8, 2, (4, 4))


def test_division():
    assert spatial(2, 4) / spatial(1, 2) == spatial(2, 2)
    assert local(2, 4) / local(1, 2) == local(2, 2)
    assert local(2, 1).spatial(2, 4).left_divide(local(2, 1)) == spatial(2, 4)


def test_exchanged_bytes():
    """A warp that stores rows of 32 numbers and loads columns, four numbers of each row at once, takes rows of 36."""
    assert local(32, 1).spatial(1, 32).exchanged_bytes(spatial(32, 1).local(1, 32), 32) == 4 * 32 * 36


def test_reinterpret():
    weights = local(2, 1).column_spatial(4, 8).local(2, 1)
    assert str(weights.reinterpret(from_bits=6, to_bits=8)) == "local(3).spatial(32)"
    assert weights.same_bits_per_thread(6, local(3).spatial(32), 8)
    assert not weights.same_bits_per_thread(6, local(4).spatial(32), 8)


def test_changes():
    assert local(2, 3).permute(1, 0) == column_local(3, 2)
    assert spatial(12).reshape(3, 4) == spatial(3, 4)
    assert column_spatial(2, 3).reshape(6) == layout("column_spatial(2, 3).reshape(6)")
    assert local(1, 3).squeeze(0) == local(3)
    assert local(3).unsqueeze(0) == local(3).broadcast(2) == local(1, 3)
    assert local(2).column_local(3, 2).column_spatial(2, 1) == local(1, 2) * column_local(3, 2) * spatial(2, 1)


def test_reduce():
    f = reduce(spatial(1, 1, 4), dims=[2])
    assert (f.shape, f.num_threads, f(3, 0)) == ((1, 1), 4, (0, 0))
    assert local(2, 3).reduce(1) == local(2)
    assert local(2, 3).reduce([1], keep_dims=True) == local(2, 1)
    assert f.has_replicas
    assert f.threads_holding(0, 0) == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_queries():
    assert MMA_A.threads_holding(9, 5) == [(6, 3)]
    assert MMA_A.threads_holding((9, 5)) == [(6, 3)]
    assert (MMA_A.contiguous_locals(0), MMA_A.contiguous_locals(1), MMA_A.contiguous_locals(-1)) == (1, 2, 2)
    assert (MMA_A.rank, MMA_A.num_elements) == (2, 128)
    assert MMA_A.mode_extents == ((2, 8), (4, 2))
    assert MMA_A.thread_digits == ((1, 8), (2, 4))
    assert MMA_A.local_digits == ((0, 2), (3, 2))
    assert local(2, 3).draw() == "     0    1    2\n0  0:0  0:1  0:2\n1  0:3  0:4  0:5\n"


def test_shapes_may_be_sequences_and_numpy_integers():
    assert local((2, 3)) == local([2, 3]) == local(np.int64(2), np.int32(3)) == local(2, 3)
    assert local(*np.array([2, 3])) == local(np.array([2, 3])) == local(2, 3)


def test_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        MMA_A._impl = None
    with pytest.raises(AttributeError, match="immutable"):
        del MMA_A._impl
    with pytest.raises(TypeError, match="a Layout is made by"):
        Layout()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: local(0), ValueError, r"extents must be at least 1; found \(0\)"),
        (lambda: local(), ValueError, "the shape is empty"),
        (lambda: local(2.0), TypeError, "shape must be an integer; found 2.0"),
        (lambda: local(True), TypeError, "shape must be an integer; found True"),
        (lambda: local("2"), TypeError, "shape must be an integer; found '2'"),
        (lambda: local(2**63), ValueError, "shape must fit in 64 bits"),
        (lambda: local(2**40, 2**40), ValueError, r"at most 2\*\*62 elements"),
        (lambda: local(2**40) * local(2**40), ValueError, r"at most 2\*\*62"),
        (lambda: MMA_A(32, 0), ValueError, "there is no thread 32; allowed are 0 to 31"),
        (lambda: MMA_A(0, -1), ValueError, "there is no local index -1; allowed are 0 to 3"),
        (lambda: MMA_A / spatial(5), ValueError, "there is no layout h such that f is h \\* g"),
        (lambda: MMA_A.left_divide(spatial(5)), ValueError, "there is no layout h such that f is g \\* h"),
        (lambda: MMA_A.left_divide("local(2)"), TypeError, "outer must be a Layout; found str"),
        (lambda: MMA_A.reduce(2), ValueError, "there is no dimension 2; allowed are -2 to 1"),
        (lambda: reduce("local(2)", [0]), TypeError, "layout must be a Layout; found str"),
        (lambda: MMA_A.permute(0), ValueError, "a permutation names all 2 dimensions once"),
        (lambda: MMA_A.reshape(5), ValueError, "the layout's shape"),
        (lambda: MMA_A.squeeze(0), ValueError, "only dimensions of extent 1 can be dropped"),
        (lambda: MMA_A.broadcast(1), ValueError, "cannot be broadcast to rank 1"),
        (lambda: MMA_A.contiguous_locals(2), ValueError, "there is no dimension 2; the rank is 2"),
        (lambda: MMA_A.threads_holding(16, 0), ValueError, r"the index \(16, 0\) is not within the shape \(16, 8\)"),
        (lambda: MMA_A.reinterpret(from_bits=5, to_bits=8), ValueError, "holds 20 bits"),
        (lambda: MMA_A.reinterpret(from_bits=0, to_bits=8), ValueError, "an element has 1 to 128 bits; found 0"),
        (lambda: MMA_A.same_bits_per_thread(0, MMA_A, 1), ValueError, "an element has at least one bit"),
        (lambda: MMA_A.same_bits_per_thread(6, 3, 1), TypeError, "other must be a Layout; found int"),
        (lambda: MMA_A.exchanged_bytes(local(16, 8), 32), ValueError, "same threads, whole warps; found 32 and 1"),
        (lambda: MMA_A.exchanged_bytes(spatial(4, 8), 32), ValueError, "both layouts must have the same shape"),
        (lambda: MMA_A.exchanged_bytes(MMA_A, 33), ValueError, "an element has 1 to 32 bits; found 33"),
        (lambda: MMA_A.exchanged_bytes(3, 32), TypeError, "result must be a Layout; found int"),
        (lambda: MMA_A.unsqueeze(4).draw(), ValueError, "there is no dimension 4"),
        (lambda: local(1, 1, 2).draw(), ValueError, "only layouts of rank 1 and 2 can be drawn"),
        (lambda: layout("local(2"), ValueError, "expected ',' or '\\)' at position 7"),
        (lambda: layout(3), TypeError, "text must be a str or a Layout; found int"),
        (lambda: from_modes([[2]], [], []), ValueError, "mode 0 is a digit of neither"),
        (lambda: from_modes([[2]], [(-2, 2)], []), ValueError, "a mode is a number from 0 on"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, LowlpError)


def test_operators_refuse_other_objects():
    with pytest.raises(TypeError):
        MMA_A * 2
    with pytest.raises(TypeError):
        MMA_A / 2


@given(pairs(3))
def test_composition_is_associative(fgh):
    f, g, h = fgh
    assert f * (g * h) == (f * g) * h


@given(pairs(2))
@settings(max_examples=50)
def test_composition_is_its_definition(fg):
    f, g = fg
    outer, inner = f.table(), g.table()
    expected = outer[:, None, :, None, :] * np.array(g.shape) + inner[None, :, None, :, :]
    h = f * g
    np.testing.assert_array_equal(h.table(), expected.reshape(h.num_threads, h.num_local, h.rank))


@given(layouts())
def test_identity(f):
    assert f * local(1) == f == local(1) * f == spatial(1) * f


@given(pairs(2))
def test_division_undoes_composition(fg):
    f, g = fg
    assert (f * g) / g == f
    assert (f * g).left_divide(f) == g


@given(layouts(1, 3), layouts(1, 2))
def test_quotients_compose_back(f, g):
    try:
        h = f / g
    except ValueError:
        return
    assert h * g == f


@given(layouts())
def test_text_and_modes_round_trip(f):
    assert layout(str(f)) == f
    assert eval(repr(f), {"lowlp": type("lowlp", (), {"layout": staticmethod(layout)})}) == f
    assert from_modes(f.mode_extents, f.thread_digits, f.local_digits) == f
    assert pickle.loads(pickle.dumps(f)) == f


@given(layouts(1, 2), layouts(1, 2))
def test_equal_exactly_when_the_same_function(f, g):
    same = f.table().shape == g.table().shape and (f.table() == g.table()).all() and f.shape == g.shape
    assert (f == g) == same
    assert not same or hash(f) == hash(g)


@given(layouts(2), st.permutations([0, 1]))
def test_permute_moves_coordinates(f, dims):
    np.testing.assert_array_equal(f.permute(*dims).table(), f.table()[..., dims])


@given(layouts())
def test_flat_reshape_keeps_row_major_order(f):
    flat = np.ravel_multi_index(tuple(np.moveaxis(f.table(), -1, 0)), f.shape)
    np.testing.assert_array_equal(f.reshape(f.num_elements).table()[..., 0], flat)
    assert f.reshape(f.num_elements).reshape(f.shape) == f
    assert f.num_elements == math.prod(f.shape)


@given(layouts(2), st.integers(0, 1))
def test_reduce_keeps_distinct_elements(f, dim):
    reduced = f.reduce(dim, keep_dims=True)
    table = f.table()
    table[..., dim] = 0
    for t in range(f.num_threads):
        distinct = list(dict.fromkeys(map(tuple, table[t].tolist())))
        assert list(map(tuple, reduced.table()[t].tolist())) == distinct


@given(layouts())
def test_owners_invert_the_table(f):
    owners = {}
    for t in range(f.num_threads):
        for i in range(f.num_local):
            owners.setdefault(f(t, i), []).append((t, i))
    assert len(owners) == f.num_elements
    for index, expected in owners.items():
        assert f.threads_holding(index) == expected


def test_what_would_fill_the_memory_is_refused() -> None:
    huge = local(2**20, 2**20)
    with pytest.raises(ValueError, match=r"a table takes .* at most 134217728 elements; local\(.*\) has 1099511627776"):
        huge.table()
    with pytest.raises(ValueError, match="a drawing takes layouts of at most 1048576 elements"):
        huge.draw()


@pytest.mark.parametrize("arguments", [(None, [], []), ([[2]], [3], []), ([[2]], [], [(0, 2, 3)]), ([[2]], "ab", [])])
def test_from_modes_refuses_what_is_no_sequence_of_pairs(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(LowlpError, match=r"(mode_extents|digits) must be a sequence"):
        from_modes(*arguments)


@pytest.mark.parametrize("text", ["local(2)\u00e9", "local(2)\udcff", "\u00e9"])
def test_text_that_is_not_ascii(text: str) -> None:
    for parse in (layout, shared_layout):
        with pytest.raises(LowlpError, match=r"layout must be text of ASCII characters; found '.*\\[xu]"):
            parse(text)
