"""Defines schemas: the types of fields and the merging of lists and maps.

Built-in kinds (``fields``) and custom resources are described by the same nodes; strategic merge patch and
server-side apply walk them, and ``taken`` converts a value that a client sent to the stored one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from roadstead.schemas import formats, quantity_forms, timestamps

if TYPE_CHECKING:
    from collections.abc import Callable


class Absent:
    """A value that is not stored: null, and the zero of a field that Go omits when empty."""


ABSENT: Final = Absent()


class MismatchError(Exception):
    """A value does not fit the field's type; said as Go's decoder says it."""


class WrongTypeError(MismatchError):
    """A value is of another type of JSON than the field.

    Args:
        given: the type of the value.
        wanted: Go's name of the field's type.
    """

    def __init__(self, given: str, wanted: str) -> None:
        super().__init__(given, wanted)
        self._given, self._wanted = given, wanted
        self._owner = ""
        self._path: list[str] = []

    def leave(self, owner: str, field: str) -> None:
        """Add a field, from the innermost on; its path has no keys of maps and no indices."""
        self._owner = self._owner or owner
        self._path.insert(0, field)

    def __str__(self) -> str:
        at = f"struct field {self._owner}.{'.'.join(self._path)} of" if self._owner else "value of"
        return f"json: cannot unmarshal {self._given} into Go {at} type {self._wanted}"


class Node:
    """A type; the base class accepts any value unchanged.

    Attributes:
        atomic: has one manager and is replaced as a whole.
        go_name: Go's name of the type, without its names for types of texts.
    """

    atomic = True
    go_name = "interface {}"

    def taken(self, value: Any, strays: list[str]) -> Any:
        """The value as stored.

        Args:
            value: as a client sent it; not None.
            strays: paths of unknown fields are added here, relative to the value.

        Returns:
            the value, or ABSENT.

        Raises:
            MismatchError: the value does not fit this type.
        """
        del strays
        return value


ANY: Final = Node()


def go_type(value: Any) -> str:
    """The type of a JSON value in the words of Go's decoder."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


class Scalar(Node):
    """A string, number or boolean.

    Args:
        name: Go's name of the type that is decoded, for messages.
        types: the accepted JSON types.
        omits: the value that is not stored (Go's ``omitempty``), or None.
        convert: returns the stored form of a value; raises ValueError.
    """

    __slots__ = ("convert", "go_name", "omits", "types")

    def __init__(
        self,
        name: str,
        types: tuple[type, ...],
        *,
        omits: Any = None,
        convert: Callable[[Any], Any] | None = None,
    ) -> None:
        self.go_name = name
        self.types = types
        self.omits = omits
        self.convert = convert

    def taken(self, value: Any, strays: list[str]) -> Any:  # noqa: ARG002 - a scalar has no fields
        """As in ``Node``."""
        if type(value) not in self.types:
            given = go_type(value)
            shown = f" {value}" if given == "number" and self.go_name.startswith("int") else ""
            raise WrongTypeError(given + shown, self.go_name)
        if value == self.omits and self.omits is not None:
            return ABSENT
        if self.convert is not None:
            try:
                return self.convert(value)
            except (ValueError, ArithmeticError) as error:
                raise MismatchError(str(error)) from error
        return value


def _within(bits: int) -> Callable[[Any], Any]:
    """Checks that a number fits into a Go type."""

    def checked(value: int) -> int:
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise WrongTypeError(f"number {value}", f"int{bits}")
        return value

    return checked


STRING: Final = Scalar("string", (str,), omits="")
KEPT_STRING: Final = Scalar("string", (str,))
INTEGER: Final = Scalar("int32", (int,), convert=_within(32))
LONG: Final = Scalar("int64", (int,), convert=_within(64))
ZERO_OMITTED: Final = Scalar("int32", (int,), omits=0, convert=_within(32))
ZERO_LONG_OMITTED: Final = Scalar("int64", (int,), omits=0, convert=_within(64))
NUMBER: Final = Scalar("float64", (int, float))
BOOLEAN: Final = Scalar("bool", (bool,))
FALSE_OMITTED: Final = Scalar("bool", (bool,), omits=False)
TIME: Final = Scalar("string", (str,), convert=timestamps.checked_time)
MICRO_TIME: Final = Scalar("string", (str,), convert=timestamps.checked_microtime)
TIMES: Final = (TIME, MICRO_TIME)
BYTES: Final = Scalar("[]uint8", (str,), convert=formats.checked_base64)
BYTES_OMITTED: Final = Scalar("[]uint8", (str,), omits="", convert=formats.checked_base64)
#: Every value is read as a quantity, and refused as one.
_ALL: Final = (str, int, float, bool, list, dict)
QUANTITY: Final = Scalar(
    "resource.Quantity", _ALL, convert=lambda value: quantity_forms.canonical(str(value))
)
#: An amount in a list of resources, which is in thousandths at the finest.
AMOUNT: Final = Scalar(
    "resource.Quantity", _ALL, convert=lambda value: quantity_forms.in_thousandths(str(value))
)
#: The value that null means in a map or a list.
_ZEROS: Final[dict[Node, Any]] = {KEPT_STRING: "", BYTES: "", AMOUNT: "0", QUANTITY: "0"}
INT_OR_STRING: Final = Scalar("int32", (int, str))


#: The name of a model: its version, after that of a group where several have the type, and Go's name.
_MODEL = re.compile(r"(?:[A-Z][a-z]+)?(V\d+(?:(?:alpha|beta)\d+)?)([A-Z]\w*)")


def _without_version(model: str) -> str:
    found = _MODEL.fullmatch(model)
    return found[2] if found else model


def joined(head: str, rest: str) -> str:
    """Two parts of a path."""
    return head + rest if rest.startswith("[") else f"{head}.{rest}"


class Struct(Node):
    """An object with known fields.

    Attributes:
        fields: keyed by name; filled after construction if types refer to each other.
        is_open: whether unknown fields are kept.
        retains: keys that strategic merge patch clears unless they are named ($retainKeys).
    """

    __slots__ = ("atomic", "fields", "name", "open")

    def __init__(
        self, name: str, fields: dict[str, Node] | None = None, *, atomic: bool = False, is_open: bool = False
    ) -> None:
        self.name = name
        self.fields: dict[str, Node] = fields if fields is not None else {}
        self.atomic = atomic
        self.open = is_open

    @property
    def go_name(self) -> str:  # type: ignore[override]
        """As in ``Node``."""
        found = _MODEL.fullmatch(self.name)
        return f"{found[1].lower()}.{found[2]}" if found else self.name

    def taken(self, value: Any, strays: list[str]) -> Any:
        """As in ``Node``."""
        if type(value) is not dict:
            raise WrongTypeError(go_type(value), self.go_name)
        fields, result = self.fields, {}
        for key, item in value.items():
            node = fields.get(key)
            if node is None:
                if self.open:
                    result[key] = item
                else:
                    strays.append(key)
                continue
            if item is None:
                continue
            before = len(strays)
            try:
                stored = node.taken(item, strays)
            except WrongTypeError as error:
                error.leave(_without_version(self.name), key)
                raise
            if len(strays) > before:
                strays[before:] = [joined(key, stray) for stray in strays[before:]]
            if stored is not ABSENT:
                result[key] = stored
        return result


class Mapping(Node):
    """An object with arbitrary keys; an empty one is not stored."""

    __slots__ = ("atomic", "values")

    def __init__(self, values: Node, *, atomic: bool = False) -> None:
        self.values = values
        self.atomic = atomic

    @property
    def go_name(self) -> str:  # type: ignore[override]
        """As in ``Node``."""
        return "v1.ResourceList" if self.values is AMOUNT else f"map[string]{self.values.go_name}"

    def taken(self, value: Any, strays: list[str]) -> Any:
        """As in ``Node``."""
        if type(value) is not dict:
            raise WrongTypeError(go_type(value), self.go_name)
        node, result = self.values, {}
        for key, item in value.items():
            before = len(strays)
            if item is None and isinstance(node, Struct):
                item = {}  # noqa: PLW2901 - null is the type's zero
            stored = _ZEROS[node] if item is None and node in _ZEROS else node.taken(item, strays)
            if len(strays) > before:
                strays[before:] = [joined(key, stray) for stray in strays[before:]]
            if stored is not ABSENT:
                result[key] = stored
        return result or ABSENT


class Array(Node):
    """A list; an empty one is not stored.

    Attributes:
        items: the type of the elements.
        keys: the fields that identify an element in server-side apply.
        is_set: whether elements identify themselves.
        merge_key: the field by which strategic merge patch merges, or "".
        merges_values: whether strategic merge patch merges a list of scalars.
    """

    __slots__ = ("atomic", "defaults", "is_set", "items", "keys", "merge_key", "merges_values")

    def __init__(
        self,
        items: Node,
        *,
        keys: tuple[str, ...] = (),
        is_set: bool = False,
        merge_key: str = "",
        merges_values: bool = False,
        defaults: dict[str, Any] | None = None,
    ) -> None:
        self.items = items
        self.keys = keys
        self.is_set = is_set
        self.merge_key = merge_key
        self.merges_values = merges_values
        self.atomic = not keys and not is_set
        #: Values of keys that an element may leave out, such as a port's protocol.
        self.defaults = defaults or {}

    @property
    def go_name(self) -> str:  # type: ignore[override]
        """As in ``Node``."""
        return f"[]{self.items.go_name}"

    def taken(self, value: Any, strays: list[str]) -> Any:
        """As in ``Node``."""
        if type(value) is not list:
            raise WrongTypeError(go_type(value), self.go_name)
        node, result = self.items, []
        for index, item in enumerate(value):
            before = len(strays)
            if item is None:
                item = _ZEROS.get(node, "") if isinstance(node, Scalar) else {}  # noqa: PLW2901 - likewise
            stored = node.taken(item, strays)
            if len(strays) > before:
                strays[before:] = [joined(f"[{index}]", stray) for stray in strays[before:]]
            result.append("" if stored is ABSENT else stored)
        return result or ABSENT
