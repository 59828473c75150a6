"""Measures the search for places of a whole group: anywhere, in one rack, in few; equal or not; of groups."""

import time
from typing import Annotated

from plimsoll.commands.parameters import Option, command_of
from plimsoll.engine.gangs.composite import Branch, Leaf, place_unit
from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

RACK, BLOCK = "example.com/rack", "example.com/block"
PROFILE = build_profile(
    ProfileConfig("s"), Registry(IN_TREE), [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
)

#: Times that each group is placed; the machine does other work, so the best one counts.
TURNS = 10


def members(count: int, *, are_indexed: bool) -> list[Pod]:
    """Equal pods of one cpu each, or pods that differ in a label."""
    return [
        a_pod(f"m-{at}", cpu="1", labels={"index": str(at)} if are_indexed else {}) for at in range(count)
    ]


def best_ms(cluster: Cluster, pods: list[Pod], within: str, near: tuple[str, ...]) -> tuple[float, int]:
    """Milliseconds of processor time of the best turn, with filter results kept; and the racks used."""
    best, racks = float("inf"), set[str]()
    for _ in range(TURNS):
        scheduler = ProfileScheduler(PROFILE, cluster)
        group = [(cluster.templates.info(pod), scheduler) for pod in pods]
        scheduler.filtered(group[0][0])
        began = time.process_time()
        found = place_together(group, cluster, len(pods), within=within, near=near)
        best = min(best, (time.process_time() - began) * 1000)
        assert found.is_feasible, found.domain
        racks = {cluster.nodes[cluster.rows[each.node]].labels[RACK] for each in found.placements}
    return best, len(racks)


def composite_ms(nodes: int, racks: int, pods: int) -> float:
    """The same for a composite group of so many pods: groups of 16 in a rack each, in one of ten blocks."""
    labels = [{RACK: f"r{at % racks:03}", BLOCK: f"b{at % racks % 10}"} for at in range(nodes)]
    cluster = a_cluster([a_node(f"n{at:05}", cpu="2", labels=each) for at, each in enumerate(labels)])
    best = float("inf")
    for _ in range(TURNS):
        scheduler = ProfileScheduler(PROFILE, cluster)
        group = [(cluster.templates.info(pod), scheduler) for pod in members(pods, are_indexed=False)]
        leaves = tuple(
            Leaf(str(at), 16, tuple(group[at : at + 16]), within=RACK) for at in range(0, len(group), 16)
        )
        scheduler.filtered(group[0][0])
        began = time.process_time()
        found = place_unit(Branch("all", len(leaves), leaves, BLOCK), cluster)
        best = min(best, (time.process_time() - began) * 1000)
        assert found.is_feasible, found.said
    return best


def main(
    nodes: Annotated[int, Option(help="Nodes.")] = 5000,
    racks: Annotated[int, Option(help="Racks, of as many nodes each.")] = 200,
    pods: Annotated[int, Option(help="Members, all of which must start.")] = 512,
) -> None:
    """Print milliseconds of processor time for a group."""
    in_one = -(-pods * racks // nodes)  # cpus of a node, so that a rack holds the group
    print(f"{pods} members, {nodes} nodes in {racks} racks, all default plugins")
    for cpus, within, near, name in (
        (2, "", (), "anywhere"),
        (in_one, RACK, (), "in one rack"),
        (2, "", (RACK,), "in few racks"),
    ):
        cluster = a_cluster(
            [a_node(f"n{at:05}", cpu=str(cpus), labels={RACK: f"r{at % racks:03}"}) for at in range(nodes)]
        )
        for are_indexed in (False, True):
            took, used = best_ms(cluster, members(pods, are_indexed=are_indexed), within, near)
            labels = ", a label of its own each" if are_indexed else ""
            print(f"{name + labels:40} {took:6.1f} ms CPU, {used} racks")
    took = composite_ms(nodes, racks, pods)
    print(f"{'composite, 16 to a rack, in one block':40} {took:6.1f} ms CPU, {pods // 16} groups")


if __name__ == "__main__":
    command_of(main)()
