"""The judge of chaos lays to an operator's charge what it wrote, and no more, in the order of versions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chaos.judge import Judge
from chaos.passage import Passage
from chaos.sightings import COLLECTIONS, Sighting
from promises.checker import Checker

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll"
POD = "/api/v1/namespaces/here/pods/one"


def a_passage(method: str, path: str, body: Any, at: float, **more: Any) -> Passage:
    content = json.dumps(body).encode()
    answered = more.pop("answered", at + 0.01)
    return Passage("red.1", method, path, "", content, at, at, answered, more.pop("status", 201), **more)


def a_lease(at: float, version: int, holder: str = "red") -> Sighting:
    meta = {"namespace": "kube-system", "name": "plimsoll", "uid": "l", "resourceVersion": str(version)}
    lease = {"metadata": meta, "spec": {"holderIdentity": holder}}
    return Sighting.of("leases.coordination.k8s.io", "MODIFIED", lease, at)


def a_pod(at: float, version: int, node: str = "", kind: str = "MODIFIED", **meta: str) -> Sighting:
    metadata = {"namespace": "here", "name": "one", "uid": "u", "resourceVersion": str(version), **meta}
    spec: dict[str, Any] = {"schedulerName": "ours", "containers": []}
    if node:
        spec["nodeName"] = node
    return Sighting.of("pods", kind, {"metadata": metadata, "spec": spec, "status": {}}, at)


def judged(writes: list[Passage], *sightings: Sighting) -> Judge:
    judge = Judge(Checker(), "ours", {"red.1": "red"}, writes)
    for each in sightings:
        judge.see(each)
    judge.advance(100.0)
    return judge


RENEWAL = a_passage("PUT", LEASE, {"spec": {"holderIdentity": "red"}}, 1.0, version="5", status=200)
BINDING = {"metadata": {"name": "one", "uid": "u"}, "target": {"name": "node"}}


def test_a_binding_is_its_senders() -> None:
    """The answer to a binding bears no version; pod, node and time tell whose it is."""
    binding = a_passage("POST", f"{POD}/binding", BINDING, 2.0)

    judge = judged([RENEWAL, binding], a_lease(1.02, 5), a_pod(1.5, 6, kind="ADDED"), a_pod(2.02, 7, "node"))

    assert judge.checker.facts.bindings == 1
    assert judge.checker.violations == []
    assert judge.unclaimed == []


def test_commits_are_judged_in_the_order_of_their_versions() -> None:
    """Watches overtake each other: the lease that came first is shown last."""
    binding = a_passage("POST", f"{POD}/binding", BINDING, 2.0)

    judge = judged([RENEWAL, binding], a_pod(1.5, 6, kind="ADDED"), a_pod(2.02, 7, "node"), a_lease(2.5, 5))

    assert judge.checker.violations == []


@pytest.mark.parametrize(
    "until", [pytest.param(2.1, id="not yet shown"), pytest.param(100.0, id="shown late")]
)
def test_a_lease_that_watches_show_late_counts_from_its_answer(until: float) -> None:
    """Watches lag by a second: the pod, and the lease, are shown after the binding was sent."""
    binding = a_passage("POST", f"{POD}/binding", BINDING, 2.0)
    judge = Judge(Checker(), "ours", {"red.1": "red"}, [RENEWAL, binding])
    for each in (a_pod(2.05, 4, kind="ADDED"), a_lease(2.2, 5), a_pod(2.3, 6, "node")):
        judge.see(each)

    judge.advance(until)

    assert judge.checker.violations == []
    judge.advance(100.0)
    assert judge.checker.violations == []
    assert judge.checker.facts.bindings == 1


def test_a_write_before_the_answer_to_the_lease_is_found() -> None:
    """What is known from the answer is known no sooner."""
    binding = a_passage("POST", f"{POD}/binding", BINDING, 0.9)

    judge = judged([binding, RENEWAL], a_pod(0.5, 4, kind="ADDED"), a_lease(1.02, 5), a_pod(1.1, 6, "node"))

    assert "red.1 sent POST" in "\n".join(judge.checker.violations)


def test_a_binding_after_the_lease_was_taken_is_found() -> None:
    """Somebody else has had the lease for longer than it lasts."""
    binding = a_passage("POST", f"{POD}/binding", BINDING, 30.0)

    judge = judged(
        [RENEWAL, binding],
        a_lease(1.02, 5),
        a_pod(1.5, 6, kind="ADDED"),
        a_lease(20.0, 7, "blue"),
        a_pod(30.02, 8, "node"),
    )

    assert "bound one to node, but the lease is held by blue" in "\n".join(judge.checker.violations)


def test_a_refused_binding_made_no_commit() -> None:
    """Another scheduler bound the pod; our binding met a conflict."""
    binding = a_passage("POST", f"{POD}/binding", BINDING, 2.0, status=409)

    judge = judged([RENEWAL, binding], a_lease(1.02, 5), a_pod(1.5, 6, kind="ADDED"), a_pod(1.9, 7, "node"))

    assert judge.checker.facts.bindings == 0
    assert judge.unclaimed == ["1.900 one"]


def test_an_eviction_without_a_precondition_is_found() -> None:
    """The pod began to leave in the time of the eviction, so it is the operator's."""
    eviction = a_passage("POST", f"{POD}/eviction", {"metadata": {"name": "one"}}, 3.0)

    judge = judged(
        [RENEWAL, eviction],
        a_lease(1.02, 5),
        a_pod(1.5, 6, "node", kind="ADDED"),
        a_pod(3.02, 8, "node", deletionTimestamp="now"),
    )

    assert "the eviction of one named the uid" in "\n".join(judge.checker.violations)


def test_a_deletion_by_others_is_nobodys() -> None:
    """An eviction that was answered seconds ago has not made this pod go."""
    eviction = a_passage("POST", f"{POD}/eviction", {"metadata": {"name": "one"}}, 3.0)

    judge = judged(
        [RENEWAL, eviction],
        a_lease(1.02, 5),
        a_pod(1.5, 6, "node", kind="ADDED"),
        a_pod(9.0, 8, "node", deletionTimestamp="now"),
    )

    assert judge.checker.facts.evictions == 0


@pytest.mark.parametrize(
    "by_others",
    [
        pytest.param(a_pod(2.02, 7, deletionTimestamp="now"), id="deleted"),
        pytest.param(a_pod(2.02, 7, "node"), id="bound"),
    ],
)
def test_a_write_that_changed_nothing_made_no_commit(by_others: Sighting) -> None:
    """Its answer bears the version of what somebody else wrote just before."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    same = a_passage("PATCH", f"{POD}/status", {"status": {"conditions": [condition]}}, 2.0, version="7")

    judge = judged([RENEWAL, same], a_lease(1.02, 5), a_pod(1.5, 6, kind="ADDED"), by_others)

    assert judge.checker.violations == []
    assert judge.attributed == 1


def test_a_renewal_whose_answer_never_came_counts() -> None:
    """The API server went away with the answer; the watch shows that the lease was written."""
    renewal = a_passage("PUT", LEASE, {"spec": {"holderIdentity": "red"}}, 1.0, answered=None, status=0)
    binding = a_passage("POST", f"{POD}/binding", BINDING, 2.0)

    judge = judged([renewal, binding], a_lease(1.02, 5), a_pod(1.5, 6, kind="ADDED"), a_pod(2.02, 7, "node"))

    assert judge.checker.violations == []


def test_all_that_belongs_to_a_deployment_is_watched() -> None:
    """The pods of a Deployment are counted through its ReplicaSets; else it would seem to have none."""
    assert {"deployments.apps", "replicasets.apps", "pods"} <= COLLECTIONS.keys()
