"""Computes the effect of moving one pod on the load of two nodes.

Formula, for each resource, in percent of a node's allocatable::

    source: load[source]                 -> load[source] - expected[pod]
    target: load[target]                 -> load[target] + expected[pod]

Units: amounts in billionths of a core and bytes.
"""

from collections.abc import Mapping

from msgspec import Struct

from plimsoll.load.expectations import Basis
from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.load.summary import RESOURCES
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod_info import PodInfo


class ShareChange(Struct, frozen=True):
    """The load of one node by one resource, in percent of its allocatable.

    Attributes:
        before: With the pod in its present place.
        after: After the move.
    """

    before: float
    after: float


class ResourceChange(Struct, frozen=True):
    """The effect on one resource.

    Attributes:
        expected: The pod's expected use.
    """

    expected: int
    source: ShareChange
    target: ShareChange


class LoadChange(Struct, frozen=True):
    """The effect of a move.

    Attributes:
        basis: The source of the pod's expected use.
        resources: The resources that both nodes have, keyed by name.
    """

    basis: Basis
    resources: Mapping[str, ResourceChange]


def change_of(cluster: Cluster, book: LoadBook, pod: PodInfo, target: str) -> LoadChange | None:
    """The effect of moving a placed pod to a node; None if it is not on another node."""
    source_row, target_row = cluster.row_of_pod(pod.uid), cluster.rows.get(target)
    if source_row is None or target_row is None or source_row == target_row:
        return None
    expected, found = book.of(pod), {}
    source, taken = book.load_on(source_row), book.load_on(target_row)
    for resource, (place, column) in RESOURCES.items():
        here = int(cluster.allocatable[source_row, column]) * PER_COLUMN_UNIT[place]
        there = int(cluster.allocatable[target_row, column]) * PER_COLUMN_UNIT[place]
        if here <= 0 or there <= 0:
            continue
        amount = expected[place]
        found[resource] = ResourceChange(
            amount,
            ShareChange(_percent(source[place], here), _percent(max(source[place] - amount, 0), here)),
            ShareChange(_percent(taken[place], there), _percent(taken[place] + amount, there)),
        )
    return LoadChange(expected.basis, found)


def _percent(amount: int, room: int) -> float:
    return 100.0 * amount / room
