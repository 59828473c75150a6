"""NodeTainter sets and removes our taint, and leaves the rest of a node as it is."""

from kube.scripted_server import ToldServer
from plimsoll.kube.session.session import Session
from plimsoll.model.taints import CONSOLIDATING
from plimsoll.ports.writes import WriteOutcome
from plimsoll.testing.fakes import FakeClock
from plimsoll.writers.nodes import NodeTainter

OTHER = {"key": "gpu", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z", "newField": 1}
OURS = {"key": CONSOLIDATING, "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}


def node(*taints: object) -> dict[str, object]:
    """A node with taints."""
    return {"metadata": {"name": "n", "resourceVersion": "7"}, "spec": {"taints": list(taints)}}


async def test_a_taint_is_set_next_to_those_of_others(told: tuple[ToldServer, Session]) -> None:
    """At the version that was read, as a merge patch; fields that we do not know stay."""
    server, session = told
    server.then(node(OTHER))
    server.then({})

    answer = await NodeTainter(session, FakeClock()).close("n")

    assert answer.is_done
    method, path, body, request = server.requests[1]
    assert (method, path) == ("PATCH", "/api/v1/nodes/n")
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert body["metadata"] == {"resourceVersion": "7"}
    assert body["spec"]["taints"][0] == OTHER
    assert body["spec"]["taints"][1]["key"] == CONSOLIDATING


async def test_a_node_to_be_avoided_gets_the_softer_taint(told: tuple[ToldServer, Session]) -> None:
    """Next to those of others; closing it then leaves the stricter one alone."""
    server, session = told
    tainter = NodeTainter(session, FakeClock())
    server.then(node(OTHER))
    server.then({})
    assert (await tainter.avoid("n")).is_done
    _, soft = server.requests[1][2]["spec"]["taints"]
    assert (soft["key"], soft["effect"]) == (CONSOLIDATING, "PreferNoSchedule")

    server.then(node(soft, OTHER))
    server.then({})
    assert (await tainter.close("n")).is_done
    written = server.requests[3][2]["spec"]["taints"]
    assert [each["effect"] for each in written] == ["NoExecute", "NoSchedule"]


async def test_a_closed_node_is_not_opened_a_little(told: tuple[ToldServer, Session]) -> None:
    """The run that asks for it to be avoided has an older view of it."""
    server, session = told
    server.then(node(OTHER, OURS))

    assert (await NodeTainter(session, FakeClock()).avoid("n")).is_done
    assert len(server.requests) == 1


async def test_a_node_that_has_changed_is_read_again(told: tuple[ToldServer, Session]) -> None:
    """Kubelets write nodes all the time."""
    server, session = told
    server.then(node(OURS, OTHER))
    server.then({"kind": "Status", "reason": "Conflict", "message": "modified"}, 409)
    server.then(node(OURS))
    server.then({})

    answer = await NodeTainter(session, FakeClock()).reopen("n")

    assert answer.is_done
    assert [body and body["spec"]["taints"] for _, _, body, _ in server.requests] == [None, [OTHER], None, []]


async def test_what_is_so_already_is_not_written(told: tuple[ToldServer, Session]) -> None:
    """One read, no write."""
    server, session = told
    server.then(node(OTHER))

    assert (await NodeTainter(session, FakeClock()).reopen("n")).is_done
    assert len(server.requests) == 1


async def test_a_node_that_is_gone_is_an_answer(told: tuple[ToldServer, Session]) -> None:
    """Nothing is left to close."""
    server, session = told
    server.then({"kind": "Status", "message": "no"}, 404)

    assert (await NodeTainter(session, FakeClock()).close("n")).verdict is WriteOutcome.GONE
