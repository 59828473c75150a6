"""Declares the optional capabilities of plugins, in addition to extension points.

The engine looks up each capability once, when a profile is built. A plugin declares a capability by having
the members of its protocol; a flag counts only if it is true.
"""

from collections.abc import Hashable
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.extension_points import Plugin, PreEnqueuePlugin, Reads
from plimsoll.framework.status import Status
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.structural import Structural


@runtime_checkable
class DeclaresReads(Protocol, metaclass=Structural):
    """A plugin that declares what its results depend on; filter and score plugins must."""

    reads: ClassVar[Reads]


def reads_of(plugin: Plugin) -> Reads:
    """What a plugin's results depend on; the individual pod unless the plugin declares less."""
    return plugin.reads if isinstance(plugin, DeclaresReads) else Reads.POD


@runtime_checkable
class GatesByObjects(Protocol, metaclass=Structural):
    """A PreEnqueue plugin that reads objects other than the pod."""

    def pre_enqueue_on(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Called instead of ``pre_enqueue``, with the same results."""


def gate_of(plugin: PreEnqueuePlugin, pod: PodInfo, snapshot: Snapshot) -> Status:
    """The result of a PreEnqueue plugin for a pod."""
    if isinstance(plugin, GatesByObjects):
        return plugin.pre_enqueue_on(pod, snapshot)
    return plugin.pre_enqueue(pod)


@runtime_checkable
class FailsOnNodes(Protocol, metaclass=Structural):
    """A filter that may fail to decide whether a node is feasible: then the attempt ends with an error."""

    def failure(self, state: CycleState, rows: RowArray) -> str:
        """The error on one of these rows of the whole snapshot; "" without an error.

        Called after ``filter``, for nodes that no earlier filter has rejected.
        """


@runtime_checkable
class PreparesAttempts(Protocol, metaclass=Structural):
    """A plugin that may have much work to do for the first pod of its kind.

    It stores the results itself; the attempt's outcome is the same with and without them.
    """

    def prepare(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Work for some 10 ms; returns whether there is enough work left for another call.

        Between two calls other tasks of the process run, and the cluster may change.
        """


@runtime_checkable
class NodeSignature(Protocol, metaclass=Structural):
    """A filter or score plugin that reads NODE and evaluates equal templates once.

    Its ``filter`` and ``score`` write nothing into the cycle state.
    """

    def signature(self, template: PodTemplate) -> Hashable | None:
        """Equal for templates for which all results of the plugin are equal; None: shared with no other."""


@runtime_checkable
class ReadsConstraints(Protocol, metaclass=Structural):
    """A plugin that reads only the node and its pods, and nothing of a pod but its constraints on nodes.

    For all templates of equal ``PodTemplate.constraints``, PreFilter either skips or does not, and so does
    PreScore. If the plugin reads NODE and has a signature, that is equal for all of them. The pod's named
    node does not count: nothing is shared with such pods.
    """

    reads_only_constraints: ClassVar[bool]


@runtime_checkable
class NotesSkips(Protocol, metaclass=Structural):
    """A plugin whose PreFilter is always called, because it writes into the cycle state even if it skips."""

    notes_skips: ClassVar[bool]


class ResultVersion(NamedTuple):
    """Identifies the inputs of a plugin's results for one template.

    Attributes:
        key: Equal as long as the results are the same.
        by_row: Whether only the filter's results for changed rows may differ.
        lasts: Whether it holds whatever pods are added or removed.
    """

    key: Hashable
    by_row: bool = False
    lasts: bool = False


#: The version of the results of a plugin that never affects a template.
INDIFFERENT = ResultVersion((), lasts=True)


@runtime_checkable
class Versioned(Protocol, metaclass=Structural):
    """A plugin that can quickly tell whether its results for a template are those of an earlier call."""

    def result_version(self, template: PodTemplate, snapshot: Snapshot) -> ResultVersion | None:
        """Equal as long as the results are the same; None: the plugin does not know.

        Called for all nodes, before the plugin itself. What is compared depends on ``reads``.

        CLUSTER: while no node and no object other than pods has changed, an equal version means that
        PreFilter and Filter return the same, and that PreScore skips if it skipped. Without a version, the
        plugin is evaluated again after every change.

        NODE, ROW: results for changed rows are renewed in any case. Another version means that results for
        unchanged rows differ too, because of something that is neither a node, a pod nor another object.
        """


@runtime_checkable
class GivesWay(Protocol, metaclass=Structural):
    """A filter whose rejections are ignored if no node is feasible, and some would be without them.

    It is called after all other filters.
    """

    @property
    def gives_way(self) -> bool:
        """Whether it yields, given its arguments."""


@runtime_checkable
class NamesNoNode(Protocol, metaclass=Structural):
    """A PostFilter plugin that never nominates: it helps in other ways, or not at all.

    If a profile has only such plugins at PostFilter, a pod that fits nowhere keeps no nomination.
    """

    @property
    def names_no_node(self) -> bool:
        """Whether it never nominates, given its arguments."""


@runtime_checkable
class Linear(Protocol, metaclass=Structural):
    """A filter that reads ``Snapshot.requested`` of a node's pods and nothing else about them.

    Higher requests never make a pod fit that did not fit before.
    """

    additive: ClassVar[bool]


@runtime_checkable
class EasesLocally(Protocol, metaclass=Structural):
    """A non-linear filter for which pods that leave a node never make that node infeasible.

    Preemption then tries a node that the filter already accepts without calling the filter again.
    """

    def eased(self, template: PodTemplate) -> bool:
        """Whether that holds for pods of this template."""


@runtime_checkable
class CountsResources(Protocol, metaclass=Structural):
    """A filter that compares requests with a node's allocatable resources.

    The Optimal planner encodes resources itself and ignores this filter's rejections.
    """

    counts_resources: ClassVar[bool]


@runtime_checkable
class CountsDomains(Protocol, metaclass=Structural):
    """A filter that counts pods by topology domain; the Optimal planner encodes these counts itself."""

    counts_domains: ClassVar[bool]


@runtime_checkable
class LooksAtTerms(Protocol, metaclass=Structural):
    """A plugin whose hints about pods that arrive on nodes run only for rejected pods with a matching term.

    The term is a required affinity term of the rejected pod that matches the arriving pod. If the flag is
    true, rejected pods in the arriving pod's namespace are concerned too.

    Source: kube-scheduler v1.36, ``getUnschedulablePodsWithCrossTopologyTerm``.
    """

    concerns_own_namespace: ClassVar[bool]


@runtime_checkable
class ReadsLoad(Protocol, metaclass=Structural):
    """A plugin that reads the load book (`plimsoll.framework.columns.LoadBook`); readings are collected."""

    reads_load: ClassVar[bool]


@runtime_checkable
class BindsByPort(Protocol, metaclass=Structural):
    """A bind plugin that binds every pod through the port in its state, and has no other effects.

    Several pods may then be bound together, without calling the plugin.
    """

    binds_by_port: ClassVar[bool]


@runtime_checkable
class RunsInParallel(Protocol, metaclass=Structural):
    """A PreBind plugin that may run simultaneously with adjacent plugins that have the flag too."""

    is_parallel: ClassVar[bool]
