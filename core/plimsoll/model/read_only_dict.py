"""A dict that cannot be changed: the maps of objects that all plugins read.

Pods of one owner share their labels and amounts, so a plugin that changed one would
change it for all. It is a dict, because that is what msgspec encodes and what costs least to read.
"""

from types import NoneType, UnionType
from typing import Annotated, Any, Never, TypeVar, Union, get_args, get_origin

import msgspec

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class ReadOnlyDict(dict[K, V]):
    """A dict whose methods that would change it raise TypeError; ``{**it}`` and ``it | other`` are plain."""

    __slots__ = ()

    def _refuse(self, *_args: object, **_entries: object) -> Never:
        raise TypeError("this dict is read-only, because others read it too; change a copy: dict(it)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made from a dict of all entries."""
        return type(self), (dict(self),)


class LargeDict(ReadOnlyDict[K, V]):
    """One of many entries, which weak references may name: what is read of it is kept while it lives."""

    __slots__ = ("__weakref__",)


#: Number of entries above which a map is a :class:`LargeDict`.
LARGE = 256

#: A map without entries: the default of every map of a kind.
NO_ENTRIES: ReadOnlyDict[Any, Any] = ReadOnlyDict()

#: Types of values without maps.
_PLAIN = frozenset((str, int, bool, float, NoneType, Ellipsis))

#: By struct class, its fields that may contain maps.
_FIELDS: dict[type, tuple[str, ...]] = {}


def sealed(value: T) -> T:
    """The same value, with read-only maps at every depth; the structs in it are changed in place."""
    found: Any = value
    kind = type(value)
    if kind is dict:
        form = ReadOnlyDict if len(found) <= LARGE else LargeDict
        sealed_parts = {key: each if type(each) in _PLAIN else sealed(each) for key, each in found.items()}
        found = form(sealed_parts) if value else NO_ENTRIES
    elif kind is tuple:
        parts = tuple([sealed(each) for each in found])
        if any(part is not each for part, each in zip(parts, found, strict=True)):
            found = parts
    elif isinstance(value, msgspec.Struct):
        fields = _FIELDS.get(kind)
        for name in _fields_of(kind) if fields is None else fields:
            part = getattr(value, name)
            whole = sealed(part)
            if whole is not part:
                msgspec.structs.force_setattr(value, name, whole)
    result: T = found
    return result


def _fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a struct class that may contain maps, at whatever depth."""
    fields = msgspec.structs.fields(kind)
    _FIELDS[kind] = tuple([each.name for each in fields if _may_hold_maps(each.type, frozenset((kind,)))])
    return _FIELDS[kind]


def _may_hold_maps(kind: Any, within: frozenset[type]) -> bool:
    """Whether a value of that type, below structs of these classes, may be a map or contain one."""
    if kind in within or kind in _PLAIN:
        return False
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return any(_may_hold_maps(each.type, within | {kind}) for each in fields)
    origin = get_origin(kind)
    if origin is Annotated:
        return _may_hold_maps(get_args(kind)[0], within)
    if origin in (Union, UnionType, tuple):
        return any(_may_hold_maps(each, within) for each in get_args(kind))
    return True
