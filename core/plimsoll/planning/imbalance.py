"""Computes the imbalance of the nodes of a policy.

Formula, for each resource, over the nodes under consideration that have any of it::

    imbalance[r] = standard deviation of 100 * used[r] / allocatable[r]

Unit: percentage points. 0 is even; where fewer than two nodes have the resource it is 0. Only cpu, memory and
pods are considered, as nodes may name any number of other resources.
"""

from collections.abc import Mapping
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from plimsoll.framework import Snapshot
from plimsoll.framework.descheduling.context import considered_nodes
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import CPU, MEMORY, PODS
from plimsoll.model.selectors import Selector

#: Columns by the name of their resource.
COLUMNS = {"cpu": CPU, "memory": MEMORY, "pods": PODS}

#: Billionths (the unit of measurements) per unit of a column.
BILLIONTHS = {"cpu": 1_000_000, "memory": 1_000_000_000}


class UsageKind(StrEnum):
    """What counts as used: requests or measurements."""

    REQUESTS = "requests"
    ACTUAL = "actual"


def imbalance(
    cluster: Cluster, nodes: Selector, measurements: Measurements
) -> Mapping[tuple[str, str], float]:
    """The imbalance by resource and kind of usage; actual usage only if the policy has it measured."""
    names = considered_nodes(cluster, nodes)
    part = Snapshot(cluster).at(np.array([cluster.rows[name] for name in names], dtype=np.intp))
    found: dict[tuple[str, str], float] = {
        (resource, UsageKind.REQUESTS): _deviation(part.requested[:, column], part.allocatable[:, column])
        for resource, column in COLUMNS.items()
    }
    measured = measurements.queried if measurements.nodes is None else measurements.nodes
    if measured is not None:
        for resource, unit in BILLIONTHS.items():
            known = [
                (row, measured[name]) for row, name in enumerate(names) if resource in measured.get(name, {})
            ]
            used = np.array([usage[resource] / unit for _, usage in known])
            room = part.allocatable[[row for row, _ in known], COLUMNS[resource]]
            found[resource, UsageKind.ACTUAL] = _deviation(used, room)
    return found


def _deviation(used: NDArray[np.number], room: NDArray[np.number]) -> float:
    counted = room > 0
    if counted.sum() < 2:
        return 0.0
    return float(np.std(100.0 * used[counted] / room[counted]))
