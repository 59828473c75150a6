"""Declares the optional capabilities of plugins, in addition to extension points.

The engine looks up each capability once, when a profile is built. Facts are fields of one value,
:class:`Declares`; the protocols are optional methods, which a plugin has or has not.
"""

from collections.abc import Hashable
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.extension_points import Reads
from plimsoll.framework.status import Status
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.kinds.watched_object import WatchedObject, problem_of
from plimsoll.model.structural import Structural


class Declares(Struct, frozen=True):
    """What a plugin declares of itself, in its class attribute ``declares``; the defaults are always correct.

    Attributes:
        reads: The inputs of its results.
        only_constraints: For a plugin that reads only the node and its pods: it reads nothing of a pod but
            its constraints on nodes (``PodTemplate.constraints``).
        only_requests: The same of a plugin that also reads the amounts that a pod requests: ``requests`` and
            ``score_requests`` of its template.
        is_additive: Its filter reads ``Snapshot.requested`` of a node's pods and nothing else about them.
            Higher requests never make a pod fit that did not fit before.
        counts_resources: Its filter compares requests with a node's allocatable resources. The Optimal
            planner encodes resources itself and ignores this filter's rejections.
        counts_domains: The same of a filter that counts pods by topology domain.
        own_namespace: Its hints about pods that arrive on nodes run only for rejected pods that have a
            required affinity term that matches the arriving pod and, if true, for those in its namespace.
            None: its hints run for all rejected pods. Source: kube-scheduler v1.36,
            ``getUnschedulablePodsWithCrossTopologyTerm``.
        reads_load: It reads the load book (`plimsoll.framework.columns.LoadBook`): readings are collected.
        binds_by_port: It binds every pod through the port in its state and has no other effects: several pods
            may be bound together, without calling it.
        is_parallel: Its PreBind may run simultaneously with adjacent plugins that declare it too.
        objects: Kinds of objects that it reads in addition to those of ``ClusterObjects``: the operator
            watches them. A strategy may declare them too.
    """

    reads: Reads = Reads.POD
    only_constraints: bool = False
    only_requests: bool = False
    is_additive: bool = False
    counts_resources: bool = False
    counts_domains: bool = False
    own_namespace: bool | None = None
    reads_load: bool = False
    binds_by_port: bool = False
    is_parallel: bool = False
    objects: tuple[type[WatchedObject], ...] = ()


@runtime_checkable
class DeclaringPlugin(Protocol, metaclass=Structural):
    """A plugin with declarations."""

    declares: ClassVar[Declares]


#: What a plugin without the attribute declares.
NOTHING_DECLARED = Declares()


def problem_of_declared(plugin: object) -> str:
    """What is wrong with a class's declarations, "" for nothing."""
    declared = declares_of(plugin)
    if not isinstance(declared, Declares):
        return "its attribute declares must be a plimsoll.framework.Declares"
    return next(filter(None, map(problem_of, declared.objects)), "")


def declares_of(plugin: object) -> Declares:
    """What a plugin declares of itself."""
    return plugin.declares if isinstance(plugin, DeclaringPlugin) else NOTHING_DECLARED


@runtime_checkable
class GatesByObjects(Protocol, metaclass=Structural):
    """A PreEnqueue plugin that reads objects other than the pod."""

    def pre_enqueue_on(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Called instead of ``pre_enqueue``, with the same results."""


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
class EasesLocally(Protocol, metaclass=Structural):
    """A non-linear filter for which pods that leave a node never make that node infeasible.

    Preemption then tries a node that the filter already accepts without calling the filter again.
    """

    def eased(self, template: PodTemplate) -> bool:
        """Whether that holds for pods of this template."""
