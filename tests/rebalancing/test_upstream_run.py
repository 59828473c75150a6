"""Planner Upstream in mode Enforce: each eviction is answered before the next one is decided."""

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from plimsoll.api.v1alpha1.annotations import STOP
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import PodAdded
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import Namespace, PodDisruptionBudget
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.runs import plan_runner
from plimsoll.rebalancing.runs.upstream_run import REFUSALS_IN_A_ROW
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import InlineComputer, settled
from rebalancing.scene import POLICY, Scene, a_policy, status_of

NO = WriteResult(WriteOutcome.BLOCKED, "it would violate the budget", "default/api")
ANSWERS = [
    WriteResult(WriteOutcome.DONE),
    WriteResult(WriteOutcome.BLOCKED, "it would violate a budget"),
    WriteResult(WriteOutcome.GONE, "no such pod"),
    WriteResult(WriteOutcome.REFUSED, "forbidden"),
]
FREE = {
    "total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%", "perMinute": "100%",
}  # fmt: skip


LONG_AGO = "1970-01-01T00:00:00Z"


def pod_of(
    app: Any, number: int, node: Any = "bad", created: Any = "2025-12-31T00:00:00Z", **spec: Any
) -> Pod:
    return a_pod(
        f"{app}-{number}",
        owner=f"ReplicaSet/{app}",
        cpu="100m",
        node=node,
        labels={"app": app, "number": str(number)},
        status=status_of(node),
        metadata={"creationTimestamp": created},
        **spec,
    )


def a_scene(forks: Any = None, **replicas: Any) -> Scene:
    """Node ``bad`` is tainted; the pods on it are taken in order of their names."""
    scene = Scene(forks=forks)
    for app, count in replicas.items():
        scene.tell(*(PodAdded(pod_of(app, number)) for number in range(count)))
        scene.tell(PodAdded(pod_of(app, 999, "good")))
    return scene


def exactly(**rebalancing: Any) -> SchedulingPolicy:
    """A policy that evicts what descheduler would; only the limits that are given hold."""
    limits = FREE | rebalancing.pop("limits", {})
    return a_policy(planner="Upstream", limits=limits, **rebalancing)


def budget_of(app: str, allowed: int = 0) -> PodDisruptionBudget:
    return convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": app, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed, "expectedPods": 3, "currentHealthy": 3},
        },
    )


def counts(scene: Scene) -> Any:
    return scene.statuses.statuses[POLICY]["counts"]


def phases(scene: Scene) -> dict[str, Any]:
    """The phases that the record of each pod went through."""
    return {
        document["spec"]["pod"]["name"]: scene.records.history[document["metadata"]["name"]]
        for document in scene.records.documents.values()
    }


async def test_a_refused_eviction_gives_its_place_to_the_next_candidate() -> None:
    """One eviction in a run: the first pod's budget says no, and the second one goes in the same run."""
    scene = a_scene(api=1)
    scene.evictor.answers = [NO]

    async with scene.running(exactly(limits={"total": 1})):
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]
    assert phases(scene) == {
        "api-0": ["Planned", "Evicting", "Blocked"],
        "web-1": ["Planned", "Evicting", "Evicted"],
    }
    found = counts(scene)
    assert (found["considered"], found["planned"], found["evicted"]) == (2, 1, 1)
    assert [(each["reason"], each["examples"]) for each in found["refused"]] == [
        ("PodDisruptionBudget", ["default/api-0 (ReplicaSet api)"])
    ]


@pytest.mark.parametrize("answer", ANSWERS[1:])
@pytest.mark.parametrize("limit", [{"total": 2}, {"perNode": 2}, {"perNamespace": 2}, {"perMinute": 2}])
async def test_no_limit_is_passed_whatever_is_answered(limit: dict[str, int], answer: WriteResult) -> None:
    """Every third eviction is taken; as many are accepted as the limit allows, each with a record first."""
    scene = a_scene(api=8)
    scene.evictor.answers = [answer, answer, WriteResult(WriteOutcome.DONE)] * 3
    asked = []
    scene.evictor.when_done = lambda pod: asked.append(phases(scene)[pod.name][-1])

    async with scene.running(exactly(limits=limit)):
        await scene.run()

    assert scene.evictor.evicted == ["api-2", "api-5"]
    assert asked == ["Evicting"] * 2
    assert counts(scene)["evicted"] == 2


async def test_evictions_within_the_last_minute_count_in_the_next_run() -> None:
    """Two a minute: the second run finds them used up, and goes on when the minute is over."""
    scene = a_scene(api=5)
    scene.evictor.when_done = scene.gone
    evicted = []

    async with scene.running(exactly(limits={"perMinute": 2})):
        for seconds in (1, 61, 1):
            await scene.run()
            evicted.append(len(scene.evictor.evicted))
            await scene.clock.advance(seconds)

    assert evicted == [2, 2, 4]


async def test_refused_evictions_of_the_last_minute_do_not_count() -> None:
    """No pod was evicted, so the next run has the whole minute."""
    scene = a_scene(api=2)
    scene.evictor.answers = [WriteResult(WriteOutcome.BLOCKED, "it would violate a budget")] * 3

    async with scene.running(exactly(limits={"perMinute": 2})):
        await scene.run()
        await scene.clock.advance(1)
        await scene.run()

    assert scene.evictor.evicted == ["api-0", "api-1"]


async def test_one_owner_s_limit_counts_pods_whose_replacement_is_not_ready() -> None:
    """The second run finds the first one's move in flight."""
    scene = a_scene(api=3)
    scene.evictor.answers = [NO]

    async with scene.running(exactly(limits={"perWorkload": 1})):
        await scene.run()
        await scene.clock.advance(61)
        await scene.run()

    assert scene.evictor.evicted == ["api-1", "web-1"]


async def test_a_budget_that_said_no_is_not_asked_again_in_the_run() -> None:
    """Five pods behind one budget are one request and one record; the status counts all of them."""
    scene = a_scene(api=5)
    scene.cache.cluster.objects.budgets["default/api"] = budget_of("api")
    scene.evictor.answers = [NO]

    async with scene.running(exactly()):
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]
    assert set(phases(scene)) == {"api-0", "web-1"}
    (refused,) = counts(scene)["refused"]
    assert (refused["reason"], refused["count"]) == ("PodDisruptionBudget", 5)


async def test_a_budget_that_allows_one_again_is_asked_again() -> None:
    """What the watch shows by now decides, not what the server said before."""
    scene = a_scene(api=3)
    scene.cache.cluster.objects.budgets["default/api"] = budget_of("api", allowed=1)
    scene.evictor.answers = [NO, NO]

    async with scene.running(exactly()):
        await scene.run()

    assert scene.evictor.evicted == ["api-2", "web-1"]


@pytest.mark.parametrize(
    ("reason", "records"),
    [("a window has opened", 2), ("the button was pressed", 2), ("the policy was deleted", 1)],
)
async def test_what_stops_moves_ends_a_run_that_has_begun(reason: str, records: int) -> None:
    """The next candidate is not sent, and no other one is tried."""
    scene = a_scene(api=5)
    now = datetime.fromtimestamp(scene.clock.now(), UTC)
    opening = now + timedelta(minutes=1)
    freeze = {
        "name": "freeze",
        "evictions": 1,
        "schedule": f"{opening.minute} {opening.hour} * * *",
        "duration": "1h",
    }

    def stop(_: Pod) -> None:
        if reason == "a window has opened":
            scene.clock.time += 120
        elif reason == "the button was pressed":
            document = {"metadata": {"name": "plimsoll", "annotations": {STOP: "true"}}}
            scene.cache.cluster.objects.namespaces["plimsoll"] = convert(Namespace, document)
        else:
            scene.rebalancers.configure([])

    scene.evictor.when_done = stop
    async with scene.running(exactly(limits={"budgets": [freeze]})):
        await scene.run()

    assert scene.evictor.evicted == ["api-0"]
    assert len(scene.records.documents) == records


async def test_a_record_that_cannot_be_written_means_no_eviction() -> None:
    """The next candidate is tried, and it cannot be recorded either."""
    scene = a_scene(api=2)
    scene.records.answer = WriteResult(WriteOutcome.REFUSED, "evictions.plimsoll.dev is forbidden")

    async with scene.running(exactly()):
        await scene.run()

    assert scene.evictor.evicted == []
    (refused,) = counts(scene)["refused"]
    assert (refused["reason"], refused["count"]) == ("NotRecorded", 3)


async def test_a_run_that_is_refused_again_and_again_ends() -> None:
    """A server that forbids every eviction is not asked for all pods of the cluster."""
    scene = a_scene(api=REFUSALS_IN_A_ROW + 5)
    scene.evictor.answers = [WriteResult(WriteOutcome.REFUSED, "forbidden")] * (REFUSALS_IN_A_ROW + 5)

    async with scene.running(exactly()):
        await scene.run()

    assert len(scene.records.documents) == REFUSALS_IN_A_ROW
    assert {each["reason"] for each in counts(scene)["refused"]} == {"EvictionRefused", "TooManyRefusals"}


async def test_refusals_are_counted_again_after_an_eviction() -> None:
    """Not in a row: all pods are tried."""
    scene = a_scene(api=REFUSALS_IN_A_ROW + 5)
    forbidden = [WriteResult(WriteOutcome.REFUSED, "forbidden")] * (REFUSALS_IN_A_ROW - 10)
    scene.evictor.answers = [*forbidden, WriteResult(WriteOutcome.DONE), *forbidden]

    async with scene.running(exactly()):
        await scene.run()

    assert len(scene.records.documents) == REFUSALS_IN_A_ROW + 5 + len(["web-1"])
    assert [each["reason"] for each in counts(scene)["refused"]] == ["EvictionRefused"]


def wanted_twice(scene: Scene, *names: str) -> list[dict[str, Any]]:
    """A policy two of whose strategies want these pods: the annotation admits terminating ones, too."""
    annotations = {"descheduler.alpha.kubernetes.io/evict": "true"}
    for number, name in enumerate(names):
        pod = pod_of(name, number, created=LONG_AGO)
        metadata = msgspec.structs.replace(pod.metadata, annotations=annotations)
        scene.tell(PodAdded(msgspec.structs.replace(pod, metadata=metadata)))
    old = {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 60}}
    return [{"name": "RemovePodsViolatingNodeTaints"}, old]


async def test_a_pod_is_evicted_once_in_a_run_and_counted_as_often_as_descheduler_counts_it() -> None:
    """The server would accept it again while it terminates, so the third place is taken."""
    scene = Scene()
    strategies = wanted_twice(scene, "api")

    async with scene.running(exactly(strategies=strategies, limits={"total": 3})):
        await scene.run()

    assert scene.evictor.evicted == ["api-0", "web-1"]
    assert len(scene.records.documents) == counts(scene)["planned"] == 2
    assert counts(scene)["refused"] == []


async def test_a_pod_that_is_gone_meanwhile_is_not_counted_again() -> None:
    """It was terminating when the first strategy had it, and is gone when the second one wants it."""
    scene = Scene()
    strategies = wanted_twice(scene, "api", "app", "zoo")
    first = {"key": "number", "operator": "In", "values": ["0", "1"]}
    strategies[0]["args"] = {"labelSelector": {"matchExpressions": [first]}}
    pods = list(scene.cache.cluster.pods.values())
    api = next(pod.pod for pod in pods if pod.pod.name == "api-0")
    scene.evictor.when_done = lambda pod: scene.gone(api) if pod.name == "app-1" else None

    async with scene.running(exactly(strategies=strategies, limits={"total": 4})):
        await scene.run()

    assert scene.evictor.evicted == ["api-0", "app-1", "zoo-2"]


async def test_a_pod_whose_eviction_was_refused_is_not_asked_for_twice() -> None:
    """Both strategies get the answer; there is one request, one record and one reason."""
    scene = Scene()
    strategies = wanted_twice(scene, "api")
    scene.evictor.answers = [WriteResult(WriteOutcome.REFUSED, "forbidden")]

    async with scene.running(exactly(strategies=strategies)):
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]
    assert [each["reason"] for each in counts(scene)["refused"]] == ["EvictionRefused"]


async def test_the_status_shows_a_run_that_goes_on() -> None:
    """The first replacement is ready while the second eviction waits for its answer."""
    scene = a_scene()
    scene.tell(PodAdded(pod_of("web", 5)))
    scene.evictor.answers = [WriteResult(WriteOutcome.DONE), WriteResult(WriteOutcome.UNKNOWN, "no answer")]
    scene.evictor.when_done = scene.gone

    async with scene.running(exactly()):
        run = asyncio.create_task(scene.run())
        await settled()
        scene.tell(PodAdded(pod_of("web", 7, "good", created="2026-06-01T00:00:00Z")))
        await settled()
        early = counts(scene)
        await scene.clock.advance(1)
        await run

    assert (early["planned"], early["evicted"], early["verified"]) == (1, 1, 1)
    assert (counts(scene)["planned"], counts(scene)["evicted"]) == (2, 2)


async def test_the_time_for_planning_is_that_of_all_decisions_together() -> None:
    """The third decision hangs with ten milliseconds left; what was evicted before stands."""
    scene = a_scene(api=3)

    class Hanging(InlineComputer):
        steps = 0

        async def compute(self, function: Any) -> Any:
            self.steps += 1
            if self.steps == 3:
                await asyncio.Event().wait()
            scene.clock.time += (plan_runner.PLANNING_S - 0.01) / 2
            return function()

    scene.wing.planning.computer = Hanging()
    async with scene.running(exactly()):
        with pytest.raises(TimeoutError):
            await scene.runs.rebalance(POLICY)

    assert scene.evictor.evicted == ["api-0", "api-1"]
    assert scene.rebalancers.troubles(POLICY).keys() == {"Hanging"}


async def test_a_pod_that_left_since_the_run_began_is_not_sent() -> None:
    """The plan's snapshot has it; it is asked again of the present cluster, and the next candidate goes."""
    scene = a_scene(api=2)
    scene.evictor.when_done = lambda pod: scene.gone(pod_of("api", 1)) if pod.name == "api-0" else None

    async with scene.running(exactly()):
        await scene.run()

    assert scene.evictor.evicted == ["api-0", "web-1"]
    assert phases(scene)["api-1"] == ["Planned", "Cancelled"]


@pytest.mark.parametrize("mode", ["DryRun", "Approve"])
async def test_where_no_server_answers_every_eviction_counts_as_accepted(mode: str) -> None:
    """As in descheduler's dry run: the first candidate takes the only place, whatever its budget says."""
    scene = a_scene(api=1)
    scene.cache.cluster.objects.budgets["default/api"] = budget_of("api")

    async with scene.running(exactly(mode=mode, limits={"total": 1})):
        await scene.run()

    assert scene.evictor.evicted == []
    assert phases(scene) == {"api-0": ["Predicted" if mode == "DryRun" else "Planned"]}


async def test_an_eviction_that_is_not_answered_holds_up_its_own_run_only() -> None:
    """Asked again after half a second: the candidate after it waits, as in descheduler."""
    scene = a_scene(api=1)
    scene.evictor.answers = [WriteResult(WriteOutcome.UNKNOWN, "no answer")]

    async with scene.running(exactly()):
        run = asyncio.create_task(scene.run())
        await settled()
        before = list(scene.evictor.evicted)
        await scene.clock.advance(1)
        await run

    assert before == []
    assert scene.evictor.evicted == ["api-0", "web-1"]


async def test_an_ended_pod_whose_eviction_fails_stays() -> None:
    """It holds no place, which does not mean that an eviction without an answer was taken."""
    scene = a_scene()
    dead = a_pod(
        "dead",
        owner="ReplicaSet/api",
        node="bad",
        status={"phase": "Failed", "reason": "Evicted"},
        metadata={"creationTimestamp": "2025-12-31T00:00:00Z"},
    )
    scene.tell(PodAdded(dead), PodAdded(pod_of("api", 999, "good")))
    scene.evictor.answers = [WriteResult(WriteOutcome.UNKNOWN, "internal error")] * 4

    async with scene.running(exactly(strategies=[{"name": "RemoveFailedPods"}])):
        run = asyncio.create_task(scene.run())
        await scene.clock.advance(60)  # the watch is given thirty seconds to show what became of it
        await run

    assert phases(scene) == {"dead": ["Planned", "Evicting", "Failed"]}
    assert counts(scene)["evicted"] == 0


@pytest.mark.parametrize("seed", range(60))
async def test_whatever_is_answered_no_limit_is_passed_and_nothing_goes_unrecorded(seed: int) -> None:
    """Random pods, limits and answers; what is refused makes room for as many others as may go."""
    rng = random.Random(seed)
    scene = a_scene(**{f"app{n}": rng.randrange(1, 6) for n in range(rng.randrange(1, 6))})
    limits = {
        name: rng.choice([0, 1, 2, 3, 5, "100%"])
        for name in ("total", "perNode", "perNamespace", "perWorkload", "perMinute")
    }
    taken, unrecorded = [], []

    def answered(pod: Pod) -> None:
        if phases(scene).get(pod.name, [""])[-1] != "Evicting":
            unrecorded.append(pod.name)
        taken.append(pod)
        if rng.random() < 0.5:
            scene.gone(pod)
        else:
            scene.leaving(pod)

    scene.evictor.when_done = answered
    scene.evictor.answers = [rng.choice(ANSWERS) for _ in range(100)]
    candidates = [pod for pod in scene.cache.cluster.pods.values() if pod.pod.node_name == "bad"]

    async with scene.running(exactly(limits=limits)):
        await scene.run()

    workloads = Counter(pod.metadata.owner_references[0].uid for pod in taken)
    most = {name: 99 if limit == "100%" else limit for name, limit in limits.items()}
    ceiling = min(most[name] for name in ("total", "perNode", "perNamespace", "perMinute"))  # type: ignore[type-var] # known in this test
    assert unrecorded == []
    assert len({pod.uid for pod in taken}) == len(taken) <= ceiling  # type: ignore[operator] # known to exist in this test
    assert max(workloads.values(), default=0) <= most["perWorkload"]  # type: ignore[operator] # known to exist in this test
    tried = {name for name, story in phases(scene).items() if "Evicting" in story}
    if len(taken) < ceiling:  # type: ignore[operator] # known to exist in this test
        left = [pod for pod in candidates if pod.name not in tried]
        assert all(workloads[pod.pod.metadata.owner_references[0].uid] == most["perWorkload"] for pod in left)


@pytest.mark.parametrize(
    ("told", "grace", "evicted"),
    [
        pytest.param("nothing", None, ["api-0", "api-1"], id="the-watch-is-behind"),
        pytest.param("nothing", 0, ["api-0"], id="without-a-grace-period"),
        pytest.param("leaving", None, ["api-0", "api-1"], id="terminating"),
        pytest.param("gone", None, ["api-0"], id="gone"),
    ],
)
async def test_an_evicted_pod_is_seen_as_the_server_has_it(
    told: str, grace: int | None, evicted: list[str]
) -> None:
    """The second strategy counts terminating pods among those that an owner must keep, and not pods gone."""
    scene = Scene()
    spec = {} if grace is None else {"terminationGracePeriodSeconds": grace}
    scene.tell(*(PodAdded(pod_of("api", number, created=LONG_AGO, **spec)) for number in range(2)))
    if told != "nothing":
        scene.evictor.when_done = getattr(scene, told)
    strategies = [
        {
            "name": "RemovePodsViolatingNodeTaints",
            "args": {"labelSelector": {"matchLabels": {"number": "0"}}},
        },
        {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 60}},
    ]

    async with scene.running(exactly(strategies=strategies)):
        await scene.run()

    assert scene.evictor.evicted == evicted


@pytest.mark.parametrize(("planner", "word"), [("Upstream", "Selected"), ("Proven", "Proved")])
async def test_a_record_says_how_its_move_was_decided(planner: str, word: str) -> None:
    """Only a proved move is called proved."""
    scene = Scene()
    begun = []
    create = scene.records.create

    async def noted(document: dict[str, Any]) -> WriteResult:
        begun.append(document["status"]["reason"])
        return await create(document)

    scene.records.create = noted  # type: ignore[assignment, method-assign] # replaced for this test
    async with scene.running(a_policy(planner=planner)):
        await scene.run()

    assert set(begun) == {word}
