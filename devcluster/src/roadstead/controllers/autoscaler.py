"""Scales workloads by the usage of their pods, as HorizontalPodAutoscalers direct.

The usage is what metrics.k8s.io serves: the annotation ``roadstead.test/usage`` of a pod, or its requests.

Source: kubernetes v1.36 ``pkg/controller/podautoscaler/horizontal.go``, ``replica_calculator.go``.

Differs: metrics of the type Resource alone; of ``behavior`` the stabilization windows alone, so that a target
at most doubles, or grows by four, in one step.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from roadstead.controllers.ownership import key_of
from roadstead.controllers.pod_state import is_ready, is_terminating, phase_of, with_condition
from roadstead.controllers.pod_usage import pod_usage
from roadstead.schemas.quantities import milli, pod_requests
from roadstead.schemas.timestamps import to_timestamp
from roadstead.store.api import Write
from roadstead.store.subresources import rescale, scale_of
from roadstead.values.selectors import matches_labels, parse_labels
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import Entry, EventType
    from roadstead.values.resources import Obj, Resource

RESOURCE = "horizontalpodautoscalers.autoscaling"
COMPONENT = "horizontal-pod-autoscaler"
PERIOD_S = 15.0
TOLERANCE = 0.1
DOWN_WINDOW_S = 300
#: A scale-up in one step: to this multiple, or by so many replicas, whichever is more.
MOST_TIMES, MOST_MORE = 2, 4


class ScaleTarget(NamedTuple):
    """What is scaled: its resource, its stored entry and its Scale."""

    resource: Resource
    entry: Entry
    scale: Obj


class Proposal(NamedTuple):
    """A number of replicas, and the metric that it comes from."""

    replicas: int
    metric: str
    current: Obj


class MetricError(Exception):
    """A metric cannot be computed; the reason and the message of the condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class HorizontalPodAutoscalerController:
    """Scales the targets of autoscalers every fifteen seconds."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._recommended: dict[str, deque[tuple[float, int]]] = {}

    def start(self) -> None:
        """Subscribe to autoscalers."""
        self._context.api.subscribe(RESOURCE, self._changed)
        for scaler in self._context.api.list(RESOURCE):
            self._changed("ADDED", scaler, None)

    def _changed(self, _kind: EventType, new: Obj, old: Obj | None) -> None:
        """Queue a new or changed autoscaler; its own status is no reason to compute again."""
        if old is None or old["spec"] != new["spec"]:
            self._context.queue.add(self.reconcile, key_of(new))

    def reconcile(self, key: str) -> None:
        """Compute the replicas of a target, write them, and queue the next time."""
        scaler = self._context.find(RESOURCE, key)
        if scaler is None or is_terminating(scaler):
            self._recommended.pop(key, None)
            return
        self._context.queue.add(self.reconcile, key, PERIOD_S)
        status = dict(scaler.get("status") or {})
        try:
            target = self._target(scaler)
        except StatusError as error:
            message = f"the HPA controller was unable to get the target's current scale: {error.message}"
            self._set(status, "AbleToScale", "False", "FailedGetScale", message)
            self._record(scaler, "FailedGetScale", error.message, "Warning")
            self._context.write_status(RESOURCE, scaler, status)
            return
        message = "the HPA controller was able to get the target's current scale"
        self._set(status, "AbleToScale", "True", "SucceededGetScale", message)
        replicas = int(target.scale["spec"].get("replicas", 0))
        status["currentReplicas"] = target.scale["status"]["replicas"]
        desired, why = self._desired(scaler, status, target, replicas)
        if desired != replicas:
            self._rescale(scaler, status, target, desired, why)
        status["desiredReplicas"] = desired
        status["observedGeneration"] = scaler["metadata"].get("generation", 1)
        self._context.write_status(RESOURCE, scaler, status)

    # -- computing -------------------------------------------------------------------------------------------

    def _target(self, scaler: Obj) -> ScaleTarget:
        """The target of an autoscaler.

        Raises:
            StatusError: 404.
        """
        reference = scaler["spec"]["scaleTargetRef"]
        api = self._context.api
        resource = api.registry.of_kind(reference.get("apiVersion", ""), reference["kind"])
        if resource is None or resource.subresource("scale") is None:
            kind = f"{reference.get('apiVersion', '')}, Kind={reference['kind']}"
            raise StatusError(404, "NotFound", f'no matches for kind "{reference["kind"]}": {kind}')
        obj = api.entry(resource, scaler["metadata"]["namespace"], reference["name"]).obj
        key = (scaler["metadata"]["namespace"], reference["name"])
        entry = api.store.collection(resource.collection).entries[key]
        return ScaleTarget(resource, entry, scale_of(obj, api.kind(resource).scale_paths(resource)))

    def _desired(self, scaler: Obj, status: Obj, target: ScaleTarget, replicas: int) -> tuple[int, str]:
        """The replicas to have, and why."""
        spec = scaler["spec"]
        least, most = spec.get("minReplicas", 1), spec["maxReplicas"]
        if replicas == 0 and least != 0:
            message = "scaling is disabled since the replica count of the target is zero"
            self._set(status, "ScalingActive", "False", "ScalingDisabled", message)
            return 0, ""
        if replicas > most:
            return most, "Current number of replicas above Spec.MaxReplicas"
        if replicas < least:
            return least, "Current number of replicas below Spec.MinReplicas"
        proposals, faults = [], []
        for metric in spec.get("metrics") or ():
            try:
                proposals.append(self._proposal(scaler, metric, target, replicas))
            except MetricError as error:
                faults.append(error)
                self._record(scaler, error.reason, str(error), "Warning")
        status["currentMetrics"] = [one.current for one in proposals] or None
        best = max(proposals, default=None)
        if best is None or (faults and best.replicas < replicas):
            reason = faults[0].reason if faults else "InvalidMetricSourceType"
            message = f"the HPA was unable to compute the replica count: {faults[0] if faults else ''}"
            self._set(status, "ScalingActive", "False", reason, message)
            return replicas, ""
        message = f"the HPA was able to successfully calculate a replica count from {best.metric}"
        self._set(status, "ScalingActive", "True", "ValidMetricFound", message)
        desired = self._limited(
            status, self._stabilized(scaler, best.replicas, replicas), replicas, least, most
        )
        why = f"{best.metric} above target" if desired > replicas else "All metrics below target"
        if desired == replicas and status["conditions"]:
            message = "recommended size matches current size"
            self._set(status, "AbleToScale", "True", "ReadyForNewScale", message)
        return desired, why

    def _proposal(self, scaler: Obj, metric: Obj, target: ScaleTarget, replicas: int) -> Proposal:
        """The replicas by one metric.

        Raises:
            MetricError: it cannot be computed.
        """
        if metric["type"] != "Resource":
            message = f"roadstead has no metrics of type {metric['type']}"
            raise MetricError(f"FailedGet{metric['type']}Metric", message)
        name, wanted = metric["resource"]["name"], metric["resource"]["target"]
        requirements = parse_labels(target.scale["status"].get("selector", ""))
        pods = [
            pod
            for pod in self._context.api.list("pods", scaler["metadata"]["namespace"])
            if matches_labels(requirements, pod["metadata"].get("labels") or {})
            and not is_terminating(pod)
            and phase_of(pod) == "Running"
            and is_ready(pod)
        ]
        if not pods:
            message = (
                f"unable to get metrics for resource {name}: no metrics returned from resource metrics API"
            )
            kind = "utilization" if wanted["type"] == "Utilization" else "resource metric value"
            raise MetricError("FailedGetResourceMetric", f"failed to get {name} {kind}: {message}")
        used = sum(pod_usage(pod).get(name, 0) for pod in pods)
        average = math.ceil(used / len(pods))
        current: Obj = {"averageValue": _written(name, average)}
        if wanted["type"] == "Utilization":
            requested = sum(pod_requests(pod).get(name, 0) for pod in pods)
            if not requested:
                message = f"failed to get {name} utilization: missing request for {name}"
                raise MetricError("FailedGetResourceMetric", message)
            current["averageUtilization"] = used * 100 // requested
            ratio = current["averageUtilization"] / wanted["averageUtilization"]
            word = f"{name} resource utilization (percentage of request)"
        else:
            ratio, word = average / milli(wanted["averageValue"]), f"{name} resource"
        proposed = replicas if abs(ratio - 1) <= TOLERANCE else math.ceil(ratio * len(pods))
        return Proposal(proposed, word, {"type": "Resource", "resource": {"name": name, "current": current}})

    def _stabilized(self, scaler: Obj, proposed: int, replicas: int) -> int:
        """The proposal after the windows: the least of them on the way up, the greatest on the way down."""
        behaviour, now = scaler["spec"].get("behavior") or {}, self._context.now
        up = (behaviour.get("scaleUp") or {}).get("stabilizationWindowSeconds", 0)
        down = (behaviour.get("scaleDown") or {}).get("stabilizationWindowSeconds", DOWN_WINDOW_S)
        recent = self._recommended.setdefault(key_of(scaler), deque([(now, replicas)]))
        lowest = min([proposed, *(one for at, one in recent if at > now - up)])
        highest = max([proposed, *(one for at, one in recent if at > now - down)])
        recent.append((now, proposed))
        while recent[0][0] < now - max(up, down):
            recent.popleft()
        return min(max(replicas, lowest), highest)

    def _limited(self, status: Obj, desired: int, replicas: int, least: int, most: int) -> int:
        fast = max(replicas * MOST_TIMES, replicas + MOST_MORE)
        if desired > min(most, fast):
            reason, message = (
                "TooManyReplicas",
                "the desired replica count is more than the maximum replica count",
            )
            if fast < most:
                reason = "ScaleUpLimit"
                message = "the desired replica count is increasing faster than the maximum scale rate"
            self._set(status, "ScalingLimited", "True", reason, message)
            return min(most, fast)
        if desired < least:
            message = "the desired replica count is less than the minimum replica count"
            self._set(status, "ScalingLimited", "True", "TooFewReplicas", message)
            return least
        message = "the desired count is within the acceptable range"
        self._set(status, "ScalingLimited", "False", "DesiredWithinRange", message)
        return desired

    # -- writing ---------------------------------------------------------------------------------------------

    def _rescale(self, scaler: Obj, status: Obj, target: ScaleTarget, desired: int, why: str) -> None:
        scale = {**target.scale, "spec": {"replicas": desired}}
        rescale(self._context.api, target.resource, target.entry, scale, Write(manager=COMPONENT))
        message = f"the HPA controller was able to update the target scale to {desired}"
        self._set(status, "AbleToScale", "True", "SucceededRescale", message)
        self._record(scaler, "SuccessfulRescale", f"New size: {desired}; reason: {why}")
        status["lastScaleTime"] = to_timestamp(self._context.now)

    def _set(self, status: Obj, kind: str, state: str, reason: str, message: str) -> None:
        status["conditions"] = with_condition(
            status.get("conditions") or [], kind, state, reason, message, now=self._context.now
        )

    def _record(self, scaler: Obj, reason: str, message: str, kind: str = "Normal") -> None:
        self._context.events.record(COMPONENT, scaler, reason, message, kind)


def _written(name: str, amount: int) -> str:
    """An amount in thousandths as a quantity."""
    return f"{amount}m" if name == "cpu" else str(-(-amount // 1000))
