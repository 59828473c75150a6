"""Objects of the mirror have no map that a plugin could change, in any field of any kind."""

from collections.abc import Iterator
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
import pytest

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.device_objects import DEVICE_KINDS
from plimsoll.cluster.ingestion import Mirror
from plimsoll.cluster.shared_objects import SharedNodes, SharedPods
from plimsoll.cluster.watch_events import ObjectAdded
from plimsoll.devices.book import DeviceBook
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.objects import SHELVES
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.read_only_dict import ReadOnlyDict, sealed
from plimsoll.ports.observer import Observer

LEAVES: dict[Any, Any] = {
    str: "a",
    int: 1,
    float: 1.0,
    bool: True,
    datetime: datetime(2026, 1, 1, tzinfo=UTC),
    object: {"a": {"b": "c"}},
    Any: {"a": {"b": "c"}},
}


def filled(kind: Any) -> Any:
    """A value of that type in which every field is set: a new field is covered on the day it appears."""
    if kind in LEAVES:
        return LEAVES[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind(**{each.name: filled(each.type) for each in msgspec.structs.fields(kind)})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return filled(arguments[0])
    if origin in (Union, UnionType):
        return filled(next(each for each in arguments if each is not NoneType))
    if origin is tuple:
        return (filled(arguments[0]),)
    if origin is dict:
        return {filled(arguments[0]): filled(arguments[1])}
    raise AssertionError(f"no value of type {kind} is known to this test")


def maps_of(value: Any, path: str = "") -> Iterator[tuple[str, type]]:
    """Every map in a value, with its path and type."""
    if isinstance(value, dict):
        yield path, type(value)
        for key, each in value.items():
            yield from maps_of(each, f"{path}[{key}]")
    elif isinstance(value, tuple | list):
        for each in value:
            yield from maps_of(each, f"{path}[]")
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from maps_of(getattr(value, name), f"{path}.{name}")


def plain_maps(value: Any) -> list[str]:
    """Paths of those that can be changed; the value must have some map."""
    found = list(maps_of(value))
    assert found
    return [path for path, kind in found if kind is not ReadOnlyDict]


def test_pods() -> None:
    """The first of a shape, a sibling, and another state of it."""
    shared = SharedPods()
    first = shared.sharing(filled(Pod))
    sibling = shared.sharing(filled(Pod))

    assert plain_maps(first) == plain_maps(sibling) == plain_maps(shared.sharing(filled(Pod), first)) == []
    assert sibling.metadata.labels is first.metadata.labels


def test_what_is_compiled_from_pods() -> None:
    """The amounts of a pod and of its template."""
    info = Cache().info(SharedPods().sharing(msgspec.convert({"metadata": {"labels": {"a": "b"}}}, Pod)))
    template = info.template

    for amounts in (info.requests, template.requests, template.score_requests, template.nonzero_requests):
        assert type(amounts) is ReadOnlyDict


def test_nodes() -> None:
    """Labels, annotations and amounts, also in a later state."""
    shared = SharedNodes()
    first = shared.sharing(filled(Node))

    assert plain_maps(first) == plain_maps(shared.sharing(filled(Node), first)) == []


@pytest.mark.parametrize("kind", SHELVES, ids=lambda each: each.__name__)
def test_objects_of_every_kind(kind: type) -> None:
    """As the mirror keeps them, and as plugins see them."""
    cache = Cache()

    Mirror(cache, Observer()).observe(ObjectAdded(filled(kind)))

    (found,) = getattr(cache.cluster.objects.read_only, SHELVES[kind]).values()
    assert plain_maps(found) == []


@pytest.mark.parametrize("kind", DEVICE_KINDS, ids=lambda each: each.__name__)
def test_devices_of_every_kind(kind: type) -> None:
    """The mirror seals them before the book of devices reads them."""
    assert plain_maps(sealed(filled(kind))) == []


def test_the_book_of_devices_has_sealed_claims() -> None:
    """One kind through the mirror, for all."""
    cache = Cache()
    kind = next(each for each in DEVICE_KINDS if each.__name__ == "ResourceClaim")

    Mirror(cache, Observer()).observe(ObjectAdded(filled(kind)))

    (claim,) = cache.cluster.objects.ledger(DeviceBook).claims.values()
    assert plain_maps(claim) == []
