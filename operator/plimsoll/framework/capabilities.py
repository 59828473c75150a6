"""Declares what a plugin may be able to do beyond its extension points.

The engine looks for each capability once, when a profile is built. A plugin declares one by having the
members of its protocol; a flag counts only where it is true.
"""

from collections.abc import Hashable
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.extension_points import Plugin, PreEnqueuePlugin, Reads
from plimsoll.framework.status import Status
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate


@runtime_checkable
class DeclaresReads(Protocol):
    """A plugin that declares what its answers depend on; filter and score plugins must."""

    reads: ClassVar[Reads]


def reads_of(plugin: Plugin) -> Reads:
    """What a plugin's answers depend on; the individual pod unless the plugin declares less."""
    return plugin.reads if isinstance(plugin, DeclaresReads) else Reads.POD


@runtime_checkable
class GatesByObjects(Protocol):
    """A PreEnqueue plugin that looks at other objects than the pod."""

    def pre_enqueue_on(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """As ``pre_enqueue``, which is not asked."""


def gate_of(plugin: PreEnqueuePlugin, pod: PodInfo, snapshot: Snapshot) -> Status:
    """What a PreEnqueue plugin says of a pod."""
    if isinstance(plugin, GatesByObjects):
        return plugin.pre_enqueue_on(pod, snapshot)
    return plugin.pre_enqueue(pod)


@runtime_checkable
class FailsOnNodes(Protocol):
    """A filter that may be unable to say whether a node is feasible: then the attempt ends with an error."""

    def failure(self, state: CycleState, rows: RowArray) -> str:
        """What went wrong on one of these rows of the whole snapshot; "" where nothing did.

        Asked after ``filter``, of nodes that no filter before it has refused.
        """


@runtime_checkable
class PreparesAttempts(Protocol):
    """A plugin that may have much to work out for the first pod of its kind.

    What it has worked out it keeps itself; the attempt is the same with and without.
    """

    def prepare(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Work something out, for some 10 ms; whether enough is left to be called again.

        Between two calls other tasks of the process run, and the cluster may change.
        """


@runtime_checkable
class NodeSignature(Protocol):
    """A filter or score plugin that reads NODE and evaluates equal templates once.

    Its ``filter`` and ``score`` write nothing into the cycle state.
    """

    def signature(self, template: PodTemplate) -> Hashable | None:
        """Equal for templates to which all answers of the plugin are equal; None: shared with no other."""


@runtime_checkable
class Framed(Protocol):
    """A plugin that looks no further than the node, and at nothing of a pod but its frame.

    For templates of one ``PodTemplate.frame`` it skips in PreFilter or it does not; so in PreScore; and if it
    reads NODE and has a signature, that is equal for all of them. The node that a pod names does not count:
    nothing is shared with such pods.
    """

    framed: ClassVar[bool]


@runtime_checkable
class NotesSkips(Protocol):
    """A plugin whose PreFilter is always called: it writes into the cycle state even if it skips."""

    notes_skips: ClassVar[bool]


class Edition(NamedTuple):
    """What a plugin's answers about one template follow from, in short.

    Attributes:
        mark: Equal as long as the answers are the same.
        by_row: Whether the filter's answers may be other ones on rows that changed, and on those alone.
        lasts: Whether it holds whatever pods come and go.
    """

    mark: Hashable
    by_row: bool = False
    lasts: bool = False


#: The edition of a plugin that never has anything to say of a template.
INDIFFERENT = Edition((), lasts=True)


@runtime_checkable
class Dated(Protocol):
    """A plugin that reads CLUSTER and tells, faster than it answers, that its answers are what they were."""

    def edition(self, template: PodTemplate, snapshot: Snapshot) -> Edition | None:
        """Equal while PreFilter answers and Filter refuses as before, and PreScore skips if it skipped.

        Asked about all nodes. The engine compares editions as long as no node and no other object than
        pods has changed. None: the plugin does not know, and is asked again.
        """


@runtime_checkable
class Marked(Protocol):
    """A plugin that reads NODE or ROW, and of a template something that may change although no row does."""

    def mark(self, template: PodTemplate, snapshot: Snapshot) -> Hashable:
        """Equal as long as its answers about rows that have not changed are the same."""


@runtime_checkable
class GivesWay(Protocol):
    """A filter whose refusals do not count for a pod that no node takes and some would without them.

    It is asked after all others.
    """

    @property
    def gives_way(self) -> bool:
        """Whether it does, with its arguments."""


@runtime_checkable
class NamesNoNode(Protocol):
    """A PostFilter plugin that nominates no pod to a node: it helps in other ways, or not at all.

    In a profile that has only such plugins at PostFilter, a pod that fits nowhere keeps no nomination.
    """

    @property
    def names_no_node(self) -> bool:
        """Whether that is so, with its arguments."""


@runtime_checkable
class Linear(Protocol):
    """A filter that reads ``Snapshot.requested`` of a node's pods and nothing else of them.

    More requested never makes a pod fit that did not fit before.
    """

    additive: ClassVar[bool]


@runtime_checkable
class EasesLocally(Protocol):
    """A filter, not linear, for which pods that leave a node never make that node infeasible.

    Preemption then tries a node that the filter already accepts without calling the filter again.
    """

    def eased(self, template: PodTemplate) -> bool:
        """Whether that holds for pods of this template."""


@runtime_checkable
class CountsResources(Protocol):
    """A filter that compares requests with a node's allocatable resources.

    The Optimal planner encodes resources itself and disregards this filter's refusals.
    """

    counts_resources: ClassVar[bool]


@runtime_checkable
class CountsDomains(Protocol):
    """A filter that counts pods by topology domain; the Optimal planner encodes these counts itself."""

    counts_domains: ClassVar[bool]


@runtime_checkable
class LooksAtTerms(Protocol):
    """A plugin whose hints about pods that arrive on nodes run only for rejected pods that they may concern.

    A rejected pod is concerned when one of its required affinity terms matches the arriving pod, and, where
    the flag is true, when both are of one namespace.

    Source: kube-scheduler v1.36, ``getUnschedulablePodsWithCrossTopologyTerm``.
    """

    concerns_own_namespace: ClassVar[bool]


@runtime_checkable
class ReadsLoad(Protocol):
    """A plugin that reads the load book (`plimsoll.framework.columns.LoadBook`): readings are collected."""

    reads_load: ClassVar[bool]


@runtime_checkable
class BindsByPort(Protocol):
    """A bind plugin that binds every pod through the port in its state, and does nothing else.

    Several pods may then be bound together, without the plugin.
    """

    binds_by_port: ClassVar[bool]


@runtime_checkable
class RunsInParallel(Protocol):
    """A PreBind plugin that may run simultaneously with neighbours that have the flag, too."""

    is_parallel: ClassVar[bool]
