"""Builds nodes as a kubelet registers them: labels, capacity, conditions.

A node with the annotation ``KUBELET`` has a simulated kubelet (``kubelets``), which completes its status.
Nodes without it are not changed; their creator writes their status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.schemas.timestamps import to_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.values.resources import Obj

KUBELET = "roadstead.test/kubelet"
DEVICES = "roadstead.test/devices"
SIMULATED, STOPPED = "simulated", "stopped"
VERSION = "v1.36.2"
_PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


def make_node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    zone: str = "zone-a",
    region: str = "region-1",
    instance_type: str = "simulated",
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    devices: str = "",
) -> Obj:
    """A node with a simulated kubelet, to be created through the API.

    Args:
        name: its name, and its host name label.
        cpu: capacity in cores, such as "8" or "7500m".
        memory: capacity, such as "32Gi".
        pods: the maximum number of pods.
        zone: its zone label.
        region: its region label.
        instance_type: its instance type label.
        labels: further labels, or other values of the usual ones.
        resources: further capacity, such as ``{"nvidia.com/gpu": "8"}``.
        devices: the devices that the simulated driver publishes for it, such as "8" (``kubelets.devices``).
    """
    usual = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": instance_type,
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": region,
    }
    capacity = {
        "cpu": cpu,
        "memory": memory,
        "ephemeral-storage": "100Gi",
        "pods": str(pods),
        **(resources or {}),
    }
    annotations = {KUBELET: SIMULATED, **({DEVICES: devices} if devices else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**usual, **(labels or {})}, "annotations": annotations},
        "spec": {},
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }


def kubelet_of(node: Obj) -> str:
    """The value of the annotation: simulated, stopped, or "" for no simulated kubelet."""
    value: str = (node["metadata"].get("annotations") or {}).get(KUBELET, "")
    return value if value in (SIMULATED, STOPPED) else ""


def address_of(number: int) -> str:
    """The internal address of the node with a number, counted from 0."""
    return f"10.0.{number // 250 % 256}.{number % 250 + 1}"


def pod_address(number: int) -> str:
    """The address of the pod with a number, counted from 0 in the order of starts.

    Eight million pods of one cluster have different ones.
    """
    return f"10.{64 + number // 254**2 % 128}.{number // 254 % 254}.{number % 254 + 1}"


def registered(node: Obj, number: int, now: float) -> Obj:
    """The status of a node after its kubelet has registered it; existing fields stay."""
    status = dict(node.get("status") or {})
    status.setdefault("capacity", {"cpu": "8", "memory": "32Gi", "pods": "110"})
    status.setdefault("allocatable", dict(status["capacity"]))
    if not status.get("addresses"):
        status["addresses"] = [
            {"type": "InternalIP", "address": address_of(number)},
            {"type": "Hostname", "address": node["metadata"]["name"]},
        ]
    if not (status.get("nodeInfo") or {}).get("kubeletVersion"):
        status["nodeInfo"] = _node_info(node)
    status["conditions"] = _conditions(status.get("conditions") or [], now)
    return status


def lost(node: Obj, now: float) -> Obj:
    """The status of a node whose kubelet no longer reports."""
    status = dict(node.get("status") or {})
    conditions = {
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": to_timestamp(now),
    }
    status["conditions"] = [
        {**one, **conditions} if one["status"] != "Unknown" else one for one in status.get("conditions") or ()
    ]
    return status


def _conditions(before: list[Obj], now: float) -> list[Obj]:
    """The conditions of a healthy node; existing ones stay."""
    moment = to_timestamp(now)
    known = {one["type"]: one for one in before}
    wanted = {kind: ("False", *words) for kind, words in _PRESSURES.items()}
    wanted["Ready"] = ("True", "KubeletReady", "kubelet is posting ready status")
    for kind, (status, reason, message) in wanted.items():
        if kind not in known or known[kind]["status"] == "Unknown":
            known[kind] = {
                "type": kind,
                "status": status,
                "lastHeartbeatTime": moment,
                "lastTransitionTime": moment,
                "reason": reason,
                "message": message,
            }
    return list(known.values())


def _node_info(node: Obj) -> Obj:
    uid = node["metadata"].get("uid", "")
    return {
        "machineID": uid.replace("-", ""),
        "systemUUID": uid,
        "bootID": uid,
        "kernelVersion": "6.12.0-simulated",
        "osImage": "Simulated Linux",
        "containerRuntimeVersion": "simulated://1.0.0",
        "kubeletVersion": VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
