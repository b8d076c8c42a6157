"""The user's variables at a point of the trace: what traced loops carry and what traced branches merge.

A variable holds one value or a list, tuple or dict of values, nested as one likes. Its leaves are

    scalars, tiles, numbers    carried and merged, as accumulators in flight and codebooks are; a number becomes a
                               scalar if it must
    all else                   (layouts, views, strings, ...) must stay what it is

A variable that has no value after a loop or branch holds an `Unassigned`, which explains itself when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .codebooks import Codebook
from .free_layouts import Choice
from .scalars import Scalar, convert, describe, is_bool, is_number, lift
from .source import Place, here, type_error
from .tiles import Tile, held_as
from .tracing import TracedValue, Unassigned
from .wgmma import Accumulators

Values = tuple[object, ...]
Carried = Scalar | Tile | Accumulators | Codebook


@dataclass(frozen=True)
class Variables:
    """Access to variables of the user's function, made by `rewriting`.

    names   their names
    lines   for each, the line of its last assignment in the loop or branch
    read    for each, a callable that returns the value, or raises NameError
    write   assigns all of them
    """

    names: tuple[str, ...]
    lines: tuple[int, ...]
    read: tuple[Callable[[], object], ...]
    write: Callable[[Values], None]

    def get(self) -> Values:
        """The values; `Unassigned` where there is none."""
        return tuple(_read(name, read) for name, read in zip(self.names, self.read, strict=True))

    def place(self, index: int) -> Place:
        """The place of the last assignment of a variable."""
        return Place(here().filename, self.lines[index])


def _read(name: str, read: Callable[[], object]) -> object:
    try:
        return read()
    except NameError:
        return Unassigned(f"`{name}` has no value here")


# --- nested values ----------------------------------------------------------------------------------------------------


def leaves_of(value: Any) -> Iterator[object]:
    """The leaves of a value, in order."""
    if type(value) in (list, tuple):
        for item in value:
            yield from leaves_of(item)
    elif type(value) is dict:
        for item in value.values():
            yield from leaves_of(item)
    else:
        yield value


def with_leaves(value: Any, leaves: Iterator[object]) -> Any:
    """A value of the same structure with other leaves, in new containers."""
    if type(value) in (list, tuple):
        return type(value)(with_leaves(item, leaves) for item in value)
    if type(value) is dict:
        return {key: with_leaves(item, leaves) for key, item in value.items()}
    return next(leaves)


def in_new_containers(values: Values) -> Values:
    """The same leaves in new lists, tuples and dicts, so that a branch changes only its own."""
    return tuple(with_leaves(value, leaves_of(value)) for value in values)


def same_structure(a: Any, b: Any) -> bool:
    """True when both are made of the same containers, of the same sizes."""
    container = type(a) if type(a) in (list, tuple, dict) else None
    if (type(b) if type(b) in (list, tuple, dict) else None) is not container:
        return False
    if container is None:
        return True
    if container is dict:
        return list(a) == list(b) and all(same_structure(a[key], b[key]) for key in a)
    return len(a) == len(b) and all(map(same_structure, a, b))


def is_unchanged(before: object, after: object) -> bool:
    """True when both are one value for sure: the same object, or equal values of Python."""
    if before is after:
        return True
    if isinstance(before, TracedValue | Unassigned) or isinstance(after, TracedValue | Unassigned):
        return False
    try:
        return type(before) is type(after) and bool(before == after)
    except (TypeError, ValueError):
        return False


def carried(leaf: object) -> Carried | None:
    """The leaf as a value that can be carried or merged; None where it is none."""
    return leaf if isinstance(leaf, Tile | Accumulators | Codebook) else lift(leaf)


def converted(leaf: Any, model: Carried) -> Carried | None:
    """The leaf as a value of the model's type, or None."""
    if isinstance(model, Scalar):
        return convert(leaf, model.dtype)
    if is_free_to_follow(leaf, model):
        moved: Tile = in_layout_of(leaf, model)
        return moved
    if isinstance(model, Codebook):
        return leaf if isinstance(leaf, Codebook) and leaf.is_like(model) else None
    same = isinstance(leaf, type(model)) and (leaf.dtype, leaf.layout) == (model.dtype, model.layout)
    return leaf if same else None


def is_free_to_follow(leaf: object, model: object) -> bool:
    """True for a tile that needs another layout to be of the model's type, where not both layouts are the user's."""
    if not isinstance(leaf, Tile) or not isinstance(model, Tile) or leaf.layout == model.layout:
        return False
    are_alike = (leaf.dtype, leaf.shape) == (model.dtype, model.shape)
    return are_alike and min(leaf.choice, model.choice) is not Choice.NAMED


def in_layout_of(value: Any, model: Carried) -> Any:
    """A tile in the layout of the model; all else as it is."""
    return held_as(value, model.layout, model.choice) if isinstance(model, Tile) else value


def described(value: Any) -> str:
    """What a leaf or a container is, for messages."""
    if isinstance(value, Unassigned):
        return "no value"
    if type(value) in (list, tuple, dict):
        return f"a {type(value).__name__} of {len(value)}"
    return describe(value)


# --- merging ----------------------------------------------------------------------------------------------------------


class Merge:
    """Merges the values that variables have at the ends of two branches.

    The values that need a result of the op are `results_of(0)` and `results_of(1)`, in the same order for both; the
    results are of the types of `models`.
    """

    def __init__(self, variables: Variables, what: str) -> None:
        self.models: list[Carried] = []
        self._ends: tuple[list[Carried], list[Carried]] = ([], [])
        self._variables = variables
        self._what = what
        self._rebuild: list[Callable[[Sequence[Carried]], object]] = []

    def add(self, index: int, ends: tuple[object, object]) -> None:
        """Takes the two values of a variable. Raises KernelTypeError when they do not fit together."""
        name = self._variables.names[index]
        if any(isinstance(end, Unassigned) for end in ends):
            reason = f"`{name}` is assigned in only one branch of the {self._what}; assign it before or in both"
            self._rebuild.append(lambda _: Unassigned(reason))
            return
        if not same_structure(*ends):
            raise self._mismatch(index, ends)
        slots = [self._leaf(index, pair) for pair in zip(leaves_of(ends[0]), leaves_of(ends[1]), strict=True)]
        self._rebuild.append(
            lambda results: with_leaves(ends[0], (results[s] if isinstance(s, int) else s[0] for s in slots))
        )

    def _leaf(self, index: int, pair: tuple[object, object]) -> int | tuple[object]:
        """The number of the result that stands for both, or the one value that both are."""
        if is_unchanged(*pair):
            return (pair[0],)
        # Two numbers of Python agree on index, f32 or bool; 1 and 2.0 are both f32. Of layouts the chosen one is kept.
        models = sorted(
            pair,
            key=lambda end: (
                not isinstance(end, TracedValue),
                not isinstance(end, float),
                -end.choice if isinstance(end, Tile) else 0,
            ),
        )
        model = carried(models[0])
        if model is None:
            raise self._mismatch(index, pair)
        for end, values in zip(pair, self._ends, strict=True):
            # A tile that another layout awaits is brought there where its branch ends.
            value: Any = end if is_free_to_follow(end, model) else converted(end, model)
            if value is None:
                raise self._mismatch(index, pair)
            values.append(value)
        self.models.append(model)
        return len(self.models) - 1

    def results_of(self, branch: int) -> list[Carried]:
        """What the branch yields, converted in the scope that is open."""
        return [in_layout_of(value, model) for value, model in zip(self._ends[branch], self.models, strict=True)]

    def _mismatch(self, index: int, ends: tuple[object, object]) -> Exception:
        name = self._variables.names[index]
        return type_error(
            f"variable `{name}` must have one type in both branches of the {self._what}: it is {described(ends[0])} in "
            f"one and {described(ends[1])} in the other",
            self._variables.place(index),
        )

    def rebuild(self, results: Sequence[Carried]) -> Values:
        """The values of the variables after both branches."""
        return tuple(rebuild(results) for rebuild in self._rebuild)


class Carry:
    """The values that a loop carries from one iteration to the next.

    `initial` holds them before the loop. A variable without a value before is the body's own.
    """

    def __init__(self, variables: Variables, what: str, owned: Sequence[str] = ()) -> None:
        self.initial: list[Carried] = []
        self._variables = variables
        self._what = what
        self._owned = owned
        self._before = variables.get()
        self._slots = [self._slots_of(name, value) for name, value in zip(variables.names, self._before, strict=True)]

    def _slots_of(self, name: str, value: object) -> list[int | None] | None:
        """For each leaf the number of its carried value or None; None for a variable that is the body's own."""
        if isinstance(value, Unassigned) or name in self._owned:
            return None
        slots: list[int | None] = []
        for leaf in leaves_of(value):
            lifted = carried(leaf)
            slots.append(None if lifted is None else len(self.initial))
            if lifted is not None:
                self.initial.append(lifted)
        return slots

    def enter(self, arguments: Sequence[Carried]) -> None:
        """Gives the variables their values at the start of an iteration."""
        self._variables.write(
            tuple(
                Unassigned(f"`{name}` is read before it is assigned in the {self._what}")
                if slots is None
                else _with_slots(value, slots, arguments)
                for name, value, slots in zip(self._variables.names, self._before, self._slots, strict=True)
            )
        )

    def leave(self) -> list[Carried]:
        """The carried values at the end of an iteration. Raises KernelTypeError when a variable changes its type."""
        result: list[Carried] = []
        self._after = self._variables.get()
        for index, (before, after, slots) in enumerate(zip(self._before, self._after, self._slots, strict=True)):
            if slots is None:
                continue
            if not same_structure(before, after):
                raise self._changed(index, before, after)
            for old, new, slot in zip(leaves_of(before), leaves_of(after), slots, strict=True):
                if slot is None:
                    if not is_unchanged(old, new):
                        raise self._changed(index, old, new)
                    continue
                value = converted(new, self.initial[slot])
                if value is None:
                    raise self._changed(index, old, new)
                result.append(value)
        return result

    def _changed(self, index: int, before: object, after: object) -> Exception:
        name = self._variables.names[index]
        return type_error(
            f"variable `{name}` must keep its type in the {self._what}: it is {described(before)} before and "
            f"{described(after)} after the body",
            self._variables.place(index),
        )

    def exit(self, results: Sequence[Carried]) -> None:
        """Gives the variables their values after the loop; a number that the body leaves as it was stays one."""
        values: list[object] = []
        for name, before, after, slots in zip(
            self._variables.names, self._before, self._after, self._slots, strict=True
        ):
            if slots is None:
                reason = f"`{name}` is assigned only in the {self._what}, and has no value after it; assign it before"
                values.append(Unassigned(reason))
                continue
            leaves = (
                old if slot is None or (_is_known(old) and is_unchanged(old, new)) else results[slot]
                for old, new, slot in zip(leaves_of(before), leaves_of(after), slots, strict=True)
            )
            values.append(with_leaves(before, leaves))
        self._variables.write(tuple(values))


def _is_known(leaf: object) -> bool:
    return is_number(leaf) or is_bool(leaf)


def _with_slots(value: object, slots: Sequence[int | None], arguments: Sequence[Carried]) -> object:
    leaves = (leaf if slot is None else arguments[slot] for leaf, slot in zip(leaves_of(value), slots, strict=True))
    return with_leaves(value, leaves)
