"""LoadSummary says of a cluster how many nodes are measured, and the mean and spread of their load.

Formula, for each resource over the nodes that are measured or estimated and have any of it::

    share[n] = load[n] / allocatable[n]
    mean, highest, spread = mean, maximum and standard deviation of share
"""

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct, field

from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.load.states import LoadState
from plimsoll.model.columns.cluster import CPU, MEMORY, Cluster

#: The resources, with their places in the book and in the cluster's columns.
RESOURCES = {"cpu": (0, CPU), "memory": (1, MEMORY)}


class LoadSummary(Struct, frozen=True):
    """The load of a cluster at one moment.

    Attributes:
        nodes: How many there are of each state, in lower case.
        mean: By resource: of the shares of allocatable that nodes use. Missing without a known node.
        highest: Likewise the largest.
        spread: Likewise the standard deviation.
        hottest: By resource: the node with the largest share; of several the first.
        left_out: Names of nodes by state, of those that are not measured, sorted.
    """

    nodes: Mapping[str, int]
    mean: Mapping[str, float]
    highest: Mapping[str, float]
    spread: Mapping[str, float]
    hottest: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[LoadState, tuple[str, ...]] = field(default_factory=dict)


def summary_of(cluster: Cluster, among: Iterable[str] | None = None) -> LoadSummary | None:
    """The summary of all nodes, or of some, by their names; None where no readings are collected."""
    if not cluster.has_index(LoadBook):
        return None
    names = sorted(cluster.rows if among is None else among)
    rows = np.array([cluster.rows[name] for name in names], dtype=np.intp)
    book = cluster.index(LoadBook)
    states = book.states[rows]
    is_known = states >= LoadState.ESTIMATED
    load, room_of = book.load[rows], cluster.allocatable[rows]
    mean, highest, spread, hottest = {}, {}, {}, {}
    for resource, (place, column) in RESOURCES.items():
        room = room_of[:, column] * PER_COLUMN_UNIT[place]
        counted = np.flatnonzero(is_known & (room > 0))
        if len(counted):
            shares = load[counted, place] / room[counted]
            mean[resource], highest[resource] = float(shares.mean()), float(shares.max())
            spread[resource] = float(np.std(shares))
            hottest[resource] = names[int(counted[int(shares.argmax())])]
    nodes = {state.name.lower(): int((states == state).sum()) for state in LoadState}
    left_out: dict[LoadState, tuple[str, ...]] = {
        state: tuple(names[at] for at in np.flatnonzero(states == state).tolist())
        for state in LoadState
        if state is not LoadState.MEASURED and (states == state).any()
    }
    return LoadSummary(nodes, mean, highest, spread, hottest, left_out)
