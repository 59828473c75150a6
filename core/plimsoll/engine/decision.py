"""Defines decisions of scheduling attempts, with the data for explanations and plans."""

from collections.abc import Mapping
from enum import StrEnum

import numpy as np
from msgspec import Struct

from plimsoll.engine.cache.scores import ScoreTable
from plimsoll.framework import CycleState, Diagnosis, IntArray, Nomination, PluginError, PodInfo, Status
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import RowArray


class AttemptOutcome(StrEnum):
    """How an attempt ended."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class Decision(Struct, frozen=True):
    """The chosen node, or why no node was chosen.

    Attributes:
        node: The chosen node's name, "" without one.
        total: Its weighted score; None if it was the only or the nominated node, and nothing was scored.
        feasible: Number of feasible nodes.
        ties: Number of nodes with the highest score.
        message: The message of the ``PodScheduled=False`` condition, in kube-scheduler's words.
        diagnosis: The same in counts; None unless unschedulable.
        nomination: PostFilter's result, with victims; None when it did not run.
        error: The plugin error that ended the attempt, or None.
        state: The cycle state, None without a node. The next attempt overwrites it, so Reserve to Bind write
            into a clone.
    """

    pod: PodInfo
    outcome: AttemptOutcome
    node: str = ""
    total: int | None = None
    feasible: int = 0
    ties: int = 0
    message: str = ""
    diagnosis: Diagnosis | None = None
    nomination: Nomination | None = None
    error: PluginError | None = None
    state: CycleState | None = None

    @property
    def no_node_helps(self) -> bool:
        """Whether the pod was rejected whatever nodes there are."""
        return self.diagnosis is not None and self.diagnosis.no_node_helps


class Evaluation(Struct, frozen=True):
    """Every node's verdict for one pod, for ``explain`` and the recordings."""

    pre_filter: Status
    statuses: Mapping[str, Status]
    feasible: tuple[str, ...]
    scores: ScoreTable | None
    state: CycleState


class Ranking(Struct, frozen=True):
    """The feasible nodes of one pod with their totals, for plans of moves.

    A plan needs thousands of rankings, so nodes are rows of the cluster; names are looked up on demand.

    Attributes:
        cluster: The cluster of the rows; its nodes must not change while the ranking is used.
        rows: Shape (F,): rows of the feasible nodes, ascending.
        totals: Shape (F,): their weighted scores.
        diagnosis: Why no node is feasible, in counts; None if one is.
    """

    cluster: Cluster
    rows: RowArray
    totals: IntArray
    diagnosis: Diagnosis | None = None

    def __len__(self) -> int:
        """Number of feasible nodes."""
        return len(self.rows)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all feasible nodes, in row order."""
        return self._names(self.rows)

    @property
    def best(self) -> tuple[str, ...]:
        """The nodes with the highest total, sorted by name: the scheduler takes one of them."""
        if not len(self.rows):
            return ()
        rows = self.rows[self.totals == self.totals.max()]
        return self._names(rows[np.argsort(self.cluster.name_ranks[rows])])

    def total_of(self, node: str) -> int | None:
        """A node's total, None if it is not feasible."""
        row = self.cluster.rows.get(node, -1)
        at = int(np.searchsorted(self.rows, row))
        return int(self.totals[at]) if at < len(self.rows) and self.rows[at] == row else None

    def _names(self, rows: RowArray) -> tuple[str, ...]:
        return tuple(self.cluster.nodes[row].name for row in rows.tolist())
