"""A whole operator in virtual time: kinds that appear late, hand-over, its end, its pages and what it logs.

Rare branches of the composition: what happens at the second look, after the first life, and when a part ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import kopf
import pytest
from structlog.testing import capture_logs

from misbehaving.stage import Stage, played
from plimsoll.access.rights import BIND, EVICT, Access
from plimsoll.api.v1alpha1.annotations import OPERATOR
from plimsoll.app import process
from plimsoll.app.optional_kinds import device_watches
from plimsoll.app.optional_kinds.unwatched import ASK_S, RETRY_S, Unwatched
from plimsoll.app.process import OperatorProcess, TaskEnded
from plimsoll.app.settings import Settings
from plimsoll.app.start_check import StartCheck
from plimsoll.preflight.findings import Area, Level
from plimsoll.preflight.rights import READING
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.fakes import FakeAccessReviewer, FakeClock, RememberingObserver
from simulation.cluster import NAMESPACE, POLICIES, policy

#: Seconds in which a pod that fits gets its node.
SOON_S = 3.0


def devices(stage: Stage) -> None:
    """A class, a node's only device, and a claim for it."""
    api = stage.cluster.api
    api.create("deviceclasses.resource.k8s.io", {"metadata": {"name": "gpu"}, "spec": {}})
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "n1", "pool": pool, "devices": [{"name": "only"}]}
    api.create("resourceslices.resource.k8s.io", {"metadata": {"name": "n1"}, "spec": spec})
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    claim = {
        "metadata": {"name": "one", "namespace": NAMESPACE},
        "spec": {"devices": {"requests": [request]}},
    }
    api.create("resourceclaims.resource.k8s.io", claim)


def answers(monkeypatch: pytest.MonkeyPatch, module: Any, *found: Unwatched | None) -> list[float]:
    """Let a watch find these, one after the other; the times at which it looks."""
    left, times = [*found], list[float]()

    async def unwatched(*_: Any) -> Unwatched | None:
        times.append(asyncio.get_running_loop().time())
        return left.pop(0)

    monkeypatch.setattr(module, "unwatched", unwatched)
    return times


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    """What is logged."""
    with capture_logs() as found:
        yield found


def test_devices_that_are_served_late_are_allocated_then(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    """The reason is logged once, a server without an answer is asked sooner, and others never wait."""
    missing, silent = Unwatched("no right"), Unwatched("no answer", is_answered=False)
    times = answers(monkeypatch, device_watches, missing, missing, silent, None)

    async def story(stage: Stage) -> None:
        stage.serve("s")
        devices(stage)
        stage.pod("claims", "s", resourceClaims=[{"name": "d", "resourceClaimName": "one"}])
        stage.pod("plain", "s")
        await asyncio.sleep(30.0)
        assert stage.node_of("plain")
        assert not stage.node_of("claims")
        assert "resource claims are not served: no right" in stage.said_of_pod("claims")
        await asyncio.sleep(2 * ASK_S + RETRY_S + 10.0)
        assert stage.node_of("claims") == "n1"
        await asyncio.sleep(20.0)

    played(story, ())
    gaps = [round(after - before, 1) for before, after in pairwise(times)]
    assert gaps == [ASK_S, ASK_S, RETRY_S]
    said = [each["problem"] for each in logged if "resource claims wait" in each["event"]]
    assert said == ["no right", "no answer"]


def test_a_second_life_lists_again_and_places_what_the_first_left() -> None:
    """With the devices of pods that have started meanwhile, and with the lease that the first gave back."""

    async def story(stage: Stage) -> None:
        stage.serve("s")
        devices(stage)
        stage.pod("first", "s", resourceClaims=[{"name": "d", "resourceClaimName": "one"}])
        await asyncio.sleep(30.0)
        assert stage.node_of("first") == "n1"
        stage._replica.stop()
        await asyncio.sleep(0.6)
        stage.pod("second", "s")
        stage.pod("third", "s", resourceClaims=[{"name": "d", "resourceClaimName": "one"}])
        await asyncio.sleep(40.0)
        assert stage.lives == ["stopped", ""]
        assert stage.node_of("second")
        assert stage.node_of("third") == "n1"  # shares the claim
        assert stage.operator.leadership.acquired.is_set()
        assert stage.operator.startup.unready() == ""

    played(story, ())


@pytest.mark.parametrize("name", ["decisions", "election", "watch of nodes", "status of policies", "devices"])
def test_a_process_ends_with_any_of_its_tasks_and_the_next_one_works(name: str) -> None:
    async def story(stage: Stage) -> None:
        stage.serve("s")
        await asyncio.sleep(10.0)
        stage.operator.supervision._tasks[name].cancel()
        await asyncio.sleep(40.0)
        assert stage.lives[0] == repr(TaskEnded(f"{name} has ended: cancelled"))
        stage.pod("p", "s")
        await asyncio.sleep(SOON_S)
        assert stage.node_of("p")

    played(story, ())


def test_what_is_wrong_with_the_installation_is_logged_once_the_process_leads(
    logged: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that do the same work, by their ready pods; pods that nothing schedules; policies' rights."""

    async def story(stage: Stage) -> None:
        container = {"name": "main", "image": "registry.k8s.io/descheduler/descheduler:v0.35.0"}
        meta = {"name": "balancer", "namespace": NAMESPACE}
        stage.cluster.api.create(
            "pods", {"metadata": meta, "spec": {"containers": [container], "nodeName": "n0"}}
        )
        stage.serve("s")
        enforcing = {"mode": "Enforce", "strategies": [{"name": "RemoveDuplicates"}]}
        stage.cluster.api.create(POLICIES, policy("tidy", rebalancing=enforcing))
        stage.pod("lost", "nowhere")
        await asyncio.sleep(90.0)
        monkeypatch.setattr(stage.operator.start_check, "_observer", SimpleNamespace(failed=failed))
        await stage.operator.start_check.run()
        stage.operator.start_check._session = None  # type: ignore[assignment] # so that it fails
        await stage.operator.start_check.run()

    failures: list[Any] = []

    def failed(*what: str) -> None:
        failures.append(what)

    played(story, ())
    found = [each for each in logged if each["event"] == "check"]
    assert {each["log_level"] for each in found} <= {"error", "warning"}
    told = [(each["log_level"], each["area"], each["subject"], each["certainty"]) for each in found]
    assert told == [
        ("warning", "schedulers", "descheduler", "certain"),
        ("warning", "pods", "schedulerName nowhere", "likely"),
    ]
    assert [each[0] for each in failures] == ["checking the installation"]


def test_only_ready_pods_of_such_programs_are_at_work() -> None:
    """By the images of one pod of each template; each pod by its own state."""
    nothing: Any = None
    image = "registry.k8s.io/descheduler/descheduler:v0.35.0"
    ready, unready = ({"conditions": [{"type": "Ready", "status": each}]} for each in ("True", "False"))
    pods = [
        a_pod(name, node="n", status=status, containers=[{"name": "c", "image": each}])
        for name, each, status in (
            ("one", image, ready),
            ("two", image, unready),
            ("three", image, ready),
            ("web", "web:1", ready),
        )
    ]
    start = StartCheck(nothing, nothing, a_cluster([a_node("n")], pods), nothing, nothing, nothing, nothing)
    assert [each.name for each in start._programs()] == ["one", "three"]


async def test_a_right_that_every_operator_needs_is_no_finding_about_policies() -> None:
    """Without it the process says so elsewhere; a policy's own is a finding."""
    nothing: Any = None
    reviewer, clock = FakeAccessReviewer(EVICT, *READING), FakeClock()
    access = Access(reviewer, clock, RememberingObserver())
    await access.review()
    orphans: Any = SimpleNamespace(pending=(), seen=())
    start = StartCheck(nothing, access, a_cluster(), orphans, nothing, nothing, clock)
    enforcing = {"mode": "Enforce", "strategies": [{"name": "RemoveDuplicates"}]}

    found = list(start._of_policies([policy("tidy", rebalancing=enforcing)]))

    assert [each.subject for each in found if each.area is Area.RIGHTS] == ["policy tidy"]


def test_a_right_in_the_namespaces_of_a_policy_is_enough() -> None:
    nothing: Any = None
    access: Any = SimpleNamespace(allows=lambda right, namespace: namespace == "shop" or right != EVICT)
    orphans: Any = SimpleNamespace(pending=(), seen=())
    start = StartCheck(nothing, access, a_cluster(), orphans, nothing, nothing, FakeClock())
    enforcing = {"mode": "Enforce", "strategies": [{"name": "RemoveDuplicates"}]}
    policies = [
        policy(name, scope={"namespaces": {"include": [name]}}, rebalancing=enforcing)
        for name in ("shop", "bank")
    ]

    found = list(start._of_policies(policies))

    rights = {each.subject: each.level for each in found if each.area is Area.RIGHTS}
    assert rights == {"policy bank": Level.ERROR, "policy shop": Level.OK}


@pytest.mark.parametrize("operator", ["", "green"])
def test_policies_of_other_operators_need_no_rights_of_this_one(operator: str) -> None:
    nothing: Any = None
    access: Any = SimpleNamespace(allows=lambda right, _: right != BIND)
    orphans: Any = SimpleNamespace(pending=(), seen=())
    start = StartCheck(nothing, access, a_cluster(), orphans, nothing, nothing, FakeClock(), operator)
    names = ("", "green", "blue")
    policies = [policy(f"of-{name}", scheduling={"schedulerName": f"s-{name}x"}) for name in names]
    for name, each in zip(names, policies, strict=True):
        each["metadata"]["labels"] = {OPERATOR: name}

    found = list(start._of_policies(policies))

    assert [each.subject for each in found if each.area is Area.RIGHTS] == [f"policy of-{operator}"]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_process_whose_login_fails_ends_without_a_trace_in_the_log(
    is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence says all; any other end of kopf is a bug, and has its trace."""
    cause = kopf.LoginError("refused") if is_known else ValueError("of kopf")

    def ends(work: Coroutine[Any, Any, None], _: str) -> None:
        work.close()
        raise TaskEnded("kopf cannot go on") from cause

    monkeypatch.setattr(process, "run_to_end", ends)
    monkeypatch.setattr(process, "configure", lambda *_: None)
    monkeypatch.setattr(process, "raise_limit", lambda: None)
    with capture_logs() as logged:
        assert process.main(Settings()) == 1

    (said,) = logged
    assert (said["event"], said["exc_info"]) == ("kopf cannot go on", None if is_known else cause)


def test_the_pages_of_a_process_say_what_it_knows() -> None:
    """Metrics, the memory of pods and nodes, and the live page, whose views follow one another."""

    async def story(stage: Stage) -> None:
        stage.serve("s")
        stage.pod("placed", "s")
        stage.pod("large", "s", cpu="1000")
        await asyncio.sleep(20.0)
        operator = stage.operator
        operator.settings = operator.settings.model_copy(update={"ui": True})
        pages = OperatorProcess(operator)._endpoints()
        assert pages.unready() == pages.broken() == ""
        assert "leading" in pages.standing()
        assert pages.metrics is not None
        assert pages.explain is not None
        assert pages.live is not None
        body = (await pages.metrics()).decode()
        assert "plimsoll_" in body
        assert "_created" not in body
        pod: Any = await pages.explain.pod(NAMESPACE, "large")
        assert pod.queue is not None
        placed: Any = await pages.explain.pod(NAMESPACE, "placed")
        assert placed.queue is None
        node: Any = await pages.explain.node("n1")
        assert node.standing == pod.standing
        first, seen = await pages.live.look({})
        second, _ = await pages.live.look(seen)
        assert len(seen) == 3
        assert not second.nodes
        assert len(first.nodes) == 3
        assert (pages.probes.metrics, pages.probes.live, pages.probes.explain) == (None, None, None)
        stalled = operator._stalled()
        assert stalled == {"s": 0}
        operator.supervision.fail("kopf's login: refused")
        assert pages.broken() == "kopf's login: refused"
        await asyncio.sleep(5.0)
        assert stage.lives[0] == repr(TaskEnded("kopf cannot go on: kopf's login: refused"))

    played(story, ())


def test_a_standby_counts_no_stalled_pods() -> None:
    async def story(stage: Stage) -> None:
        stage.serve("s")
        await asyncio.sleep(10.0)
        stage.operator.leadership.acquired.clear()
        assert stage.operator._stalled() == {}

    played(story, ())
