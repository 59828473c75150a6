"""Invariants of the mirrored cluster and of the book of reservations, checked by tests after each step."""

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.devices.book import DeviceBook
from plimsoll.model.kinds.pod_info import HolderKind, PodInfo
from plimsoll.testing.columns import validate


def check_cache(cache: Cache) -> None:
    """Check that assumed pods are where they were assumed, and the columns."""
    assert all(cache.node_of(uid) == node for uid, node in cache.assumed.items())
    validate(cache.cluster)


def check_book(book: ReservationBook) -> None:
    """Check the invariants of a book of reservations.

    Raises:
        AssertionError: An invariant is violated.
    """
    by_node: dict[str, dict[str, PodInfo]] = {}
    for uid, held in book._by_uid.items():
        assert held.holder.uid == uid == held.pod.uid
        assert held.pod.stands_in_for == (None if held.holder.kind is HolderKind.POD else held.holder)
        assert held.pod.stands_in_for is not None or not book.cache.node_of(uid), f"{uid} has a node"
        assert (held.until is not None) == (held.holder in book._timer)
        by_node.setdefault(held.node, {})[uid] = held.pod
    assert by_node == book.nominator.by_node
    devices = book.cache.cluster.objects.known_ledger(DeviceBook)
    for uid, hold in () if devices is None else devices.holds.items():
        assert book._by_uid[uid].node == hold.node
