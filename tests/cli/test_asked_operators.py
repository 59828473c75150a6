"""``explain`` asks the operator that leads, through the API server or at its address; each answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cli.refusing_server import kubeconfig_of
from plimsoll.answers.operator_memory import PodMemory
from plimsoll.cli.callers.memory import memory_of
from plimsoll.cli.commands.explain import known_now
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import Options

LEASES = "/apis/coordination.k8s.io/v1"
PODS = "/api/v1/namespaces/ops/pods"
POD = f"{PODS}/plimsoll-1"
TOKEN = "/api/v1/namespaces/ops/serviceaccounts/plimsoll-reader/token"
MEMORY = {"standing": "leading", "queue": None, "assumed": "n1", "room": None}
ASKED = ("pods", "a/b", "p")
PROXIED = f"{POD}:9000/proxy/explain/pods/a%2Fb/p"


def a_lease(namespace: str, holder: str, name: str = "plimsoll") -> dict[str, Any]:
    return {"metadata": {"namespace": namespace, "name": name}, "spec": {"holderIdentity": holder}}


def a_status(code: int, reason: str, message: str) -> tuple[int, Any]:
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message}


def a_pod(*ports: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "x"}, {"name": "main", "ports": [*ports]}]}}


class Server(ThreadingHTTPServer):
    """Answers by path, and remembers who asked for what.

    Attributes:
        answers: Status and body by path; a text is sent as it is, anything else as JSON.
        asked: The paths, and the headers that carry credentials.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Serves one request."""

    server: Server

    def answer(self) -> None:
        path = self.path.partition("?")[0]
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        theirs = [self.headers.get(name, "") for name in ("Authorization", "Plimsoll-Authorization")]
        self.server.asked.append((f"{self.command} {path}", *theirs))  # type: ignore[arg-type] # of two
        status, body = self.server.answers.get(path, a_status(404, "NotFound", f"{path} not found"))
        text = body if isinstance(body, str) else json.dumps(body)
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = answer  # noqa: N815 - names of http.server

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    """One server for all."""
    with Server() as one:
        Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield one
        one.shutdown()


@pytest.fixture
def server(running: Server) -> Server:
    """A server at which everything is well."""
    running.asked.clear()
    ports = ({"name": "probes", "containerPort": 8080}, {"name": "metrics", "containerPort": 9000})
    running.answers = {
        f"{LEASES}/leases": (200, {"items": [a_lease("ops", "plimsoll-1_x"), a_lease("ops", "y", "other")]}),
        f"{LEASES}/namespaces/ops/leases/plimsoll": (200, a_lease("ops", "plimsoll-1_x")),
        POD: (200, a_pod(*ports)),
        TOKEN: (201, {"status": {"token": "ours"}}),
        PROXIED: (200, MEMORY),
        f"{POD}:8081/proxy/explain/pods/a%2Fb/p": (200, MEMORY | {"assumed": "by the usual port"}),
    }
    return running


def asked(
    server: Server, folder: Path, lease: str = "plimsoll", url: str = ""
) -> tuple[PodMemory | None, str]:
    options = Options(kubeconfig=kubeconfig_of(folder / "config", server.url))
    memory, why = memory_of(options, url, lease, ASKED, PodMemory)
    return memory, why.replace(server.url, "SERVER")


def test_the_leader_is_asked_with_a_token_of_its_own(server: Server, tmp_path: Path) -> None:
    """The caller's credentials stay between the caller and the API server."""
    memory, why = asked(server, tmp_path)

    assert (memory, why) == (PodMemory.model_validate(MEMORY), "")
    assert [path for path, _, _ in server.asked] == [
        f"GET {LEASES}/leases",
        f"GET {POD}",
        f"POST {TOKEN}",
        f"GET {PROXIED}",
    ]
    assert {theirs for _, theirs, _ in server.asked} == {"Bearer t"}
    assert [ours for _, _, ours in server.asked] == ["", "", "", "Bearer ours"]


@pytest.mark.parametrize(
    ("answers", "lease", "assumed"),
    [
        pytest.param({POD: (200, a_pod())}, "plimsoll", "by the usual port", id="no port of that name"),
        pytest.param({POD: (200, {})}, "plimsoll", "by the usual port", id="a pod without a spec"),
        pytest.param({f"{LEASES}/leases": (500, "")}, "ops/plimsoll", "n1", id="a namespace is named"),
        pytest.param(
            {f"{LEASES}/leases": (200, {"items": [a_lease("ops", "plimsoll-1_x"), a_lease("old", "")]})},
            "plimsoll",
            "n1",
            id="another lease without a holder",
        ),
    ],
)
def test_the_leader_is_found(
    server: Server, tmp_path: Path, answers: Mapping[str, tuple[int, Any]], lease: str, assumed: str
) -> None:
    server.answers |= answers
    memory, why = asked(server, tmp_path, lease)

    assert why == ""
    assert memory is not None
    assert memory.assumed == assumed


def test_a_user_who_may_not_list_leases_reads_that_of_the_usual_namespace(
    server: Server, tmp_path: Path
) -> None:
    server.answers[f"{LEASES}/leases"] = a_status(403, "Forbidden", "no")
    memory, why = asked(server, tmp_path)

    assert memory is None
    assert "namespace" in why
    assert server.asked[-1][0] == f"GET {LEASES}/namespaces/plimsoll/leases/plimsoll"


FAILURES: dict[str, tuple[dict[str, tuple[int, Any]], str]] = {
    "no lease": ({f"{LEASES}/leases": (200, {"items": []})}, "no namespace has a lease plimsoll"),
    "no items": ({f"{LEASES}/leases": (200, {"items": None})}, "no namespace has a lease plimsoll"),
    "no holder": (
        {f"{LEASES}/leases": (200, {"items": [a_lease("ops", "")]})},
        "the lease plimsoll has no holder: no operator leads",
    ),
    "two leases": (
        {f"{LEASES}/leases": (200, {"items": [a_lease("b", "x_1"), a_lease("a", "y_2")]})},
        "several namespaces have a lease plimsoll: a, b; choose",
    ),
    "a list that fails": ({f"{LEASES}/leases": a_status(500, "InternalError", "broken")}, "broken; name its"),
    "a pod that is gone": (
        {POD: a_status(404, "NotFound", "gone")},
        "plimsoll-1 holds the lease and is no pod",
    ),
    "a pod that may not be read": (
        {POD: a_status(403, "Forbidden", "may not")},
        "may not; deploy/components/explain has the Role",
    ),
    "no account": ({TOKEN: a_status(404, "NotFound", "gone")}, "namespace ops has no ServiceAccount"),
    "an empty token": ({TOKEN: (201, {"status": {}})}, "the answer has no token"),
    "the server refuses the proxy": ({PROXIED: a_status(403, "Forbidden", "no proxy")}, "no proxy; deploy/"),
    "the operator refuses": ({PROXIED: (403, "not\n you")}, "pod ops/plimsoll-1 answered 403: not you; name"),
    "JSON of another kind": ({PROXIED: (503, {"kind": "Page"})}, 'answered 503: {"kind": "Page"}'),
    "a redirect": ({PROXIED: (302, "go on")}, "pod ops/plimsoll-1 answered 302: go on"),
    "another version": ({PROXIED: (200, {"a": 1})}, "its answer cannot be read; is it of another version?"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_an_operator_that_cannot_be_asked_is_a_sentence(server: Server, tmp_path: Path, failure: str) -> None:
    answers, said = FAILURES[failure]
    server.answers |= answers
    memory, why = asked(server, tmp_path)

    assert memory is None
    assert said in why, why
    assert why.startswith("the operator ")


def test_an_operator_at_an_address_gets_the_callers_token(server: Server, tmp_path: Path) -> None:
    server.answers["/x/explain/pods/a%2Fb/p"] = (200, MEMORY)
    memory, why = asked(server, tmp_path, url=f"{server.url}/x/")

    assert (memory, why) == (PodMemory.model_validate(MEMORY), "")
    assert server.asked == [("GET /x/explain/pods/a%2Fb/p", "Bearer t", "")]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((403, "not you " + "x" * 300), "the operator at SERVER: not you " + "x" * 192),
        ((302, "go on"), "the operator at SERVER: go on"),
        ((200, "[]"), "the operator at SERVER: its answer cannot be read; is it of another version?"),
    ],
)
def test_an_operator_at_an_address_that_refuses_is_a_sentence(
    server: Server, tmp_path: Path, answer: tuple[int, str], said: str
) -> None:
    server.answers["/explain/pods/a%2Fb/p"] = answer
    assert asked(server, tmp_path, url=server.url) == (None, said)


def test_an_address_without_an_operator_is_a_sentence(server: Server, tmp_path: Path) -> None:
    memory, why = asked(server, tmp_path, url="http://127.0.0.1:1")
    assert memory is None
    assert why.startswith("the operator at http://127.0.0.1:1: no answer (")
    assert not server.asked


def test_unreadable_credentials_are_a_sentence_and_ask_no_operator(server: Server, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("contexts: [")
    memory, why = memory_of(Options(kubeconfig=kubeconfig), server.url, "plimsoll", ASKED, PodMemory)

    assert memory is None
    assert why.startswith(f"the operator at {server.url}: not asked, ")
    assert not server.asked


@pytest.mark.parametrize("url", ["127.0.0.1:8081", "ftp://host", "http://"])
def test_what_is_no_address_is_said_so(server: Server, tmp_path: Path, url: str) -> None:
    with pytest.raises(UserError, match="is no address; write http://HOST:PORT"):
        asked(server, tmp_path, url=url)


@pytest.mark.parametrize(("why", "left"), [("", ["c"]), ("not asked", ["not asked", "a", "c"])])
def test_what_the_operator_would_know_stays_unknown_without_an_answer(why: str, left: list[str]) -> None:
    assert known_now(["c", "a"] if why == "" else ["a", "c"], ("a", "b"), why) == left
