"""Defines columns of pods and nodes.

Source: kubernetes v1.36 ``printPod`` and ``printNode``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.table_columns.columns import AGE, NAME, NONE, UNKNOWN, Column, at, since, wide

if TYPE_CHECKING:
    import datetime as dt

    from roadstead.values.resources import Obj

_ROLE = "node-role.kubernetes.io/"


@dataclass(slots=True)
class _PodSummary:
    """The printed state of a pod, collected container by container."""

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


def _summary_of(pod: Obj) -> _PodSummary:
    status = pod.get("status") or {}
    summary = _PodSummary(status.get("reason") or status.get("phase") or "")
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("reason") == "SchedulingGated":
        summary.reason = "SchedulingGated"
    begun = _look_at_init_containers(pod, summary)
    if begun:
        _look_at_containers(pod, summary)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            summary.reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            summary.reason = "Terminating"
    return summary


def _look_at_init_containers(pod: Obj, summary: _PodSummary) -> bool:
    """Whether the pod is past its init containers; sidecars are counted with the containers."""
    init = at(pod, "spec", "initContainers", default=[])
    sidecars = {one["name"] for one in init if one.get("restartPolicy") == "Always"}
    restarts = _PodSummary("")
    for index, status in enumerate(at(pod, "status", "initContainerStatuses", default=[])):
        summary.count(status)
        state, sidecar = status.get("state") or {}, status.get("name") in sidecars
        if sidecar:
            restarts.count(status)
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and status.get("started"):
            summary.ready += bool(status.get("ready"))
            continue
        if terminated is not None:
            summary.reason = _ended(terminated, "Init:")
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            summary.reason = f"Init:{waiting['reason']}"
        else:
            summary.reason = f"Init:{index}/{len(init)}"
        if _condition(pod, "Initialized").get("status") != "True":
            return False
        break
    summary.restarts, summary.last_restart = restarts.restarts, restarts.last_restart
    return True


def _look_at_containers(pod: Obj, summary: _PodSummary) -> None:
    running = False
    for status in reversed(at(pod, "status", "containerStatuses", default=[])):
        summary.count(status)
        state = status.get("state") or {}
        if at(state, "waiting", "reason"):
            summary.reason = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            summary.reason = _ended(state["terminated"])
        elif status.get("ready") and state.get("running") is not None:
            running = True
            summary.ready += 1
    if summary.reason == "Completed" and running:
        summary.reason = "Running" if _condition(pod, "Ready").get("status") == "True" else "NotReady"


def _ready(pod: Obj, _now: dt.datetime) -> str:
    init = at(pod, "spec", "initContainers", default=[])
    total = len(at(pod, "spec", "containers", default=[])) + sum(
        one.get("restartPolicy") == "Always" for one in init
    )
    return f"{_summary_of(pod).ready}/{total}"


def _restarts(pod: Obj, now: dt.datetime) -> str:
    summary = _summary_of(pod)
    if summary.restarts and summary.last_restart:
        return f"{summary.restarts} ({since(summary.last_restart, now)} ago)"
    return str(summary.restarts)


def _gates(pod: Obj, _now: dt.datetime) -> str:
    gates = at(pod, "spec", "readinessGates", default=[])
    if not gates:
        return NONE
    true = sum(_condition(pod, one["conditionType"]).get("status") == "True" for one in gates)
    return f"{true}/{len(gates)}"


PODS = (
    NAME,
    Column("Ready", _ready),
    Column("Status", lambda pod, _: _summary_of(pod).reason),
    Column("Restarts", _restarts),
    AGE,
    wide("IP", lambda pod, _: at(pod, "status", "podIP") or NONE),
    wide("Node", lambda pod, _: at(pod, "spec", "nodeName") or NONE),
    wide("Nominated Node", lambda pod, _: at(pod, "status", "nominatedNodeName") or NONE),
    wide("Readiness Gates", _gates),
)


def _node_status(node: Obj, _now: dt.datetime) -> str:
    ready = _condition(node, "Ready")
    words = ["Unknown" if not ready else "Ready" if ready.get("status") == "True" else "NotReady"]
    if at(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


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
