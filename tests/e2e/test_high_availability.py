"""Two replicas: one leads, one stands by, and no pod notices when they change places."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from deploy.manifests import grants
from e2e.conftest import define
from e2e.door import door, kubeconfig_for
from e2e.operator_process import Operator
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import speaking
from e2e.test_volumes import bind_claim, mounting, until_selected, volume, with_claim, with_class
from plimsoll.scheduling.binding.pipeline import TOGETHER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from e2e.door import Call, Door
    from e2e.scene import Obj
    from roadstead.clients import RunningCluster
    from roadstead.pytest_plugin import StartRoadstead

#: Those behind doors wait for a lease to expire, which takes 15 s by design.
pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LEASES = "/apis/coordination.k8s.io/v1/leases"

#: A fail-over, for ``eventually``; tests/leadership says how long it takes, with a clock of its own.
PATIENCE_S = 300.0
#: A binding as a door sees it, and the seconds within which one arrives that was handed over before a pause.
BINDING, HANDED_OVER_S = ("create", "", "pods/binding"), 1.0


@dataclass(slots=True)
class History:
    """What a watch showed of the scene's pods.

    Attributes:
        nodes: Every node that a pod was ever seen on, in order, by uid.
        bound: Those that were seen on one.
    """

    nodes: dict[str, list[str]] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)

    def see(self, pod: Obj) -> None:
        """Note where a pod is."""
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        seen = self.nodes.setdefault(uid, [])
        if node and node not in seen[-1:]:
            seen.append(node)
            self.bound.add(uid)

    async def until_bound(self, count: int) -> None:
        """Wait until so many pods have been seen on a node; as long as it takes, if only it goes on."""

        async def bound() -> int:
            return len(self.bound)

        found = 0
        while found < count:
            last = found
            found = await eventually(bound, lambda now, last=last: now > last, PATIENCE_S)  # type: ignore[misc] # a lambda that keeps a variable of the loop


@asynccontextmanager
async def witnessed(scene: Scene) -> AsyncIterator[History]:
    """Watch the scene's pods from before the first is bound: every change is seen, none is skipped."""
    history = History()
    path = scene.path("pods")
    listed = (await scene.speaker.request("GET", path)).accepted()
    for pod in listed["items"]:
        history.see(pod)

    async def look() -> None:
        version = listed["metadata"]["resourceVersion"]
        while True:  # an API server ends a watch whose reader is slow
            async with aclosing(scene.speaker.watch(path, version)) as events:  # type: ignore[type-var] # known in this test
                async for event in events:
                    assert event["type"] != "ERROR", event
                    history.see(event["object"])
                    version = event["object"]["metadata"]["resourceVersion"]

    task = asyncio.create_task(look())
    try:
        yield history
    finally:
        is_over = task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not is_over, "the watch has ended"


async def pods(scene: Scene, count: int, prefix: str = "pod") -> None:
    """Create so many pods of a tenth of a CPU, fifty at a time."""
    names = [f"{prefix}-{number}" for number in range(count)]
    for first in range(0, count, 50):
        await asyncio.gather(*(scene.pod(name) for name in names[first : first + 50]))


async def leading(*replicas: Operator) -> Operator:
    """Wait until one of them leads; it."""

    def found() -> list[Operator]:
        return [each for each in replicas if each.status is None and each.leads]

    async def leaders() -> list[Operator]:
        return await asyncio.to_thread(found)

    (leader,) = await eventually(leaders, lambda found: len(found) == 1, PATIENCE_S)
    return leader


async def holder(scene: Scene) -> str:
    """The holder of the lease, "" without one."""
    (lease,) = [each for each in await scene.items(LEASES) if each["metadata"]["name"] == "plimsoll"]
    return lease["spec"].get("holderIdentity") or ""


async def ended(replica: Operator) -> int | None:
    """Wait until a process ends by itself; its exit status."""

    async def status() -> int | None:
        return replica.status

    return await eventually(status, lambda found: found is not None, PATIENCE_S)


def check(history: History, count: int) -> None:
    """No pod was bound twice, none was lost."""
    assert len(history.nodes) == count
    assert Counter(len(seen) for seen in history.nodes.values()) == {1: count}


@pytest.fixture
def replicas(operator: Operator, tmp_path: Path) -> Iterator[list[Operator]]:
    """Two operators on the session's cluster, in place of the session's one."""
    assert operator.terminate() == 0, operator.said()
    both = [
        Operator(operator.kubeconfig, tmp_path / f"replica-{name}.log", options=operator.options)
        for name in "ab"
    ]
    for each in both:
        each.start()
    for each in both:
        each.until_ready()
    yield both
    for each in both:
        each.terminate()
    operator.start().until_ready()


async def test_a_leader_that_is_killed_among_many_pods_loses_none(
    operator: Operator, replicas: list[Operator], scene_of_replicas: Scene
) -> None:
    """Room for exactly as many: a pod that is counted twice would leave another one without."""
    scene = scene_of_replicas
    leader = await leading(*replicas)
    (standby,) = [each for each in replicas if each is not leader]
    assert standby.ask("/readyz")[0] == 200

    async def told() -> str:
        return standby.ask("/readyz")[1]

    # At first it may say that it was not fast enough to be the leader itself.
    assert await eventually(told, lambda said: "standing by for" in said)
    assert "leading as" in leader.ask("/readyz")[1]
    numbers = range(20)
    await asyncio.gather(*(scene.node(f"n{number}", cpu="1500m", runs_pods=False) for number in numbers[:10]))
    await pods(scene, 300)
    async with witnessed(scene) as history:
        await scene.scheduling()
        await history.until_bound(30)
        await scene.crash(leader)
        # However fast it was, half of the pods had no room yet.
        await asyncio.gather(
            *(scene.node(f"n{number}", cpu="1500m", runs_pods=False) for number in numbers[10:])
        )

        await history.until_bound(300)
        present = await scene.pods()

    check(history, 300)
    assert Counter(pod["spec"]["nodeName"] for pod in present) == dict.fromkeys(
        (f"{scene.name}-n{number}" for number in range(20)), 15
    )
    assert standby.leads
    assert standby.status is None


async def test_a_leader_that_ends_hands_over_immediately(
    operator: Operator, replicas: list[Operator], scene_of_replicas: Scene
) -> None:
    """As in a rolling update: no replica waits for the lease to expire."""
    scene = scene_of_replicas
    await scene.node("a", cpu="20", allocatable={"pods": "100"}, runs_pods=False)
    await scene.scheduling()
    leader = await leading(*replicas)
    (standby,) = [each for each in replicas if each is not leader]
    await pods(scene, 50)
    async with witnessed(scene) as history:
        before = await holder(scene)
        assert await leader.stop() == 0
        assert await holder(scene) != before, "it gave the lease up"
        await leading(standby)
        await scene.pod("late")
        await scene.until_bound("late")
        await history.until_bound(51)

    check(history, 51)


async def test_a_half_bound_pod_is_bound_where_it_was_going(
    operator: Operator, replicas: list[Operator], scene_of_replicas: Scene
) -> None:
    """The leader dies between having a volume made and binding the pod: the next one knows from the claim."""
    scene = scene_of_replicas
    for suffix in ("a", "b", "c"):
        await scene.node(suffix, runs_pods=False)
    await scene.scheduling()
    leader = await leading(*replicas)
    (standby,) = [each for each in replicas if each is not leader]
    storage_class = await with_class(scene)
    await with_claim(scene, storage_class)
    await scene.pod("stateful", volumes=mounting())
    node = await until_selected(scene)
    await scene.crash(leader)
    await leading(standby)
    await scene.pod("other")
    await scene.until_bound("other")  # by now the half-bound pod was tried, too: it came first
    assert await scene.node_of("stateful") == ""
    assert await until_selected(scene) == node

    await bind_claim(scene, await volume(scene, storage_class, node, claimed=True))

    assert await scene.until_bound("stateful") == node


@pytest.fixture
async def scene_of_replicas(replicas: list[Operator], speaker: object) -> AsyncIterator[Scene]:
    """A part of the cluster, for the replicas."""
    one = await Scene(speaker).begin()  # type: ignore[arg-type] # a fake has only what is used
    yield one
    await one.end()


# -- behind doors, which note what each replica writes -----------------------------------------------


@dataclass(frozen=True, slots=True)
class Replica:
    """An operator and its door to the cluster."""

    operator: Operator
    door: Door

    def writes(self, since: int = 0) -> set[Call]:
        """What it wrote from the so-manieth request on, its lease apart."""
        return {call for _, call in self.written(since)}

    def written(self, since: int = 0) -> list[tuple[float, Call]]:
        """The same with the moments at which it came to the door."""
        return [
            (at, call)
            for at, call in self.door.passed[since:]
            if call[0] in {"create", "update", "patch", "delete"} and call[2] != "leases"
        ]


@asynccontextmanager
async def pair(cluster: RunningCluster, folder: Path) -> AsyncIterator[tuple[Scene, Replica, Replica]]:
    """A leader and a standby, each behind a door of its own, and a scene with a node and a scheduler."""
    async with (
        speaking(cluster.kubeconfig) as speaker,
        door(cluster.plain_url, grants("enforce")) as one,
        door(cluster.plain_url, grants("enforce")) as two,
    ):
        await define(speaker)
        scene = await Scene(speaker).begin()
        made = []
        try:
            for name, entrance in (("one", one), ("two", two)):
                config = kubeconfig_for(folder / name, entrance.url, cluster.token)
                operator = Operator(config, folder / f"{name}.log").start()
                made.append(Replica(operator, entrance))
                await asyncio.to_thread(operator.until_ready)
                await leading(made[0].operator)
            await scene.node("a", cpu="100", allocatable={"pods": "1000"}, runs_pods=False)
            await scene.scheduling()
            yield scene, *made  # type: ignore[misc] # known in this test
        finally:
            for each in made:
                each.operator.kill()


async def test_a_leader_that_was_paused_writes_nothing_when_it_wakes(
    start_roadstead: StartRoadstead, tmp_path: Path
) -> None:
    """It has two hundred pods in mind that another one has bound meanwhile; it ends without a word.

    A pause may fall between the look at the fence and the system call that sends: the bindings of that one
    call arrive when it wakes, and the server refuses them.
    """
    async with pair(start_roadstead(), tmp_path) as (scene, old, new), witnessed(scene) as history:
        await scene.pod("first")
        await scene.until_bound("first")
        assert new.writes() == set(), "a standby writes nothing"
        creating = asyncio.create_task(pods(scene, 200))
        await history.until_bound(20)
        old.operator.signal(signal.SIGSTOP)
        await creating
        await history.until_bound(201)
        await leading(new.operator)  # immediately, unless the other one had bound all before its pause
        await scene.pod("unplaceable", nodeSelector={"no": "such-node"})
        await eventually(lambda: scene.condition("unplaceable"))
        asked, woke = len(old.door.passed), time.monotonic()
        old.operator.signal(signal.SIGCONT)

        assert await ended(old.operator) == 1
        assert "leader election lost" in old.operator.said()
        late = old.written(since=asked)
        assert len(late) <= TOGETHER
        assert all(call == BINDING and at < woke + HANDED_OVER_S for at, call in late)
        assert new.operator.status is None
    assert {len(seen) for seen in history.nodes.values()} <= {0, 1}
    assert sum(len(seen) for seen in history.nodes.values()) == 201


async def test_a_leader_whose_renewals_hang_stops_in_time(
    start_roadstead: StartRoadstead, tmp_path: Path
) -> None:
    """All else goes through, there is always a pod to bind, and nothing has announced it: it stops by itself.

    Until it does, it binds; and it has stopped before the next one begins.
    """
    async with pair(start_roadstead(), tmp_path) as (scene, old, new), witnessed(scene) as history:
        old.door.trouble = lambda call: "hanging" if call[2] == "leases" else ""
        renewed = max(at for at, call in old.door.passed if call[2] == "leases")
        count = 0
        while old.operator.status is None:
            await scene.pod(f"pod-{count}")
            count += 1
            await asyncio.sleep(0.1)
            assert time.monotonic() - renewed < PATIENCE_S
        await leading(new.operator)
        await history.until_bound(count)

    wrote = [at for at, _ in old.written()]
    assert max(wrote) > renewed, "it went on without a renewal"
    assert max(wrote) < min(at for at, _ in new.written()), "two replicas wrote at a time"
    assert old.operator.status == 1
    check(history, count)


async def test_a_leader_that_is_cut_off_ends_and_is_replaced(
    start_roadstead: StartRoadstead, tmp_path: Path
) -> None:
    """It cannot tell whether another one leads, so it must not go on; started again, it stands by."""
    async with pair(start_roadstead(), tmp_path) as (scene, old, new), witnessed(scene) as history:
        await pods(scene, 20, "before")
        await history.until_bound(20)
        old.door.close()
        await pods(scene, 20, "meanwhile")

        assert await ended(old.operator) == 1
        assert "leader election lost" in old.operator.said()
        assert await leading(new.operator) is new.operator
        await history.until_bound(40)

        old.door.is_open = True
        asked = len(old.door.passed)
        old.operator.start()
        await asyncio.to_thread(old.operator.until_ready)
        await scene.pod("after")
        await history.until_bound(41)
        assert old.writes(since=asked) == set()
        assert not old.operator.leads
    check(history, 41)
