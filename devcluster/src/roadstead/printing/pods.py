"""Pods and nodes.

Source: kubernetes v1.36 ``printPod`` and ``printNode``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.printing.columns import AGE, NAME, NONE, UNKNOWN, Column, at, since, wide

if TYPE_CHECKING:
    import datetime as dt

    from roadstead.values.resources import Obj

_ROLE = "node-role.kubernetes.io/"


@dataclass(slots=True)
class _Told:
    """What is told of a pod while its containers are looked at."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""

    def count(self, status: Obj) -> None:
        self.restarts += status.get("restartCount") or 0
        finished = at(status, "lastState", "terminated", "finishedAt", default="")
        self.last_restart = max(self.last_restart, finished)


def _condition(obj: Obj, kind: str) -> Obj:
    conditions = at(obj, "status", "conditions", default=[])
    return next((one for one in conditions if one.get("type") == kind), {})


def _ended(terminated: Obj, prefix: str = "") -> str:
    if terminated.get("reason"):
        return f"{prefix}{terminated['reason']}"
    if terminated.get("signal"):
        return f"{prefix}Signal:{terminated['signal']}"
    return f"{prefix}ExitCode:{terminated.get('exitCode', 0)}"


def _told(pod: Obj) -> _Told:
    status = pod.get("status") or {}
    told = _Told(status.get("reason") or status.get("phase") or "")
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("reason") == "SchedulingGated":
        told.reason = "SchedulingGated"
    begun = _look_at_init_containers(pod, told)
    if begun:
        _look_at_containers(pod, told)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            told.reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            told.reason = "Terminating"
    return told


def _look_at_init_containers(pod: Obj, told: _Told) -> bool:
    """Whether the pod is past its init containers; sidecars are counted with the containers."""
    init = at(pod, "spec", "initContainers", default=[])
    sidecars = {one["name"] for one in init if one.get("restartPolicy") == "Always"}
    restarts = _Told("")
    for index, status in enumerate(at(pod, "status", "initContainerStatuses", default=[])):
        told.count(status)
        state, sidecar = status.get("state") or {}, status.get("name") in sidecars
        if sidecar:
            restarts.count(status)
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and status.get("started"):
            told.ready += bool(status.get("ready"))
            continue
        if terminated is not None:
            told.reason = _ended(terminated, "Init:")
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            told.reason = f"Init:{waiting['reason']}"
        else:
            told.reason = f"Init:{index}/{len(init)}"
        if _condition(pod, "Initialized").get("status") != "True":
            return False
        break
    told.restarts, told.last_restart = restarts.restarts, restarts.last_restart
    return True


def _look_at_containers(pod: Obj, told: _Told) -> None:
    running = False
    for status in reversed(at(pod, "status", "containerStatuses", default=[])):
        told.count(status)
        state = status.get("state") or {}
        if at(state, "waiting", "reason"):
            told.reason = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            told.reason = _ended(state["terminated"])
        elif status.get("ready") and state.get("running") is not None:
            running = True
            told.ready += 1
    if told.reason == "Completed" and running:
        told.reason = "Running" if _condition(pod, "Ready").get("status") == "True" else "NotReady"


def _ready(pod: Obj, _now: dt.datetime) -> str:
    init = at(pod, "spec", "initContainers", default=[])
    total = len(at(pod, "spec", "containers", default=[])) + sum(
        one.get("restartPolicy") == "Always" for one in init
    )
    return f"{_told(pod).ready}/{total}"


def _restarts(pod: Obj, now: dt.datetime) -> str:
    told = _told(pod)
    if told.restarts and told.last_restart:
        return f"{told.restarts} ({since(told.last_restart, now)} ago)"
    return str(told.restarts)


def _gates(pod: Obj, _now: dt.datetime) -> str:
    gates = at(pod, "spec", "readinessGates", default=[])
    if not gates:
        return NONE
    true = sum(_condition(pod, one["conditionType"]).get("status") == "True" for one in gates)
    return f"{true}/{len(gates)}"


PODS = (
    NAME,
    Column("Ready", _ready),
    Column("Status", lambda pod, _: _told(pod).reason),
    Column("Restarts", _restarts),
    AGE,
    wide("IP", lambda pod, _: at(pod, "status", "podIP") or NONE),
    wide("Node", lambda pod, _: at(pod, "spec", "nodeName") or NONE),
    wide("Nominated Node", lambda pod, _: at(pod, "status", "nominatedNodeName") or NONE),
    wide("Readiness Gates", _gates),
)


def _node_status(node: Obj, _now: dt.datetime) -> str:
    ready = _condition(node, "Ready")
    told = ["Unknown" if not ready else "Ready" if ready.get("status") == "True" else "NotReady"]
    if at(node, "spec", "unschedulable"):
        told.append("SchedulingDisabled")
    return ",".join(told)


def _roles(node: Obj, _now: dt.datetime) -> str:
    given = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in given if key.startswith(_ROLE)}
    roles.add(given.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or NONE


def _address(node: Obj, kind: str) -> str:
    addresses = at(node, "status", "addresses", default=[])
    return next((one["address"] for one in addresses if one["type"] == kind), NONE)


def _info(node: Obj, name: str) -> str:
    return at(node, "status", "nodeInfo", name) or UNKNOWN


def _kernel(node: Obj, _now: dt.datetime) -> str:
    version, architecture = _info(node, "kernelVersion"), at(node, "status", "nodeInfo", "architecture")
    return f"{version} ({architecture})" if architecture and version != UNKNOWN else version


NODES = (
    NAME,
    Column("Status", _node_status),
    Column("Roles", _roles),
    AGE,
    Column("Version", lambda node, _: at(node, "status", "nodeInfo", "kubeletVersion", default="")),
    wide("Internal-IP", lambda node, _: _address(node, "InternalIP")),
    wide("External-IP", lambda node, _: _address(node, "ExternalIP")),
    wide("OS-Image", lambda node, _: _info(node, "osImage")),
    wide("Kernel-Version", _kernel),
    wide("Container-Runtime", lambda node, _: _info(node, "containerRuntimeVersion")),
)
