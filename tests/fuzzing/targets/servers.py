"""Targets of the adapters: answers of the API server, and of the metrics API behind it."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable

from fuzzing import specimens
from fuzzing.target import Bound, Broken, Target, kind_of
from fuzzing.told_session import LOOPS, ToldTransport, a_session
from plimsoll.access.rights import Right
from plimsoll.check.checks import judged
from plimsoll.check.survey import survey
from plimsoll.cli.callers import pauses, pod_proxy
from plimsoll.kube.access_reviews import AccessReviews, CallerReviews
from plimsoll.kube.custom_resources import PolicyResources, shadowing_evictions
from plimsoll.kube.leases import LeaseStore
from plimsoll.kube.lists import objects
from plimsoll.kube.metrics_api import UsageMeter
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from plimsoll.model.kinds.deployment import Deployment
from plimsoll.ports.leases import Lease
from plimsoll.ports.writes import WriteResult
from plimsoll.snapshots.cluster_reader import read_cluster
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock
from plimsoll.writers.deployments import DeploymentRollouts
from plimsoll.writers.nodes import NodeTainter
from plimsoll.writers.pods import PodBinder, PodDocuments, PodEvictor

POD = a_pod("p", node="n1", cpu="1")
STATUSES = (200, 201, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503)

#: What a status says that refuses.
STATUS = {
    "kind": "Status",
    "status": "Failure",
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "reason": "TooManyRequests",
    "details": {
        "name": "p",
        "retryAfterSeconds": 10,
        "causes": [
            {"reason": "DisruptionBudget", "message": "The disruption budget web needs 3 healthy pods"}
        ],
    },
    "code": 429,
}


def asked(*calls: Callable[[Session], Awaitable[object]]) -> Callable[[bytes], object]:
    """An attempt: calls of adapters are answered by the input; its first byte is the status.

    They return, or raise an APIError; what they say of the answer is a bounded sentence.
    """

    def attempt(data: bytes) -> object:
        status = STATUSES[data[0] % len(STATUSES)] if data else 200
        return LOOPS.run(_told(calls, status, data[1:]))

    return attempt


async def _told(
    calls: tuple[Callable[[Session], Awaitable[object]], ...], status: int, body: bytes
) -> object:
    left = 40

    def answer(_method: str, _path: str) -> tuple[int, bytes]:
        nonlocal left
        left -= 1
        return (status, body) if left > 0 else (404, b"{}")

    kinds: list[object] = []
    for call in calls:
        left = 40  # pages that go on for ever are the server's right; here they end
        try:
            found = await call(a_session(ToldTransport(answer)))
        except APIError as exc:
            kinds.append(kind_of(str(exc)))
        else:
            kinds.append(checked(found))
    return status, tuple(kinds)


def checked(found: object) -> object:
    """What is said of an answer, in kind; numbers that come out of it are numbers."""
    if isinstance(found, tuple) and found and isinstance(found[0], WriteResult):
        result, *rest = found
        return checked(result), tuple(str(type(each)) for each in rest)
    if isinstance(found, WriteResult):
        if not (math.isfinite(found.retry_after_s) and found.retry_after_s >= 0):
            raise Broken(f"wait {found.retry_after_s} s")
        return str(found.verdict), kind_of(f"{found.message}{found.budget}", needed=False)
    return type(found).__name__


async def _leased(session: Session) -> object:
    store = LeaseStore(session, "ns", "plimsoll", 5.0)
    answer, lease = await store.read()
    if lease is not None:
        _check_lease(lease)
        await store.write(lease)
    return answer


def _check_lease(lease: Lease) -> None:
    if not all(isinstance(each, str) for each in (lease.holder, lease.version)):
        raise Broken(f"a lease of other types: {lease}"[:300])
    if not all(map(math.isfinite, (lease.acquired, lease.renewed, lease.duration_s))):
        raise Broken("a lease without end")


async def _measured(session: Session) -> object:
    meter = UsageMeter(session)
    kinds = []
    for read in (meter.nodes, meter.pods):
        answer, readings = await read()
        for each in readings:
            if not math.isfinite(each.taken) or not each.is_sound:
                raise Broken(f"a reading of {each.name!r} at {each.taken}"[:300])
            if not all(isinstance(amount, int) for amount in each.usage.values()):
                raise Broken("usage that is no number")
        kinds.append((answer.verdict, len(readings)))
    return tuple(kinds)


async def _listed(session: Session) -> object:
    found = [each async for each in objects(session, "/api/v1/pods")]
    return len(found)


async def _surveyed(session: Session) -> object:
    findings = tuple(judged(await survey(session, 1e9, "plimsoll")))
    for each in findings:
        kind_of(each.message)
    return len(findings)


async def _paused(session: Session) -> object:
    try:
        return await pauses.suspend(session, ["p"], paused=True, reason="r")
    except pauses.PauseError as exc:
        return kind_of(str(exc))


async def _stopped(session: Session) -> object:
    try:
        return await pauses.press(session, pauses.OperatorLease("", "plimsoll"), paused=True)
    except pauses.PauseError as exc:
        return kind_of(str(exc))


async def _port(session: Session) -> object:
    await pod_proxy.port_of(session, "ns", "p")
    return await pod_proxy.token_of(session, "ns", "a")


async def _deployment(session: Session) -> object:
    answer, found = await DeploymentRollouts(session).read("a", "d")
    if found is not None:
        surge, missing = found.bounds()
        return (
            checked(answer),
            surge > 0,
            missing > 0,
            found.surged,
            found.is_settled,
            found.template_digest(),
        )
    return checked(answer)


RIGHT = Right("get", "", "pods")


def _both(*seeds: object) -> Callable[[], list[bytes]]:
    texts = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in (*seeds, STATUS)]
    return lambda: [b"\x00" + each for each in texts] + [b"\x09" + texts[-1]]


METRICS = {
    "kind": "NodeMetricsList",
    "versions": [{"version": "v1"}],
    "items": [
        {
            "metadata": {"name": "n1", "namespace": "a"},
            "timestamp": "2026-01-01T00:00:00Z",
            "window": "20s",
            "usage": {"cpu": "137m", "memory": "5Gi"},
            "containers": [{"name": "c", "usage": {"cpu": "1m", "memory": "2Ki"}}],
        }
    ],
}
LEASE = {
    "metadata": {
        "name": "plimsoll",
        "resourceVersion": "7",
        "annotations": {"plimsoll.dev/in-work": "u/1"},
    },
    "spec": {
        "holderIdentity": "pod-1_abc",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 3,
    },
}
POD_DOCUMENT = {
    "metadata": {"name": "p", "namespace": "default", "uid": POD.uid},
    "spec": {
        "nodeName": "n1",
        "serviceAccountName": "s",
        "taints": [{"key": "a", "effect": "NoSchedule"}],
        "containers": [
            {"name": "c", "ports": [{"name": "metrics", "containerPort": 8081}], "image": "plimsoll:1"}
        ],
    },
    "status": {
        "token": "t",
        "allowed": True,
        "authenticated": True,
        "user": {"username": "u", "groups": ["g"]},
    },
}


def _deployments() -> list[bytes]:
    one = specimens.document(Deployment, name="d", namespace="a")
    return [b"\x00" + one, b'\x00{"metadata":{},"items":[%b]}' % one, *_both()()]


TARGETS = (
    Target(
        "refusals",
        "kube.session.errors, writers.pods, writers.nodes",
        "answers to bindings, evictions, taints, reads of one pod",
        asked(
            lambda session: PodBinder(session).bind(POD, "n1"),
            lambda session: PodBinder(session).node_of(POD),
            lambda session: PodEvictor(session).evict(POD),
            lambda session: PodDocuments(session).read(POD),
            lambda session: NodeTainter(session, FakeClock()).close("n1"),
            lambda session: NodeTainter(session, FakeClock()).avoid("n1"),
            lambda session: NodeTainter(session, FakeClock()).reopen("n1"),
        ),
        _both(
            POD_DOCUMENT, {"items": [POD_DOCUMENT]}, {**POD_DOCUMENT, "metadata": {"resourceVersion": "5"}}
        ),
    ),
    Target(
        "leases",
        "kube.leases",
        "the lease, also where others wrote it",
        asked(_leased),
        _both(LEASE),
        (b'"annotations":{', b"0001-01-01T00:00:00Z", b'"9999-12-31T23:59:59.999999-23:59"'),
    ),
    Target(
        "metrics",
        "kube.metrics_api",
        "readings of metrics.k8s.io",
        asked(_measured),
        _both(METRICS),
        (b'"usage":', b'"timestamp":'),
    ),
    Target(
        "deployments",
        "writers.deployments, model.kinds.deployment",
        "Deployments",
        asked(
            lambda session: DeploymentRollouts(session).list(),
            _deployment,
        ),
        _deployments,
    ),
    Target(
        "command-reads",
        "kube.lists, kube.pauses, kube.custom_resources, kube.session.pod_proxy, kube.access_reviews",
        "what commands read of a server",
        asked(
            _listed,
            _paused,
            _stopped,
            _port,
            lambda session: PolicyResources(session).list(),
            shadowing_evictions,
            lambda session: AccessReviews(session).review(RIGHT, "ns"),
            lambda session: CallerReviews(session).caller("token"),
            lambda session: read_cluster(session, only=("pods",)),
        ),
        _both(
            POD_DOCUMENT,
            {"items": [POD_DOCUMENT], "metadata": {"continue": ""}},
            {"items": [LEASE]},
            {
                "versions": [{"groupVersion": "lifecycle.k8s.io/v1alpha1"}],
                "resources": [{"name": "evictions"}],
            },
        ),
    ),
    Target(
        "survey",
        "preflight",
        "what plimsoll check reads of a server",
        asked(_surveyed),
        _both({"items": [LEASE, POD_DOCUMENT], "metadata": {"continue": ""}}),
        (
            b'"version":',
            b'"schema":',
            b'"conditions":[{"type":"Accepted","status":"True"}]',
            b'"scheduling":{"schedulerName":"x"}',
        ),
        Bound(seconds=1.0, seconds_each=1e-4, memory_each=400.0),
    ),
)
