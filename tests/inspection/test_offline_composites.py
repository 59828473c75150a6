"""OfflineCluster places the groups of a composite group together, for whatif and replay."""

from inspection.test_offline_cluster import ASSUMED, SERVED
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.owned_group import NOT_YET
from plimsoll.model.kinds.pod_group import CorePodGroup
from plimsoll.offline.cluster import OfflineCluster, Schedulers
from plimsoll.planning.forecasts import Forecasts
from plimsoll.testing.builders import a_cluster, a_node, a_pod


def an_offline_cluster(cpu: str, *, preempting: bool = False) -> OfflineCluster:
    """A node, and a composite group of two gangs of two that wait."""
    composite = convert(
        CompositePodGroup,
        {
            "metadata": {"name": "all", "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minGroupCount": 2}}},
        },
    )
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "parentCompositePodGroupName": "all"}
    parts = [
        convert(CorePodGroup, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        for name in ("a", "b")
    ]
    fork = a_cluster([a_node("n0", cpu=cpu)], [a_pod("low", cpu="1", node="n0", priority=-1)])
    fork.objects.composites[composite.group_key] = composite
    groups = {each.group_key: each for each in parts}
    schedulers = Schedulers({"s": SERVED}, Forecasts(default=ASSUMED), groups)
    found = OfflineCluster(fork, schedulers, (), preempting=preempting)
    for name in ("a-0", "a-1", "b-0", "b-1"):
        group = {"podGroupName": name[0]}
        pod = a_pod(name, cpu="1", schedulerName="s", schedulingGroup=group)
        found.add(fork.templates.info(pod))
    return found


def test_no_group_is_placed_without_the_other() -> None:
    """There is room for three of four members."""
    found = an_offline_cluster("4")

    assert found.settle() == []
    messages = {each.message for each in found.refusals.values()}
    assert any("CompositePodGroup default/all: 1 of 2 groups fit, 2 must" in each for each in messages)
    assert set(found.gang_needs().values()) == {NOT_YET}
    assert [pod.name for pod in found.victims_for("scheduling.k8s.io/default/a")] == ["low"]


def test_all_groups_are_placed_in_one_round() -> None:
    """With room, or with that of a pod of lower priority."""
    assert len(an_offline_cluster("5").settle()) == 4
    assert len(an_offline_cluster("4", preempting=True).settle()) == 4


def test_a_group_waits_for_its_composite_group() -> None:
    found = an_offline_cluster("5")
    found.fork.objects.composites.clear()

    assert found.settle() == []
    assert {"waiting for CompositePodGroup default/all: there is no such"} == {
        each.message.partition(" compositepodgroups")[0] for each in found.refusals.values()
    }
