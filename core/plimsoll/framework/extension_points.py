"""Defines the extension points, in calling order. A plugin implements one or several of these protocols.

One call handles one pod and all nodes: arrays in, arrays out. A plugin that is easier to write for one node
implements :mod:`plimsoll.framework.per_node`, which lifts it to all nodes.

Arrays have one entry for each node of their snapshot, in its order. A snapshot shows all nodes, or only those
that changed: a plugin cannot tell the difference, and need not.

Source: kube-scheduler v1.36, ``framework/interface.go``; the vectorised shape is ours (docs/adr/0003).
"""

from collections.abc import Awaitable, Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from plimsoll.framework.args import NoArgs, PluginArgs
from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.status import SUCCESS, Diagnosis, Status
from plimsoll.model.columns.columns import BoolArray, IntArray, RowArray
from plimsoll.model.columns.pods_by_importance import PodsByImportance
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.structural import Structural

#: The lowest and highest score of a node after NormalizeScore.
MIN_SCORE, MAX_SCORE = 0, 100


class Reads(IntEnum):
    """The inputs of a filter or score plugin; the engine calls it again only when these change.

    Each level includes the ones before it. PreFilter and PreScore of a plugin that reads NODE or ROW read
    only the template and node and other objects: they run again when one of these has changed.
    """

    NODE = 1  #: the pod's template and the node object (labels, taints, name, images)
    ROW = 2  #: and the pods on that node (requested resources, ports)
    CLUSTER = 3  #: and pods or objects anywhere (domains, volumes); recomputed after any change
    POD = 4  #: and the individual pod (name, uid, annotations); recomputed for every pod


@runtime_checkable
class Plugin(Protocol, metaclass=Structural):
    """Members of all plugins; a plugin without arguments needs neither ``args_model`` nor ``__init__``."""

    name: ClassVar[str]
    args_model: ClassVar[type[PluginArgs]] = NoArgs

    def __init__(self, args: PluginArgs) -> None:
        """Take the arguments, an instance of ``args_model``."""
        return


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Decides whether a pod may enter the active queue."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Anything but success gates the pod."""


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue; exactly one per process."""

    def sort_key(self, pod: PodInfo, timestamp: float) -> Any:
        """Pods with lower keys go first. ``timestamp``: seconds, when the pod entered the queue."""


class PreFilterResult(Struct, frozen=True):
    """PreFilter's restriction to these nodes; sets of several plugins are intersected."""

    nodes: frozenset[str]


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Handles the pod, and all nodes in one call, before any node is filtered."""

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Status | PreFilterResult:
        """SKIP: the plugin's filter need not run. A rejection rejects the pod for all nodes."""


@runtime_checkable
class PreFilterExtensions(Plugin, Protocol):
    """Adjusts PreFilter's state when preemption or a nomination adds or removes a pod in a simulation.

    The snapshot already contains the change. Needed by plugins whose PreFilter sums over pods; others
    read what they need from the snapshot.
    """

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: int, snapshot: Snapshot
    ) -> Status:
        """Count ``added`` as placed on the node at that position of the whole snapshot."""

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: int, snapshot: Snapshot
    ) -> Status:
        """Stop counting ``removed``."""


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Decides which nodes are feasible; :mod:`plimsoll.framework.capabilities` has what it may declare."""

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Shape (N,): 0 if the node is feasible, else a code that ``refusal`` explains."""

    def refusal(self, code: int, state: CycleState, pod: PodInfo) -> Status:
        """The status for a code other than 0: UNSCHEDULABLE or UNRESOLVABLE, with upstream's reasons."""


class PreemptionCandidate(Struct, frozen=True):
    """A node that is feasible once the victims have left, most important victim first."""

    victims: tuple[PodInfo, ...]
    violations: int  #: number of victims whose disruption budget does not allow it


class VictimSearch(Protocol):
    """The search of a preemption, computed on demand: for explanations and recordings."""

    def candidates(self) -> Mapping[str, PreemptionCandidate]:
        """Candidates by node name."""

    def selected(self) -> tuple[str, ...]:
        """The best candidates; several if they are equal by every rule."""

    def statuses(self) -> Mapping[str, Status]:
        """By node name, the statuses of nodes that were tried and are no candidates."""


class Nomination(Struct, frozen=True):
    """PostFilter's decision about ``status.nominatedNodeName``.

    Attributes:
        status: SUCCESS if a node was made available for the pod.
        node: The nominated node; "" clears an earlier nomination; None leaves it unchanged.
        victims: Pods that must leave the node first, most important first.
        outranked: Pods of lower priority whose own nomination to the node is cleared.
        search: The search; None if nothing was searched.
        deallocates: A claim that no other pod uses and whose devices keep the pod from nodes.
        deletes: A claim for extended resources that an earlier attempt left.
        waits_for: Plugins whose registered events may help the pod, in addition to those that rejected it.
        priority: The least priority at which the room is held for the pod until it is placed: victims of a
            higher priority than the pod would take it again otherwise. None: the pod's own.
        plugin: The PostFilter plugin that made a node available; set by the engine.
    """

    status: Status = SUCCESS
    node: str | None = None
    victims: tuple[PodInfo, ...] = ()
    outranked: tuple[PodInfo, ...] = ()
    search: VictimSearch | None = None
    deallocates: ResourceClaim | None = None
    deletes: ResourceClaim | None = None
    waits_for: frozenset[str] = frozenset()
    priority: int | None = None
    plugin: str = ""


class NodeTrial(Protocol):
    """One node with pods taken away and put back in a simulation; close it before opening another."""

    def remove(self, pod: PodInfo) -> None:
        """Stop counting the pod, which is placed on the node."""

    def add(self, pod: PodInfo) -> None:
        """Count the pod again."""

    def status(self) -> Status:
        """The filters' result now, with the pods nominated to the node and without them."""

    def close(self) -> None:
        """Restore all pods."""


class VictimArrays(Struct, frozen=True):
    """A search for the victims on many nodes, none under a disruption budget; axes: places K, nodes N.

    Attributes:
        priority: Pods of lower priority may leave.
        pods: The pods of the nodes, refreshed.
        none_lower: The kind of a node without pods of lower priority.
        kinds: Shape (N,), results: 0, ``none_lower``, or the kind of rejection that remains without them.
        victims: Shape (K, N), results: the places of the victims.
        costs: Shape (N,) each, results: violations, highest priority, sum of (priority + 2^31), number, and
            minus the earliest start of the victims of the highest priority.
    """

    priority: int
    pods: PodsByImportance
    none_lower: int
    kinds: IntArray
    victims: BoolArray
    costs: tuple[IntArray | NDArray[np.float64], ...]


class WhatIf(Protocol):
    """Evaluates the filters as if pods had left; created by the engine for one attempt."""

    def by_sums(self, rows: RowArray) -> BoolArray:
        """Which rows sums of requests decide, whatever pods leave the node: shape (len(rows),).

        For these rows ``refusals_if`` is exact, and evaluates many nodes in one call.
        """

    def helpful(self) -> RowArray:
        """Rows that were rejected with UNSCHEDULABLE, the only ones where removing pods may help."""

    def nominated(self, row: int) -> Sequence[PodInfo]:
        """Pending pods that are nominated to the node."""

    @property
    def ahead(self) -> Mapping[int, tuple[PodInfo, ...]]:
        """Nominated pods of the same or higher priority, by row: filters run with them, and without."""

    @property
    def ahead_marks(self) -> IntArray:
        """Shape (N,): 0 if no pod is ahead, else a number that is unique to the set of pods ahead."""

    def refusals_if(self, rows: RowArray, requested: IntArray) -> IntArray:
        """The kind of rejection of each of ``rows`` if its pods requested that much, 0 if the pod fits.

        The pods that are ``ahead`` are counted in addition to these; ``requested`` has shape (len(rows), R).
        """

    def find_victims(self, rows: RowArray, search: VictimArrays) -> RowArray:
        """Search these rows with the kernel; returns those that are left to ``refusals_if``."""

    def refusals_before_trial(self, rows: RowArray, requested: IntArray) -> IntArray:
        """The kind of rejection that a trial of each row would find first, 0 where only a trial tells.

        The arguments are those of ``refusals_if``.
        """

    def refusal(self, kind: int) -> Status:
        """The status for a kind of rejection other than 0; kinds are valid for all attempts of a template."""

    def on(self, row: int) -> NodeTrial:
        """Evaluate one node, pod by pod."""


class Rejections(Struct, frozen=True):
    """The outcome of filtering, node by node, for PostFilter.

    Attributes:
        statuses: Status by row of the whole snapshot, of every explicitly rejected node.
        absent: The status of all other nodes, if PreFilter rejected or restricted; else success.
        diagnosis: The same in counts.
        what_if: Evaluates the filters on a changed cluster; None if this is impossible.
        nominated_node: The pod's nominated node as the scheduler knows it, or ""; the pod's status may not
            show it yet.
        via_eviction: Whether victims leave through the Eviction API: a pod whose budget is used up cannot.
    """

    statuses: Mapping[int, Status]
    absent: Status
    diagnosis: Diagnosis
    what_if: WhatIf | None = None
    nominated_node: str = ""
    via_eviction: bool = False


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Runs when no node is feasible; preemption is such a plugin."""

    def post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rejections: Rejections
    ) -> Nomination:
        """Success ends the phase with a nomination; UNSCHEDULABLE lets the next plugin try."""


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Prepares scoring; ``snapshot`` shows the feasible nodes only."""

    def pre_score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Status:
        """SKIP: the plugin contributes 0 to every node."""


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Scores each node."""

    def score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Shape (N,), int64: raw points, within 0..MAX_SCORE unless the plugin normalizes."""


@runtime_checkable
class NormalizingPlugin(ScorePlugin, Protocol):
    """A score plugin whose raw points are normalized to 0..MAX_SCORE."""

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        """Shape (F,), from the raw points of the F feasible nodes; higher must be better in the result.

        For a plugin that reads NODE or ROW, points may depend only on a node's own raw points and on the
        lowest and highest of all.
        """


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Books what the pod will need; the pod is already assumed on the node."""

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Anything but success undoes the attempt."""

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Undo; also called if ``reserve`` never ran or failed, and must not fail."""


class PermitResult(Struct, frozen=True):
    """Permit's result: SUCCESS, a rejection, or WAIT for at most ``timeout_s`` seconds."""

    status: Status = SUCCESS
    timeout_s: float = 0.0


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Lets the pod bind now, later, or not at all."""

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> PermitResult:
        """WAIT holds the binding until it is allowed, rejected or timed out."""


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Prepares the binding, for example by binding volumes.

    A running call is cancelled when the pod is preempted or deleted meanwhile; ``unreserve`` follows. See
    :class:`plimsoll.framework.capabilities.RunsInParallel` for plugins that run simultaneously.
    """

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """SKIP: nothing to do; SUCCESS: ``pre_bind`` has work to do."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Awaitable[Status]:
        """Anything but success fails the binding."""


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Binds the pod. SKIP passes it to the next bind plugin."""

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Awaitable[Status]:
        """Write the binding."""


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Receives notice of a binding; informational."""

    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Called after the pod was bound."""


def all_feasible(snapshot: Snapshot) -> IntArray:
    """The codes of a filter that rejects no node, shape (N,)."""
    return np.zeros(len(snapshot), dtype=np.int64)
