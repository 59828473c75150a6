"""A server that holds an installation with something wrong in each area, the same at each run."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from cli.refusing_server import Refusing
from plimsoll.api.crds import crd
from plimsoll.api.v1alpha1 import KINDS

Obj = dict[str, Any]

#: Later than every run of a test: a lease that was renewed just now.
RENEWED = "2999-01-01T00:00:00.000000Z"
CREATED = "2026-01-01T00:00:00Z"


def _lease(namespace: str, name: str, holder: str) -> Obj:
    spec = {"holderIdentity": f"{holder}_1", "leaseDurationSeconds": 15, "renewTime": RENEWED}
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}


def _workload(namespace: str, name: str, image: str, ready: int, **more: Any) -> Obj:
    pod = {"serviceAccountName": name, "containers": [{"image": image}]}
    status = {"readyReplicas": ready}
    return {
        "metadata": {"namespace": namespace, "name": name, **more},
        "spec": {"template": {"spec": pod}},
        "status": status,
    }


def _policy(name: str, spec: Obj, *conditions: tuple[str, str, str, str]) -> Obj:
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": name, "generation": 1, "creationTimestamp": CREATED},
        "spec": spec,
        "status": {
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "observedGeneration": 1,
                    "lastTransitionTime": CREATED,
                }
                for kind, status, reason, message in conditions
            ]
        },
    }


@cache
def _definitions() -> dict[str, Obj]:
    """That of policies is from a time before they had a scope."""
    status = {
        "conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]
    }
    found = {kind.definition.name: {**copy.deepcopy(crd(kind)), "status": status} for kind in KINDS}
    schema = found["schedulingpolicies.plimsoll.dev"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["spec"]["properties"]["scope"]
    return found


HELD: dict[str, list[Obj]] = {
    "/apis/coordination.k8s.io/v1/leases": [
        _lease("plimsoll", "plimsoll", "plimsoll-6d9c-x2x"),
        _lease("kube-system", "kube-scheduler", "control-plane-1"),
    ],
    "/apis/apps/v1/deployments": [
        _workload("plimsoll", "plimsoll", "registry.example/plimsoll:0.0.9", 1),
        _workload("kube-system", "karpenter", "public.ecr.aws/karpenter/controller:1.5.0", 2),
    ],
    "/apis/plimsoll.dev/v1alpha1/schedulingpolicies": [
        _policy(
            "placing",
            {"scheduling": {"schedulerName": "plimsoll"}},
            ("Accepted", "True", "Valid", "accepted"),
            ("Ready", "True", "Serving", "pods with schedulerName plimsoll are placed"),
        ),
        _policy(
            "moving",
            {"rebalancing": {"mode": "Enforce", "strategies": [{"name": "ConsolidateNodes"}]}},
            ("Accepted", "True", "Valid", "accepted"),
            ("Ready", "True", "Serving", "rebalancing in mode Enforce with ConsolidateNodes"),
            ("Degraded", "True", "RunFailed", "the last run crashed"),
        ),
    ],
    "/api/v1/nodes": [{"metadata": {"name": "node-1", "labels": {"eks.amazonaws.com/nodegroup": "web"}}}],
    "/api/v1/pods": [
        {
            "metadata": {"namespace": "shop", "name": "web-1", "creationTimestamp": CREATED},
            "spec": {"schedulerName": "plimsol", "containers": [{"name": "web"}]},
            "status": {"phase": "Pending"},
        }
    ],
}

#: What the operator's account may not.
DENIED = ("create", "pods", "eviction")


def _reviewed(way: str, path: str, body: Any) -> Obj:
    """Who the caller is, or whether an account has a right."""
    if path.endswith("/selfsubjectreviews"):
        user = "jane" if way == "installed" else "system:serviceaccount:plimsoll:plimsoll"
        return {"status": {"userInfo": {"username": user}}}
    asked = body["spec"]["resourceAttributes"]
    named = (asked["verb"], asked["resource"], asked.get("subresource"))
    return {**body, "status": {"allowed": named != DENIED}}


#: What the role of the operator lets it read.
READABLE = ("/customresourcedefinitions", "/schedulingpolicies", "/api/v1/pods", "/leases/plimsoll")


class Installed(Refusing):
    """Holds the installation below ``/installed``, and refuses below the other paths.

    Below ``/operator`` it is the same installation, and the caller is the operator.
    """

    def decide(self, way: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Obj]:
        """Code and body of one answer."""
        if way not in {"installed", "operator"}:
            return super().decide(way, path, query, body)
        is_hidden = way == "operator" and path != "/version" and not path.endswith(READABLE)
        if self.command == "GET" and is_hidden:
            return super().decide("forbidden", path, query, body)
        return (201, _reviewed(way, path, body)) if self.command == "POST" else self._held(path, query)

    def _held(self, path: str, query: dict[str, str]) -> tuple[int, Obj]:
        selector = query.get("fieldSelector", "")
        if path.endswith("/customresourcedefinitions"):
            return 200, {"items": [_definitions()[selector.removeprefix("metadata.name=")]]}
        if path.endswith("/leases/plimsoll"):
            return 200, HELD["/apis/coordination.k8s.io/v1/leases"][0]
        if path in HELD and not selector.endswith("spec.nodeName!="):
            return 200, {"items": HELD[path]}
        return super().decide("bare", path, query, None)
