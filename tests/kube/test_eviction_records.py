"""Eviction records over HTTP: status apart, nothing stale left behind."""

from typing import Any

from kube.scripted_server import ToldServer
from plimsoll.api.v1alpha1.eviction import EvictionStatus
from plimsoll.kube.custom_resources import NamespacedResources
from plimsoll.kube.session.session import Session
from plimsoll.ports.writes import WriteOutcome

RECORD: dict[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "Eviction",
    "metadata": {"namespace": "shop", "name": "web-1-abc"},
    "spec": {"reason": "because"},
    "status": {"phase": "Planned"},
}
FOLDER = "/apis/plimsoll.dev/v1alpha1/namespaces/shop/evictions"


async def test_a_new_record_is_written_with_its_status(told: tuple[ToldServer, Session]) -> None:
    """The API server takes the status at its own path."""
    server, session = told
    server.then({**RECORD, "metadata": {**RECORD["metadata"], "uid": "u-1", "resourceVersion": "7"}}, 201)
    server.then({**RECORD, "metadata": {**RECORD["metadata"], "uid": "u-1", "resourceVersion": "8"}})

    answer = await NamespacedResources(session, "evictions", EvictionStatus).create(RECORD)

    assert (answer.verdict, answer.uid, answer.version) == (WriteOutcome.DONE, "u-1", "8")
    assert [(method, path) for method, path, _, _ in server.requests] == [
        ("POST", FOLDER),
        ("PATCH", f"{FOLDER}/web-1-abc/status"),
    ]
    assert "status" not in server.requests[0][2]
    assert server.requests[1][2]["status"]["phase"] == "Planned"
    assert server.requests[1][2]["metadata"] == {"uid": "u-1"}, "somebody may have labelled it already"


async def test_a_status_that_was_refused_leaves_the_uid_of_what_was_created(
    told: tuple[ToldServer, Session],
) -> None:
    """The caller deletes it; without the uid the refusal would mean that the name is taken."""
    server, session = told
    server.then({**RECORD, "metadata": {**RECORD["metadata"], "uid": "u-1"}}, 201)
    server.then({"kind": "Status", "code": 409, "reason": "Conflict"}, 409)

    answer = await NamespacedResources(session, "evictions", EvictionStatus).create(RECORD)

    assert (answer.verdict, answer.uid) == (WriteOutcome.CONFLICT, "u-1")


async def test_a_status_is_written_over_the_version_that_is_named(told: tuple[ToldServer, Session]) -> None:
    """The API server refuses it over any other one."""
    server, session = told
    server.then({"metadata": {"uid": "u-1", "resourceVersion": "8"}})

    records = NamespacedResources(session, "evictions", EvictionStatus)
    answer = await records.write_status("shop", "web-1-abc", {"phase": "Evicting"}, version="7")

    assert server.requests[0][2]["metadata"] == {"resourceVersion": "7"}
    assert answer.version == "8"


async def test_a_record_is_looked_up_and_deleted_by_its_uid(told: tuple[ToldServer, Session]) -> None:
    """By a list of one, for which the rights of the watch suffice."""
    server, session = told
    server.then(
        {"items": [{**RECORD, "metadata": {"name": "web-1-abc", "uid": "u-1", "resourceVersion": "7"}}]}
    )
    server.then({"items": []})
    server.then({})

    records = NamespacedResources(session, "evictions", EvictionStatus)
    found = await records.look_up("shop", "web-1-abc")
    absent = await records.look_up("shop", "web-1-abc")
    await records.delete("shop", "web-1-abc", uid="u-1")

    assert (found.uid, found.version, absent.verdict) == ("u-1", "7", WriteOutcome.GONE)
    assert [each[1] for each in server.requests[:2]] == [
        f"{FOLDER}?fieldSelector=metadata.name%3Dweb-1-abc"
    ] * 2
    assert server.requests[2][2] == {"preconditions": {"uid": "u-1"}}


async def test_a_status_keeps_nothing_of_the_one_before(told: tuple[ToldServer, Session]) -> None:
    """A merge patch removes only what it names: the sentence of an earlier phase must go."""
    server, session = told
    server.then({})

    records = NamespacedResources(session, "evictions", EvictionStatus)
    await records.write_status("shop", "web-1-abc", {"phase": "Evicting"})

    status = server.requests[0][2]["status"]
    assert status["phase"] == "Evicting"
    assert status["message"] is None
    assert status["blockedBy"] is None


async def test_a_status_may_be_written_under_another_name(told: tuple[ToldServer, Session]) -> None:
    """As which managedFields keep it apart from later ones."""
    server, session = told
    server.then({})

    records = NamespacedResources(session, "evictions", EvictionStatus)
    await records.write_status("shop", "web-1-abc", {"phase": "Evicting"}, manager="somebody")

    assert server.requests[0][1] == f"{FOLDER}/web-1-abc/status?fieldManager=somebody"


async def test_a_record_that_is_there_already_is_a_conflict(told: tuple[ToldServer, Session]) -> None:
    """Written before a crash; it is not written twice."""
    server, session = told
    server.then({"kind": "Status", "code": 409, "reason": "AlreadyExists"}, 409)

    answer = await NamespacedResources(session, "evictions", EvictionStatus).create(RECORD)

    assert answer.verdict is WriteOutcome.CONFLICT
    assert len(server.requests) == 1


async def test_a_server_without_our_kinds_is_reported_as_such(told: tuple[ToldServer, Session]) -> None:
    """The definitions are not installed yet."""
    server, session = told
    server.then({"kind": "Status", "code": 404}, 404)

    answer, records = await NamespacedResources(session, "evictions", EvictionStatus).list()

    assert answer.verdict is WriteOutcome.GONE
    assert list(records) == []
