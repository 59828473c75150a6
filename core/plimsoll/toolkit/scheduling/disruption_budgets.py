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

#: Namespace, key and value of a label that a budget requires; key and value are "" if it requires none.
_Place = tuple[str, str, str]


#: Budgets, and lists of them, that an index remembers by the labels of pods: 8 bytes each, and 0.5 kB a list.
MOST_FOUND = 65_536


class BudgetIndex:
    """Budgets by one label that their selectors require, so that a pod meets few of those of others.

    A budget with a missing or malformed selector covers no pod and is left out.
    """

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._by_label: dict[_Place, list[tuple[PodDisruptionBudget, Selector]]] = {}
        self._over: dict[tuple[str, frozenset[tuple[str, str]]], list[PodDisruptionBudget]] = {}
        self._found = 0  #: budgets in the lists of ``_over``
        for budget in budgets:
            try:
                selector = compile_selector(budget.spec.selector)
            except SelectorError:
                continue
            if selector.matches_nothing:
                continue
            equalities = (each for each in selector.requirements if each.operator == "In")
            required = ((each.key, *each.values) for each in equalities if len(each.values) == 1)
            key, value = next(required, ("", ""))
            place = budget.metadata.namespace, key, value
            self._by_label.setdefault(place, []).append((budget, selector))

    def __bool__(self) -> bool:
        return bool(self._by_label)

    def over(self, pod: PodInfo) -> list[PodDisruptionBudget]:
        """The budgets that cover the pod, sorted by key; the list is not to be changed.

        Those of equal labels are found once: thousands of budgets may cover each of a tenant's pods.
        """
        namespace, labels = pod.namespace, pod.labels
        like = namespace, frozenset(labels.items())
        known = self._over.get(like)
        if known is not None:
            return known
        places: list[_Place] = [(namespace, "", ""), *((namespace, *pair) for pair in labels.items())]
        found = [
            budget
            for place in places
            for budget, selector in self._by_label.get(place, ())
            if selector.matches(labels)
        ]
        found.sort(key=lambda budget: budget.key)
        if not pod.template.is_heavy:
            self._found += 1 + len(found)
            if self._found > MOST_FOUND:
                self._over.clear()
                self._found = 1 + len(found)
            self._over[like] = found
        return found


class _Compiled(Struct):
    version: int = -1
    index: BudgetIndex = field(default_factory=lambda: BudgetIndex(()))


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
        compiled = objects.derived("index of budgets", _Compiled)
        if compiled.version != objects.budget_version:
            compiled.index = BudgetIndex(objects.budgets.values())
            compiled.version = objects.budget_version
        self._index = compiled.index
        self._objects = objects

    @property
    def protect_anybody(self) -> bool:
        """Whether any budget exists."""
        return bool(self._index)

    def violating(self, pods: Sequence[PodInfo]) -> list[bool]:
        """For each pod, in this order, whether its removal exceeds one of its budgets."""
        before, taken = self._taken(), dict[int, int]()
        violating = []
        for pod in pods:
            violates = False
            for budget in self._of(pod):
                each = id(budget)  # a key is joined at each use
                count = taken[each] = (taken[each] if each in taken else before[budget.key]) + 1
                violates |= count > budget.status.disruptions_allowed
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
        for pod in pods if self._index else ():
            for budget in self._of(pod):
                self._objects.ledger(DisruptionsTaken).counts[budget.key] += 1

    def _taken(self) -> Counter[str]:
        taken = self._objects.known_ledger(DisruptionsTaken)
        return Counter() if taken is None else taken.counts.copy()

    def _of(self, pod: PodInfo) -> Iterator[PodDisruptionBudget]:
        name = pod.name
        return (each for each in self._index.over(pod) if name not in each.status.disrupted_pods)


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
