"""A server that holds records that wait for an answer, policies and leases, the same at each run.

It accepts each change and forgets it; tests/e2e shows what the operator does with changes.
"""

from __future__ import annotations

from typing import Any

from cli.refusing_server import Refusing

Obj = dict[str, Any]

_GROUP = "/apis/plimsoll.dev/v1alpha1"
_LEASES = "/apis/coordination.k8s.io/v1"


def _record(name: str, mode: str = "Approve", phase: str = "Planned", **spec: Any) -> Obj:
    return {
        "metadata": {"namespace": "shop", "name": name, "resourceVersion": "7"},
        "spec": {"policy": "tidy", "mode": mode, **spec},
        "status": {"phase": phase},
    }


def _lease(namespace: str, name: str) -> Obj:
    return {"metadata": {"namespace": namespace, "name": name}, "spec": {}}


RECORDS = [
    _record(
        "web-1",
        pod={"namespace": "shop", "name": "web-1"},
        fromNode="old",
        targetNode="new",
        reason="its node is over-used",
    ),
    _record("web-2", policy="spread"),
    _record("db-1", bundle={"name": "empty-node-1", "moves": 3}),
    _record("db-2", bundle={"name": "empty-node-1", "moves": 3}),
    _record("gone-1", phase="Settled"),
    _record("free-1", mode="Enforce"),
]
POLICIES = {
    "tidy": {"rebalancing": {}},
    "idle": {"suspend": True},
    "places": {"scheduling": {"schedulerName": "ours"}},
}
PLACES = [_lease("plimsoll", "plimsoll"), _lease("blue", "both"), _lease("green", "both")]


class Answering(Refusing):
    """Serves those objects below ``/held``, and refuses below the other paths."""

    def decide(self, way: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Obj]:
        """Code and body of one answer."""
        if way != "held" or self.command == "POST":
            return super().decide(way, path, query, body)
        found = _held(path, query)
        return (200, found) if found is not None else _missing(path)


def _held(path: str, query: dict[str, str]) -> Obj | None:
    """What is at a path."""
    folder, _, name = path.rpartition("/")
    if folder == f"{_GROUP}/schedulingpolicies":
        return {"metadata": {"name": name}, "spec": POLICIES[name]} if name in POLICIES else None
    if path in {f"{_GROUP}/evictions", f"{_GROUP}/namespaces/shop/evictions"}:
        return {"items": RECORDS}
    if path == f"{_GROUP}/namespaces/blue/evictions":
        return {"items": []}
    if folder == f"{_GROUP}/namespaces/shop/evictions":
        return next(each for each in RECORDS if each["metadata"]["name"] == name)
    if path == f"{_LEASES}/leases":
        wanted = query["fieldSelector"].removeprefix("metadata.name=")
        return {"items": [each for each in PLACES if each["metadata"]["name"] == wanted]}
    if folder == "/api/v1/namespaces":
        return {
            "metadata": {
                "name": name,
                "annotations": {"plimsoll.dev/stop": "true"} if name == "green" else {},
            }
        }
    if path == f"{_LEASES}/namespaces/green/leases/both":
        return PLACES[-1]
    return None


def _missing(path: str) -> tuple[int, Obj]:
    name = path.rpartition("/")[2]
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "metadata": {},
        "details": {"name": name},
    }
    return 404, {**status, "code": 404, "reason": "NotFound", "message": f"{name} not found"}
