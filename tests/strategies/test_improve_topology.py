"""ImproveTopology moves a group that straddles racks into one of them whole, or leaves it where it is."""

from datetime import timedelta
from typing import Any

import pytest

from devices.builders import DRIVER, a_claim
from planning.rounds import NOW, SAFE, a_policy
from planning.test_rounds import AROUND, refusals
from plimsoll.devices.book import DeviceBook
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import CorePodGroup, PodGroup
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan, Move
from plimsoll.planning.planners import ask_again
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.testing.builders import a_cluster, a_node, a_pod

RACK, BLOCK = "example.com/rack", "example.com/block"
LABEL = "plimsoll.dev/pod-group"


def a_member(number: int, node: str, *, hours: float = 5, phase: str = "Running", **kwargs: Any) -> Pod:
    since = (NOW - timedelta(hours=hours)).isoformat().replace("+00:00", "Z")
    group = kwargs.pop("group", "train")
    return a_pod(
        f"{group}-{number}",
        node=node,
        cpu="2",
        owner=kwargs.pop("owner", f"Job/{group}"),
        labels={LABEL: group, "app": group},
        status={"phase": phase, "startTime": since},
        **kwargs,
    )


def a_group(name: str = "train", members: int = 4, **spec: Any) -> PodGroup:
    wishes = {"topology": {"preferred": RACK}, **spec}
    return convert(
        PodGroup,
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": members, **wishes}},
    )


def racks(**sizes: int) -> list[Any]:
    """Nodes of two cores, by rack; racks whose names begin with the same letter form a block."""
    return [
        a_node(f"{rack}-{number}", cpu="2", labels={RACK: rack, BLOCK: rack[0]})
        for rack, count in sizes.items()
        for number in range(count)
    ]


def a_scene(
    *more: Any, group: PodGroup | None = None, sizes: dict[str, int] | None = None, **kwargs: Any
) -> Cluster:
    """A group of four, two in each of two racks that are full; one rack holds five more, another one four."""
    nodes = racks(**(sizes or {"a1": 2, "a2": 2, "a3": 5, "a4": 4}))
    members = [a_member(n, f"a{1 + n // 2}-{n % 2}", **kwargs) for n in range(4)]
    cluster = a_cluster(nodes, [*members, *(each for each in more if isinstance(each, Pod))])
    known = a_group() if group is None else group
    cluster.objects.pod_groups[known.group_key] = known
    for each in more:
        if isinstance(each, PodDisruptionBudget):
            cluster.objects.budgets[each.key] = each
    return cluster


def planned(cluster: Cluster, *, limits: Any = SAFE, evictor: Any = None, **args: Any) -> EvictionPlan:
    free = Limits(total=Ceiling(count=10), per_workload=Ceiling(count=1)) if limits is SAFE else limits
    policy = a_policy(
        ("ImproveTopology", args), limits=free, evictor={"minReplicas": 0} if evictor is None else evictor
    )
    return plan(policy, cluster, AROUND)


def targets(made: EvictionPlan) -> list[str]:
    return sorted(move.target for move in made.moves)


def test_a_group_goes_into_the_smallest_rack_that_holds_it() -> None:
    """Though the limit of a workload is one pod; all moves are one bundle."""
    made = planned(a_scene())

    assert targets(made) == [f"a4-{number}" for number in range(4)]
    assert len({move.bundle for move in made.moves}) == 1
    assert {move.whole for move in made.moves} == {frozenset(move.pod.uid for move in made.moves)}
    assert {move.group for move in made.moves} == {"PodGroup default/train"}
    assert {move.reason for move in made.moves} == {
        f"PodGroup default/train runs in 2 domains of label {RACK}, and one has room for all of it"
    }


def a_budget(allowed: int) -> PodDisruptionBudget:
    return convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "train"}}, "maxUnavailable": allowed},
            "status": {"disruptionsAllowed": allowed, "expectedPods": 4, "currentHealthy": 4},
        },
    )


@pytest.mark.parametrize(
    ("more", "how", "args"),
    [
        pytest.param((), {"hours": 1}, {}, id="young"),
        pytest.param((), {"hours": 5}, {"restartSeconds": 1900}, id="restart-is-dear"),
        pytest.param((), {"hours": 5}, {"slowdownPercent": 3}, id="racks-matter-little"),
        pytest.param((), {"phase": "Pending"}, {}, id="not-running"),
        pytest.param((), {"sizes": {"a1": 2, "a2": 2, "a3": 3, "b4": 3}}, {}, id="no-rack-has-room"),
        pytest.param((), {"group": a_group(topology={})}, {}, id="wishes-nothing"),
        pytest.param((), {}, {"topologyKey": BLOCK}, id="in-one-block"),
        pytest.param((), {}, {"maxMembers": 3}, id="too-many"),
        pytest.param((), {}, {"namespaces": {"exclude": ["default"]}}, id="another-namespace"),
        pytest.param((a_budget(3),), {}, {}, id="budget"),
        pytest.param((a_member(4, "a3-0", hours=0.1),), {}, {}, id="one-started-just-now"),
        pytest.param(
            (a_member(4, "a3-0", annotations={"plimsoll.dev/evict": "false"}),), {}, {}, id="protected"
        ),
        pytest.param((a_member(4, "a3-0", owner=""),), {}, {}, id="bare-pod"),
        pytest.param((a_member(4, "a3-0", schedulerName="other"),), {}, {}, id="other-scheduler"),
    ],
)
def test_a_group_stays_where_it_is(more: tuple[Any, ...], how: dict[str, Any], args: dict[str, Any]) -> None:
    """No member moves by itself instead."""
    assert planned(a_scene(*more, **how), **args).moves == ()


@pytest.mark.parametrize(("allowed", "moved"), [(3, 0), (4, 4)])
def test_the_budget_counts_all_members_together(allowed: int, moved: int) -> None:
    assert len(planned(a_scene(a_budget(allowed))).moves) == moved


@pytest.mark.parametrize(
    "limits",
    [Limits(total=Ceiling(count=3)), Limits(per_namespace=Ceiling(count=3))],
    ids=["total", "namespace"],
)
def test_other_limits_hold_for_the_whole_group(limits: Limits) -> None:
    made = planned(a_scene(), limits=limits)

    assert made.moves == ()
    assert {reason for _, reason in refusals(made)} >= {"NotAll"}


def test_a_group_with_a_required_label_stays_in_its_domain() -> None:
    """The smallest rack that holds it is in another block."""
    sizes = {"a1": 2, "a2": 2, "a3": 5, "b4": 4}
    group = a_group(topology={"required": BLOCK, "preferred": RACK})

    assert targets(planned(a_scene(group=group, sizes=sizes))) == [f"a3-{number}" for number in range(4)]
    assert targets(planned(a_scene(sizes=sizes))) == [f"b4-{number}" for number in range(4)]


def test_a_policy_may_name_the_label() -> None:
    """For groups that wish nothing, such as those of other systems."""
    made = planned(a_scene(group=a_group(topology={})), topologyKey=RACK)

    assert len(made.moves) == 4


def test_the_group_that_gains_most_goes_first() -> None:
    """There is room for one of both."""
    older = [a_member(n, f"a{1 + n // 2}-{2 + n % 2}", hours=9, group="old") for n in range(4)]
    cluster = a_scene(*older, sizes={"a1": 4, "a2": 4, "a3": 4})
    cluster.objects.pod_groups["default/old"] = a_group("old")

    made = planned(cluster)

    assert {move.group for move in made.moves} == {"PodGroup default/old"}


def test_a_group_of_the_core_api_leaves_whole() -> None:
    """Its members may be disrupted only together, and are."""
    core = convert(
        CorePodGroup,
        {
            "metadata": {
                "name": "train",
                "namespace": "default",
                "annotations": {"plimsoll.dev/preferred-topology": RACK},
            },
            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": "PodGroup"},
        },
    )
    members = [
        a_pod(
            f"t{n}",
            node=f"a{1 + n // 2}-{n % 2}",
            cpu="2",
            owner="Job/train",
            schedulingGroup={"podGroupName": "train"},
            status={"phase": "Running", "startTime": "2026-01-01T01:00:00Z"},
        )
        for n in range(4)
    ]
    cluster = a_cluster(racks(a1=2, a2=2, a3=4), members)
    cluster.objects.pod_groups["scheduling.k8s.io/default/train"] = core

    assert targets(planned(cluster)) == [f"a3-{number}" for number in range(4)]


# -- before each eviction --------------------------------------------------------------------------------


def again(move: Move, cluster: Cluster) -> Move | Refusal:
    policy = a_policy(("ImproveTopology", {}), evictor={"minReplicas": 0})
    return ask_again(move, policy, cluster, AROUND)


def test_each_move_still_holds_in_the_same_cluster() -> None:
    cluster = a_scene(a_budget(4))

    for move in planned(cluster).moves:
        found = again(move, cluster)
        assert isinstance(found, Move)
        assert (found.target, found.pod.uid) == (move.target, move.pod.uid)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("member", "BreaksGroup"),
        ("budget", "Budget"),
        ("room", "NotFeasible"),
        ("again", "Gone"),
    ],
)
def test_no_move_holds_when_the_group_cannot_leave_whole_any_more(change: str, reason: str) -> None:
    cluster = a_scene()
    move = planned(cluster).moves[0]
    if change == "member":  # a late one, which the others would leave behind
        cluster.place(cluster.templates.info(a_member(9, "a3-4")), "a3-4")
    elif change == "budget":
        cluster.objects.budgets["default/train"] = a_budget(3)
    elif change == "room":
        cluster.place(cluster.templates.info(a_pod("big", cpu="1")), move.target)
    else:  # the group was made again under the same name: other pods
        cluster.displace(move.pod.uid)
        cluster.place(cluster.templates.info(a_member(0, "a1-0", uid="again")), "a1-0")

    found = again(move, cluster)

    assert isinstance(found, Refusal)
    assert found.reason == reason


def test_a_claim_of_the_group_keeps_it_where_its_devices_are() -> None:
    """All members could leave together, and the API server would keep the devices for the group."""
    group = convert(
        CorePodGroup,
        {
            "metadata": {"name": "train", "namespace": "default", "uid": "uid-train"},
            "spec": {
                "schedulingPolicy": {"gang": {"minCount": 4}},
                "resourceClaims": [{"name": "net", "resourceClaimName": "team"}],
            },
        },
    )
    wants: dict[str, Any] = {
        "schedulingGroup": {"podGroupName": "train"},
        "resourceClaims": [{"name": "net", "resourceClaimName": "team"}],
    }
    here = {"key": RACK, "operator": "In", "values": ["a1", "a2"]}
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "uid-train"}
    status = {
        "allocation": {
            "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "fabric", "device": "d0"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [here]}]},
        },
        "reservedFor": [user],
    }
    cluster = a_scene(group=group, **wants)
    cluster.objects.ledger(DeviceBook).set_claim(a_claim("team", status=status))

    made = planned(
        cluster, topologyKey=RACK, evictor={"minReplicas": 0, "podProtections": {"extraEnabled": []}}
    )

    assert made.moves == ()
    assert refusals(made) == {(f"train-{number}", "SharedClaim") for number in range(4)}
    (said,) = {each.refusal.message for each in made.refused}
    assert said == (
        "ResourceClaim default/team keeps the pod where its devices are: it is reserved for PodGroup train,"
        " and they are free only once the group is deleted"
    )


def test_a_composite_group_is_not_moved() -> None:
    """The label of the composite group and those of its groups would have to hold in the new place, too."""
    group = convert(
        CorePodGroup,
        {
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {
                "schedulingPolicy": {"gang": {"minCount": 4}},
                "parentCompositePodGroupName": "all",
            },
        },
    )

    assert (
        planned(a_scene(group=group, schedulingGroup={"podGroupName": "train"}), topologyKey=RACK).moves == ()
    )
