"""Finds victims of preemption whose removal would violate a PodDisruptionBudget.

A budget with an empty selector covers every pod of its namespace, one without a selector none.

Source: kube-scheduler v1.38, ``defaultpreemption`` (filterPodsWithPDBViolation); kube-apiserver v1.36,
``registry/core/pod/storage/eviction.go``. kube-scheduler v1.36 disregards budgets with an empty selector, and
pods without labels.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.model.selectors import Selector, SelectorError, compile_selector

Selecting = tuple[PodDisruptionBudget, Selector]


class _Compiled(Struct):
    version: int = -1
    by_namespace: dict[str, list[Selecting]] = field(default_factory=dict)


class DisruptionsTaken:
    """A ledger: the disruptions that pods take that leave a copy of the cluster, by key of the budget."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def copied(self) -> "DisruptionsTaken":
        """An independent copy."""
        twin = DisruptionsTaken()
        twin.counts = self.counts.copy()
        return twin


def disruptions_taken(objects: ClusterObjects) -> int:
    """How many disruptions have been taken in this copy of a cluster."""
    taken = objects.known_ledger(DisruptionsTaken)
    return 0 if taken is None else taken.counts.total()


class DisruptionBudgets:
    """The compiled budgets of a cluster, for repeated choices of victims.

    Args:
        objects: The objects of the cluster.
    """

    def __init__(self, objects: ClusterObjects) -> None:
        compiled = objects.derived("budgets by namespace", _Compiled)
        if compiled.version != objects.budget_version:
            compiled.by_namespace = _by_namespace(objects.budgets.values())
            compiled.version = objects.budget_version
        self._by_namespace = compiled.by_namespace
        self._objects = objects

    @property
    def protect_anybody(self) -> bool:
        """Whether any budget exists."""
        return bool(self._by_namespace)

    def violating(self, pods: Sequence[PodInfo]) -> list[bool]:
        """For each pod, in this order, whether its removal exceeds one of its budgets."""
        taken = self._taken()
        violating = []
        for pod in pods:
            violates = False
            for budget in self._of(pod):
                taken[budget.key] += 1
                violates |= taken[budget.key] > budget.status.disruptions_allowed
            violating.append(violates)
        return violating

    def cover(self, pod: PodInfo) -> bool:
        """Whether any budget covers a pod."""
        return any(True for _ in self._of(pod))

    def refuse(self, pods: Iterable[PodInfo]) -> bool:
        """Whether the Eviction API would refuse one of these evictions, one after the other."""
        taken = self._taken()
        for pod in pods:
            covering = [] if needs_no_budget(pod) else list(self._of(pod))
            if len(covering) > 1:
                return True
            for budget in covering:
                if not counts_against(budget, pod):
                    continue
                taken[budget.key] += 1
                if is_behind(budget) or taken[budget.key] > budget.status.disruptions_allowed:
                    return True
        return False

    def take(self, pods: Iterable[PodInfo]) -> None:
        """Count disruptions of pods that have been displaced in this copy of the cluster."""
        for pod in pods if self._by_namespace else ():
            for budget in self._of(pod):
                self._objects.ledger(DisruptionsTaken).counts[budget.key] += 1

    def _taken(self) -> Counter[str]:
        taken = self._objects.known_ledger(DisruptionsTaken)
        return Counter() if taken is None else taken.counts.copy()

    def _of(self, pod: PodInfo) -> Iterator[PodDisruptionBudget]:
        for budget, selector in self._by_namespace.get(pod.namespace, ()):
            if selector.matches(pod.labels) and pod.name not in budget.status.disrupted_pods:
                yield budget


def needs_no_budget(pod: PodInfo) -> bool:
    """Whether the Eviction API evicts the pod without a look at budgets."""
    return pod.pod.is_terminal or pod.pod.status.phase == "Pending" or pod.is_terminating


def counts_against(budget: PodDisruptionBudget, pod: PodInfo) -> bool:
    """Whether the pod's eviction takes a disruption: not always if the pod is not ready."""
    if pod.pod.is_ready:
        return True
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return False
    status = budget.status
    return not (status.desired_healthy > 0 and status.current_healthy >= status.desired_healthy)


def is_behind(budget: PodDisruptionBudget) -> bool:
    """Whether the status is of an earlier spec: the Eviction API then takes no disruption."""
    return budget.status.observed_generation < budget.metadata.generation


def _by_namespace(budgets: Iterable[PodDisruptionBudget]) -> dict[str, list[Selecting]]:
    """Budgets with their selectors, by namespace; one with a missing or malformed selector is left out."""
    by_namespace: dict[str, list[Selecting]] = {}
    for budget in budgets:
        try:
            selector = compile_selector(budget.spec.selector)
        except SelectorError:
            continue
        if not selector.matches_nothing:
            by_namespace.setdefault(budget.metadata.namespace, []).append((budget, selector))
    return by_namespace
