"""Computes the status of PodDisruptionBudgets, which the eviction API reads.

Each budget keeps the keys of the pods that it selects, and each pod those of its budgets: only a pod
that is new or has changed labels is matched against all budgets of its namespace.

Source: kubernetes v1.36 ``pkg/controller/disruption/disruption.go``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from roadstead.controllers.ownership import controller_of, key_of
from roadstead.controllers.pod_state import is_ready, is_terminating, with_condition
from roadstead.controllers.workloads.rolling_update import scaled
from roadstead.schemas.timestamps import to_seconds
from roadstead.values.label_selectors import selects

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

RESOURCE = "poddisruptionbudgets.policy"
COMPONENT = "controllermanager"
DELETION_TIMEOUT_S = 120.0
"""Seconds after which an evicted pod that was not deleted is expected to stay."""
_SCALED = {
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
    ("", "ReplicationController"): "replicationcontrollers",
}


class NotScaledError(Exception):
    """A budget by percentage or maxUnavailable selects a pod whose owner has no scale."""


class DisruptionController:
    """Keeps the status of PodDisruptionBudgets."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._selectors: dict[str, dict[str, Obj | None]] = {}
        self._members: dict[str, dict[str, None]] = {}
        self._budgets_of: defaultdict[str, set[str]] = defaultdict(set)

    def start(self) -> None:
        """Subscribe to budgets, pods and workloads."""
        api = self._context.api
        api.subscribe(RESOURCE, self._budget_changed)
        api.subscribe("pods", self._pod_changed)
        for resource in ("deployments.apps", *_SCALED.values()):
            api.subscribe(resource, self._owner_changed)
        for budget in api.list(RESOURCE):
            self._budget_changed("ADDED", budget, None)

    def reconcile(self, key: str) -> None:
        """Count a budget's pods and write the number of allowed disruptions."""
        budget = self._context.find(RESOURCE, key)
        if budget is None:
            return
        found = (self._context.find("pods", pod) for pod in self._members.get(key, ()))
        pods = [pod for pod in found if pod]
        try:
            expected, desired = self._expectation(budget, pods)
        except NotScaledError as error:
            self._fail(budget, str(error))
            return
        disrupted, recheck_s = self._disrupted(budget, pods)
        healthy = sum(
            is_ready(pod) and not is_terminating(pod) and pod["metadata"]["name"] not in disrupted
            for pod in pods
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        self._write(
            budget,
            expected=expected,
            desired=desired,
            healthy=healthy,
            allowed=allowed,
            disrupted=disrupted,
        )
        if recheck_s is not None:
            self._context.queue.add(self.reconcile, key, recheck_s)

    def _expectation(self, budget: Obj, pods: list[Obj]) -> tuple[int, int]:
        """The expected number of pods, and the desired number of healthy ones."""
        spec = budget["spec"]
        if (unavailable := spec.get("maxUnavailable")) is not None:
            expected = self._expected_scale(pods)
            return expected, max(0, expected - scaled(unavailable, expected, round_up=True))
        least = spec.get("minAvailable")
        if isinstance(least, str):
            expected = self._expected_scale(pods)
            return expected, scaled(least, expected, round_up=True)
        return len(pods), least or 0

    def _expected_scale(self, pods: list[Obj]) -> int:
        """The sum of the sizes of the pods' owners; pods without an owner do not count.

        Raises:
            NotScaledError: a pod's owner has no scale.
        """
        sizes: dict[str, int] = {}
        for pod in pods:
            reference = controller_of(pod)
            if reference and reference["uid"] not in sizes:
                uid, replicas = self._scale_of(pod, reference)
                sizes[reference["uid"]] = 0
                sizes[uid] = replicas
        return sum(sizes.values())

    def _scale_of(self, pod: Obj, reference: Obj) -> tuple[str, int]:
        """The uid and scale of the workload of a pod: for a Deployment's pod the Deployment."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        group = reference["apiVersion"].rpartition("/")[0]
        resource = _SCALED.get((group, reference["kind"])) or self._custom_scaled(reference)
        owner = self._context.find(resource, f"{namespace}/{reference['name']}") if resource else None
        if resource is None:
            kind = reference["kind"]
            raise NotScaledError(f"{kind.lower()}s.{group} does not implement the scale subresource")
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            raise NotScaledError(f'found no controllers for pod "{name}"')
        above = controller_of(owner)
        if above and above["kind"] == "Deployment":
            deployment = self._context.find("deployments.apps", f"{namespace}/{above['name']}")
            if deployment and deployment["metadata"]["uid"] == above["uid"]:
                return above["uid"], deployment["spec"]["replicas"]
        return reference["uid"], owner["spec"].get("replicas", 1)

    def _custom_scaled(self, reference: Obj) -> str | None:
        """The resource of a custom owner that has a scale."""
        resource = self._context.api.registry.of_kind(reference["apiVersion"], reference["kind"])
        return resource.key if resource and resource.custom and resource.subresource("scale") else None

    def _disrupted(self, budget: Obj, pods: list[Obj]) -> tuple[dict[str, str], float | None]:
        """The evicted pods whose deletion has not begun, and the time of the next count."""
        recorded: dict[str, str] = (budget.get("status") or {}).get("disruptedPods") or {}
        if not recorded:
            return {}, None
        now = self._context.now
        waiting: dict[str, str] = {}
        waits: list[float] = []
        for pod in pods:
            moment = recorded.get(pod["metadata"]["name"])
            if moment is None or is_terminating(pod):
                continue
            left = to_seconds(moment) + DELETION_TIMEOUT_S - now
            if left > 0:
                waiting[pod["metadata"]["name"]] = moment
                waits.append(left)
            else:
                self._context.events.record(
                    COMPONENT,
                    pod,
                    "NotDeleted",
                    f"Pod was expected by PDB {key_of(budget)} to be deleted but it wasn't",
                    "Warning",
                )
        return waiting, min(waits, default=None)

    def _write(
        self,
        budget: Obj,
        *,
        expected: int,
        desired: int,
        healthy: int,
        allowed: int,
        disrupted: dict[str, str],
    ) -> None:
        before: Obj = budget.get("status") or {}
        generation = budget["metadata"]["generation"]
        conditions = with_condition(
            before.get("conditions") or [],
            "DisruptionAllowed",
            "True" if allowed else "False",
            "SufficientPods" if allowed else "InsufficientPods",
            "",
            now=self._context.now,
        )
        status: Obj = {"disruptedPods": disrupted} if disrupted else {}
        status |= {
            "observedGeneration": generation,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": [{**one, "observedGeneration": generation} for one in conditions],
        }
        self._context.write_status(RESOURCE, budget, status)

    def _fail(self, budget: Obj, message: str) -> None:
        """Allow no disruption, and write the reason."""
        before: Obj = budget.get("status") or {}
        conditions = with_condition(
            before.get("conditions") or [],
            "DisruptionAllowed",
            "False",
            "SyncFailed",
            message,
            now=self._context.now,
        )
        counts = {"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
        status = {**counts, **before, "disruptionsAllowed": 0, "conditions": conditions}
        text = f"Failed to calculate the number of expected pods: {message}"
        self._context.events.record(COMPONENT, budget, "CalculateExpectedPodCountFailed", text, "Warning")
        self._context.write_status(RESOURCE, budget, status)

    def _budget_changed(self, kind: EventType, budget: Obj, old: Obj | None) -> None:
        """Select a budget's pods again if it is new or its selector changes."""
        key, namespace = key_of(budget), budget["metadata"]["namespace"]
        if kind == "DELETED":
            self._selectors.get(namespace, {}).pop(key, None)
            for pod in self._members.pop(key, ()):
                self._budgets_of[pod].discard(key)
            return
        selector = budget["spec"].get("selector")
        if old is None or old["spec"].get("selector") != selector:
            self._selectors.setdefault(namespace, {})[key] = selector
            for member in self._members.pop(key, ()):
                self._budgets_of[member].discard(key)
            self._members[key] = {}
            for one in self._context.api.list("pods", namespace):
                if selects(selector, one["metadata"].get("labels")):
                    self._join(key_of(one), key)
        self._context.queue.add(self.reconcile, key)

    def _join(self, pod: str, budget: str) -> None:
        """Record that a budget selects a pod."""
        self._members[budget][pod] = None
        self._budgets_of[pod].add(budget)

    def _pod_changed(self, kind: EventType, pod: Obj, old: Obj | None) -> None:
        """Update the members of budgets, and queue the budgets of the pod."""
        selectors = self._selectors.get(pod["metadata"]["namespace"])
        if not selectors:
            return
        pod_key, labels = key_of(pod), pod["metadata"].get("labels")
        concerned = set(self._budgets_of.get(pod_key, ()))
        if kind == "DELETED":
            self._budgets_of.pop(pod_key, None)
            for key in concerned:
                del self._members[key][pod_key]
        elif old is None or old["metadata"].get("labels") != labels:
            now = {key for key, selector in selectors.items() if selects(selector, labels)}
            for key in concerned - now:
                del self._members[key][pod_key]
                self._budgets_of[pod_key].discard(key)
            for key in now - concerned:
                self._join(pod_key, key)
            concerned |= now
        for key in concerned:
            self._context.queue.add(self.reconcile, key)

    def _owner_changed(self, _kind: EventType, owner: Obj, old: Obj | None) -> None:
        """Queue budgets if a workload's size changes."""
        if old is not None and old["spec"].get("replicas") == owner["spec"].get("replicas"):
            return
        template = owner["spec"].get("template") or {}
        labels = (template.get("metadata") or {}).get("labels")
        for key, selector in self._selectors.get(owner["metadata"]["namespace"], {}).items():
            if selects(selector, labels):
                self._context.queue.add(self.reconcile, key)
