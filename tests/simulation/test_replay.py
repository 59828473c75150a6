"""Replays: placements, replacements, budgets, schedules, and equal output for equal input."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from inspection.contents import NOW, a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.inspection.state import ClusterState
from plimsoll.model.kinds.owned_group import NOT_YET
from plimsoll.simulation.figures import percentile
from plimsoll.simulation.replay import Replay, ReplaySettings
from plimsoll.snapshots.saved_fields import DURATION
from plimsoll.testing.columns import validate

if TYPE_CHECKING:
    from collections.abc import Iterable

Document = dict[str, Any]
HOUR = ReplaySettings(3600.0)


def replay_of(documents: Iterable[Document], setting: ReplaySettings = HOUR) -> Replay:
    """A replay that has been carried out, and whose cluster makes sense."""
    one = Replay(ClusterState.of(content_of(documents)), setting)
    one.run()
    validate(one.world.fork)
    nodes = len(one.world.fork)
    assert (one.world.fork.requested[:nodes] <= one.world.fork.allocatable[:nodes]).all()
    return one


def arriving(name: str, after_s: float, runs_s: float | None = None, **given: Any) -> Document:
    """A pod that arrives so many seconds after the beginning, and runs so long."""
    pod = a_pod_document(name, **given)
    pod["metadata"]["creationTimestamp"] = (NOW + timedelta(seconds=after_s)).isoformat()
    if runs_s is not None:
        pod["metadata"]["annotations"] = {DURATION: str(runs_s)}
    return pod


def a_rebalancing_policy(strategy: str = "RemoveDuplicates", **rebalancing: Any) -> Document:
    """A policy that runs every ten minutes."""
    wanted = {
        "mode": "Enforce",
        "schedule": {"intervalSeconds": 600},
        "strategies": [{"name": strategy}],
        **rebalancing,
    }
    return a_policy_document(scheduling={"schedulerName": "plimsoll"}, rebalancing=wanted)


DUPLICATES = [
    a_node_document("n1"),
    a_node_document("n2"),
    *(a_pod_document(f"web-{number}", node="n1") for number in range(4)),
]


def test_a_pod_waits_until_another_one_ends() -> None:
    """4 cores: the second pod of 3 arrives after 60 s, the first one ends after 300 s: a wait of 240 s."""
    found = replay_of(
        [a_node_document("n1"), arriving("a", 0, 300, cpu="3"), arriving("b", 60, 100, cpu="3")]
    ).figures

    assert found.placements == [("a", "n1"), ("b", "n1")]
    assert found.waits == [0.0, 240.0]
    assert (found.arrived, found.ended) == (2, 2)


def test_evicted_pods_are_replaced_by_their_owners_elsewhere() -> None:
    """Four of one owner on one of two nodes: two move, one in a run, and no strategy complains at the end."""
    one = replay_of([*DUPLICATES, a_rebalancing_policy()])

    assert one.figures.moved.total() == 2, (one.figures.refused, one.reasons())
    assert one.figures.replaced == 2
    assert one.figures.violations == {("all", "RemoveDuplicates"): 2}
    assert one.figures.remaining == {}
    assert sorted(len(list(one.world.fork.pods_on(row))) for row in (0, 1)) == [2, 2]


def test_a_planned_pod_that_is_gone_when_its_turn_comes_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier move of the plan may have let a pod preempt it: here each move is made twice."""
    documents = [*DUPLICATES, a_rebalancing_policy()]
    once, make = replay_of(documents).figures, Replay._make

    def twice(replay: Replay, policy: str, move: Any) -> None:
        make(replay, policy, move)
        make(replay, policy, move)

    monkeypatch.setattr(Replay, "_make", twice)
    again = replay_of(documents).figures

    assert (again.moved, again.placements, again.replaced) == (once.moved, once.placements, once.replaced)
    assert again.moved.total() == 2


def test_a_dry_run_moves_nothing_unless_asked() -> None:
    """Its predictions are counted."""
    documents = [*DUPLICATES, a_rebalancing_policy(mode="DryRun")]

    dry = replay_of(documents).figures
    real = replay_of(documents, ReplaySettings(3600.0, enforce=True)).figures

    assert (dry.moved.total(), dry.placements) == (0, [])
    assert dry.predicted.total() > 0
    assert real.moved.total() == 2


def test_a_budget_is_never_overdrawn() -> None:
    """A budget that allows nothing stops every move."""
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 4, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 4, "desiredHealthy": 4, "expectedPods": 4},
    }

    assert replay_of([*DUPLICATES, budget, a_rebalancing_policy()]).figures.moved.total() == 0


def test_a_pod_of_higher_priority_preempts_and_the_victim_waits() -> None:
    """The victim's owner makes another pod, for which there is no room."""
    one = replay_of(
        [
            a_node_document("n1"),
            a_pod_document("low", node="n1", cpu="3", priority=0),
            arriving("high", 60, cpu="3", priority=1000),
            a_policy_document(),
        ]
    )

    assert one.figures.placements == [("high", "n1")]
    assert one.figures.preempted == 1
    (waiting,) = one.world.waiting.values()
    assert waiting.pod.metadata.owner_references[0].name == "web"


def test_policies_run_by_their_cron() -> None:
    """At noon, so twice by the half hour in an hour: 12:30 and 13:00."""
    policy = a_rebalancing_policy(schedule={"cron": "*/30 * * * *"})

    assert replay_of([*DUPLICATES, policy]).figures.runs == {"all": 2}


def test_equal_input_gives_equal_output() -> None:
    """Ties among equal nodes are broken by the seed alone."""
    documents = [
        *(a_node_document(f"n{number}") for number in range(20)),
        *(arriving(f"p{number}", number % 7, 100.0 * number, owner=f"w{number}") for number in range(60)),
        a_rebalancing_policy(),
    ]

    first, second = (replay_of(documents, ReplaySettings(3600.0, seed=3)).figures for _ in range(2))
    other = replay_of(documents, ReplaySettings(3600.0, seed=4)).figures

    assert first == second
    assert first.placements != other.placements


def test_progress_is_virtual_time() -> None:
    """It rises, from the beginning to the end."""
    state = ClusterState.of(content_of([*DUPLICATES, a_rebalancing_policy()]))
    told: list[float] = []

    Replay(state, HOUR).run(told.append)

    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, HOUR.seconds)


def test_the_state_stays_as_it_is() -> None:
    """A second replay of it, with other policies, begins where the first began."""
    state = ClusterState.of(content_of([*DUPLICATES, a_rebalancing_policy()]))
    before = {uid: pod.pod.node_name for uid, pod in state.cluster.pods.items()}

    Replay(state, HOUR).run()

    assert {uid: pod.pod.node_name for uid, pod in state.cluster.pods.items()} == before
    assert state.now == datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, 0), ([5.0], 0.95, 5), ([1, 2, 3, 4], 0.5, 2), (list(range(1, 101)), 0.95, 95)],
)
def test_percentiles_are_values_that_occurred(values: list[float], share: float, expected: float) -> None:
    """Nearest rank: of 100 values the 95th."""
    assert percentile(values, share) == expected


def a_member(name: str, after_s: float = 0.0, runs_s: float | None = None, **given: Any) -> Document:
    """A member of PodGroup ``train`` that requests two cores."""
    pod = arriving(name, after_s, runs_s, cpu="2", schedulerName="plimsoll", owner="train", **given)
    pod["metadata"]["labels"]["plimsoll.dev/pod-group"] = "train"
    return pod


def a_group(least: int) -> Document:
    """The PodGroup ``train``."""
    return {
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "shop"},
        "spec": {"minMember": least},
    }


SERVED = a_policy_document(scheduling={"schedulerName": "plimsoll"})


def test_members_of_a_group_wait_until_all_fit_together() -> None:
    """4 cores, of which a pod holds 2 for 300 s: the first member fits already and waits for the other."""
    one = replay_of(
        [
            a_node_document("n1"),
            arriving("early", 0, 300, cpu="2", schedulerName="plimsoll"),
            a_group(2),
            a_member("m-0", 60),
            a_member("m-1", 60),
            SERVED,
        ]
    )

    assert one.figures.placements == [("early", "n1"), ("m-0", "n1"), ("m-1", "n1")]
    assert one.figures.waits == [0.0, 240.0, 240.0]


def test_a_group_that_never_fits_places_no_member_and_says_why() -> None:
    """Three of two cores each on four: room for two of them is of no use."""
    one = replay_of([a_node_document("n1"), a_group(3), *map(a_member, ("m-0", "m-1", "m-2")), SERVED])

    assert one.figures.placements == []
    ((reason, pods),) = one.reasons().items()
    assert reason.startswith("2 of 3 members fit, 3 must; 1 lack a node: ")
    assert pods == ["shop/m-0", "shop/m-1", "shop/m-2"]


def test_a_group_starts_when_its_last_member_has_arrived() -> None:
    """Until then the first one takes no room from others, and a member that has run counts."""
    done = a_member("m-done", node="n1")
    done["status"] = {"phase": "Succeeded"}
    one = replay_of([a_node_document("n1"), done, a_group(3), a_member("m-0"), a_member("m-1", 120), SERVED])

    assert one.figures.placements == [("m-0", "n1"), ("m-1", "n1")]
    assert one.figures.waits == [120.0, 0.0]
    (ended,) = one.world.ended.values()
    assert (one.world.remove(ended.uid), one.world.remove(ended.uid)) == (ended, None)


def test_a_group_preempts_as_a_whole_or_not_at_all() -> None:
    """One pod of lower priority is in the way of two members; that of higher priority is left alone."""
    in_the_way = [
        a_node_document("n1"),
        a_group(2),
        a_member("m-0", priority=100),
        a_member("m-1", priority=100),
        SERVED,
    ]
    low, high = (a_pod_document("other", node="n1", cpu="2", priority=each) for each in (0, 1000))

    assert replay_of([low, *in_the_way]).figures.preempted == 1
    stays = replay_of([high, *in_the_way]).figures
    assert (stays.preempted, stays.placements) == (0, [])


def test_runs_know_how_many_members_of_a_group_still_need_a_node() -> None:
    """A group that lacks members needs none yet, and one that has started none any more."""
    members = [a_member("m-0"), a_member("m-1"), a_member("m-2")]
    nodes = [a_node_document("n1", cpu="3"), SERVED]

    waits, lacks = (replay_of([*nodes, *members, a_group(least)]) for least in (3, 4))
    started = replay_of([*nodes, *members, a_group(1)])
    failed = {**a_member("m-failed", node="n1"), "status": {"phase": "Failed"}}
    one_failed = replay_of([*nodes, *members, failed, a_group(4)])
    bound = {**a_group(2), "spec": {"minMember": 2, "topology": {"required": "zone"}}}
    one_runs = replay_of([*nodes[:1], a_member("m-0", node="n1"), a_member("m-1"), bound, SERVED])

    assert (waits.world.gang_needs(), lacks.world.gang_needs()) == (
        {"shop/train": 3},
        {"shop/train": NOT_YET},
    )
    assert (one_failed.world.gang_needs(), one_runs.world.gang_needs()) == (
        {"shop/train": NOT_YET},
        {"shop/train": NOT_YET},
    )
    assert (started.figures.placements, started.world.gang_needs()) == ([("m-0", "n1")], {"shop/train": 0})


def test_no_pod_is_moved_while_an_earlier_replacement_of_its_owner_is_late() -> None:
    """A group starts on what the first move frees and on its target; the limit allows two moves."""
    documents = [
        a_node_document("n1", cpu="6"),
        a_node_document("n2", cpu="2"),
        *(
            a_pod_document(f"web-{number}", node="n1", cpu="2", schedulerName="plimsoll")
            for number in range(3)
        ),
        a_group(2),
        *(a_member(name, priority=10, preemptionPolicy="Never") for name in ("m-0", "m-1")),
        a_rebalancing_policy(limits={"perWorkload": 2}),
    ]

    one = replay_of(documents)

    assert (one.figures.late, one.figures.moved.total()) == (1, 1)
    said = one.figures.refused["all", "ReplacementNotReady"]
    assert said.message.startswith("pod shop/web-r1 was made after a pod of the same owner was moved")


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("hours", [1, 2, 3])
def test_a_rule_of_a_namespace_counts_the_moves_of_each_hour_again(hours: int, most: int) -> None:
    """Runs are every ten minutes, the last one an hour after an earlier; another namespace has no rule."""
    seconds = 600.0 + 3600.0 * (hours - 1)
    metadata = {"name": "calm", "namespace": "shop"}
    rule = {"kind": "RebalancingRule", "metadata": metadata, "spec": {"maxMovesPerHour": most}}
    pods = [
        a_pod_document(f"{owner}-{number}", node="n1", cpu="100m", owner=owner, namespace=namespace)
        for owner, namespace in (("web", "shop"), ("api", "other"))
        for number in range(14)
    ]
    nodes = [a_node_document("n1"), a_node_document("n2")]

    one = replay_of([*nodes, *pods, rule, a_rebalancing_policy()], ReplaySettings(seconds))

    moved = Counter(pod.namespace for pod in one.world.fork.pods.values() if pod.pod.node_name == "n2")
    runs = round(seconds / 600)
    assert moved == {"shop": min(most * (hours - 1) + 1, runs), "other": min(runs, 7)}


@pytest.mark.parametrize(
    ("said", "ends"), [("x", None), ("", None), ("nan", None), ("inf", None), ("-5", 0), ("0", 0), ("60", 60)]
)
def test_a_pod_runs_for_as_long_as_its_annotation_says(said: str, ends: int | None) -> None:
    """What is no number is named, and the pod runs on, as one without an end does."""
    node, pod = a_node_document("n1"), a_pod_document("job", node="n1", cpu="100m")
    pod["metadata"]["annotations"] = {DURATION: said}

    one = replay_of([node, pod], ReplaySettings(3600.0))

    assert (not one.world.fork.pods) == (ends is not None)
    is_odd = said in {"x", "", "nan"}
    assert [*one.figures.problems] == [f"shop/job: {DURATION} is no number of seconds"] * is_odd
