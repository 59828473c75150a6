"""The metrics API over HTTP: its versions, and the readings that count."""

from typing import Any

import pytest

from kube.scripted_server import ToldServer
from plimsoll.kube.metrics_api import UsageMeter
from plimsoll.kube.session.session import Session
from plimsoll.ports.writes import WriteOutcome
from plimsoll.testing.fakes import RememberingObserver

V1 = {"versions": [{"version": "v1beta1"}, {"version": "v1"}]}


def node(
    name: str, cpu: str | None = "250m", memory: str = "1Gi", timestamp: str = "2026-01-01T00:00:00Z"
) -> dict[str, Any]:
    usage = {"cpu": cpu, "memory": memory}
    return {"metadata": {"name": name}, "timestamp": timestamp, "window": "10.5s", "usage": usage}


async def test_nodes_are_read_in_billionths(told: tuple[ToldServer, Session]) -> None:
    """A quarter of a core and a gibibyte."""
    server, session = told
    server.then(V1)
    server.then({"items": [node("n1")]})

    answer, (reading,) = await UsageMeter(session).nodes()

    assert answer.is_done
    assert [request[1] for request in server.requests] == [
        "/apis/metrics.k8s.io",
        "/apis/metrics.k8s.io/v1/nodes",
    ]
    assert (reading.name, reading.taken, reading.window_s) == ("n1", 1767225600.0, 10.5)
    assert reading.usage == {"cpu": 250_000_000, "memory": 2**30 * 10**9}


async def test_containers_of_a_pod_are_added_up(told: tuple[ToldServer, Session]) -> None:
    """The pod's usage is that of all of them."""
    server, session = told
    usage = {"cpu": "100m", "memory": "1Mi"}
    pod = {
        "metadata": {"namespace": "default", "name": "web-1"},
        "timestamp": "2026-01-01T00:00:00Z",
        "containers": [{"usage": usage}, {"usage": usage}],
    }
    server.then(V1)
    server.then({"items": [pod]})

    _, (reading,) = await UsageMeter(session).pods()

    assert (reading.name, reading.usage["cpu"], reading.window_s) == ("default/web-1", 200_000_000, 0.0)


@pytest.mark.parametrize(
    "broken",
    [
        *({}, {"metadata": {}}, 7),
        *(node("bad", cpu=cpu) for cpu in ("much", None, "-1", "-1n", "NaN", "1e300", "1000001")),
        *(node("bad", memory=memory) for memory in ("-1Ki", "1e300", "2Ei", "9" * 1000)),
        *(
            node("bad", timestamp=moment)
            for moment in ("soon", "2026-01-01T00:00:00", "0000-01-01T00:00:00Z")
        ),
    ],
)
async def test_a_reading_that_makes_no_sense_is_left_out(
    told: tuple[ToldServer, Session], broken: int | dict[str, Any]
) -> None:
    """The other nodes are measured all the same."""
    server, session = told
    server.then(V1)
    server.then({"items": [broken, node("good")]})

    _, readings = await UsageMeter(session).nodes()

    assert [reading.name for reading in readings] == ["good"]


async def test_a_cluster_without_the_metrics_api_says_so(told: tuple[ToldServer, Session]) -> None:
    """404: nothing serves it."""
    server, session = told
    server.then({"kind": "Status", "code": 404, "message": "the server could not find it"}, 404)

    answer, readings = await UsageMeter(session).nodes()

    assert answer.verdict is WriteOutcome.GONE
    assert not readings


@pytest.mark.parametrize("part", [{"cpu": "-100m", "memory": "1Mi"}, {"cpu": "1", "memory": "-1"}])
async def test_a_container_cannot_use_less_than_nothing(
    told: tuple[ToldServer, Session], part: dict[str, str]
) -> None:
    """Though the pod's sum would be above zero."""
    server, session = told
    usage = {"cpu": "5", "memory": "1Gi"}
    pod = {"metadata": {"namespace": "a", "name": "p"}, "containers": [{"usage": usage}, {"usage": part}]}
    server.then(V1)
    server.then({"items": [{**pod, "timestamp": "2026-01-01T00:00:00Z"}]})

    answer, readings = await UsageMeter(session).pods()

    assert (answer.is_done, readings) == (True, [])


@pytest.mark.parametrize(
    ("group", "status", "version"),
    [
        ({"versions": [{"version": "v1beta1"}]}, 200, "v1beta1"),
        ({"versions": [{"version": "v2"}, {"version": "v1"}, {"version": "v1beta1"}]}, 200, "v1"),
        ({"kind": "Status", "message": "forbidden"}, 403, "v1beta1"),
    ],
)
async def test_the_version_is_discovered(
    told: tuple[ToldServer, Session], group: dict[str, Any], status: int, version: str
) -> None:
    """The older one where the server has no other, or does not show its groups."""
    server, session = told
    server.then(group, status)
    for _ in range(2):
        server.then({"items": []})
    meter = UsageMeter(session)

    await meter.nodes()
    await meter.pods()

    assert [request[1] for request in server.requests[1:]] == [
        f"/apis/metrics.k8s.io/{version}/nodes",
        f"/apis/metrics.k8s.io/{version}/pods",
    ]


async def test_a_version_that_is_gone_is_discovered_again(told: tuple[ToldServer, Session]) -> None:
    """A metrics-server was replaced."""
    server, session = told
    server.then(V1)
    server.then({"items": []})
    server.then({"message": "not found"}, 404)
    server.then({"versions": [{"version": "v1beta1"}]})
    server.then({"items": [node("n1")]})
    observer = RememberingObserver()
    meter = UsageMeter(session, observer)

    outcomes = [await meter.nodes() for _ in range(3)]

    assert [answer.verdict for answer, _ in outcomes] == [
        WriteOutcome.DONE,
        WriteOutcome.GONE,
        WriteOutcome.DONE,
    ]
    assert server.requests[-1][1] == "/apis/metrics.k8s.io/v1beta1/nodes"
    assert observer.asked == [("KubernetesMetrics", each) for each in ("answered", "refused", "answered")]


@pytest.mark.parametrize("group", [{"versions": [{"version": "v3"}]}, {"versions": []}])
async def test_versions_that_are_not_known_are_no_metrics_api(
    told: tuple[ToldServer, Session], group: dict[str, Any]
) -> None:
    """As if it were not served."""
    server, session = told
    server.then(group)

    answer, _ = await UsageMeter(session).nodes()

    assert answer.verdict is WriteOutcome.GONE
