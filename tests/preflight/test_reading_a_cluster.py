"""The check reads a server that refuses, has nothing, or does not serve a kind."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.access.rights import Right
from plimsoll.check import survey
from plimsoll.check.leaders import NAME
from plimsoll.check.record_guard import AdmissionPolicies
from plimsoll.cluster.watched_resources import AUTOSCALERS
from plimsoll.kube.resource_claims import GROUP as DEVICES
from plimsoll.kube.session.errors import APIError, NotFound, Unauthorized
from plimsoll.preflight import definition_reader, workloads
from plimsoll.preflight.definitions import judged_names
from plimsoll.preflight.findings import Area, Level, Unread, unchecked
from plimsoll.preflight.other_schedulers import REPORTERS
from plimsoll.preflight.ports import judged_ports
from plimsoll.preflight.rights import DevicePresence

READ, WRITE = Right("get", "", "pods"), Right("patch", "apps", "deployments")


@pytest.mark.parametrize(
    ("unread", "said"),
    [
        pytest.param([Unread(READ, "", 403, "no")], "you may not get pods", id="a right"),
        pytest.param([Unread(READ, "shop", 403, "")], "you may not get pods in namespace shop", id="there"),
        pytest.param(
            [Unread(READ, "shop", 403, ""), Unread(WRITE, "shop", 403, "")],
            "you may not get pods or patch deployments.apps",
            id="two rights",
        ),
        pytest.param(
            [Unread(READ, "shop", 403, ""), Unread(WRITE, "", 500, ""), Unread(READ, "shop", 403, "")],
            "you may not get pods in namespace shop",
            id="only those of the same reason, once",
        ),
        pytest.param([Unread(READ, "", 500, "broken")], "cannot get pods: broken", id="a message"),
        pytest.param(
            [Unread(READ, "shop", 500, "")], "cannot get pods in namespace shop: status 500", id="500"
        ),
        pytest.param([Unread(READ, "", 0, "")], "cannot get pods: no answer", id="no answer"),
    ],
)
def test_what_was_not_read_is_said_with_the_reason(unread: list[Unread], said: str) -> None:
    finding = unchecked(Area.PODS, "pods", *unread)

    assert (finding.level, finding.message) == (Level.WARNING, f"not checked: {said}")
    assert ("right" in finding.remedy) is (unread[0].status == 403)


def test_the_name_that_kubectl_reads_otherwise_is_said_with_what_to_say() -> None:
    (clash,), (fine,) = judged_names("evictions.policy/v1"), judged_names("")

    assert (clash.level, fine.level, fine.remedy) == (Level.WARNING, Level.OK, "")
    assert clash.message == 'kubectl takes "evictions" for the built-in evictions.policy/v1'
    assert clash.remedy == "say evictions.plimsoll.dev or plev"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_is_free_taken_or_of_another_machine(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        taken = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip("no such address here")
    with taken:
        port = taken.getsockname()[1]
        busy, free = judged_ports(address, {"metrics": port, "probes": 0})
    (other,) = judged_ports("192.0.2.1", {"metrics": 0})

    assert (busy.level, busy.subject) == (Level.ERROR, f"port {address}:{port}")
    assert busy.message == "metrics cannot be served: another process listens there"
    assert (free.level, free.message) == (Level.OK, "probes can be served")
    assert other.level is Level.ERROR
    assert "another process" not in other.message


Answers = Mapping[str, list[Any] | APIError]


def served(monkeypatch: pytest.MonkeyPatch, answers: Answers) -> list[tuple[str, str]]:
    """Let lists give these by path or selector; what was asked for."""
    asked = []

    async def objects(
        _session: Any, path: str, selectors: Mapping[str, str] | None = None, limit: int = 0
    ) -> AsyncIterator[Any]:
        chosen = (selectors or {}).get("fieldSelector", "")
        asked.append((path, chosen))
        found = answers.get(chosen or path, [])
        if isinstance(found, APIError):
            raise found
        for each in found[: limit or None]:
            yield each

    for module in (survey, definition_reader):
        monkeypatch.setattr(module, "objects", objects)
    return asked


REFUSED, MISSING = Unauthorized("GET /x", 403, "no"), NotFound("GET /x", 404, "no")
SESSION: Any = SimpleNamespace()


@pytest.mark.parametrize(("answer", "placed"), [([], False), ([{}], True), (REFUSED, False)])
async def test_a_scheduler_has_placed_a_pod_if_one_of_its_pods_has_a_node(
    monkeypatch: pytest.MonkeyPatch, answer: Any, placed: bool
) -> None:
    selector = "spec.schedulerName=s,spec.nodeName!="
    asked = served(monkeypatch, {selector: answer})

    assert await survey._is_placed(SESSION, "s") is placed
    assert asked == [(survey.PODS, selector)]


async def test_reporters_are_those_with_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in REPORTERS:
        served(monkeypatch, {f"source={name}": [{}, {}]})
        assert await survey._reporters(SESSION, "/events") == {name}


@pytest.mark.parametrize("is_served", [True, False])
async def test_admission_policies_are_read_with_their_bindings(
    monkeypatch: pytest.MonkeyPatch, is_served: bool
) -> None:
    policies, bindings = "/x/validatingadmissionpolicies", "/x/validatingadmissionpolicybindings"
    served(monkeypatch, {policies: [{"a": 1}], bindings: [{"b": 1}] if is_served else MISSING})

    expected = AdmissionPolicies([{"a": 1}], [{"b": 1}]) if is_served else AdmissionPolicies()
    assert await survey._guards(SESSION, policies) == expected


@pytest.mark.parametrize(
    ("is_offered", "slices", "claims", "found"),
    [
        (False, [{}], [{}], DevicePresence.NOT_SERVED),
        (True, [], [], DevicePresence.UNUSED),
        (True, [{}], [], DevicePresence.USED),
        (True, [], [{}], DevicePresence.USED),
        (True, REFUSED, [], DevicePresence.USED),
        (True, [], REFUSED, DevicePresence.USED),
    ],
)
async def test_devices_may_be_there_where_they_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, is_offered: bool, slices: Any, claims: Any, found: Any
) -> None:
    async def offered(_: Any) -> Any:
        return SimpleNamespace(is_done=is_offered)

    monkeypatch.setattr(survey, "ResourceClaims", lambda _: SimpleNamespace(offered=lambda: offered(0)))
    paths = (f"{DEVICES}/resourceslices", f"{DEVICES}/resourceclaims")
    served(monkeypatch, dict(zip(paths, (slices, claims), strict=True)))

    assert await survey._devices(SESSION) is found


@pytest.mark.parametrize(
    ("is_offered", "answer", "found"),
    [(False, [{}], False), (True, [{}], True), (True, [], False), (True, REFUSED, True)],
)
async def test_autoscalers_may_be_there_where_they_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, is_offered: bool, answer: Any, found: bool
) -> None:
    async def offered(*_: Any) -> Any:
        return SimpleNamespace(is_done=is_offered)

    monkeypatch.setattr(survey, "offered", offered)
    served(monkeypatch, {AUTOSCALERS.path: answer})

    assert await survey._has_autoscalers(SESSION) is found


@pytest.mark.parametrize("namespace", ["", "ops"])
async def test_leases_that_may_not_be_listed_are_read_in_one_namespace(
    monkeypatch: pytest.MonkeyPatch, namespace: str
) -> None:
    paths = []

    async def read(_method: str, path: str) -> Any:
        paths.append(path)
        return {"metadata": {"namespace": "ops", "name": "plimsoll"}, "spec": {"holderIdentity": "x_1"}}

    served(monkeypatch, {"/c/leases": REFUSED})
    session: Any = SimpleNamespace(object=read)
    if not namespace:
        with pytest.raises(Unauthorized):
            await survey._leases(session, "/c/leases", namespace)
        return
    (key,) = await survey._leases(session, "/c/leases", namespace)
    assert (key, paths) == (("ops", "plimsoll"), [f"/c/namespaces/ops/leases/{NAME}"])


@pytest.mark.parametrize("metadata", [{}, {"metadata": None}, {"metadata": {}}])
async def test_a_lease_without_metadata_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, metadata: dict[str, Any]
) -> None:
    served(monkeypatch, {"/c/leases": [metadata, {"metadata": {"namespace": "ops", "name": "plimsoll"}}]})

    assert set(await survey._leases(SESSION, "/c/leases", "")) == {("", ""), ("ops", "plimsoll")}


NODE, OTHER = {"kind": "Node"}, {"kind": "ReplicaSet"}


@pytest.mark.parametrize(
    ("kind", "owners", "counts"),
    [
        ("Pod", None, True),
        ("Pod", [], True),
        ("Pod", [NODE], True),
        ("Pod", [OTHER], False),
        ("Pod", [NODE, OTHER], False),
        ("Deployment", [OTHER], True),
    ],
)
def test_a_pod_of_a_workload_is_counted_with_that(kind: str, owners: Any, counts: bool) -> None:
    metadata = {} if owners is None else {"ownerReferences": owners}
    assert survey._runs_by_itself(kind, {"metadata": metadata}) is counts


READY, UNREADY = {"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}
STARTED = {"type": "Initialized", "status": "True"}


@pytest.mark.parametrize(
    ("kind", "status", "ready"),
    [
        ("Deployment", {"readyReplicas": 2, "numberReady": 7}, 2),
        ("StatefulSet", {}, 0),
        ("DaemonSet", {"readyReplicas": 7, "numberReady": 3}, 3),
        ("DaemonSet", {}, 0),
        ("CronJob", {"active": [{}, {}], "readyReplicas": 7}, 2),
        ("CronJob", {"active": None}, 0),
        ("Pod", {"conditions": [STARTED, READY]}, 1),
        ("Pod", {"conditions": [STARTED, UNREADY]}, 0),
        ("Pod", {"conditions": [STARTED]}, 0),
        ("Pod", {}, 0),
    ],
)
def test_what_is_ready_is_read_as_each_kind_says_it(kind: str, status: Any, ready: int) -> None:
    assert workloads._ready(kind, status) == ready
