"""Targets at the operator's edges: requests to its endpoint, certificates, watched policies, log lines."""

from __future__ import annotations

import asyncio
import base64
import logging
from types import SimpleNamespace
from typing import Any, cast

import orjson
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from fuzzing.target import Bound, Broken, Target, kind_of
from fuzzing.targets.policies import policy_documents
from fuzzing.told_session import LOOPS
from plimsoll.answers.operator_memory import NodeMemory, PodMemory
from plimsoll.app.memory.caller_gate import CallerGate
from plimsoll.app.memory.endpoint import ExplainEndpoint
from plimsoll.http_services.extenders import HTTPExtenders
from plimsoll.kube.access_reviews import Caller
from plimsoll.ports.extenders import Endpoint, TLSSettings
from plimsoll.telemetry.outages import KopfLines, OutageLog
from plimsoll.testing.fakes import FakeClock
from policy_controller.test_controller import Scene

#: What the endpoint may answer.
STATUSES = (200, 401, 403, 404)


class _Reviews:
    """Accepts tokens that begin with a letter."""

    async def caller(self, token: str, audience: str = "") -> Caller | None:
        """The token is sent to the API server as JSON."""
        orjson.dumps(token)
        return Caller(token[:20]) if token[:1].isalpha() else None

    async def may_get(self, caller: Caller, path: str) -> bool:
        """Half of them."""
        orjson.dumps([caller.user, path])
        return len(caller.user) % 2 == 0


async def _pod(namespace: str, name: str) -> PodMemory:
    return PodMemory(standing="leads", queue=None, assumed="", room=None)


async def _node(name: str) -> NodeMemory:
    return NodeMemory(standing="leads", assumed=[], rooms=[])


def explain_request(data: bytes) -> object:
    """A request to the endpoint: its path in the first line, then its headers, as aiohttp hands them over."""
    path, *lines = data.decode(errors="surrogateescape").split("\n")
    headers = CIMultiDict[str]()
    for line in lines[:20]:
        name, colon, value = line.partition(":")
        if colon and name.isascii() and name.replace("-", "").isalnum():
            headers.add(name, value.strip())
    return LOOPS.run(_explained(path, headers))


async def _explained(path: str, headers: CIMultiDict[str]) -> object:
    endpoint = ExplainEndpoint(CallerGate(_Reviews(), FakeClock()), _pod, _node)
    try:
        request = SimpleNamespace(path=URL(path, encoded=True).path, headers=headers, remote="127.0.0.1")
    except ValueError:
        return "no request"  # the server refuses it
    answer = await endpoint.answer(cast("web.BaseRequest", request))
    if answer.status not in STATUSES:
        raise Broken(f"status {answer.status}")
    return answer.status, kind_of(answer.text or "") if answer.status != 200 else ""


def certificates(data: bytes) -> object:
    """Certificates that a policy gives for an extender: three texts with zeros between them."""
    authority, certificate, key, *_ = [*data.split(b"\0"), b"", b"", b""]
    parts = [each.decode(errors="replace") for each in (authority, certificate, key)]
    settings = TLSSettings(ca_data=parts[0], cert_data=parts[1], key_data=parts[2])
    problem = HTTPExtenders().problem_of(Endpoint("https://e", 1.0, settings))
    return kind_of(problem, needed=False)


def kopf_lines(data: bytes) -> object:
    """Lines that kopf logs: they repeat what a server said."""
    told: list[str] = []
    outages = OutageLog(lambda: 0.0, "https://server")
    lines = KopfLines(outages, told.append)
    message = data.decode(errors="replace").replace("%", "%%")
    record = logging.LogRecord("kopf.x", logging.ERROR, "f", 1, message, (), None)
    shown = lines.filter(record)
    return shown, len(told), tuple(sorted(type(each).__name__ for each in outages._failures.values()))


def policy_events(data: bytes) -> object:
    """A policy as its watch brings it, next to one that stays as it is."""
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return "no JSON"
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return "no object"
    return LOOPS.run(_policies_set(document))


async def _policies_set(document: dict[str, Any]) -> object:
    scene = Scene()
    name = document["metadata"]["name"]
    near = {
        "metadata": {"name": "near" + name[:20], "uid": "u", "generation": 1, "creationTimestamp": "1999"},
        "spec": {"scheduling": {"schedulerName": "near"}},
    }
    await scene.policies.set({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "SchedulingPolicy", **near})
    await scene.policies.set(document)
    await scene.policies.set(document)
    if scene.served and "near" not in scene.served:
        raise Broken(f"the neighbour is served no longer: {sorted(scene.served)}"[:300])
    found = scene.policies.claimed()
    await scene.policies.remove(name)
    await asyncio.sleep(0)
    return len(found), len(scene.served), tuple(sorted({where for where, _ in scene.observer.failures}))[:2]


def _certificates() -> list[bytes]:
    pem = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    text = base64.b64encode(pem)
    return [text, b"\0".join((text, text, text)), b"\0" + text]


TARGETS = (
    Target(
        "explain-requests",
        "app.memory.endpoint",
        "requests to the operator's metrics address, from anybody who reaches it",
        explain_request,
        lambda: [
            b"/explain/pods/a/b\nAuthorization: Bearer abc",
            b"/explain/nodes/n\nAuthorization: Bearer abcd\nX: y",
            b"/explain/nodes/%2e%2e%2f\nPlimsoll-Authorization: Bearer 1",
        ],
        (b"Authorization: ", b"Bearer ", b"bearer\xff", b"/explain/pods/", b"%00", b"%ff", b"//", b"?"),
    ),
    Target(
        "certificates",
        "http_services.extenders",
        "certificates of extenders in policies",
        certificates,
        _certificates,
        (b"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==", b"=", b"\0"),
        Bound(seconds=1.0, seconds_each=1e-5),
    ),
    Target(
        "kopf-lines",
        "telemetry.outages",
        "what kopf logs of answers of the API server",
        kopf_lines,
        lambda: [
            (
                b"Request attempt #1/9 failed; will retry in 1 seconds: GET https://a/apis/b -> "
                b"APIForbiddenError('x', {'code': 403})"
            ),
            b"Unresolved resources cannot be served: [Selector(any_name='spol')]",
            b"watcher of x has failed: y",
            b"Activity 'login' is cancelled",
        ],
        (b": ", b" -> ", b"; ", b"Request attempt #", b" has failed: ", b"any_name='", b"\n"),
    ),
    Target(
        "policy-events",
        "policy_controller.controller",
        "policies as their watch brings them, next to others",
        policy_events,
        lambda: [*policy_documents(), b'{"metadata":{"name":"a"},"spec":{}}'],
        (b'"generation":2', b'"annotations":{"plimsoll.dev/run":"x"}', b'"schedulerName":"near"'),
        Bound(seconds=1.0, seconds_each=1e-4, memory=2**25, memory_each=1000.0),
    ),
)
