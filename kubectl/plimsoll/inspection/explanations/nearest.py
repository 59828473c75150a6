"""Finds the nearest miss of a pod: the node that needs the smallest change to fit it, proved on a fork.

Order of nodes: fewest refusing plugins, then the smallest lack, then the name. The lack is a sum: for
resources, the largest missing share of the node's allocatable; for anything else (a taint, a label, a port, a
domain), 1. So 120m of cpu on a node of 4 cpu (0.03) is nearer than a taint.
"""

from collections.abc import Iterator
from itertools import islice, product

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.inspection.explanations.examination import Examination
from plimsoll.inspection.explanations.lacks import Lack, Remedy, lacks_of
from plimsoll.inspection.explanations.supposition import supposed
from plimsoll.model.columns.columns import RowArray
from plimsoll.plugins.node_resources_fit import NodeResourcesFit
from plimsoll.plugins.node_unschedulable import NodeUnschedulable
from plimsoll.plugins.taint_toleration import TaintToleration

#: Nodes tried for one nearest miss, and combinations of remedies tried for each.
TRIED_NODES, TRIED_REMEDIES = 48, 8

#: Maximum number of examinations of one node, each with the remedies granted so far.
ROUNDS = 3

_LACKS = "lacks "


class NearMiss(Struct, frozen=True):
    """A node that a small change would make feasible.

    Attributes:
        lacks: What the node lacks.
        remedies: One remedy per lack; tested: with all of them the node is feasible.
        plugins: The plugins that refuse the node.
    """

    node: str
    lacks: tuple[Lack, ...]
    remedies: tuple[Remedy, ...]
    plugins: tuple[str, ...]

    @property
    def text(self) -> str:
        """The node and its lacks, in words."""
        said = ""
        for lack in self.lacks:
            also = lack.text.removeprefix(_LACKS) if said.startswith(_LACKS) else lack.text
            joined = (
                ", and" if "," in said else " and"
            )  # a clause such as "which the pod does not tolerate" ends
            said += f"{joined} {also}" if said else lack.text
        return f"{self.node} {said}"


def nearest_misses(examination: Examination, limit: int = 3) -> list[NearMiss]:
    """The nearest miss, then the nearest ones that other plugins refuse; at most ``limit``."""
    misses: list[NearMiss] = []
    seen: set[tuple[str, ...]] = set()
    for row in islice(_by_distance(examination, seen), TRIED_NODES):
        miss = _miss(examination, row)
        if miss is not None:
            misses.append(miss)
            seen.add(miss.plugins)
            if len(misses) == limit:
                break
    return misses


def _by_distance(examination: Examination, seen: set[tuple[str, ...]]) -> Iterator[int]:
    """Refused rows, the nearest first; skips rows whose set of refusing plugins was seen."""
    if not examination.plugins:
        return
    refusing = examination.codes != 0
    rows = np.flatnonzero(~examination.feasible & ~examination.excluded)
    counts, missing = _distances(examination, rows)
    names = np.array([examination.cluster.nodes[row].name for row in rows.tolist()])
    for at in np.lexsort((names, missing, counts)).tolist():
        row = int(rows[at])
        if _plugins(examination, refusing[:, row], row) not in seen:
            yield row


def _plugins(examination: Examination, refusing: NDArray[np.bool_], row: int) -> tuple[str, ...]:
    names = [plugin.name for plugin, says in zip(examination.plugins, refusing.tolist(), strict=True) if says]
    if not names and row in examination.found.overrides:
        names = [examination.found.overrides[row].plugin]
    return tuple(names)


def _distances(examination: Examination, rows: RowArray) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The number of plugins that refuse each row, and its lack, both of shape (len(rows),)."""
    positions = {plugin.name: position for position, plugin in enumerate(examination.plugins)}
    refusing = (examination.codes != 0)[:, rows]
    overrides = [row in examination.found.overrides for row in rows.tolist()]
    counts = np.maximum(refusing.sum(axis=0), np.array(overrides, dtype=np.int64))
    fit = positions.get(NodeResourcesFit.name)
    missing = counts.astype(np.float64)
    if fit is not None:
        short = refusing[fit] | (~refusing.any(axis=0))
        missing[short] += _resource_shares(examination, rows[short]) - 1.0
    cordon, taint = positions.get(NodeUnschedulable.name), positions.get(TaintToleration.name)
    if cordon is not None and taint is not None:
        # A cordoned node has the taint, too: one change remedies both.
        both = refusing[cordon] & refusing[taint]
        counts, missing = counts - both, missing - both
    return counts, missing


def _resource_shares(examination: Examination, rows: RowArray) -> NDArray[np.float64]:
    """The largest missing share among the resources that the pod requests, shape (len(rows),)."""
    cluster = examination.cluster
    worst = np.zeros(len(rows), dtype=np.float64)
    for name, amount in {**examination.pod.template.requests, "pods": 1}.items():
        axis = cluster.axis_of(name)
        if axis is None:
            worst = np.maximum(worst, float(amount))
            continue
        total = cluster.allocatable[rows, axis]
        lacking = amount - (total - cluster.requested[rows, axis])
        worst = np.maximum(worst, np.maximum(lacking, 0) / np.maximum(total, 1))
    return worst


def _miss(examination: Examination, row: int) -> NearMiss | None:
    """The row as a near miss, if some remedies make it feasible.

    A grant may break another rule, such as an affinity to pods that had to leave. Then the node is examined
    again.
    """
    scheduler, pod = examination.scheduler, examination.pod
    node = examination.cluster.nodes[row].name
    plugins = _plugins(examination, examination.codes[:, row] != 0, row)
    lacks: list[Lack] = []
    for _ in range(ROUNDS):
        found = [each for each in lacks_of(examination, row) if each not in lacks]
        if not found:
            return None
        lacks += found
        for remedies in islice(product(*(each.remedies for each in lacks)), TRIED_REMEDIES):
            if takes(scheduler, pod, remedies, node):
                return NearMiss(node, tuple(lacks), remedies, plugins)
        granted = supposed(scheduler, pod, [each.remedies[0].grant for each in lacks])
        examination = Examination(*granted.judge())
        row = examination.cluster.rows[node]
    return None


def takes(scheduler: ProfileScheduler, pod: PodInfo, remedies: tuple[Remedy, ...], node: str) -> bool:
    """Whether a node is feasible with these remedies granted."""
    return node in supposed(scheduler, pod, [each.grant for each in remedies]).feasible()
