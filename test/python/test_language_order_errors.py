"""What the DSL refuses of semaphores, atomics and shared workspaces."""

from __future__ import annotations

from refused_kernels import refused, zeros

import lowlp
from lowlp import language as ll


def test_semaphores_lie_in_a_view() -> None:
    def body(x, b, m, f):
        ll.semaphore_acquire(x, offsets=[0], value=1)  # here

    refused(
        body,
        ll.KernelTypeError,
        "view: must be a view made by ll.view_global or ll.alloc_global, found the pointer `x` to f16",
    )


def test_semaphores_are_int32() -> None:
    def body(x, b, m, f):
        view = ll.view_global(x, shape=[4])
        ll.semaphore_release(view, offsets=[0], value=1)  # here

    refused(body, ll.KernelTypeError, "view: semaphores must be int32, but the view holds f16")


def test_a_semaphore_is_one_word() -> None:
    def body(x, b, m, f):
        words = ll.alloc_global("int32", [4])
        ll.semaphore_acquire(words, offsets=[0, 1], value=1)  # here

    refused(body, ll.KernelValueError, "offsets: expected one for each of the 1 dimensions, found 2")


def test_a_semaphore_has_whole_values() -> None:
    def body(x, b, m, f):
        words = ll.alloc_global("int32", [4])
        ll.semaphore_release(words, offsets=[0], value=f)  # here

    refused(body, ll.KernelTypeError, "value: must be an int or an index scalar, found an f32 scalar")


def test_atomics_have_kinds() -> None:
    def body(x, b, m, f):
        words = ll.alloc_global("f32", [4, 4])
        ll.atomic_rmw("sub", zeros(), words, offsets=[0, 0])  # here

    refused(body, ll.KernelValueError, "kind: must be one of add, min, max, and, or, xor, exchange, found 'sub'")


def test_atomics_change_memory() -> None:
    def body(x, b, m, f):
        ll.atomic_rmw("add", zeros(), x, offsets=[0, 0])  # here

    refused(body, ll.KernelTypeError, "destination: must be a view or a shared tile, found the pointer `x` to f16")


def test_atomics_keep_the_type() -> None:
    def body(x, b, m, f):
        words = ll.alloc_global("int32", [4, 4])
        ll.atomic_rmw("add", zeros(), words, offsets=[0, 0])  # here

    refused(body, ll.KernelTypeError, "the tile holds f32, memory int32; use ll.cast")


def test_floats_have_sums_only() -> None:
    def body(x, b, m, f):
        words = ll.alloc_global("f32", [4, 4])
        ll.atomic_rmw("max", zeros(), words, offsets=[0, 0])  # here

    refused(
        body,
        ll.KernelTypeError,
        "there is no atomic max of f32; int32 and uint32 have all kinds, f32, f16 and bf16 have add",
    )


def test_atomics_have_an_offset_for_each_dimension() -> None:
    def body(x, b, m, f):
        words = ll.alloc_global("f32", [4, 4])
        ll.atomic_rmw("add", zeros(), words, offsets=[0])  # here

    refused(body, ll.KernelValueError, "offsets: expected one for each of the 2 dimensions, found 1")


def test_atomic_tiles_fit_into_memory() -> None:
    def body(x, b, m, f):
        words = ll.alloc_global("f32", [4])
        ll.atomic_rmw("add", zeros(), words, offsets=[0])  # here

    refused(body, ll.KernelValueError, "tile: has 2 dimensions, but memory has only 1")


def test_old_values_are_held_once() -> None:
    def body(x, b, m, f):
        words = ll.alloc_global("f32", [1])
        held = ll.full(1.0, "f32", layout=lowlp.reduce(lowlp.spatial(32, 1), dims=[0]))
        ll.atomic_rmw("add", held, words, offsets=[0], fetch=True)  # here

    refused(body, ll.KernelValueError, "fetch: needs a layout that holds each element once")


def test_extents_are_positive() -> None:
    def body(x, b, m, f):
        ll.alloc_global("f32", [4, 0])  # here

    refused(body, ll.KernelValueError, "shape[1]: must be at least 1, found 0")


def test_extents_exist() -> None:
    def body(x, b, m, f):
        ll.alloc_global("f32", [])  # here

    refused(body, ll.KernelValueError, "shape: must have at least one dimension")


def test_extents_are_known_or_functions_of_parameters() -> None:
    def body(x, b, m, f):
        ll.alloc_global("f32", [m, 4])  # here

    refused(body, ll.KernelTypeError, "shape[0]: must be an int, found an index scalar; see shape=lambda ...")


def test_extents_are_of_integer_parameters() -> None:
    def body(x, b, m, f):
        ll.alloc_global("f32", lambda f: f)  # here

    refused(body, ll.KernelValueError, "shape: names 'f', but the integer parameters of the kernel are m")


def test_extents_are_affine() -> None:
    def body(x, b, m, f):
        ll.alloc_global("f32", lambda m: m * m)  # here

    refused(body, ll.KernelValueError, "shape: a product of two parameters is not affine; one factor must be an int")


def test_extents_are_made_of_parameters() -> None:
    def body(x, b, m, f):
        ll.alloc_global("f32", lambda m: (m, 1.5))  # here

    refused(body, ll.KernelTypeError, "shape[1]: must be made of integer parameters and ints, found")
