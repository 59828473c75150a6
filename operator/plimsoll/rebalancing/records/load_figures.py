"""Writes load figures for records: the load of both nodes, and the error of the forecast.

Formula, for each resource::

    error = 100 * (used - expected) / expected

Units: cpu in billionths of a core, memory in bytes; in records thousandths of a core, and bytes.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from plimsoll.api.v1alpha1.real_load import (
    LoadBasis,
    LoadResource,
    MovedLoad,
    MovedResource,
    NodeLoadChange,
    UsedLoad,
    UsedResource,
)
from plimsoll.load.expectations import Basis
from plimsoll.load.load_change import LoadChange, ShareChange
from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.model.quantity import milli, units

#: The names in records of the bases of expectations.
BASES: Mapping[Basis, LoadBasis] = MappingProxyType(
    {
        Basis.MEASURED: LoadBasis.MEASURED,
        Basis.MOVED: LoadBasis.MEASURED,
        Basis.STALE: LoadBasis.STALE,
        Basis.PREDECESSOR: LoadBasis.WORKLOAD,
        Basis.WORKLOAD: LoadBasis.WORKLOAD,
        Basis.REQUEST: LoadBasis.REQUEST,
    }
)

#: The resources in the order of a record.
RESOURCES: tuple[LoadResource, ...] = ("cpu", "memory")


def moved_load(change: LoadChange | None) -> MovedLoad | None:
    """A record's fields about the load that a move changes."""
    if change is None:
        return None
    return MovedLoad(
        basis=BASES[change.basis],
        resources=tuple(
            MovedResource(
                resource=resource,
                expected=_quantity(resource, found.expected),
                source=_node(found.source),
                target=_node(found.target),
            )
            for resource in RESOURCES
            if (found := change.resources.get(resource)) is not None
        ),
    )


def used_load(expected: MovedLoad, used: tuple[int, int], now: float) -> UsedLoad:
    """A record's fields about the measured use of a replacement: cpu and memory."""
    amounts = dict(zip(RESOURCES, used, strict=True))
    return UsedLoad(
        time=datetime.fromtimestamp(now, UTC),
        resources=tuple(
            UsedResource(
                resource=each.resource,
                used=_quantity(each.resource, amounts[each.resource]),
                error_percent=_error(each, amounts[each.resource]),
            )
            for each in expected.resources
        ),
    )


def _error(moved: MovedResource, used: int) -> float | None:
    if moved.resource == "cpu":
        expected = milli(moved.expected) * PER_COLUMN_UNIT[0]
    else:
        expected = units(moved.expected)
    return round(100.0 * (used - expected) / expected, 1) if expected > 0 else None


def _quantity(resource: LoadResource, amount: int) -> str:
    return f"{round(amount / PER_COLUMN_UNIT[0])}m" if resource == "cpu" else str(amount)


def _node(change: ShareChange) -> NodeLoadChange:
    return NodeLoadChange(before_percent=round(change.before, 1), after_percent=round(change.after, 1))
