"""FairShare: order, ceilings and reclaim, in the real scheduler; comments work out the shares."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.profile import MULTI_POINT, Enabled, PluginSet, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import ActionType, ClusterEvent, EventResource, QueueingHint, Registry, Snapshot
from plimsoll.framework.errors import ConfigurationError
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.queue_usage import ReclaimTimes, WaitingDemand, queue_key
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.toolkit.scheduling.fair_shares import dominant_share

A1 = "uid-default-a1"


def in_queue(name: str, queue: str, cpu: str | int = "1", **more: Any) -> Pod:
    """A pod of a queue."""
    labels = {"plimsoll.dev/queue": queue, **more.pop("labels", {})}
    return a_pod(name, cpu=cpu, schedulerName="s", labels=labels, **more)


def sharing(cluster: Cluster, *queues: dict[str, Any], reclaim: str = "Never") -> Any:
    """The scheduler of a policy with these queues, and its plugin."""
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    config = ProfileConfig(
        "s",
        plugins={MULTI_POINT: PluginSet(enabled=(Enabled("FairShare"),))},
        args={"FairShare": {"queues": list(queues), "reclaim": reclaim}},
    )
    scheduler = ProfileScheduler(build_profile(config, Registry(IN_TREE), defaults), cluster)
    (plugin,) = [each for each in scheduler.profile.plugins if each.name == "FairShare"]
    return scheduler, plugin


def crowded(count: int = 4, queue: str = "b", cpu: int = 1, nodes: int = 2, **more: Any) -> Cluster:
    """Nodes of two cpus, full of one queue's pods."""
    pods = [in_queue(f"{queue}{at}", queue, cpu=cpu, node=f"n{at % nodes}", **more) for at in range(count)]
    return a_cluster([a_node(f"n{at}", cpu="2") for at in range(nodes)], pods)


def tried(scheduler: ProfileScheduler, pod: Pod) -> Decision:
    """The decision on a pod, which is nominated as by the operator."""
    info = scheduler.cluster.templates.info(pod)
    decision = schedule(scheduler, info)
    if decision.nomination is not None and decision.nomination.victims:
        scheduler.nominator.add(info, decision.nomination.node or "")
    return decision


def test_a_queue_stands_by_its_dominant_share_and_weight() -> None:
    """Two of four cpus are a half, by weight 2 a quarter; pods without a listed queue are in default."""
    cluster = a_cluster(
        [a_node("n", cpu="4")],
        [in_queue("a1", "a", cpu="2", node="n"), in_queue("x", "nowhere", cpu="1", node="n")],
    )
    _, plugin = sharing(cluster, {"name": "a", "weight": 2})
    snapshot = Snapshot(cluster)

    assert plugin.standing("a", "s", snapshot) == (0.25,)
    assert plugin.standing("default", "s", snapshot) == (0.25,)
    assert plugin.standing("a", "another", snapshot) == (0.0,)


def test_a_pod_above_its_queues_capability_waits() -> None:
    """Its message names the resource; another queue's pod is placed."""
    cluster = a_cluster([a_node("n", cpu="8")], [in_queue("a1", "a", cpu="2", node="n")])
    scheduler, _ = sharing(cluster, {"name": "a", "capability": {"cpu": "3"}})

    assert tried(scheduler, in_queue("a2", "a", cpu="1")).outcome is AttemptOutcome.SCHEDULED
    decision = tried(scheduler, in_queue("a3", "a", cpu="1500m"))
    assert decision.message.startswith(
        "0/1 nodes are available: queue a has no capability left for this pod: cpu."
    )
    assert decision.diagnosis.plugins == {"FairShare"}
    assert tried(scheduler, in_queue("b1", "b", cpu="4")).outcome is AttemptOutcome.SCHEDULED


def test_a_gang_is_measured_as_a_whole() -> None:
    """Its members count one another: of three, two have capability, so a gang of three does not start."""
    cluster = a_cluster([a_node("n", cpu="8")])
    scheduler, _ = sharing(cluster, {"name": "a", "capability": {"cpu": "2"}})
    members = [(cluster.templates.info(in_queue(f"a{at}", "a")), scheduler) for at in range(3)]

    decision = place_together(members, cluster, 3)

    assert not decision.is_feasible
    assert "1 lack a node: 0/1 nodes are available: queue a has no capability" in decision.message(0)


def test_a_member_that_has_its_place_no_longer_adds_to_what_its_queue_waits_for() -> None:
    """Of 8 cpus b deserves the 2 that its gang requests, a and c 3 each: c has 3, and gives nothing.

    Counted twice, the first member would raise b to 8/3 and lower c to it, which could give 250m.
    """
    pods = [in_queue(f"a{at}", "a", node="n0") for at in range(5)]
    pods += [in_queue(f"c{at}", "c", cpu="250m", node="n1") for at in range(12)]
    cluster = a_cluster([a_node("n0", cpu="5"), a_node("n1", cpu="3")], pods)
    queues = ({"name": each} for each in "abc")
    scheduler, _ = sharing(cluster, *queues, reclaim="AboveDeserved")
    demand = cluster.index(WaitingDemand)
    for each in (in_queue("a9", "a", cpu="8"), in_queue("c9", "c", cpu="8")):
        demand.set(cluster.templates.info(each), is_placed=False)
    gang = []
    for at, cpu in enumerate(("1750m", "250m")):
        member = in_queue(f"b{at}", "b", cpu=cpu, nodeSelector={"kubernetes.io/hostname": f"n{at}"})
        gang.append((cluster.templates.info(member), scheduler))
        demand.set(gang[-1][0], is_placed=False)

    decision = place_together(gang, cluster, 2, is_preempting=True)

    assert not decision.is_feasible
    assert demand.sums["s", "b"] == {"cpu": 2000}, "what a fork places waits on"


def test_a_queue_below_what_it_deserves_takes_it_back() -> None:
    """A and b deserve two cpus each; b has all four and gives one, the least important."""
    cluster = crowded()
    cluster.place(cluster.templates.info(in_queue("b3", "b", node="n1", priority=-1)), "n1")
    scheduler, _ = sharing(cluster, {"name": "a"}, {"name": "b"}, reclaim="AboveDeserved")

    decision = tried(scheduler, in_queue("a1", "a"))

    assert (decision.nomination.node, [each.name for each in decision.nomination.victims]) == ("n1", ["b3"])


def test_nothing_is_taken_back_unless_asked_for() -> None:
    """Never is the default."""
    cluster = crowded()
    scheduler, _ = sharing(cluster, {"name": "a"}, {"name": "b"})

    decision = tried(scheduler, in_queue("a1", "a"))

    assert not decision.nomination.victims
    assert "reclaim" not in decision.message


def test_victims_stop_at_what_they_deserve() -> None:
    """B deserves two of four: a may take two, the third is refused; claims that are under way count."""
    cluster = crowded()
    scheduler, _ = sharing(cluster, {"name": "a"}, {"name": "b"}, reclaim="AboveDeserved")

    decisions = [tried(scheduler, in_queue(f"a{at}", "a")) for at in range(3)]

    victims = [[each.name for each in decision.nomination.victims] for decision in decisions]
    assert [len(each) for each in victims] == [1, 1, 0]
    assert len({name for each in victims for name in each}) == 2
    assert "reclaim: queue a would be above what it deserves." in decisions[2].message


def test_a_claim_without_victims_does_not_count() -> None:
    """B deserves two of four: a member of a group that would not fit even so is not nominated."""
    cluster = crowded()
    scheduler, _ = sharing(cluster, {"name": "a"}, {"name": "b"}, reclaim="AboveDeserved")
    schedule(scheduler, cluster.templates.info(in_queue("member", "a")))

    decisions = [tried(scheduler, in_queue(f"a{at}", "a")) for at in range(3)]

    assert [len(each.nomination.victims) for each in decisions] == [1, 1, 0]


def test_what_others_wait_for_counts() -> None:
    """C waits for as much as a: each of the three deserves a third, and a takes no half."""
    cluster = crowded(count=6, nodes=3)
    scheduler, _ = sharing(cluster, {"name": "a"}, {"name": "b"}, {"name": "c"}, reclaim="AboveDeserved")
    sums = cluster.index(WaitingDemand).sums
    sums.update({("s", "c"): {"cpu": 6000}, ("s", "a"): {"cpu": 6000}})

    decisions = [tried(scheduler, in_queue(f"a{at}", "a")) for at in range(3)]

    assert [len(decision.nomination.victims) for decision in decisions] == [1, 1, 0]


@pytest.mark.parametrize(
    ("queue", "victim"),
    [
        pytest.param({"name": "b", "reclaimable": False}, {}, id="not reclaimable"),
        pytest.param({"name": "b"}, {"namespace": "kube-system"}, id="of the system"),
        pytest.param({"name": "b"}, {"priority": 2_000_000_000}, id="system-critical"),
        pytest.param({"name": "b"}, {"labels": {"app": "db"}}, id="protected by a budget"),
    ],
)
def test_who_is_no_victim(queue: dict[str, Any], victim: dict[str, Any]) -> None:
    """Whatever share its queue has."""
    cluster = crowded(**victim)
    budget = {
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}},
        "status": {"disruptionsAllowed": 0},
    }
    cluster.objects.budgets["default/db"] = convert(PodDisruptionBudget, budget)
    cluster.objects.version += 1
    scheduler, _ = sharing(cluster, {"name": "a"}, queue, reclaim="AboveDeserved")

    assert not tried(scheduler, in_queue("a1", "a")).nomination.victims


def test_no_pod_is_evicted_in_vain() -> None:
    """A pod that needs three cpus fits no node of two: b keeps all."""
    scheduler, _ = sharing(crowded(), {"name": "a", "weight": 9}, {"name": "b"}, reclaim="AboveDeserved")

    decision = tried(scheduler, in_queue("a1", "a", cpu="3"))

    assert not decision.nomination.victims
    assert "reclaim: no queue has more than it deserves where it would help." in decision.message


def test_who_need_not_go_stays() -> None:
    """One large victim is enough; the small ones that were looked at before are put back."""
    pods = [
        in_queue("small", "b", cpu="500m", node="n0"),
        in_queue("large", "b", cpu="1500m", node="n0", priority=1),
    ]
    cluster = a_cluster([a_node("n0", cpu="2")], pods)
    scheduler, _ = sharing(cluster, {"name": "a", "weight": 9}, {"name": "b"}, reclaim="AboveDeserved")

    decision = tried(scheduler, in_queue("a1", "a", cpu="1500m"))

    assert [each.name for each in decision.nomination.victims] == ["large"]


def test_who_turns_out_to_be_needless_stays() -> None:
    """Each queue deserves one of three: b may lose both, and the second of them is enough."""
    amounts = (("small", "500m"), ("large", "1500m"), ("kept", "1"))
    pods = [in_queue(name, "b", cpu=cpu, node="n0", priority=at) for at, (name, cpu) in enumerate(amounts)]
    cluster = a_cluster([a_node("n0", cpu="3")], pods)
    cluster.index(WaitingDemand).sums[("s", "c")] = {"cpu": 6000}
    scheduler, _ = sharing(cluster, {"name": "a"}, {"name": "b"}, {"name": "c"}, reclaim="AboveDeserved")

    decision = tried(scheduler, in_queue("a1", "a", cpu="1"))

    assert [each.name for each in decision.nomination.victims] == ["large"]


def test_no_queue_ends_below_what_it_deserves() -> None:
    """Carried out to the end, a and b have half each."""
    cluster = crowded(count=8, nodes=4)
    scheduler, plugin = sharing(cluster, {"name": "a"}, {"name": "b"}, reclaim="AboveDeserved")

    for number in range(8):
        pod = cluster.templates.info(in_queue(f"a{number}", "a"))
        decision = schedule(scheduler, pod)
        for victim in decision.nomination.victims if decision.nomination else ():
            cluster.displace(victim.uid)
        again = schedule(scheduler, pod)
        if again.outcome is AttemptOutcome.SCHEDULED:
            cluster.place(pod, again.node)

    shares = {
        queue: sum(queue_key(each)[1] == queue for each in cluster.pods.values()) for queue in ("a", "b")
    }
    assert shares == {"a": 4, "b": 4}
    total = {"cpu": 8000}
    assert (dominant_share({"cpu": 4000}, total),) == plugin.standing("a", "s", Snapshot(cluster))


#: Two teams of two queues; of the first, web deserves two cpus before the rest is divided.
TEAMS: tuple[dict[str, Any], ...] = (
    {"name": "one"},
    {"name": "web", "parent": "one", "guaranteed": {"cpu": "2"}},
    {"name": "lab", "parent": "one"},
    {"name": "two"},
    {"name": "train", "parent": "two", "weight": 3},
    {"name": "infer", "parent": "two"},
)


def teams(**cpus: int) -> Any:
    """Eight nodes of one cpu, and pods of one cpu of these queues; the scheduler and its plugin."""
    names = [f"{queue}{at}" for queue, count in cpus.items() for at in range(count)]
    pods = [in_queue(name, name[:-1], node=f"n{at}") for at, name in enumerate(names)]
    cluster = a_cluster([a_node(f"n{at}", cpu="1") for at in range(8)], pods)
    return sharing(cluster, *TEAMS, reclaim="AboveDeserved")


def test_queues_stand_first_by_those_above_them() -> None:
    """Team two has used less, and of its queues infer, by weight."""
    scheduler, plugin = teams(web=1, lab=3, train=2, infer=1)
    snapshot = Snapshot(scheduler.cluster)

    standings = {name: plugin.standing(name, "s", snapshot) for name in ("web", "lab", "train", "infer")}

    assert standings == {
        "web": (4 / 8, 1 / 8),
        "lab": (4 / 8, 3 / 8),
        "train": (3 / 8, 2 / 8 / 3),
        "infer": (3 / 8, 1 / 8),
    }
    assert sorted(standings, key=lambda each: standings[each]) == ["train", "infer", "web", "lab"]


@pytest.mark.parametrize(
    ("running", "queue", "loser"),
    [
        ({"lab": 8}, "web", "lab"),  # its sibling has more than it deserves
        ({"lab": 8}, "infer", "lab"),  # team one has eight of eight
        ({"train": 8}, "infer", "train"),
        ({"train": 4, "lab": 4}, "web", "lab"),  # team two has no more than its half
        ({"train": 3, "infer": 1, "lab": 4}, "infer", ""),  # train and infer have what they deserve
        ({"train": 4, "web": 4}, "infer", "train"),
        ({"web": 4, "lab": 4}, "infer", "lab"),  # web has its guarantee and half of the rest
        ({"web": 2, "train": 6}, "lab", "train"),  # web has its guarantee, and one of it remains for team one
    ],
)
def test_room_is_reclaimed_up_the_tree(running: dict[str, int], queue: str, loser: str) -> None:
    """From queues that have too much up to where the claimant and the victim meet."""
    scheduler, _ = teams(**running)

    nomination = tried(scheduler, in_queue("new", queue)).nomination

    assert nomination is not None
    victims = [each.labels["plimsoll.dev/queue"] for each in nomination.victims]
    assert victims == ([loser] if loser else [])


def test_a_team_that_has_no_more_than_it_deserves_loses_to_no_other() -> None:
    """Lab has more than its part of team one, which web waits for; team one has its half."""
    scheduler, _ = teams(lab=4, train=3)
    scheduler.cluster.set_node(a_node("n7", cpu="1", unschedulable=True))
    scheduler.cluster.index(WaitingDemand).sums[("s", "web")] = {"cpu": 4000}

    assert not tried(scheduler, in_queue("new", "infer")).nomination.victims
    assert len(tried(scheduler, in_queue("new", "web")).nomination.victims) == 1


def test_a_team_that_would_have_more_than_it_deserves_takes_from_no_other() -> None:
    """Team two deserves half of seven, and would have four; of team one two pods are too many."""
    queues = [{**each, "capability": {"cpu": "1"}} if each["name"] == "one" else each for each in TEAMS]
    queues = [{**each, "weight": 1} if each["name"] == "train" else each for each in queues]
    names = [f"{queue}{at}" for queue, count in (("lab", 3), ("train", 3), ("x", 2)) for at in range(count)]
    pods = [in_queue(name, name[:-1], node=f"n{at}") for at, name in enumerate(names)]
    cluster = a_cluster([a_node(f"n{at}", cpu="1") for at in range(8)], pods)
    scheduler, _ = sharing(cluster, *queues, {"name": "x"}, reclaim="AboveDeserved")
    cluster.index(WaitingDemand).sums[("s", "x")] = {"cpu": 3000}

    decision = tried(scheduler, in_queue("new", "infer"))

    assert not decision.nomination.victims
    assert "reclaim: no queue below two has more than it deserves where it would help." in decision.message
    assert len(tried(scheduler, in_queue("more", "x")).nomination.victims) == 1


def test_a_parent_limits_its_queues_and_has_no_pods_itself() -> None:
    """A pod that leaves one of its queues lets one of another go on."""
    limited = [{**each, "capability": {"cpu": "2"}} if each["name"] == "one" else each for each in TEAMS]
    cluster = a_cluster([a_node("n", cpu="8")], [in_queue("w", "web", cpu="2", node="n")])
    scheduler, plugin = sharing(cluster, *limited)

    assert (
        "queue one has no capability left for this pod: cpu" in tried(scheduler, in_queue("l", "lab")).message
    )
    assert tried(scheduler, in_queue("t", "train")).outcome is AttemptOutcome.SCHEDULED
    told = "queue two has queues below it, and pods name one of these: infer, train"
    assert told in tried(scheduler, in_queue("x", "two")).message
    hint = next(
        each for each in plugin.events_to_register() if each.resource == EventResource.ASSIGNED_POD
    ).hint
    gone = [
        ClusterEvent(
            EventResource.ASSIGNED_POD, ActionType.DELETE, cluster.templates.info(in_queue("o", queue))
        )
        for queue in ("web", "train")
    ]
    waiting = cluster.templates.info(in_queue("l", "lab"))
    assert [hint(waiting, each) for each in gone] == [QueueingHint.QUEUE, QueueingHint.SKIP]


@pytest.mark.parametrize(
    ("queues", "problem"),
    [
        ([{"name": "a", "parent": "b"}], "a names the parent b, which is not listed"),
        ([{"name": "a", "parent": "a"}], "a is below itself"),
        ([{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}], "a is below itself"),
    ],
)
def test_queues_form_a_tree(queues: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        sharing(a_cluster(), *queues)


@pytest.mark.parametrize(
    ("queues", "seconds"),
    [
        pytest.param([{"name": "b", "reclaimMinRuntimeSeconds": 600}], 600, id="its-own"),
        pytest.param(
            [{"name": "t", "reclaimMinRuntimeSeconds": 300}, {"name": "b", "parent": "t"}],
            300,
            id="inherited",
        ),
        pytest.param(
            [
                {"name": "t", "reclaimMinRuntimeSeconds": 300},
                {"name": "b", "parent": "t", "reclaimMinRuntimeSeconds": 0},
            ],
            0,
            id="its-own-goes-first",
        ),
    ],
)
def test_pods_run_for_a_while_before_others_reclaim(queues: list[dict[str, Any]], seconds: int) -> None:
    """Until then the message says so, and the moment is noted; then the least important goes."""
    cluster = crowded(status={"startTime": "2026-01-01T00:00:00Z"})
    start = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    scheduler, _ = sharing(cluster, {"name": "a"}, *queues, reclaim="AboveDeserved")
    times = cluster.index(ReclaimTimes)

    for moment, is_young in ((start - 5, seconds > 0), (start + seconds - 1, seconds > 0)):
        times.now = moment
        decision = tried(scheduler, in_queue("a1", "a"))
        assert bool(decision.nomination.victims) is not is_young
        scheduler.nominator.remove(A1)
        if is_young:
            assert decision.message.endswith(
                "reclaim: what would help has not run for reclaimMinRuntimeSeconds."
            )
            assert times.passed() == []
            assert times.next() == min(start, moment) + seconds
    times.now = start + seconds
    assert times.passed() == ([A1] if seconds else [])
    assert times.passed() == []
    assert len(tried(scheduler, in_queue("a1", "a")).nomination.victims) == 1
    assert times.next() is None


def test_a_group_runs_from_the_start_of_its_last_member() -> None:
    """Its first member alone would have run long enough; a pod that started later stays."""
    group = {"metadata": {"name": "train", "namespace": "default"}, "spec": {"minMember": 2}}
    starts = {"b0": "2026-01-01T00:00:00Z", "b1": "2026-01-01T00:01:00Z"}
    pods = [
        in_queue(
            name,
            "b",
            node="n0",
            labels={"plimsoll.dev/pod-group": "train"},
            status={"phase": "Running", "startTime": start},
        )
        for name, start in starts.items()
    ]
    late = in_queue("late", "b", cpu="2", node="n1", status={"startTime": "2026-01-01T01:00:00Z"})
    cluster = a_cluster([a_node(f"n{at}", cpu="2") for at in range(2)], [*pods, late])
    cluster.objects.pod_groups["default/train"] = convert(PodGroup, group)
    queues = ({"name": "a"}, {"name": "b", "reclaimMinRuntimeSeconds": 100})
    scheduler, _ = sharing(cluster, *queues, reclaim="AboveDeserved")
    last = datetime(2026, 1, 1, 0, 1, tzinfo=UTC).timestamp()

    cluster.index(ReclaimTimes).now = last + 99
    assert not tried(scheduler, in_queue("a1", "a", cpu="2")).nomination.victims
    cluster.index(ReclaimTimes).now = last + 100
    victims = tried(scheduler, in_queue("a1", "a", cpu="2")).nomination.victims
    assert {each.name for each in victims} == starts.keys()


def test_no_pod_is_reclaimed_early_where_the_moment_is_not_known() -> None:
    """An answer about a cluster at an unknown time takes nothing."""
    cluster = crowded()
    queues = ({"name": "a"}, {"name": "b", "reclaimMinRuntimeSeconds": 1})
    scheduler, _ = sharing(cluster, *queues, reclaim="AboveDeserved")

    assert not tried(scheduler, in_queue("a1", "a")).nomination.victims
