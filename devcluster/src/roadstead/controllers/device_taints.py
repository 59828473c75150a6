"""Deletes pods from devices with a NoExecute taint that their claim tolerates not at all or no longer.

The tolerations are those of the allocation: they were copied from the request when the device was allocated.

Source: kubernetes v1.36 ``pkg/controller/devicetainteviction/device_taint_eviction.go``. Only taints of
slices are read: DeviceTaintRules are off by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.ownership import key_of
from roadstead.controllers.pod_state import is_terminating, with_condition
from roadstead.controllers.resource_claims import CLAIMS, is_group
from roadstead.kinds.pod_groups import group_of
from roadstead.schemas.timestamps import to_seconds
from roadstead.values.label_selectors import tolerates

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

SLICES = "resourceslices.resource.k8s.io"
COMPONENT = "device-taint-eviction-controller"
AGAIN_S = 1.0
"""Seconds until a pod that is not bound yet is checked again."""
Device = tuple[str, str, str]


class DeviceTaintController:
    """Deletes pods from devices that have become unusable."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._slices: dict[str, tuple[int, dict[Device, list[Obj]]]] = {}

    def start(self) -> None:
        """Subscribe to slices and claims."""
        api = self._context.api
        api.subscribe(SLICES, self._slice_changed)
        api.subscribe(CLAIMS, self._claim_changed)
        for one in api.list(SLICES):
            self._slice_changed("ADDED", one, None)

    def _slice_changed(self, kind: EventType, one: Obj, _old: Obj | None) -> None:
        """Queue the claims on devices whose NoExecute taints change."""
        name = one["metadata"]["name"]
        _, before = self._slices.get(name, (0, {}))
        now = {} if kind == "DELETED" else _tainted(one)
        if now == before:
            return
        self._slices.pop(name, None)
        if now:
            self._slices[name] = (one["spec"]["pool"]["generation"], now)
        for claim in self._context.api.list(CLAIMS) if now else ():
            if any(_device(result) in now for result in _results(claim)):
                self._context.queue.add(self.reconcile, key_of(claim))

    def _claim_changed(self, kind: EventType, claim: Obj, _old: Obj | None) -> None:
        """Queue a claim to which such a device was allocated."""
        if kind != "DELETED" and self._slices and _results(claim):
            self._context.queue.add(self.reconcile, key_of(claim))

    def reconcile(self, key: str) -> None:
        """Delete the pods of a claim whose toleration has expired, or requeue it for its expiry."""
        claim = self._context.find(CLAIMS, key)
        if claim is None:
            return
        end_s = min(
            (
                end_s
                for result in _results(claim)
                for taint in self._taints(_device(result))
                if (end_s := _end_s(taint, result.get("tolerations") or [])) is not None
            ),
            default=None,
        )
        if end_s is None:
            return
        stay_s = end_s - self._context.now
        if stay_s > 0:
            self._context.queue.add(self.reconcile, key, stay_s)
            return
        for consumer in (claim.get("status") or {}).get("reservedFor") or ():
            for pod in self._pods_of(consumer, claim["metadata"]["namespace"]):
                if is_terminating(pod):
                    continue
                if pod["spec"].get("nodeName"):
                    self._evict(pod)
                else:
                    self._context.queue.add(self.reconcile, key, AGAIN_S)

    def _pods_of(self, consumer: Obj, namespace: str) -> list[Obj]:
        """The pods that a claim is reserved for: one, or those of a PodGroup."""
        if is_group(consumer):
            pods = self._context.api.list("pods", namespace)
            return [pod for pod in pods if group_of(pod) == consumer.get("name")]
        pod = self._context.find("pods", f"{namespace}/{consumer.get('name')}")
        return [] if pod is None or pod["metadata"]["uid"] != consumer.get("uid") else [pod]

    def _taints(self, device: Device) -> list[Obj]:
        """The NoExecute taints of a device in the newest generation that has some."""
        found = [
            (generation, taints[device]) for generation, taints in self._slices.values() if device in taints
        ]
        return max(found, key=lambda one: one[0])[1] if found else []

    def _evict(self, pod: Obj) -> None:
        metadata = pod["metadata"]
        status = pod.get("status") or {}
        conditions = with_condition(
            status.get("conditions") or [],
            "DisruptionTarget",
            "True",
            "DeletionByDeviceTaintManager",
            "Device Taint manager: deleting due to NoExecute taint",
            now=self._context.now,
        )
        self._context.events.record(COMPONENT, pod, "DeviceTaintManagerEviction", "Marking for deletion")
        self._context.write_status("pods", pod, {**status, "conditions": conditions})
        self._context.api.delete("pods", metadata["namespace"], metadata["name"], uid=metadata["uid"])


def _tainted(one: Obj) -> dict[Device, list[Obj]]:
    """The devices of a slice that have NoExecute taints."""
    spec, found = one["spec"], {}
    for device in spec.get("devices") or ():
        taints = [taint for taint in device.get("taints") or () if taint["effect"] == "NoExecute"]
        if taints:
            found[spec["driver"], spec["pool"]["name"], device["name"]] = taints
    return found


def _results(claim: Obj) -> list[Obj]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


def _device(result: Obj) -> Device:
    return (result["driver"], result["pool"], result["device"])


def _end_s(taint: Obj, tolerations: list[Obj]) -> float | None:
    """The time by which a pod must leave for a taint, in seconds since the epoch; None for never."""
    waits: list[int] = []
    for toleration in tolerations:
        if tolerates([toleration], taint) is None:
            continue
        if "tolerationSeconds" not in toleration:
            return None
        waits.append(toleration["tolerationSeconds"])
    return to_seconds(taint["timeAdded"]) + max(0, min(waits, default=0))
