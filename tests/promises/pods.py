"""Reads of stored pods and nodes: their phase, conditions, owner and node."""

from __future__ import annotations

from promises.commits import Obj

#: Labels that make a pod a member of a PodGroup, the first one that is there.
GROUP_LABELS = ("plimsoll.dev/pod-group", "scheduling.x-k8s.io/pod-group")


def is_over(pod: Obj) -> bool:
    """Whether its containers run no more."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_leaving(pod: Obj) -> bool:
    """Whether it is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def condition_of(obj: Obj, kind: str) -> Obj:
    """A condition, empty if it does not exist."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def is_ready(obj: Obj) -> bool:
    """Whether the condition Ready of a pod or node holds."""
    return condition_of(obj, "Ready").get("status") == "True"


def node_of(pod: Obj | None) -> str:
    """The name of its node, or ""."""
    return (pod or {}).get("spec", {}).get("nodeName") or ""


def owners_of(pod: Obj) -> list[Obj]:
    """Its owner references."""
    return pod["metadata"].get("ownerReferences") or []


def controller_of(pod: Obj) -> str:
    """The uid of the owner that replaces it, or ""."""
    return next((each["uid"] for each in owners_of(pod) if each.get("controller")), "")


def priority_of(pod: Obj) -> int:
    """Its priority; 0 where none is given."""
    return int(pod["spec"].get("priority") or 0)


def group_of(pod: Obj) -> str:
    """The name of its PodGroup, or ""."""
    labels = pod["metadata"].get("labels") or {}
    return next((labels[name] for name in GROUP_LABELS if labels.get(name)), "")
