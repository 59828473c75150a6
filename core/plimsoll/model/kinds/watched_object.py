"""Objects of kinds that plugins and strategies declare: custom resources, ConfigMaps, anything in the API.

A plugin names the class in its ``Declares.objects``; the operator then lists and watches the kind, and
``snapshot.objects.of(RackQuota)`` has the objects::

    class RackQuota(WatchedObject, frozen=True):
        api_version: ClassVar = "example.com/v1"
        plural: ClassVar = "rackquotas"
        spec: RackQuotaSpec = RackQuotaSpec()
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from msgspec import inspect

from plimsoll.model.kinds.metadata import ApiObject


class WatchedObject(ApiObject, frozen=True, kw_only=True, rename="camel"):
    """The base of such a class: its fields are those of the object that the plugin reads, and no others.

    Fields are texts, numbers, tuples, dicts with texts as keys, and frozen structs of these (msgspec), each
    with a default; ``metadata``, ``name``, ``namespace`` and ``labels`` are there.

    Attributes:
        api_version: ``group/version``, or ``v1``.
        plural: As in ``kubectl api-resources``.
        kind: The kind; "" if it is the name of the class.
        in_namespace: The only namespace that is read; "" for all.
        match_labels: Labels that an object must have to be read.
    """

    api_version: ClassVar[str] = ""
    plural: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    in_namespace: ClassVar[str] = ""
    match_labels: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def group(cls) -> str:
        """The API group, "" for the core group."""
        return cls.api_version.rpartition("/")[0]

    @classmethod
    def resource(cls) -> str:
        """As ``kubectl`` takes it: ``rackquotas.example.com``, ``configmaps``."""
        return f"{cls.plural}.{cls.group()}" if cls.group() else cls.plural

    @classmethod
    def includes(cls, found: ApiObject) -> bool:
        """Whether an object is in the namespace, and has the labels."""
        return cls.in_namespace in ("", found.namespace) and cls.match_labels.items() <= found.labels.items()


WatchedT = TypeVar("WatchedT", bound=WatchedObject)


class WatchedObjects:
    """The objects of such kinds: a ledger of the cluster's objects.

    Attributes:
        by_kind: The objects by key, of each class.
        listed: The classes whose objects have been listed.
    """

    def __init__(self) -> None:
        self.by_kind: dict[type, dict[str, Any]] = {}
        self.listed: set[type] = set()

    def copied(self) -> Self:
        """An independent copy."""
        twin = type(self)()
        twin.by_kind = {kind: dict(found) for kind, found in self.by_kind.items()}
        twin.listed = set(self.listed)
        return twin

    def replace(self, old: WatchedObject | None, new: WatchedObject | None) -> None:
        """Put a state of an object in the place of an earlier one; None for none."""
        subject = old if new is None else new
        assert subject is not None
        stock = self.by_kind.setdefault(type(subject), {})
        if new is None:
            stock.pop(shelf_key(subject), None)
        else:
            stock[shelf_key(new)] = new

    def of(self, kind: type[WatchedT]) -> Mapping[str, WatchedT]:
        """The objects of a kind by key, read-only.

        Raises:
            LookupError: They have not been listed; says what is needed for that.
        """
        if kind not in self.listed:
            raise LookupError(
                f"{kind.resource()} are not known: they are read if the plugin's Declares.objects has"
                f" {kind.__name__}, the API server has the kind, and the account may list and watch it"
            )
        return MappingProxyType(self.by_kind.get(kind, {}))


def shelf_key(found: ApiObject) -> str:
    """``name``, or ``namespace/name`` for an object in a namespace."""
    return found.key if found.namespace else found.name


def problem_of(kind: object) -> str:
    """What keeps a declared class from being watched; "" for nothing."""
    if not (isinstance(kind, type) and issubclass(kind, WatchedObject)):
        return f"objects has {kind!r}, which is no class derived from plimsoll.framework.WatchedObject"
    if not (kind.api_version and kind.plural):
        return f"{kind.__name__} needs the class attributes api_version and plural"
    changeable = _changeable(inspect.type_info(kind), kind.__name__)
    return (
        f"{changeable} could be changed by one plugin for all: use tuples, dicts, and frozen structs"
        if changeable
        else ""
    )


def _changeable(info: Any, where: str) -> str:
    """The first part of a type whose values could be changed, "" for none; maps become read-only ones."""
    match info:
        case inspect.StructType():
            if not info.cls.__struct_config__.frozen:
                return where
            return next(
                filter(None, (_changeable(each.type, f"{where}.{each.name}") for each in info.fields)), ""
            )
        case inspect.UnionType():
            return next(filter(None, (_changeable(each, where) for each in info.types)), "")
        case inspect.VarTupleType():
            return _changeable(info.item_type, where)
        case inspect.TupleType():
            return next(filter(None, (_changeable(each, where) for each in info.item_types)), "")
        case inspect.DictType():
            return _changeable(info.value_type, where)
        case (
            inspect.ListType()
            | inspect.SetType()
            | inspect.AnyType()
            | inspect.RawType()
            | inspect.ByteArrayType()
        ):
            return where
    return ""
