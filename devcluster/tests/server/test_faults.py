"""Faults on purpose, as the program under test and the test see them."""

import contextlib
import http.client
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from roadstead.clients import ApiError, RunningCluster
from roadstead.cluster import DevCluster

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
PATH = "/api/v1/namespaces/default/configmaps"


class Program:
    """The program under test: requests without the header that exempts them from faults."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._cluster = cluster

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        """Status, body and headers of an answer."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self._cluster.plain_url + path, data, method=method)
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {self._cluster.token}"}
        for name, value in {**sent, **headers}.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error), error.headers

    @contextlib.contextmanager
    def watch(self, version: str, **query: str) -> Iterator[http.client.HTTPResponse]:
        """An open watch of ConfigMaps."""
        parts = urllib.parse.urlsplit(self._cluster.plain_url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
        asked = urllib.parse.urlencode({"watch": "true", "resourceVersion": version, **query})
        connection.request(
            "GET", f"{PATH}?{asked}", headers={"Authorization": f"Bearer {self._cluster.token}"}
        )
        try:
            yield connection.getresponse()
        finally:
            connection.close()

    def version(self) -> str:
        """The version of a list."""
        version: str = self.send("GET", PATH)[1]["metadata"]["resourceVersion"]
        return version


@pytest.fixture
def program(roadstead: RunningCluster) -> Iterator[Program]:
    yield Program(roadstead)
    roadstead.reset()


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (
            409,
            "Conflict",
            (
                'Operation cannot be fulfilled on configmaps "one": the object has been modified; '
                "please apply your changes to the latest version and try again"
            ),
        ),
        (
            429,
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        (500, "InternalError", "Internal error occurred: etcdserver: request timed out"),
        (504, "Timeout", "Timeout: request did not complete within the allotted timeout"),
    ],
)
def test_a_request_is_refused_so_many_times(
    roadstead: RunningCluster, program: Program, status: int, reason: str, message: str
) -> None:
    """In the API server's words; then it is served, and the test itself always is."""
    roadstead.apply(CONFIG)

    with roadstead.faults.refuse("PUT", "configmaps", status=status, times=2) as fault:
        answers = [program.send("PUT", f"{PATH}/one", CONFIG)[:2] for _ in range(3)]
        roadstead.request("PUT", f"{PATH}/one", CONFIG)
        assert fault.hits == 2

    assert fault.hits == 2  # also when it is gone
    assert [code for code, _ in answers] == [status, status, 200]
    assert (answers[0][1]["reason"], answers[0][1]["message"]) == (reason, message)


def test_a_refusal_says_when_to_try_again(roadstead: RunningCluster, program: Program) -> None:
    with roadstead.faults.refuse("GET", "configmaps", status=429, retry_after_s=7):
        _, body, headers = program.send("GET", PATH)

    assert headers["Retry-After"] == "7"
    assert body["details"]["retryAfterSeconds"] == 7


def test_other_requests_are_served(roadstead: RunningCluster, program: Program) -> None:
    """Method, resource, subresource, namespace, name and client must all be those of the fault."""
    roadstead.apply(CONFIG, {**CONFIG, "metadata": {"name": "two"}})
    refuse = roadstead.faults.refuse

    with (
        refuse("PUT", "configmaps", status=500, name="one", client="operator"),
        refuse("GET", "configmaps/status", status=500),
        refuse("GET", "configmaps.example.com", status=500),
        refuse("*", "*", status=500, namespace="other"),
    ):
        named = {"User_Agent": "my-operator/1.0"}
        codes = [
            program.send("PUT", f"{PATH}/one", CONFIG, **named)[0],
            program.send("PUT", f"{PATH}/one", CONFIG)[0],
            program.send("GET", f"{PATH}/one", **named)[0],
            program.send("GET", "/api/v1/namespaces/other/configmaps")[0],
        ]

    assert codes == [500, 200, 200, 500]
    assert program.send("PUT", f"{PATH}/one", CONFIG, **named)[0] == 200


@pytest.mark.parametrize("takes_effect", [False, True])
def test_an_answer_can_be_lost_with_the_request_or_without_it(
    roadstead: RunningCluster, program: Program, *, takes_effect: bool
) -> None:
    with (
        roadstead.faults.drop("POST", "configmaps", takes_effect=takes_effect),
        pytest.raises((OSError, http.client.HTTPException)),
    ):
        program.send("POST", PATH, CONFIG)

    assert [one["metadata"]["name"] for one in roadstead.list("configmaps", "default")] == (
        ["one"] if takes_effect else []
    )


def test_a_request_hangs_until_the_block_ends(roadstead: RunningCluster, program: Program) -> None:
    seen: list[str] = []

    def send() -> None:
        try:
            program.send("GET", PATH)
        except (OSError, http.client.HTTPException):
            seen.append("closed")

    thread = threading.Thread(target=send)
    with roadstead.faults.hang("GET", "configmaps") as fault:
        thread.start()
        while not fault.hits:
            pass
        assert not seen
    thread.join(30)

    assert seen == ["closed"]


def test_a_cut_watch_resumes_where_it_was(roadstead: RunningCluster, program: Program) -> None:
    version = program.version()
    with program.watch(version) as watch:
        roadstead.apply(CONFIG)
        assert json.loads(watch.readline())["type"] == "ADDED"

        assert roadstead.faults.cut_watches("pods") == 0
        assert roadstead.faults.cut_watches("configmaps") == 1

        with pytest.raises((OSError, http.client.HTTPException)):
            watch.read()
    with program.watch(version) as watch:
        assert json.loads(watch.readline())["object"]["metadata"]["name"] == "one"


def test_lines_of_an_open_watch_come_late(roadstead: RunningCluster, program: Program) -> None:
    """The first is held back until the fault is gone, the next is not."""
    with program.watch(program.version()) as watch:
        with roadstead.faults.delay("WATCH", "configmaps", seconds=0.2, times=1) as fault:
            roadstead.apply(CONFIG)
            assert json.loads(watch.readline())["type"] == "ADDED"
            assert fault.hits == 1
        roadstead.delete("configmaps/one")
        assert json.loads(watch.readline())["type"] == "DELETED"


def test_an_expired_version_is_answered_by_410(roadstead: RunningCluster, program: Program) -> None:
    """Also where nothing has changed since; a new list is the way on."""
    version = program.version()
    with program.watch(version):
        assert roadstead.faults.expire("configmaps") == 1

    with program.watch(version) as watch:
        told = json.loads(watch.readline())
    assert (told["type"], told["object"]["code"], told["object"]["reason"]) == ("ERROR", 410, "Expired")
    with program.watch(program.version()) as watch:
        roadstead.apply(CONFIG)
        assert json.loads(watch.readline())["type"] == "ADDED"


def test_a_restart_keeps_objects_token_and_address(roadstead: RunningCluster, program: Program) -> None:
    """Open watches end, and resume from their version as with a real API server."""
    roadstead.apply(CONFIG)
    version, url = program.version(), roadstead.url
    with program.watch(version) as watch:
        roadstead.faults.restart(down_s=0.05)
        with pytest.raises((OSError, http.client.HTTPException)):
            watch.read()

    assert roadstead.url == url
    assert program.send("GET", f"{PATH}/one")[0] == 200
    with program.watch(version) as watch:
        roadstead.delete("configmaps/one")
        assert json.loads(watch.readline())["type"] == "DELETED"


def test_the_clock_moves_what_waits_for_it(roadstead: RunningCluster, program: Program) -> None:
    """A Job whose deadline is in an hour fails now; a reset moves the clock back."""
    template = {"spec": {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Never"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work"},
        "spec": {"activeDeadlineSeconds": 3600, "template": template},
    }
    roadstead.apply(job)
    roadstead.wait_for("jobs/work", until=lambda one: one.get("status", {}).get("active"))

    roadstead.faults.move_clock(3601)

    failed = roadstead.wait_for("jobs/work", condition="FailureTarget")
    started = failed["status"]["startTime"]
    roadstead.reset()
    roadstead.apply(CONFIG)
    assert roadstead.get("configmaps/one")["metadata"]["creationTimestamp"][:13] <= started[:13]
    assert program.send("GET", PATH)[0] == 200


def test_a_reset_removes_faults(roadstead: RunningCluster, program: Program) -> None:
    fault = roadstead.faults.refuse("*", "*", status=500)
    fault.__enter__()
    assert program.send("GET", PATH)[0] == 500

    roadstead.reset()

    assert program.send("GET", PATH)[0] == 200
    with pytest.raises(ApiError, match="there is no such fault"):
        fault.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"action": "explode"}, "action is explode; allowed are refuse, delay, hang, drop"),
        ({"action": "refuse", "status": 418}, "status is 418; allowed are 401, 403"),
        ({"action": "drop", "verb": "get"}, "unexpected keyword argument 'verb'"),
    ],
)
def test_a_fault_that_does_not_exist_is_refused(roadstead: RunningCluster, fault: Any, message: str) -> None:
    with pytest.raises(ApiError, match=message):
        roadstead.request("POST", "/roadstead/faults/add", fault)


async def test_a_cluster_without_a_port_is_broken_as_well(roadstead_in_process: DevCluster) -> None:
    async with roadstead_in_process.session() as session:
        fault = {"action": "refuse", "method": "GET", "resource": "nodes", "status": 503, "times": 1}
        async with session.post("/roadstead/faults/add", json=fault) as answer:
            assert answer.status == 200
        codes = []
        for _ in range(2):
            async with session.get("/api/v1/nodes") as answer:
                codes.append(answer.status)
        async with session.post("/roadstead/restart", json={}) as answer:
            restarted = answer.status

    assert codes == [503, 200]
    assert restarted == 400
