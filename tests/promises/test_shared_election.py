"""Writes of replicas that share the work, against the leases that each of them has."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from promises.commits import Author, Commit, Obj
from promises.election import LEASES
from promises.findings import Findings
from promises.shared_election import GROUP, SharedElectionPromise

RED, BLUE = (Author(name, f"{name}-1", "POST", "/apis") for name in ("red", "blue"))
SHARE = f"plimsoll-nodes-{zlib.crc32(b'n1') % 6}"


class Stage:
    """Two replicas; red has the share of n1 and a scheduler name, blue has rebalancing."""

    def __init__(self) -> None:
        self.findings = Findings()
        self.promise = SharedElectionPromise(self.findings, ("kube-system", "plimsoll"), 15.0)
        for author in (RED, BLUE):
            self.lease("plimsoll", GROUP, author)
        for name in (SHARE, "plimsoll-scheduler-a"):
            self.lease(name, RED.identity, RED)
        self.lease("plimsoll-rebalancing", BLUE.identity, BLUE)

    def lease(self, name: str, holder: str, author: Author, at: float = 0.0) -> None:
        meta = {"namespace": "kube-system", "name": name}
        lease = {"metadata": meta, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}}
        self.promise.judge(Commit(LEASES, "MODIFIED", lease, author=author, at=at))

    def commit(
        self, collection: str, author: Author, path: str = "/", at: float = 1.0, **change: Obj
    ) -> None:
        before: Obj = {"metadata": {"namespace": "default", "name": "p"}, "spec": {}}
        self.promise.judge(
            Commit(collection, "MODIFIED", {**before, **change}, before, Author(*_but_path(author), path), at)
        )


def _but_path(author: Author) -> tuple[str, str, str]:
    return author.name, author.identity, author.method


BOUND: Obj = {"nodeName": "n1"}
LEAVING: Obj = {"namespace": "default", "name": "p", "deletionTimestamp": "now"}


@pytest.mark.parametrize(("author", "is_fine"), [(RED, True), (BLUE, False)], ids=["holder", "other"])
def test_only_the_holder_of_a_node_binds_to_it(author: Author, is_fine: bool) -> None:
    """The replica that places the pod may be another one."""
    stage = Stage()

    stage.commit("pods", author, spec=BOUND)

    assert (stage.findings.violations == []) is is_fine


@pytest.mark.parametrize(
    ("collection", "path"),
    [
        ("evictions.plimsoll.dev", "/"),
        ("schedulingpolicies.plimsoll.dev", "/"),
        ("pods", "/api/v1/namespaces/default/pods/p/eviction"),
    ],
)
def test_moves_and_statuses_of_policies_are_for_who_rebalances(collection: str, path: str) -> None:
    """Blue does."""
    stage = Stage()
    change: Any = {"metadata": LEAVING} if collection == "pods" else {}

    stage.commit(collection, BLUE, path, **change)
    assert stage.findings.violations == []
    stage.commit(collection, RED, path, **change)

    assert len(stage.findings.violations) == 1


def test_pods_are_preempted_by_who_has_a_scheduler_name() -> None:
    """By deletion."""
    stage = Stage()

    stage.commit("pods", RED, metadata=LEAVING)
    assert stage.findings.violations == []
    stage.commit("pods", BLUE, metadata=LEAVING)

    assert "does not hold plimsoll-scheduler-" in stage.findings.violations[0]


def test_a_share_that_was_given_away_is_given_away() -> None:
    """Immediately, not when its lease would have expired."""
    stage = Stage()
    stage.lease(SHARE, "", RED, at=2.0)

    stage.commit("pods", RED, spec=BOUND, at=3.0)

    assert stage.findings.violations


def test_a_lease_that_is_taken_from_its_holder_is_known_late() -> None:
    """Until it would have expired, its former holder may write."""
    stage = Stage()
    stage.lease(SHARE, "somebody-else", Author(), at=2.0)

    stage.commit("pods", RED, spec=BOUND, at=14.0)
    assert stage.findings.violations == []
    stage.commit("pods", RED, spec=BOUND, at=15.5)

    assert len(stage.findings.violations) == 1


def test_who_has_never_renewed_the_lease_of_the_group_writes_nothing() -> None:
    """And who was robbed of it stops in time."""
    stage = Stage()
    stage.promise.judge_request(Author("green", "green-1", "PATCH", "/api/v1/pods"), 1.0)
    assert "is no member of the group" in stage.findings.violations[0]

    stage.lease("plimsoll", "a-process-without-the-flag", Author(), at=2.0)
    stage.promise.judge_request(RED, 14.0)
    assert len(stage.findings.violations) == 1
    stage.promise.judge_request(RED, 16.0)

    assert len(stage.findings.violations) == 2


def test_a_role_is_not_taken_early() -> None:
    """Each role is an election of its own."""
    stage = Stage()

    stage.lease("plimsoll-scheduler-a", BLUE.identity, BLUE, at=5.0)

    assert "took the lease" in stage.findings.violations[0]
