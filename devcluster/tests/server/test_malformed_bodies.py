"""Malformed bodies: the answer is an object or a Status, and no write is partial."""

import contextlib
import copy
import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from roadstead.assembly import built_in_api
from roadstead.server.paths import target
from roadstead.server.write_requests import SentRequest
from roadstead.server.writes import write
from roadstead.values.status_errors import StatusError

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
POD: Any = {
    "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["example.com/x"], "ownerReferences": []},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "x",
                "ports": [{"containerPort": 80}],
                "env": [{"name": "A", "value": "1"}],
                "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
            }
        ],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **TERM}],
        "schedulingGates": [{"name": "a"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}
SPEC = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
NAMESPACED = "/api/v1/namespaces/default"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
REQUESTS: list[tuple[str, str, Any, str]] = [
    ("POST", f"{NAMESPACED}/pods", POD, ""),
    ("PATCH", f"{NAMESPACED}/pods/there", {"spec": POD["spec"]}, STRATEGIC),
    ("PATCH", f"{NAMESPACED}/pods/there", {"apiVersion": "v1", "kind": "Pod", **POD}, APPLY),
    ("PATCH", f"{NAMESPACED}/pods/there/status", {"status": {"conditions": [{"type": "A"}]}}, STRATEGIC),
    ("PATCH", f"{NAMESPACED}/pods/there", {"metadata": {"labels": {"a": None}}}, MERGE),
    (
        "POST",
        f"{NAMESPACED}/pods/there/binding",
        {"metadata": {"name": "there"}, "target": {"name": "n"}},
        "",
    ),
    (
        "POST",
        f"{NAMESPACED}/pods/there/eviction",
        {"metadata": {"name": "there"}, "deleteOptions": {"preconditions": {"uid": "x"}}},
        "",
    ),
    ("DELETE", f"{NAMESPACED}/pods/there", {"gracePeriodSeconds": 1, "propagationPolicy": "Orphan"}, ""),
    ("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a"}]}}, ""),
    (
        "POST",
        "/apis/apps/v1/namespaces/default/deployments",
        {"metadata": {"name": "d"}, "spec": {**SPEC, "strategy": {"rollingUpdate": {"maxSurge": 1}}}},
        "",
    ),
    (
        "POST",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": {"minAvailable": "50%", "selector": {"matchExpressions": [{}]}}},
        "",
    ),
]
JUNK: list[Any] = [None, 1, "x", [], {}, True, -1, [None], {"a": None}, "", 1.5, [{}], 10**30]


def mutated(body: Any, seed: random.Random) -> Any:
    """A body with one or two places that hold something else."""
    body = copy.deepcopy(body)
    for _ in range(seed.randint(1, 2)):
        holder: Any = None
        place: Any = None
        parts = body
        while isinstance(parts, (dict, list)) and parts and (holder is None or seed.random() < 0.8):
            holder, place = parts, seed.choice(list(parts) if isinstance(parts, dict) else range(len(parts)))
            parts = holder[place]
        if holder is not None:
            holder[place] = copy.deepcopy(seed.choice(JUNK))
    return body


@given(st.sampled_from(REQUESTS), st.integers(0, 10**9))
def test_malformed_body_is_refused_or_taken_and_harms_nothing_else(
    request_: tuple[str, str, Any, str], seed: int
) -> None:
    """No other exception than a Status comes out, and a pod that was there is still whole."""
    api = built_in_api()
    there = {"metadata": {"name": "there", "namespace": "default"}, "spec": TEMPLATE["spec"]}
    api.create("pods", there)
    method, path, body, media = request_
    named = target(path, api.registry)
    assert named is not None
    content = json.dumps(mutated(body, random.Random(seed))).encode()
    query = {"fieldManager": "f"} if media == APPLY else {}

    with contextlib.suppress(StatusError):
        write(
            api,
            named,
            method,
            SentRequest(query, content, {"Content-Type": media or "application/json"}),
            "t",
        )

    for obj in api.list("pods"):
        assert obj["metadata"]["uid"]
        assert obj["spec"]["containers"]
