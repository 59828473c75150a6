"""Scheduling attempts: kept caches decide as a fresh scheduler would; a bad plugin harms itself only."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from engine.toys import ALL
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod


def a_scheduler(cluster: Any, *names: Any) -> Any:
    defaults = [Enabled(name) for name in ("Fifo", "Room", "Binds", *names)]
    return ProfileScheduler(build_profile(ProfileConfig("s"), Registry(ALL), defaults), cluster)


def info(cluster: Any, *args: Any, **kwargs: Any) -> Any:
    return cluster.templates.info(a_pod(*args, **kwargs))


def test_the_best_node_wins() -> None:
    """The node with the highest total is chosen; the decision says how many were considered."""
    cluster = a_cluster(
        [a_node("full", cpu="4"), a_node("half", cpu="4"), a_node("small", cpu="1")],
        [a_pod("a", cpu="4", node="full"), a_pod("b", cpu="2", node="half")],
    )

    decision = schedule(a_scheduler(cluster), info(cluster, "p", cpu="1"))

    assert (decision.outcome, decision.node, decision.total) == (AttemptOutcome.SCHEDULED, "small", 100)
    assert decision.feasible == 2


def test_a_pod_that_fits_nowhere_gets_the_reasons() -> None:
    """Counts per reason, over all nodes, from the first plugin that refused each."""
    cluster = a_cluster([a_node("a", labels={"pool": "red"}), a_node("b", cpu="1"), a_node("c", cpu="1")])

    decision = schedule(a_scheduler(cluster, "Pool"), info(cluster, "p", cpu="2"))

    assert decision.outcome is AttemptOutcome.UNSCHEDULABLE
    assert decision.message == "0/3 nodes are available: 1 wrong pool, 2 Insufficient room."
    assert decision.diagnosis.plugins == {"Room", "Pool"}


def test_without_nodes_a_pod_is_unschedulable_and_no_plugin_rejected_it() -> None:
    """No plugin can wake it then: the queue retries it after error back-off; a nomination is cleared."""
    cluster = a_cluster()

    decision = schedule(a_scheduler(cluster), info(cluster, "p"))

    assert decision.outcome is AttemptOutcome.UNSCHEDULABLE
    assert decision.message == "no nodes available to schedule pods"
    assert decision.diagnosis.plugins == frozenset()
    assert decision.nomination.node == ""


def test_a_plugin_that_raises_is_named_and_harms_its_own_cycle() -> None:
    """The next pod is scheduled as if nothing had happened."""
    cluster = a_cluster([a_node("a"), a_node("b")])
    scheduler = a_scheduler(cluster, "Breaks")

    broken = schedule(scheduler, info(cluster, "p", labels={"break": "yes"}))
    fine = schedule(scheduler, info(cluster, "q"))

    assert broken.outcome is AttemptOutcome.ERROR
    assert broken.message == 'running Score plugin "Breaks": ZeroDivisionError: as asked'
    assert fine.outcome is AttemptOutcome.SCHEDULED


def test_only_what_changed_is_evaluated_again() -> None:
    """The second pod of a template costs one node, not a thousand."""
    cluster = a_cluster([a_node(f"n{number}") for number in range(1000)])
    scheduler = a_scheduler(cluster)
    room = scheduler.profile.filter[0]
    first = schedule(scheduler, info(cluster, "p0", cpu="1"))
    cluster.place(info(cluster, "p0", cpu="1"), first.node)

    room.asked = 0
    schedule(scheduler, info(cluster, "p1", cpu="1"))

    assert room.asked == 1


def test_points_that_leave_their_range_later_are_seen() -> None:
    """What was added up before is not trusted with a node that changed; other nodes' points are no matter."""
    cluster = a_cluster([a_node(name, cpu="4") for name in "ab"])
    scheduler = a_scheduler(cluster, "Crowd")
    outcomes = []
    for number in range(3):
        outcomes.append(schedule(scheduler, info(cluster, f"p{number}", cpu="1")))
        cluster.place(info(cluster, f"p{number}", cpu="1"), "a")
    cluster.place(info(cluster, "big", cpu="1"), "a")
    cluster.set_node(a_node("c", cpu="4"))
    outcomes.append(schedule(scheduler, info(cluster, "q", cpu="1")))

    assert [each.node for each in outcomes] == ["a", "a", "", "b"]
    assert [each.total for each in outcomes] == [100, 135, None, 100]
    assert outcomes[2].message == 'running Score plugin "Crowd": returned 120; scores lie in 0..100'


def test_ties_are_broken_by_the_handed_in_choice() -> None:
    """Same seed, same decision; the random numbers are not the engine's."""
    cluster = a_cluster([a_node(name) for name in "abc"])
    scheduler = a_scheduler(cluster)
    scheduler._choose = lambda n: n - 1

    decision = schedule(scheduler, info(cluster, "p", cpu="1"))

    assert (decision.node, decision.ties) == ("c", 3)


@pytest.mark.parametrize(
    ("priority", "node"),
    [pytest.param(0, "b", id="lower-gives-way"), pytest.param(9, "a", id="higher-takes-it")],
)
def test_nominated_pods_hold_their_room(priority: Any, node: Any) -> None:
    """A pending pod's nomination counts against pods of no higher priority."""
    cluster = a_cluster([a_node("a", cpu="4"), a_node("b", cpu="4")], [a_pod("x", cpu="3", node="b")])
    scheduler = a_scheduler(cluster)
    scheduler.nominator.add(info(cluster, "preemptor", cpu="4", priority=5), "a")

    decision = schedule(scheduler, info(cluster, "p", cpu="1", priority=priority))

    assert decision.node == node


@pytest.mark.parametrize("plugins", [(), ("InterPodAffinity",)], ids=["by-sums", "by-trials"])
def test_a_node_that_is_full_of_reservations_says_so(plugins: tuple[str, ...]) -> None:
    """One is too small, one has a nominated pod, of which kube-scheduler's words hold, one is reserved."""
    cluster = a_cluster([a_node("small", cpu="1"), a_node("nominated", cpu="4"), a_node("reserved", cpu="4")])
    registry = Registry(IN_TREE)
    defaults = [Enabled(name) for name in DEFAULT_PLUGINS if name in registry]
    scheduler = ProfileScheduler(build_profile(ProfileConfig("s"), registry, defaults), cluster)
    other = info(cluster, "other", cpu="4", priority=5)
    scheduler.nominator.add(other, "nominated")
    moved = cluster.templates.stand_in(other, Holder(HolderKind.REPLACEMENT, "default/other-1"), 10)
    scheduler.nominator.add(moved, "reserved")
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    spec = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}} if plugins else {}

    pod = info(cluster, "p", cpu="2", affinity=spec)
    decision, evaluation = schedule(scheduler, pod), scheduler.evaluate(pod)

    assert decision.message.startswith(
        "0/3 nodes are available: 1 Insufficient cpu because of reservations, 2 Insufficient cpu."
    )
    assert decision.message.partition(". ")[0] + "." == str(scheduler.rank(pod).diagnosis)
    assert evaluation.statuses["reserved"].reasons == ("Insufficient cpu because of reservations",)
    assert evaluation.statuses["reserved"].plugin == "NodeResourcesFit"
    assert evaluation.statuses["nominated"].reasons == ("Insufficient cpu",)


def test_a_nominated_node_is_taken_without_scoring() -> None:
    """The room that was made for a pod is used, even if another node scores higher."""
    cluster = a_cluster([a_node("a", cpu="1"), a_node("b", cpu="64")])

    decision = schedule(a_scheduler(cluster), info(cluster, "p", cpu="1", status={"nominatedNodeName": "a"}))

    assert (decision.node, decision.total) == ("a", None)


def test_a_nominated_node_that_the_search_leaves_out_is_taken_if_it_fits() -> None:
    """The search is narrowed to another node, which has room, too."""
    cluster = a_cluster([a_node("a", cpu="1"), a_node("b", cpu="1")])
    pod = info(cluster, "p", cpu="1", labels={"pin": "b"}, status={"nominatedNodeName": "a"})

    assert schedule(a_scheduler(cluster, "Pinned"), pod).node == "a"


@pytest.mark.parametrize("nominated", ["", "a", "b"])
@pytest.mark.parametrize("pin", [{}, {"pin": "b"}])
def test_a_pod_that_no_node_is_asked_for_gets_none_even_its_nominated_one(nominated: str, pin: Any) -> None:
    cluster = a_cluster([a_node("a", cpu="1"), a_node("b", cpu="1")])
    status = {"nominatedNodeName": nominated}
    pod = info(cluster, "p", cpu="1", labels={"refused": "", **pin}, status=status)

    decision = schedule(a_scheduler(cluster, "Pinned", "Refuses"), pod)

    assert (decision.node, decision.diagnosis.plugins) == ("", {"Refuses"})


def test_a_nominated_node_that_is_left_out_says_its_own_reason_all_the_same() -> None:
    """It is asked before the search is narrowed, and what it said stays in the message."""
    cluster = a_cluster([a_node("a"), a_node("b"), a_node("c", cpu="1")])

    decision = schedule(
        a_scheduler(cluster, "Pinned"),
        info(cluster, "p", cpu="99", labels={"pin": "c"}, status={"nominatedNodeName": "a"}),
    )

    assert decision.message == (
        "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [Pinned], 2 Insufficient room."
    )
    assert decision.diagnosis.plugins == {"Pinned", "Room"}


def test_without_a_way_out_a_nomination_is_taken_back() -> None:
    """A profile without PostFilter plugins keeps no nomination."""
    cluster = a_cluster([a_node("a", cpu="1")])

    decision = schedule(a_scheduler(cluster), info(cluster, "p", cpu="2", status={"nominatedNodeName": "a"}))

    assert decision.message == "0/1 nodes are available: 1 Insufficient room."
    assert decision.nomination.node == ""


@pytest.mark.parametrize(
    ("plugin", "node"),
    [("ReleasesDevices", ""), ("Ineligible", None)],
    ids=["the plugin never nominates", "the plugin leaves the nomination as it is"],
)
def test_a_nomination_lasts_only_where_a_plugin_nominates(plugin: str, node: str | None) -> None:
    """A policy that stops preempting clears the nominations that its preemption made."""
    cluster = a_cluster([a_node("a", cpu="1")])

    decision = schedule(
        a_scheduler(cluster, plugin), info(cluster, "p", cpu="2", status={"nominatedNodeName": "a"})
    )

    assert decision.message == "0/1 nodes are available: 1 Insufficient room. no help"
    assert decision.nomination.node == node


@pytest.mark.parametrize(
    ("promised", "priority", "node"),
    [
        pytest.param({}, 0, "a", id="nobody-else"),
        pytest.param({"first": "b"}, 0, "a", id="somebody-elsewhere"),
        pytest.param({"first": "a"}, 0, "c", id="somebody-there"),
        pytest.param({"first": "a"}, 9, "a", id="somebody-lower-there"),
        pytest.param({"first": "a", "second": "c"}, 0, "", id="somebody-everywhere-else"),
    ],
)
def test_a_nominated_node_that_others_are_promised_is_left_to_them_and_so_are_theirs(
    promised: Any, priority: Any, node: Any
) -> None:
    """The nominated node is asked first, with those of no lower priority on it; then all, with all."""
    cluster = a_cluster(
        [a_node("a", cpu="4"), a_node("b", cpu="4"), a_node("c", cpu="4")], [a_pod("x", cpu="4", node="b")]
    )
    scheduler = a_scheduler(cluster)
    pod = info(cluster, "p", cpu="3", priority=priority)
    scheduler.nominator.add(pod, "a")
    for name, where in promised.items():
        scheduler.nominator.add(info(cluster, name, cpu="3", priority=5), where)

    assert schedule(scheduler, pod).node == node


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["schedule", "leave", "cordon", "remove", "add"]),
            st.integers(0, 5),
            st.integers(1, 3),
        ),
        max_size=40,
    )
)
def test_kept_caches_decide_as_a_fresh_scheduler(steps: Any) -> None:
    """Whatever happened in between, the caches never change a decision."""
    cluster = a_cluster([a_node(f"n{number}", cpu="4") for number in range(3)])
    kept = a_scheduler(cluster, "Pool")
    for count, (what, number, cpu) in enumerate(steps):
        if what == "schedule":
            pod = info(cluster, f"p{count}", cpu=str(cpu), labels={"app": str(number)})
            decision = schedule(kept, pod)
            fresh = schedule(a_scheduler(cluster, "Pool"), pod)
            assert (decision.outcome, decision.node, decision.message) == (
                fresh.outcome,
                fresh.node,
                fresh.message,
            )
            assert decision.total == fresh.total
            if decision.node:
                cluster.place(pod, decision.node)
        elif what == "leave" and cluster.pods:
            cluster.displace(sorted(cluster.pods)[number % len(cluster.pods)])
        elif what == "remove":
            cluster.remove_node(f"n{number}")
        elif what == "add":
            cluster.set_node(a_node(f"n{number}", cpu=str(cpu)))
        else:
            cluster.set_node(
                a_node(f"n{number}", cpu=str(cpu), labels={"pool": "red" if cpu == 1 else "blue"})
            )


def test_scores_that_are_kept_by_node_survive_nodes_that_come_while_nothing_is_scored() -> None:
    """The third node is the only feasible one, so nothing is scored; no kept sum has its row then."""
    image = {"images": [{"names": ["app:latest"], "sizeBytes": 300_000_000}]}
    cluster = a_cluster([a_node("a", cpu="4", status=image), a_node("b", cpu="4")])
    profile = build_profile(
        ProfileConfig("s"),
        Registry(IN_TREE),
        [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
    )
    scheduler, pod = ProfileScheduler(profile, cluster), info(cluster, "p", cpu="1")
    assert schedule(scheduler, pod).node == "a"
    for node in ("a", "b"):
        cluster.place(info(cluster, f"fills-{node}", cpu="4"), node)
    cluster.set_node(a_node("c", cpu="4"))
    assert schedule(scheduler, pod).node == "c"
    cluster.place(info(cluster, "beside", cpu="1"), "c")
    cluster.displace("uid-default-fills-b")

    assert schedule(scheduler, pod).node == "b"
