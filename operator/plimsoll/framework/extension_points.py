"""The extension points, in calling order. A plugin implements one or several of these protocols.

A plugin handles one pod and all nodes in one call: arrays in, arrays out. A plugin that is easier to
write for one node implements :mod:`plimsoll.framework.per_node` and is lifted.

Arrays have one entry for each node of the snapshot they were made from, in its order. Snapshots show
all nodes, or only those that changed: a plugin cannot tell, and need not.

Source: kube-scheduler v1.36, ``framework/interface.go``; the vectorised shape is ours (docs/adr/0003).
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from plimsoll.framework.args import NoArgs, PluginArgs
from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.status import SUCCESS, Diagnosis, Status
from plimsoll.model.columns.columns import BoolArray, IntArray, RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.devices.resource_claim import ResourceClaim
from plimsoll.model.kinds.pod_info import PodInfo

#: The lowest and highest score of a node after NormalizeScore.
MIN_SCORE, MAX_SCORE = 0, 100


class Reads(IntEnum):
    """What the answer of a filter or score plugin depends on; the engine computes it again only then.

    Each level includes the ones before it. PreFilter and PreScore of a plugin that reads NODE or ROW look at
    the template and at node and other objects only: they are asked again when one of these changed.
    """

    NODE = 1  #: the pod's template and the node object (labels, taints, name, images)
    ROW = 2  #: and the pods on that very node (requested resources, ports)
    CLUSTER = 3  #: and pods or objects anywhere (domains, volumes); recomputed after any change
    POD = 4  #: and the individual pod (name, uid, annotations); recomputed for every pod


@runtime_checkable
class Plugin(Protocol):
    """What all plugins have; one without arguments needs neither ``args_model`` nor ``__init__``."""

    name: ClassVar[str]
    args_model: ClassVar[type[PluginArgs]] = NoArgs

    def __init__(self, args: PluginArgs) -> None:
        """Take the arguments, an instance of ``args_model``."""
        return


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Holds a pod back before it enters the active queue."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Anything but success gates the pod."""


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue; exactly one a process."""

    def sort_key(self, pod: PodInfo, timestamp: float) -> Any:
        """Pods with lower keys go first. ``timestamp``: seconds, when the pod entered the queue."""


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """PreFilter's "only these nodes can be considered"; several plugins' sets are intersected."""

    nodes: frozenset[str]


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Handles the pod, and all nodes in one call, before any node is filtered."""

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Status | PreFilterResult:
        """SKIP: the plugin's filter has nothing to say. A rejection rejects the pod for all nodes."""


@runtime_checkable
class PreFilterExtensions(Plugin, Protocol):
    """Adjusts PreFilter's state when preemption or a nomination adds or removes a pod in a simulation.

    The snapshot already contains the change. Needed by plugins whose PreFilter sums over pods; others
    read what they need from the snapshot.
    """

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: int, snapshot: Snapshot
    ) -> Status:
        """``added`` now counts as placed on the node at that position of the whole snapshot."""

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: int, snapshot: Snapshot
    ) -> Status:
        """``removed`` no longer counts."""


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Says which nodes are feasible; :mod:`plimsoll.framework.capabilities` has what it may declare."""

    #: What the answer depends on.
    reads: ClassVar[Reads]

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Shape (N,): 0 where the node is feasible, else a code that ``refusal`` explains."""

    def refusal(self, code: int, state: CycleState, pod: PodInfo) -> Status:
        """What a code other than 0 means: UNSCHEDULABLE or UNRESOLVABLE, with upstream's reasons."""


@dataclass(frozen=True, slots=True)
class PreemptionCandidate:
    """A node that takes the pod once the victims have left, most important victim first."""

    victims: tuple[PodInfo, ...]
    violations: int  #: victims whose disruption budget does not allow it


class VictimSearch(Protocol):
    """How preemption came to its choice, made when asked for: for explaining and for recordings."""

    def candidates(self) -> Mapping[str, PreemptionCandidate]:
        """By node name."""

    def selected(self) -> tuple[str, ...]:
        """The best candidates; several are equal by every rule."""

    def statuses(self) -> Mapping[str, Status]:
        """By node name, of nodes that were tried and are no candidates."""


@dataclass(frozen=True, slots=True)
class Nomination:
    """What PostFilter decides about ``status.nominatedNodeName``.

    Attributes:
        status: SUCCESS when a node was made available for the pod.
        node: The node nominated; "" clears an earlier nomination; None leaves it alone.
        victims: Pods that must leave the node first, most important first.
        outranked: Pods of lower priority whose own nomination to the node is cleared.
        search: How it was decided; None when nothing was searched.
        deallocates: A claim whose devices keep the pod from nodes, and that no other pod uses.
        deletes: A claim for extended resources that is left from an earlier attempt.
        waits_for: Plugins whose registered events may help the pod, in addition to those that rejected it.
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
    plugin: str = ""


class NodeTrial(Protocol):
    """One node with pods taken away and put back in a simulation; close it before opening another."""

    def remove(self, pod: PodInfo) -> None:
        """The pod, placed on the node, no longer counts."""

    def add(self, pod: PodInfo) -> None:
        """It counts again."""

    def status(self) -> Status:
        """What the filters say now, with the pods nominated to the node and without them."""

    def close(self) -> None:
        """Put everything back."""


class WhatIf(Protocol):
    """What the filters would say if pods left; made by the engine for one attempt."""

    def by_sums(self, rows: RowArray) -> BoolArray:
        """On which of the rows sums of requests decide, whatever pods leave the node: shape (len(rows),).

        There ``refusals_if`` returns the result for many nodes in one call, and is exact.
        """

    def helpful(self) -> RowArray:
        """Rows whose refusal was UNSCHEDULABLE, the only ones where removing pods may help."""

    def nominated(self, row: int) -> Sequence[PodInfo]:
        """Pending pods that are nominated to the node."""

    @property
    def ahead(self) -> Mapping[int, tuple[PodInfo, ...]]:
        """Nominated pods of no lower priority, by row: the filters are asked with them, and without."""

    @property
    def ahead_marks(self) -> IntArray:
        """Shape (N,): 0 where no pod is ahead, else a number of its own for every set of them."""

    def refusals_if(self, rows: RowArray, requested: IntArray) -> IntArray:
        """The kind of refusal of each of ``rows`` if its pods requested that much, 0 where the pod fits.

        The pods that are ``ahead`` are counted in addition to these; ``requested`` has shape (len(rows), R).
        """

    def refusal(self, kind: int) -> Status:
        """What a kind of refusal other than 0 means; kinds hold for all attempts of a template."""

    def on(self, row: int) -> NodeTrial:
        """Try one node, pod by pod."""


@dataclass(frozen=True, slots=True)
class Rejections:
    """The outcome of filtering, node by node, as PostFilter sees it.

    Attributes:
        statuses: Status by row of the whole snapshot, of every node that was refused explicitly.
        absent: The status of all other nodes, when PreFilter rejected or narrowed; else success.
        diagnosis: The same in counts.
        what_if: Evaluates the filters on a changed cluster; None when this is impossible.
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
    """Asked when no node is feasible; preemption lives here."""

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
    """Says how good each node is."""

    #: What the answer depends on.
    reads: ClassVar[Reads]

    def score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Shape (N,), int64: raw points, within 0..MAX_SCORE unless the plugin normalises."""


@runtime_checkable
class NormalizingPlugin(ScorePlugin, Protocol):
    """A score plugin whose raw points are brought to 0..MAX_SCORE afterwards."""

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        """Shape (F,), the raw points of the F feasible nodes; higher must be better in the result.

        For a plugin that reads NODE or ROW, points may depend on a node's own raw points and on the
        lowest and highest of all, on nothing else.
        """


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Books what the pod will need; the pod is already assumed on the node."""

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Anything but success undoes the attempt."""

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Undo; also called when ``reserve`` never ran or failed, and must not fail."""


@dataclass(frozen=True, slots=True)
class PermitResult:
    """Permit's answer: SUCCESS, a rejection, or WAIT for at most ``timeout_s`` seconds."""

    status: Status = SUCCESS
    timeout_s: float = 0.0


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Lets the pod bind now, later, or not at all."""

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> PermitResult:
        """WAIT holds the binding until it is allowed, rejected or timed out."""


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Does what must be done before binding, such as binding volumes.

    What runs is cancelled when the pod is preempted or deleted meanwhile; ``unreserve`` follows. See
    :class:`plimsoll.framework.capabilities.RunsInParallel` for plugins that run simultaneously.
    """

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """SKIP: nothing to do; SUCCESS: ``pre_bind`` will work."""

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
        """The pod is bound."""


def all_feasible(snapshot: Snapshot) -> IntArray:
    """The codes of a filter that refuses no node, shape (N,)."""
    return np.zeros(len(snapshot), dtype=np.int64)
