"""Computes the status of pods as a kubelet writes it: waiting, running, ready, ended, rejected.

Pure functions from a pod to its next status.

Source: kubernetes v1.36 ``pkg/kubelet/kubelet_pods.go``, ``status/generate.go``, ``lifecycle/predicate.go``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from roadstead.schemas.timestamps import to_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roadstead.values.resources import Obj

KILLED_EXIT = 137


def _status_of(pod: Obj) -> Obj:
    status = dict(pod.get("status") or {})
    if generation := pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
    return status


def refused(pod: Obj, reason: str, message: str, now: float) -> Obj:
    """The status of a pod that the kubelet does not admit."""
    return {
        **_status_of(pod),
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": to_timestamp(now),
    }


def waiting(pod: Obj, reason: str, now: float) -> Obj:
    """The status of a pod whose containers do not start, such as for ImagePullBackOff."""
    status = _started(pod, now)
    status["containerStatuses"] = [
        _container(pod, one, {"waiting": {"reason": reason}}, ready=False)
        for one in pod["spec"]["containers"]
    ]
    return _with_conditions(status, now, ready=False, pod=pod)


def running(pod: Obj, host: str, address: str, now: float, *, ready: bool) -> Obj:
    """The status of a pod whose containers run."""
    moment = to_timestamp(now)
    status = _started(pod, now)
    status.pop("reason", None)
    status.pop("message", None)
    status |= {
        "phase": "Running",
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": host if pod["spec"].get("hostNetwork") else address,
    }
    status["podIPs"] = [{"ip": status["podIP"]}]
    state = {"running": {"startedAt": moment}}
    if inits := pod["spec"].get("initContainers"):
        status["initContainerStatuses"] = [
            _container(pod, one, state if _is_sidecar(one) else _ended(0, now, now), ready=True)
            for one in inits
        ]
    before = {one["name"]: one for one in status.get("containerStatuses") or ()}
    status["containerStatuses"] = [
        _container(pod, one, state, ready=ready, before=before.get(one["name"]))
        for one in pod["spec"]["containers"]
    ]
    return _with_conditions(status, now, ready=ready, pod=pod)


def with_readiness(pod: Obj, now: float, *, ready: bool) -> Obj:
    """The status of a running pod whose readiness changes."""
    status = _status_of(pod)
    status["containerStatuses"] = [{**one, "ready": ready} for one in status.get("containerStatuses") or ()]
    return _with_conditions(status, now, ready=ready, pod=pod)


def has_stale_readiness(pod: Obj) -> bool:
    """Whether a running pod's Ready condition disagrees with its readiness gates."""
    statuses = {one["type"]: one["status"] for one in (pod.get("status") or {}).get("conditions") or ()}
    if not pod["spec"].get("readinessGates") or statuses.get("ContainersReady") != "True":
        return False
    return (statuses.get("Ready") == "True") != (not _closed_gates(pod, pod["status"]["conditions"]))


def is_disputed(pod: Obj) -> bool:
    """Whether another client has set PodScheduled to not True after the kubelet had reported the pod.

    A scheduler's condition may arrive after the binding, because its patch requires no earlier state.
    """
    status = pod.get("status") or {}
    return bool(status.get("startTime")) and any(
        one["type"] == "PodScheduled" and one["status"] != "True" for one in status.get("conditions") or ()
    )


def upheld(pod: Obj, now: float) -> Obj:
    """The status of such a pod with the kubelet's own condition restored.

    Source: kubernetes v1.36 ``status/status_manager.go``, ``needsReconcile``; PodScheduled is one of the
    kubelet's conditions (``types/pod_status.go``, ``PodConditionsByKubelet``).
    """
    status = _status_of(pod)
    written = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": to_timestamp(now),
    }
    if generation := pod["metadata"].get("generation"):
        written["observedGeneration"] = generation
    status["conditions"] = [written if one["type"] == "PodScheduled" else one for one in status["conditions"]]
    return status


def _closed_gates(pod: Obj, conditions: Iterable[Obj]) -> list[str]:
    """A message for each readiness gate that is not True."""
    statuses = {one["type"]: one["status"] for one in conditions}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    return [
        f'the status of pod readiness gate "{gate}" is not "True", but {statuses[gate]}'
        if gate in statuses
        else f'corresponding condition of pod readiness gate "{gate}" does not exist.'
        for gate in gates
        if statuses.get(gate) != "True"
    ]


def ended(pod: Obj, code: int, now: float) -> Obj:
    """The status of a pod whose containers have ended and do not start again."""
    status = _started(pod, now)
    status["phase"] = "Succeeded" if code == 0 else "Failed"
    status["containerStatuses"] = [
        _container(pod, one, _ended(code, _began(pod, one, now), now), ready=False, before=_before(pod, one))
        for one in pod["spec"]["containers"]
    ]
    reason = "PodCompleted" if code == 0 else "PodFailed"
    return _with_conditions(status, now, ready=False, pod=pod, reason=reason)


def restarting(pod: Obj, code: int, now: float) -> Obj:
    """The status of a pod whose containers have ended and wait for a restart."""
    status = _status_of(pod)

    def again(container: Obj) -> Obj:
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
        text = _container(pod, container, state, ready=False, before=_before(pod, container))
        text["lastState"] = _ended(code, _began(pod, container, now), now)
        text["restartCount"] += 1
        return text

    status["containerStatuses"] = [again(one) for one in pod["spec"]["containers"]]
    return _with_conditions(status, now, ready=False, pod=pod)


def _started(pod: Obj, now: float) -> Obj:
    status = _status_of(pod)
    status.setdefault("startTime", to_timestamp(now))
    return status


def _before(pod: Obj, container: Obj) -> Obj | None:
    statuses: list[Obj] = (pod.get("status") or {}).get("containerStatuses") or []
    return next((one for one in statuses if one["name"] == container["name"]), None)


def _began(pod: Obj, container: Obj, now: float) -> str:
    """The start time of a container."""
    state = (_before(pod, container) or {}).get("state") or {}
    moment: str = (state.get("running") or {}).get("startedAt") or to_timestamp(now)
    return moment


def _ended(code: int, began: float | str, now: float) -> Obj:
    return {
        "terminated": {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "startedAt": began if isinstance(began, str) else to_timestamp(began),
            "finishedAt": to_timestamp(now),
        }
    }


def _is_sidecar(container: Obj) -> bool:
    return container.get("restartPolicy") == "Always"


def _container(pod: Obj, container: Obj, state: Obj, *, ready: bool, before: Obj | None = None) -> Obj:
    """The status of one container."""
    image = container.get("image", "")
    runs = "running" in state
    status: Obj = {
        "name": container["name"],
        "state": state,
        "lastState": (before or {}).get("lastState") or {},
        "ready": ready,
        "restartCount": (before or {}).get("restartCount", 0),
        "image": image,
        "imageID": "" if "waiting" in state else f"simulated://sha256:{_digest(image)}",
        "started": runs,
    }
    if "waiting" not in state:
        status["containerID"] = f"simulated://{_digest(pod['metadata']['uid'] + container['name'])}"
    return status


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _with_conditions(
    status: Obj, now: float, *, ready: bool, pod: Obj, reason: str = "ContainersNotReady"
) -> Obj:
    """A status with the kubelet's conditions; other conditions stay."""
    moment, generation = to_timestamp(now), pod["metadata"].get("generation")
    before = {one["type"]: one for one in status.get("conditions") or ()}
    over = status.get("phase") in ("Succeeded", "Failed")
    closed = _closed_gates(pod, before.values())
    states = {
        "PodScheduled": True,
        "PodReadyToStartContainers": not over,
        "Initialized": True,
        "Ready": ready and not closed,
        "ContainersReady": ready,
    }
    for kind, holds in states.items():
        condition: Obj = {"type": kind, "status": "True" if holds else "False", "lastProbeTime": None}
        if generation:
            condition["observedGeneration"] = generation
        known = before.get(kind)
        same = known is not None and known["status"] == condition["status"]
        condition["lastTransitionTime"] = known["lastTransitionTime"] if same and known else moment
        if kind == "Ready" and ready and not holds:
            condition |= {"reason": "ReadinessGatesNotReady", "message": ", ".join(closed)}
        elif kind in ("Ready", "ContainersReady") and not holds:
            condition["reason"] = reason
            if reason == "ContainersNotReady":
                names = " ".join(one["name"] for one in pod["spec"]["containers"])
                condition["message"] = f"containers with unready status: [{names}]"
        elif kind == "Initialized" and over:
            condition["reason"] = reason
        before[kind] = condition
    status["conditions"] = list(before.values())
    return status
