"""Reads of stored pods and nodes: their phase, conditions, labels and node."""

from __future__ import annotations

from promises.commits import Obj


def is_over(pod: Obj) -> bool:
    """Whether its containers run no more."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_leaving(pod: Obj) -> bool:
    """Whether it is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_ready(obj: Obj) -> bool:
    """Whether the condition Ready of a pod or node holds."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def has_labels(obj: Obj, wanted: dict[str, str]) -> bool:
    """Whether it has all of these."""
    labels = obj["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def node_of(pod: Obj | None) -> str:
    """The name of its node, or ""."""
    return (pod or {}).get("spec", {}).get("nodeName") or ""
