"""Records of moves and pods of a ReplicaSet, for tests of the move machine's parts."""

from typing import Any

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.names import RecordKey
from plimsoll.testing.builders import a_pod

KEY = RecordKey("default/web-1-record")


def a_spec(
    pod: str = "web-1", *, owner: str = "web", target: str | None = "good", **more: Any
) -> EvictionSpec:
    """What the record of a move of one of the owner's pods away from node "bad" says."""
    return EvictionSpec.model_validate(
        {
            "pod": {"namespace": "default", "name": pod, "uid": f"uid-default-{pod}"},
            "owner": {
                "api_version": "apps/v1",
                "kind": "ReplicaSet",
                "name": owner,
                "uid": f"uid-ReplicaSet/{owner}",
            }
            if owner
            else None,
            "policy": "tidy",
            "strategy": "RemoveDuplicates",
            "mode": "Enforce",
            "reason": "for a test",
            "from_node": "bad",
            "target_node": target,
            **more,
        }
    )


def a_sibling(
    name: str,
    node: str = "",
    phase: str = "Running",
    owner: str = "web",
    *,
    ready: Any = True,
    namespace: str = "default",
    **metadata: Any,
) -> Pod:
    """A pod of a ReplicaSet: pending without a node."""
    is_ready = ready and bool(node) and phase == "Running"
    status = {
        "phase": phase if node else "Pending",
        "conditions": [{"type": "Ready", "status": str(is_ready)}],
    }
    return a_pod(
        name,
        namespace=namespace,
        owner=f"ReplicaSet/{owner}",
        node=node,
        status=status,
        metadata=metadata,
    )
