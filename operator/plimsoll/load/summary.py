"""LoadSummary says of a cluster how many nodes are measured, and the mean and spread of their load.

Formula, for each resource over the nodes that are measured or estimated and have any of it::

    share[n] = load[n] / allocatable[n]
    mean, highest, spread = mean, maximum and standard deviation of share
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.load.states import LoadState
from plimsoll.model.columns.cluster import CPU, MEMORY, Cluster

#: The resources, with their places in the book and in the cluster's columns.
RESOURCES = {"cpu": (0, CPU), "memory": (1, MEMORY)}


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """The load of a cluster at one moment.

    Attributes:
        nodes: How many there are of each state, in lower case.
        mean: By resource: of the shares of allocatable that nodes use. Missing without a known node.
        highest: Likewise the largest.
        spread: Likewise the standard deviation.
    """

    nodes: Mapping[str, int]
    mean: Mapping[str, float]
    highest: Mapping[str, float]
    spread: Mapping[str, float]


def summary_of(cluster: Cluster) -> LoadSummary | None:
    """The summary; None where no readings are collected."""
    if not cluster.has_index(LoadBook):
        return None
    book, count = cluster.index(LoadBook), len(cluster)
    states = book.states[:count]
    is_known = states >= LoadState.ESTIMATED
    mean, highest, spread = {}, {}, {}
    for resource, (place, column) in RESOURCES.items():
        room = cluster.allocatable[:count, column] * PER_COLUMN_UNIT[place]
        counted = is_known & (room > 0)
        if counted.any():
            shares = book.load[:count, place][counted] / room[counted]
            mean[resource], highest[resource] = float(shares.mean()), float(shares.max())
            spread[resource] = float(np.std(shares))
    nodes = {state.name.lower(): int((states == state).sum()) for state in LoadState}
    return LoadSummary(nodes, mean, highest, spread)
