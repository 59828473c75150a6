"""Requests of nominated pods on their nodes, relative to a pod's priority.

Every attempt needs these while any pod is nominated, and a cluster with much preemption has hundreds of
nominations. The sums are therefore kept per priority, and recomputed only for nodes where a nomination
changed or a nominated pod was placed.

Axis letters: C nodes that are claimed, N nodes, R resources.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from msgspec import Struct

from plimsoll.engine.nominator import Nominator
from plimsoll.framework import BoolArray, IntArray, PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import RowArray

#: Number of priorities that are kept; when more are in use, all are dropped.
PRIORITIES = 16


class NominatedRequests(Struct, frozen=True):
    """Requests that a pod must leave room for.

    Attributes:
        pods: Nominated pods that are not placed yet, by row.
        rows: Shape (C,): the keys of ``pods``, ascending.
        amounts: Shape (C, R): the sum of these pods' requests.
        marks: Shape (N,): 0 for no such pods, else a number that is unique to the set of pods there.
    """

    pods: Mapping[int, tuple[PodInfo, ...]]
    rows: RowArray
    amounts: IntArray
    marks: IntArray


class _Level:
    """The claims against pods of one priority that are not nominated themselves."""

    _epoch: int
    _tick: int  #: of the nominations
    _standing: AbstractSet[str]  #: nominated pods that are placed, by uid
    _pods: dict[int, tuple[PodInfo, ...]]
    _is_claimed: BoolArray
    _amounts: IntArray
    _marks: IntArray
    _claims: NominatedRequests | None

    def __init__(self, cluster: Cluster, nominator: Nominator, priority: int, numbers: Iterator[int]) -> None:
        self._cluster = cluster
        self._nominator = nominator
        self._priority = priority
        self._numbers = numbers
        self._forget()

    def claims(self) -> NominatedRequests:
        """The present claims."""
        nominator = self._nominator
        nodes = nominator.changed_since(self._tick)
        if nodes is None or self._epoch != self._cluster.epoch:
            self._forget()
            nodes = frozenset(nominator.by_node)
        standing = nominator.among(self._cluster.pods)
        nodes |= {nominator.node_of(uid) for uid in standing ^ self._standing}
        self._tick, self._standing = nominator.tick, standing
        rows = [row for name in nodes if (row := self._cluster.rows.get(name)) is not None]
        if rows:
            self._look_at(rows)
        if self._epoch != self._cluster.epoch:
            return self.claims()  # a nominated pod requests a resource that no node has had: the axis grew
        if self._claims is None:
            claimed = np.flatnonzero(self._is_claimed)
            self._claims = NominatedRequests(self._pods, claimed, self._amounts[claimed], self._marks)
        return self._claims

    def _forget(self) -> None:
        count = len(self._cluster)
        self._epoch = self._cluster.epoch
        self._tick, self._standing = 0, frozenset()
        self._pods = {}
        self._is_claimed = np.zeros(count, dtype=np.bool_)
        self._amounts = np.zeros((count, len(self._cluster.resources)), dtype=np.int64)
        self._marks = np.zeros(count, dtype=np.int64)
        self._claims = None

    def _look_at(self, rows: Iterable[int]) -> None:
        # An earlier caller still uses the earlier mapping and marks.
        pods, self._marks = dict(self._pods), self._marks.copy()
        for row in rows:
            there = ahead_on(self._cluster, self._nominator, row, self._priority)
            if there:
                pods[row] = there
            else:
                pods.pop(row, None)
            self._is_claimed[row] = bool(there)
            self._marks[row] = next(self._numbers) if there else 0
            wanted = _requested(self._cluster, there)
            if len(wanted) == self._amounts.shape[1]:  # otherwise everything is recomputed
                self._amounts[row] = wanted
        self._pods = pods
        self._claims = None


class NominatedRequestsCache:
    """The claims on one cluster.

    Attributes:
        levels: By priority of the requesting pods; empty after all were dropped.
    """

    def __init__(self, cluster: Cluster, nominator: Nominator) -> None:
        self._cluster = cluster
        self._nominator = nominator
        self.levels: dict[int, _Level] = {}
        self._numbers = itertools.count(1)

    def forget(self) -> None:
        """Drop all levels; the nominations have ended."""
        self.levels.clear()

    def against(self, pod: PodInfo) -> NominatedRequests:
        """The claims on all nodes."""
        level = self.levels.get(pod.priority)
        if level is None:
            if len(self.levels) == PRIORITIES:
                self.levels.clear()
            level = _Level(self._cluster, self._nominator, pod.priority, self._numbers)
            self.levels[pod.priority] = level
        claims = level.claims()
        own = self._cluster.rows.get(self._nominator.node_of(pod.uid))
        if own is None or own not in claims.pods:
            return claims
        there = self.on(own, pod)
        at = claims.rows == own
        marks = claims.marks.copy()
        marks[own] = there.marks[own]
        if not there.pods:
            others = {row: pods for row, pods in claims.pods.items() if row != own}
            return NominatedRequests(others, claims.rows[~at], claims.amounts[~at], marks)
        amounts = np.where(at[:, None], there.amounts, claims.amounts)
        return NominatedRequests({**claims.pods, **there.pods}, claims.rows, amounts, marks)

    def on(self, row: int, pod: PodInfo) -> NominatedRequests:
        """The claims on one node."""
        others = ahead_on(self._cluster, self._nominator, row, pod.priority, but=pod.uid)
        rows = [row] if others else []
        amounts = _requested(self._cluster, others)
        marks = np.zeros(len(self._cluster), dtype=np.int64)
        marks[rows] = next(self._numbers)
        return NominatedRequests(
            dict.fromkeys(rows, others), np.array(rows, dtype=np.intp), amounts[None][: len(rows)], marks
        )


def _requested(cluster: Cluster, pods: Sequence[PodInfo]) -> IntArray:
    """The sum of the pods' requests, shape (R,)."""
    rows = [cluster.requests_row(pod.requests) for pod in pods]  # all of them first: R may grow
    total = np.zeros(len(cluster.resources), dtype=np.int64)
    for row in rows:
        total[: len(row)] += row
    return total


def ahead_on(
    cluster: Cluster, nominator: Nominator, row: int, priority: int, but: str = ""
) -> tuple[PodInfo, ...]:
    """Pods nominated to a node, of the same or higher priority and not placed yet, except one."""
    nominated = nominator.by_node.get(cluster.nodes[row].name)
    if not nominated:
        return ()
    return tuple(
        each
        for uid, each in nominated.items()
        if each.priority >= priority and uid != but and uid not in cluster.pods
    )
