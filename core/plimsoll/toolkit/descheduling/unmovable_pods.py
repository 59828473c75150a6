"""StayRule asks a policy's evictors which pods they would never let go; such a pod always holds its node.

A pod is judged as it will be a day after its start: bound, running and ready, with as many siblings as its
owner wants. What protects a pod for a while only, its age, a budget, an eviction under way, is no reason.

Source: our own; ScaleOps claims savings by placing such pods together.
"""

from collections.abc import Callable, Hashable
from datetime import UTC, datetime, timedelta
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from plimsoll.framework import ClusterObjects, PodInfo
from plimsoll.framework.descheduling import CannotJudgeError, Evictor, Planner, StrategyContext
from plimsoll.framework.descheduling.context import answers_of
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.errors import PluginError
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import PodStatus
from plimsoll.model.kinds.pod_info import PodTemplate
from plimsoll.toolkit.descheduling.disruption_signals import SIGNALS, Bearer
from plimsoll.toolkit.descheduling.leaving_pods import may_leave

#: The start of a pod and the moment at which it is judged: an opt-out for less than a day ends before.
STARTED = datetime(2000, 1, 1, tzinfo=UTC)
JUDGED = STARTED + timedelta(days=1)

#: What a pod that is judged here may be refused for, though it is no property of the pod.
PASSING = frozenset({"MinPodAge", "EvictionInProgress", "OwnerLeaving", "NodeFit"})

#: Number of pods of an owner whose wanted number is not read.
MANY = 2**31

#: What others write on pods that evictors read.
KEYS = frozenset(each.key for each in SIGNALS if each.bearer is Bearer.POD)

#: What evictors are built from: the objects of the cluster.
EvictorsOf = Callable[[ClusterObjects], tuple[Evictor, ...]]


class _Settled(StrategyContext, kw_only=True):
    """A cluster in which only the pod that is asked about matters, and has all of its siblings."""

    wanted: int = MANY

    def replicas(self, namespace: str, owner_uid: str) -> int:
        """As many as the owner wants."""
        return self.wanted

    def ready_replicas(self, namespace: str, owner_uid: str) -> int:
        """The same."""
        return self.wanted


class StayRule:
    """The evictors of one policy, asked whether they would keep a pod permanently.

    Args:
        evictors_of: Builds the evictors from the objects of a cluster.
        surges: Whether the policy moves the only pod of a Deployment by a rollout: then that protects none.
        by_labels: Whether labels of namespaces decide.
        by_objects: Whether budgets or claims decide: then each pod is judged again when one has changed.
    """

    def __init__(
        self,
        evictors_of: EvictorsOf,
        planner: Planner = Planner.PROVEN,
        *,
        surges: bool = False,
        by_labels: bool = False,
        by_objects: bool = False,
    ) -> None:
        self._evictors_of, self._planner, self._surges = evictors_of, planner, surges
        self._by_labels, self._by_objects = by_labels, by_objects
        self._versions: tuple[int, int] | None = None
        self._read: tuple[object, ...] | None = None
        self._edition = 0
        self._evictors: tuple[Evictor, ...] = ()
        self._alone = Cluster()
        self._known: WeakKeyDictionary[PodTemplate, dict[Hashable, bool]] = WeakKeyDictionary()

    def edition(self, objects: ClusterObjects) -> int:
        """A number that is another one when many pods may be judged otherwise than before."""
        versions = objects.version, objects.budget_version
        if versions != self._versions:
            self._versions, read = versions, self._reads(objects)
            if read != self._read:
                self._read, self._edition = read, self._edition + 1
                self._begin(objects)
            elif self._by_objects:
                self._known.clear()
        return self._edition

    def keeps(self, pod: PodInfo, objects: ClusterObjects) -> bool:
        """Whether the policy would never move the pod, though it could leave its node."""
        if not may_leave(pod):
            return False
        self.edition(objects)
        annotations = pod.pod.metadata.annotations
        said = tuple((name, annotations[name]) for name in KEYS if name in annotations) if annotations else ()
        owner = objects.controller_of(pod.pod)
        owners = tuple(each.kind for each in pod.pod.metadata.owner_references)
        replicas = MANY if owner is None else owner.spec.replicas
        key = said, owners, replicas
        known = self._known.get(pod.template)
        if known is None:
            known = self._known[pod.template] = {}
        found = known.get(key)
        if found is None:
            found = known[key] = self._judged(pod, dict(said), replicas)
        return found

    def _reads(self, objects: ClusterObjects) -> tuple[object, ...]:
        """The objects by which many pods are judged; they are compared by identity first."""
        namespaces = objects.namespaces.values()
        marked = (each for each in namespaces if not KEYS.isdisjoint(each.metadata.annotations))
        return (
            tuple(namespaces) if self._by_labels else tuple(marked),
            tuple(objects.priority_classes.values()),
            tuple(objects.rules.values()),
        )

    def _begin(self, objects: ClusterObjects) -> None:
        """Build the evictors again, with a cluster of nothing but these objects around them."""
        self._known.clear()
        self._evictors = self._evictors_of(objects)
        self._alone = Cluster()
        self._alone.objects = objects

    def _judged(self, pod: PodInfo, annotations: dict[str, str], replicas: int) -> bool:
        metadata = replace(pod.pod.metadata, annotations=annotations)
        spec = replace(pod.pod.spec, node_name="its node")
        status = PodStatus(phase="Running", start_time=STARTED)
        settled = replace(pod, pod=replace(pod.pod, metadata=metadata, spec=spec, status=status))
        context = _Settled(self._alone, (), JUDGED, self._evictors, self._planner, wanted=replicas)
        try:
            refusals = [each for evictor in self._evictors for each in answers_of(evictor, settled, context)]
        except (CannotJudgeError, PluginError):
            return False  # the policy moves nothing at present, whatever it is asked
        return any(each is not None and self._is_permanent(each) for each in refusals)

    def _is_permanent(self, refusal: Refusal) -> bool:
        return refusal.reason not in PASSING and not (self._surges and refusal.yields_to_surge)
