"""Groups as victims of DefaultPreemption and FairShare: spare members, or whole groups, or nothing."""

from typing import Any

import pytest

from plimsoll.engine.attempt import schedule
from plimsoll.engine.profile import MULTI_POINT, Enabled, PluginSet, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.columns.queue_usage import WaitingDemand
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod


def a_scheduler(
    pods: list[Pod], *, via_eviction: bool = False, queues: Any = (), **least: int
) -> ProfileScheduler:
    """Three nodes of two cpus; the minMember of groups by name."""
    sharing = {"FairShare": {"queues": list(queues), "reclaim": "AboveDeserved"}} if queues else {}
    added = {MULTI_POINT: PluginSet(enabled=(Enabled("FairShare"),))} if queues else {}
    config = ProfileConfig("s", plugins=added, args=sharing, via_eviction=via_eviction)
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    cluster = a_cluster([a_node(name, cpu="2") for name in ("n1", "n2", "n3")], pods)
    for name, count in least.items():
        document = {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": count}}
        cluster.objects.pod_groups[f"default/{name}"] = convert(PodGroup, document)
    if queues:
        waiting = a_pod("waiting", cpu="6", schedulerName="s", labels={"plimsoll.dev/queue": "poor"})
        cluster.index(WaitingDemand).set(cluster.templates.info(waiting), is_placed=False)
    return ProfileScheduler(build_profile(config, Registry(IN_TREE), defaults), cluster)


def a_member(name: str, group: str, node: str, cpu: str = "2", **more: Any) -> Pod:
    labels = {"plimsoll.dev/pod-group": group, **more.pop("labels", {})}
    return a_pod(name, node=node, cpu=cpu, schedulerName="s", labels=labels, **more)


def loose(name: str, node: str, cpu: str = "2", **more: Any) -> Pod:
    return a_pod(name, node=node, cpu=cpu, schedulerName="s", **more)


def victims(scheduler: ProfileScheduler, cpu: str = "2", **more: Any) -> list[str]:
    pod = a_pod("urgent", cpu=cpu, schedulerName="s", **{"priority": 100, **more})
    nomination = schedule(scheduler, scheduler.cluster.templates.info(pod)).nomination
    return [] if nomination is None else sorted(victim.name for victim in nomination.victims)


def pair(group: str = "g", **more: Any) -> list[Pod]:
    return [a_member(f"{group}1", group, "n1", **more), a_member(f"{group}2", group, "n2", **more)]


def test_a_single_pod_goes_rather_than_a_group() -> None:
    assert victims(a_scheduler([*pair(), loose("single", "n3")], g=2)) == ["single"]


def test_a_group_leaves_whole_from_all_nodes() -> None:
    assert victims(a_scheduler([*pair(), loose("king", "n3", priority=200)], g=2)) == ["g1", "g2"]


def test_a_less_important_group_goes_before_a_more_important_pod() -> None:
    assert victims(a_scheduler([*pair(), loose("single", "n3", priority=5)], g=2)) == ["g1", "g2"]


def test_a_spare_member_goes_alone() -> None:
    pods = [*pair(), a_member("g3", "g", "n3", status={"startTime": "2026-01-01T00:00:00Z"})]

    assert len(victims(a_scheduler(pods, g=2))) == 1


def test_a_member_of_a_gang_that_is_bound_and_has_not_started_goes_alone() -> None:
    """Two of three are enough, and no kubelet has started any of them."""
    waits = {"phase": "Pending"}
    pods = [*pair(status=waits), a_member("g3", "g", "n3", status=waits)]

    assert len(victims(a_scheduler(pods, g=2))) == 1
    assert victims(a_scheduler(pods, g=3)) == ["g1", "g2", "g3"]


def test_a_queue_gives_back_a_member_that_is_bound_and_has_not_started() -> None:
    """One is enough; the other two are above what their queue deserves."""
    waits = {"phase": "Pending"}
    rich = {"plimsoll.dev/queue": "rich"}
    pods = [a_member(f"g{at}", "g", f"n{at}", labels=rich, status=waits) for at in (1, 2, 3)]
    scheduler = a_scheduler(pods, queues=QUEUES, g=1)

    assert len(victims(scheduler, priority=0, labels={"plimsoll.dev/queue": "poor"})) == 1


def test_without_a_podgroup_all_members_are_needed() -> None:
    assert victims(a_scheduler([*pair(), loose("king", "n3", priority=200)])) == ["g1", "g2"]


def test_a_group_with_a_more_important_member_stays() -> None:
    pods = [
        a_member("g1", "g", "n1"),
        a_member("g2", "g", "n2", priority=200),
        loose("king", "n3", priority=200),
    ]

    assert victims(a_scheduler(pods, g=2)) == []


def test_a_pod_does_not_break_its_own_group() -> None:
    king = loose("king", "n3", priority=200)

    assert victims(a_scheduler([*pair(), king], g=2), labels={"plimsoll.dev/pod-group": "g"}) == []


def test_on_one_node_as_few_groups_break_as_possible() -> None:
    """Two of four half-cpu members and pods must stay out: those of one group, not one of each."""
    here = [a_member(f"{group}{at}", group, "n1", cpu="500m") for group in "gh" for at in (1, 2)]
    others = [loose(f"king-{node}", node, priority=200) for node in ("n2", "n3")]

    assert victims(a_scheduler([*here, *others], g=2, h=2), cpu="1") in (["g1", "g2"], ["h1", "h2"])


def test_through_the_eviction_api_a_budget_protects_the_whole_group() -> None:
    scheduler = a_scheduler(
        [*pair(labels={"app": "g"}), loose("king", "n3", priority=200)], via_eviction=True, g=2
    )
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "g"}}},
        "status": {"disruptionsAllowed": 1},
    }
    scheduler.cluster.objects.budgets["default/b"] = convert(PodDisruptionBudget, budget)

    assert victims(scheduler) == []


QUEUES = ({"name": "rich"}, {"name": "poor"})
"""Of six cpus each deserves three, as long as pods of both want them."""


def in_queue(queue: str) -> dict[str, Any]:
    return {"labels": {"plimsoll.dev/queue": queue}}


def test_reclaim_takes_a_whole_group() -> None:
    """The rich queue keeps four cpus."""
    pods = [
        a_member("g1", "g", "n1", cpu="1", **in_queue("rich")),
        a_member("g2", "g", "n2", cpu="1", **in_queue("rich")),
        a_member("h1", "h", "n1", cpu="1", **in_queue("rich")),
        a_member("h2", "h", "n2", cpu="1", **in_queue("rich")),
        loose("big", "n3", priority=0, **in_queue("rich")),
    ]
    scheduler = a_scheduler(pods, queues=QUEUES, g=2, h=2)

    assert victims(scheduler, cpu="1", priority=0, **in_queue("poor")) == ["big"]
    assert victims(
        scheduler, cpu="1", priority=0, nodeSelector={"kubernetes.io/hostname": "n1"}, **in_queue("poor")
    ) in (["g1", "g2"], ["h1", "h2"])


def test_reclaim_takes_no_group_that_its_queue_deserves() -> None:
    """Without its four cpus the rich queue would have two."""
    pods = [*pair(**in_queue("rich")), loose("big", "n3", **in_queue("rich"))]
    scheduler = a_scheduler(pods, queues=QUEUES, g=2)

    assert (
        victims(
            scheduler, cpu="1", priority=0, nodeSelector={"kubernetes.io/hostname": "n1"}, **in_queue("poor")
        )
        == []
    )


def test_reclaim_takes_a_spare_member_alone() -> None:
    pods = [a_member(f"g{at}", "g", f"n{at}", **in_queue("rich")) for at in (1, 2, 3)]

    assert len(victims(a_scheduler(pods, queues=QUEUES, g=2), cpu="1", priority=0, **in_queue("poor"))) == 1


@pytest.mark.parametrize(("priority", "gone"), [(0, ["g1", "g2"]), (2_000_000_000, [])])
def test_reclaim_takes_no_group_of_which_one_may_not_go(priority: int, gone: list[str]) -> None:
    """The member on another node is system-critical: the one here would go without it."""
    critical = {"priority": 2_000_000_000, **in_queue("rich")}
    pods = [
        a_member("g1", "g", "n1", cpu="1", **in_queue("rich")),
        a_member("g2", "g", "n2", cpu="1", priority=priority, **in_queue("rich")),
        loose("here", "n1", cpu="1", **critical),
        loose("there", "n2", cpu="1", **critical),
        loose("big", "n3", **critical),
    ]

    assert victims(a_scheduler(pods, queues=QUEUES, g=2), cpu="1", priority=0, **in_queue("poor")) == gone
