"""Two replicas that share the work: each has roles of its own, and those of the other when that is gone."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from e2e.conftest import define
from e2e.operator_process import Operator
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import speaking
from e2e.test_high_availability import check, witnessed
from plimsoll.app.machine.clock import SystemClock
from plimsoll.kube.pods import PodBinder, PodRequester
from plimsoll.kube.session.session import connected
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteOutcome
from plimsoll.scheduling.shared_nodes.request import RequestReason, requested_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from e2e.scene import Obj
    from e2e.speaker import Speaker
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

#: Terms that let a test see a fail-over soon.
SHARING = (
    *("--share-work", "true", "--leader-elect-lease-duration", "12s"),
    *("--leader-elect-renew-deadline", "9s", "--leader-elect-retry-period", "500ms"),
)

PATIENCE_S = 120.0


async def holders(scene: Scene) -> dict[str, Obj]:
    """The specs of the leases of roles, by role."""
    return {
        each["metadata"]["name"].removeprefix("plimsoll-"): each["spec"]
        for each in await scene.items(LEASES)
        if each["metadata"]["name"].startswith("plimsoll-")
    }


def is_even(held: dict[str, Obj]) -> bool:
    """Whether two replicas have one scheduler name and three shares of the nodes each."""
    found = {role: spec.get("holderIdentity") or "" for role, spec in held.items()}
    schedulers = [who for role, who in found.items() if role.startswith("scheduler-")]
    nodes = Counter(who for role, who in found.items() if role.startswith("nodes-"))
    is_complete = "rebalancing" in found and "" not in found.values()
    return is_complete and len(set(schedulers)) == 2 and sorted(nodes.values()) == [3, 3]


def is_held_by(who: str) -> Callable[[dict[str, Obj]], bool]:
    """Whether one replica has every role."""
    return lambda held: {spec.get("holderIdentity") for spec in held.values()} == {who}


async def has_counted_a_run(replica: Operator) -> bool:
    """Whether a replica has; it does so after it has written the status of the run."""

    async def runs() -> float:
        return replica.metric("plimsoll_rebalancer_runs_total")

    return await eventually(runs) > 0


@dataclass(slots=True)
class Work:
    """Pods of two scheduler names, and how many there are."""

    scene: Scene
    created: int = 0

    async def add(self, **counts: int) -> None:
        """Create so many pods of each scheduler name."""
        for suffix, count in counts.items():
            names = [f"{suffix}-{self.created + number}" for number in range(count)]
            self.created += count
            scheduler = f"{self.scene.name}-{suffix}"
            await asyncio.gather(*(self.scene.pod(name, schedulerName=scheduler) for name in names))


@asynccontextmanager
async def two_replicas(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[Scene, Operator, Operator]]:
    """Two replicas of which the first rebalances, and two policies with a scheduler name each."""
    async with speaking(kubeconfig) as speaker:
        await define(speaker)
        scene = await Scene(speaker).begin()
        replicas = [Operator(kubeconfig, folder / f"{name}.log", options=SHARING) for name in "xy"]
        try:
            for each in replicas:
                each.start()
            for number in range(5):
                await scene.node(f"n{number}", cpu="2", allocatable={"pods": "100"}, runs_pods=False)
            for suffix in ("a", "b"):
                await scene.policy({"scheduling": {"schedulerName": f"{scene.name}-{suffix}"}}, suffix)
            for each in replicas:
                await asyncio.to_thread(each.until_ready)
            held = await eventually(lambda: holders(scene), is_even, PATIENCE_S)
            first = held["rebalancing"]["holderIdentity"]
            replicas.sort(key=lambda each: f"leading as {first}:" not in each.ask("/readyz")[1])
            yield scene, *replicas  # type: ignore[misc] # known in this test
        finally:
            for each in replicas:
                each.kill()
            await scene.end()
            for role in await holders(scene):
                await speaker.request("DELETE", f"{LEASES}/plimsoll-{role}")


async def test_two_replicas_share_the_work_and_one_takes_over_all_of_it(
    start_roadstead: StartRoadstead, tmp_path: Path
) -> None:
    """Room for exactly a hundred pods, most of one scheduler name: it needs nodes that the other one holds.

    Then the replica that rebalances is killed: the other's roles go on as they were, and it takes the rest.
    """
    async with (
        two_replicas(start_roadstead().kubeconfig, tmp_path) as (scene, first, second),
        witnessed(scene) as history,
    ):
        work = Work(scene)
        await work.add(a=50, b=10)
        await work.add(b=10, a=10)
        await history.until_bound(80)
        policy = await scene.policy(scene.rebalancing("RemoveDuplicates", mode="DryRun"), "plans")
        await scene.runs(policy, 1)
        assert await has_counted_a_run(first)
        assert second.metric("plimsoll_rebalancer_runs_total") == 0
        attempts = "plimsoll_scheduler_schedule_attempts_total"

        async def served() -> list[list[str]]:
            """The scheduler names of the pods that each has placed."""
            return sorted(
                [
                    suffix
                    for suffix in "ab"
                    if each.metric(attempts, result="scheduled", profile=f"{scene.name}-{suffix}")
                ]
                for each in (first, second)
            )

        assert await eventually(served, lambda found: [] not in found) == [["a"], ["b"]]

        before = await holders(scene)
        (survivor,) = {spec["holderIdentity"] for spec in before.values()} - {
            before["rebalancing"]["holderIdentity"]
        }
        first.kill()
        await work.add(a=10, b=10)
        after = await eventually(lambda: holders(scene), is_held_by(survivor), PATIENCE_S)
        await history.until_bound(100)
        await scene.runs(policy, 1)

        assert await has_counted_a_run(second)
        assert [
            role
            for role, spec in before.items()
            if spec["holderIdentity"] == survivor and spec["acquireTime"] != after[role]["acquireTime"]
        ] == [], "a role of the one that lives was interrupted"
        assert Counter(pod["spec"]["nodeName"] for pod in await scene.pods()) == dict.fromkeys(
            (f"{scene.name}-n{number}" for number in range(5)), 20
        )
        check(history, 100)
        assert second.status is None
        assert second.terminate() == 0, second.said()


async def test_an_answer_about_another_version_of_the_pod_is_refused(speaker: Speaker, defined: Path) -> None:
    """By the API server: a replica that sees late neither binds for, nor closes, what it does not know."""
    scene = await Scene(speaker).begin()
    try:
        node = await scene.node("last")
        first = convert(Pod, await scene.pod("late", schedulerName="of-nobody"))
        async with connected(defined) as session:
            requests, binder = PodRequester(session, SystemClock()), PodBinder(session)
            asked = RequestReason.ASKED
            assert (await requests.request(first, asked, node, is_open=True)).is_done
            outdated = [
                await requests.request(first, RequestReason.STALE, "late", is_open=False, as_seen=True),
                await binder.bind(first, node, as_seen=True),
            ]
            assert [each.verdict for each in outdated] == [WriteOutcome.CONFLICT] * 2
            now = convert(Pod, await scene.a_pod("late"))
            assert requested_node(now) == node
            assert (await binder.bind(now, node, as_seen=True)).is_done
    finally:
        await scene.end()
