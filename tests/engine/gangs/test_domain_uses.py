"""Groups in domains: the nodes of a domain add up, and only groups of several pods count."""

from typing import Any

import pytest

from plimsoll.engine.gangs.domain_uses import domain_uses, label_of_groups
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod_group import CorePodGroup, PodGroup
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.toolkit.scheduling.topology_levels import GroupRules

RACK, BLOCK = "example.com/rack", "example.com/block"


def racked(**pods: str) -> Cluster:
    """Racks a-2 and a-10 of two nodes, and a node in none; ``pods``: node and group of a pod, "" for none."""
    racks = {"x0": "a-2", "x1": "a-2", "y0": "a-10", "y1": "a-10", "z": ""}
    nodes = [a_node(name, labels={RACK: rack} if rack else {}) for name, rack in racks.items()]
    made = []
    for name, place in pods.items():
        node, _, group = place.partition(" ")
        made.append(a_pod(name, node=node, labels={"plimsoll.dev/pod-group": group} if group else {}))
    return a_cluster(nodes, made)


def seen(cluster: Cluster) -> list[tuple[str, int, list[tuple[str, int, int]]]]:
    """Domain, nodes without a group, and groups with members and nodes."""
    return [
        (
            use.domain,
            use.without,
            [(each.group.partition("/")[2], each.members, each.nodes) for each in use.groups],
        )
        for use in domain_uses(cluster, RACK)
    ]


def test_a_node_counts_for_the_group_with_the_most_members_there() -> None:
    """Racks are in the order of their numbers, nodes without the label come last."""
    cluster = racked(a="x0 g", b="x0 g", c="x0 h", d="y0 h", e="z h", f="y1")

    assert seen(cluster) == [
        ("a-2", 1, [("g", 2, 1), ("h", 1, 0)]),
        ("a-10", 1, [("h", 1, 1)]),
        ("", 0, [("h", 1, 1)]),
    ]


def test_a_pod_without_siblings_is_no_group() -> None:
    assert [groups for _, _, groups in seen(racked(a="x0 g", b="y0"))] == [[], [], []]


def named(kind: type[PodGroup], name: str, **parts: Any) -> PodGroup:
    """A group, with a spec or annotations."""
    metadata = {"name": name, "namespace": "default", "annotations": parts.pop("annotations", {})}
    return convert(kind, {"metadata": metadata, "spec": parts})


@pytest.mark.parametrize(
    ("groups", "rules", "label"),
    [
        pytest.param([], [], "", id="none"),
        pytest.param([], [GroupRules(), GroupRules(preferred=BLOCK)], BLOCK, id="a policy's"),
        pytest.param(
            [
                named(PodGroup, "a", topology={"required": RACK}),
                named(CorePodGroup, "b", annotations={"plimsoll.dev/preferred-topology": RACK}),
                named(PodGroup, "c", topology={"preferred": BLOCK}),
            ],
            [GroupRules(preferred=BLOCK)],
            RACK,
            id="that of most groups",
        ),
    ],
)
def test_the_label_is_the_one_that_most_groups_name(
    groups: list[PodGroup], rules: list[GroupRules], label: str
) -> None:
    cluster = racked()
    cluster.objects.pod_groups.update({each.group_key: each for each in groups})

    assert label_of_groups(cluster, rules) == label
