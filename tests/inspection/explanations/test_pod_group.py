"""Explanations of PodGroups: obstacles, places, and the words of members about them."""

from typing import Any

import pytest

from inspection.contents import CORE_VERSION, a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.cli.views.explain_pod_group import pod_group_view
from plimsoll.inspection.explanations.pod import explain_pod
from plimsoll.inspection.explanations.pod_group import PodGroupExplanation, explain_pod_group
from plimsoll.inspection.state import ClusterState
from plimsoll.planning.planners import make_plan

Document = dict[str, Any]
RACK, NEVER = "example.com/rack", "it cannot start on the present nodes:"
LARGEST = f"the largest {RACK}, a, holds 2 when it is empty"
TOGETHER = "the nodes together hold 2 when they are empty"


def racks(**sizes: int) -> list[Document]:
    """Nodes with room for one member each."""
    found = []
    for rack, size in sizes.items():
        for number in range(size):
            node = a_node_document(f"{rack}-{number}", cpu="1")
            node["metadata"].setdefault("labels", {})[RACK] = rack
            found.append(node)
    return found


def a_group(least: int, **topology: str) -> Document:
    """A PodGroup of ours."""
    metadata = {"name": "train", "namespace": "shop"}
    return {"kind": "PodGroup", "metadata": metadata, "spec": {"minMember": least, "topology": topology}}


def members(count: int, node: str = "") -> list[Document]:
    """Members, on a node if it is given."""
    found = []
    for number in range(count):
        pod = a_pod_document(f"train-{number}", f"{node}{number}" if node else "", cpu="1")
        pod["metadata"].setdefault("labels", {})["plimsoll.dev/pod-group"] = "train"
        found.append(pod)
    return found


def state(*documents: Document) -> ClusterState:
    """A cluster with a policy."""
    return ClusterState.of(content_of([a_policy_document(), *documents]))


def explained(*documents: Document) -> PodGroupExplanation:
    """The group of this cluster."""
    found = explain_pod_group(state(*documents), "shop", "train")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("documents", "summary"),
    [
        pytest.param(
            [*racks(a=2, b=1), a_group(4, required=RACK), *members(4)],
            [f"{NEVER} 4 members of 1000m cpu each must fit, and {LARGEST}"],
            id="no rack can hold it",
        ),
        pytest.param(
            [*racks(a=2), a_group(3), *members(3)],
            [f"{NEVER} 3 members of 1000m cpu each must fit, and {TOGETHER}"],
            id="the cluster cannot hold it",
        ),
        pytest.param(
            [*racks(a=3, b=2), a_group(4, preferred=RACK), *members(4)],
            [
                "it can start now: 4 of 4 members fit together",
                f"its members are, or would be, in 2 domains of label {RACK}",
            ],
            id="in two racks",
        ),
        pytest.param(
            [*racks(a=3), a_group(3), *members(2)],
            ["cannot find enough sibling pods of PodGroup shop/train, whose minMember is 3"],
            id="too few pods",
        ),
        pytest.param(
            [*racks(a=3), *members(2)],
            ["waiting for PodGroup shop/train: there is no such podgroups.plimsoll.dev"],
            id="no object",
        ),
        pytest.param(
            [*racks(a=3), a_group(2), *members(2, "a-")],
            ["all of its 2 members have a node"],
            id="it runs",
        ),
    ],
)
def test_the_summary_says_what_stops_it_or_where_it_goes(
    documents: list[Document], summary: list[str]
) -> None:
    assert explained(*documents).summary == summary


def test_members_and_domains_say_where_each_would_go() -> None:
    """By rank; the table of domains counts both those that are and those that would be there."""
    found = explained(*racks(a=3, b=2), a_group(4, preferred=RACK), *members(4))

    assert [(each.value, each.members, each.would) for each in found.domains] == [("a", 0, 3), ("b", 0, 1)]
    assert [each.would for each in found.members] == ["a-0", "a-1", "a-2", "b-0"]
    assert f"Members preferably in one domain of {RACK}" in pod_group_view(found)


@pytest.mark.parametrize("has_core", [True, False])
@pytest.mark.parametrize("has_ours", [True, False])
@pytest.mark.parametrize("members_of", ["core", "ours", "both"])
def test_of_two_groups_of_a_name_the_one_that_exists_is_explained(
    has_core: bool, has_ours: bool, members_of: str
) -> None:
    """That of the core API if both do, and if neither does the one whose pods are there."""
    documents = racks(a=3)
    if has_core:
        documents.append({**a_group(2), "apiVersion": CORE_VERSION})
        documents[-1]["spec"] = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    if has_ours:
        documents.append(a_group(2))
    for pod, side in zip(members(2), ("core", "ours"), strict=True):
        if members_of in (side, "both"):
            if side == "core":
                del pod["metadata"]["labels"]["plimsoll.dev/pod-group"]
                pod["spec"]["schedulingGroup"] = {"podGroupName": "train"}
            documents.append(pod)

    found = explained(*documents)

    is_core = has_core or (not has_ours and members_of != "ours")
    assert found.api_group == ("scheduling.k8s.io" if is_core else "plimsoll.dev")


def test_a_group_that_does_not_exist_has_no_explanation() -> None:
    assert explain_pod_group(state(), "shop", "train") is None


@pytest.mark.parametrize("node", ["", "a-"])
def test_a_member_speaks_of_its_group_first(node: str) -> None:
    """Whether it waits or runs."""
    found = explain_pod(state(*racks(a=2), a_group(2), *members(2, node)), "shop", "train-0")

    placed = "2 have a node" if node else "0 have a node"
    assert found.summary[0] == (f"it is one of 2 members of PodGroup shop/train, which needs 2; {placed}")


# -- groups of owners --------------------------------------------------------------------------------------

JOB: Document = {
    "kind": "JobGroup",
    "metadata": {"name": "train", "namespace": "shop", "uid": "train"},
    "spec": {"completionMode": "Indexed", "completions": 2, "parallelism": 2},
}
MAKES_ROOM: Document = {
    "mode": "Enforce",
    "strategies": [{"name": "MakeRoomForPending"}],
    "evictor": {"minReplicas": 0},
}


def a_job(
    count: int, nodes: list[Document], *more: Document, derives: bool = True, cpu: str = "1"
) -> ClusterState:
    """The pods of an Indexed Job of two, and a policy that may derive groups."""
    pods = [a_pod_document(f"train-{number}", cpu=cpu, owner="train") for number in range(count)]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    groups = {"groups": {"derive": "Automatic"}} if derives else {}
    policy = a_policy_document(scheduling={"schedulerName": "plimsoll", **groups}, rebalancing=MAKES_ROOM)
    return ClusterState.of(content_of([policy, JOB, *nodes, *pods, *more]))


def test_a_member_of_an_owner_s_group_speaks_of_it_first() -> None:
    """Of its Job, where a policy says that its pods form one."""
    found = explain_pod(a_job(2, racks(a=2)), "shop", "train-0")

    assert found.summary[0] == "it is one of 2 members of Job shop/train, which needs 2; 0 have a node"
    assert explain_pod(a_job(2, racks(a=2), derives=False), "shop", "train-0").group is None


def test_a_member_that_lacks_siblings_says_so() -> None:
    """There is room for the one pod, and it does not start."""
    found = explain_pod(a_job(1, racks(a=2)), "shop", "train-0")

    assert found.group is not None
    assert found.group.obstacle.startswith("cannot find enough sibling pods of Job shop/train")
    assert found.group.obstacle in found.summary


def test_other_policies_judge_the_same_objects() -> None:
    """What one of them derives is not there for another."""
    derived = a_job(2, racks(a=2))
    single = derived.with_policies([a_policy_document()])

    assert explain_pod(single, "shop", "train-0").group is None
    assert explain_pod(derived, "shop", "train-0").group is not None
    assert explain_pod(single, "shop", "train-1").group is None


@pytest.mark.parametrize(("derives", "spares", "moves"), [(True, 1, 0), (True, 2, 2), (False, 1, 1)])
def test_a_plan_makes_room_for_a_group_of_an_owner_whole(derives: bool, spares: int, moves: int) -> None:
    """A place for one of two pods in the way helps a single pod, and no group."""
    nodes = [a_node_document(f"n{n}", cpu="2") for n in range(2)]
    nodes += [a_node_document(f"spare-{n}", cpu="1") for n in range(spares)]
    ways = [a_pod_document(f"way-{n}", f"n{n}", cpu="1", owner=f"way-{n}") for n in range(2)]

    plan = make_plan(*a_job(2, nodes, *ways, derives=derives, cpu="2").run_input("all"))

    assert len(plan.moves) == moves


# -- composite groups --------------------------------------------------------------------------------------


def a_tree(least: int, label: str = "") -> list[Document]:
    """A composite group of two gangs of two."""
    constraints = {"schedulingConstraints": {"topology": [{"key": label}]}} if label else {}
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": least}}, **constraints}
    found: list[Document] = [
        {"kind": "CompositePodGroup", "metadata": {"name": "all", "namespace": "shop"}, "spec": policy}
    ]
    for name in ("train", "serve"):
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "parentCompositePodGroupName": "all"}
        metadata = {"name": name, "namespace": "shop"}
        found.append({"apiVersion": CORE_VERSION, "kind": "PodGroup", "metadata": metadata, "spec": spec})
        for number in range(2):
            pod = a_pod_document(f"{name}-{number}", cpu="1")
            pod["spec"]["schedulingGroup"] = {"podGroupName": name}
            found.append(pod)
    return found


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ([*racks(a=3, b=4), *a_tree(2, RACK)], "it can start now: 2 of 2 members fit together"),
        ([*racks(a=3), *a_tree(2)], "CompositePodGroup shop/all: 1 of 2 groups fit, 2 must; PodGroup"),
        ([*racks(a=3), *a_tree(2)[1:]], "waiting for CompositePodGroup shop/all: there is no such"),
    ],
    ids=["starts", "no room", "no composite group"],
)
def test_a_group_of_a_composite_group_is_explained_with_the_others(
    documents: list[Document], said: str
) -> None:
    """Its members count, and all groups are placed."""
    found = explained(*documents)

    assert any(said in each for each in found.summary)
    if "fit together" in said:
        assert found.summary[0] == "it starts with the other groups of CompositePodGroup shop/all"
        assert (found.group.present, found.group.fitting) == (2, 2)
        assert {each.would[:1] for each in found.members} == {"b"}
        pod = explain_pod(state(*documents), "shop", "train-0")
        assert any("part of CompositePodGroup shop/all, which needs 2" in each for each in pod.summary)
