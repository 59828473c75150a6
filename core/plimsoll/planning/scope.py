"""Decides which pods are outside the policy's scope; runs before all other evictors."""

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.framework.args import NoArgs
from plimsoll.framework.descheduling.context import Evictor, StrategyContext
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.selectors import EVERYTHING, Selector
from plimsoll.toolkit.descheduling.disruption_signals import never_evicted


def never_evict(pod: PodInfo, objects: ClusterObjects) -> Refusal | None:
    """Our annotation that forbids the pod's eviction, whatever the policy and its planner."""
    refusal = never_evicted(pod.pod.metadata.annotations)
    namespace = objects.namespaces.get(pod.namespace)
    if refusal is None and namespace is not None:
        refusal = never_evicted(namespace.metadata.annotations, pod.namespace)
    return refusal


@dataclass(frozen=True)
class PolicyScope(Evictor):
    """The pods in a policy's scope.

    Attributes:
        include: Only these namespaces; none means all.
        priority_threshold: Pods of this priority and above are out of scope; None for no threshold.
        unknown_class: Name of the threshold's PriorityClass if it does not exist, so that every pod is out of
            scope; "" otherwise.
        schedulers: Names of schedulers whose pods are in scope; None for all.
    """

    name: ClassVar = "PolicyScope"
    args_model: ClassVar = NoArgs

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    namespace_selector: Selector = EVERYTHING
    pod_selector: Selector = EVERYTHING
    priority_threshold: int | None = None
    unknown_class: str = ""
    schedulers: frozenset[str] | None = None

    def filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        """Why the pod is out of scope, or the annotation that forbids its eviction."""
        return self.excludes(pod, context.objects) or never_evict(pod, context.objects)

    def excludes(self, pod: PodInfo, objects: ClusterObjects) -> Refusal | None:
        """Why the pod is out of scope; the same for all pods of one template."""
        if (self.include and pod.namespace not in self.include) or pod.namespace in self.exclude:
            return Refusal("OutOfScope", f"namespace {pod.namespace} is out of the policy's scope")
        if not self.namespace_selector.is_empty:
            namespace = objects.namespaces.get(pod.namespace)
            if namespace is None or not self.namespace_selector.matches(namespace.labels):
                return Refusal(
                    "OutOfScope", f"the labels of namespace {pod.namespace} are out of the policy's scope"
                )
        if not self.pod_selector.matches(pod.labels):
            return Refusal("OutOfScope", "the pod's labels are out of the policy's scope")
        if self.unknown_class:
            return Refusal(
                "OutOfScope",
                f"the policy's threshold names PriorityClass {self.unknown_class}, which does not exist",
            )
        if self.priority_threshold is not None and pod.priority >= self.priority_threshold:
            return Refusal(
                "OutOfScope",
                f"the pod's priority {pod.priority} reaches the policy's threshold {self.priority_threshold}",
            )
        scheduler = pod.pod.spec.scheduler_name
        if self.schedulers is not None and scheduler not in self.schedulers:
            return Refusal(
                "OtherScheduler",
                f'scheduler "{scheduler}" places the pod: no policy serves it, and spec.scope.otherSchedulers'
                " does not name it",
            )
        return None

    def pre_eviction_filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:  # noqa: ARG002 - the port's shape
        """No further check."""
        return None
