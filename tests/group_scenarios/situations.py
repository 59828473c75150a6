"""Situations of Kubernetes' integration tests of groups, told again, and some of ours."""

from __future__ import annotations

from group_scenarios.steps import (
    RACK,
    ZONE,
    Situation,
    Step,
    bound,
    budget,
    delete,
    delete_group,
    gone,
    group,
    on,
    pods,
    refused,
    says,
    some,
    stay,
    together,
    wait,
)

#: Nodes of one, two or three cpus without labels.
FOUR = {"n": (4, "", "")}
THREE = {"n": (3, "", "")}
TWO_OF_TWO = {"n1": (2, "", ""), "n2": (2, "", "")}

P3, P4 = "p1 p2 p3", "p1 p2 p3 p4"


def racks(**zones: str) -> dict[str, tuple[int, str, str]]:
    """Nodes of two cpus each: ``z1="a a b"`` has two in rack a and one in b, named a1, a2, b1."""
    found: dict[str, tuple[int, str, str]] = {}
    for zone, names in zones.items():
        for rack in names.split():
            number = sum(each[1] == rack for each in found.values()) + 1
            found[f"{rack}{number}"] = (2, rack, zone)
    return found


#: A node of three cpus, full of pods of priority 10.
FULL = (pods("l1 l2 l3", priority=10), bound("l1 l2 l3"))
PART = (pods("l1", cpu="2", priority=10, on="n1"), pods("l2", priority=10, on="n2"), bound("l1 l2"))
MIXED = (pods("v1 v2", priority=5), pods("l1 l2", priority=10), bound("v1 v2 l1 l2"))


def victims(least: int, *, of_pods: int = 10, priority: int = 10, whole: bool = False) -> tuple[Step, ...]:
    """A group of three that fills a node."""
    return (
        group("v", least, priority=priority, whole=whole),
        pods("v1 v2 v3", "v", priority=of_pods),
        bound("v1 v2 v3"),
    )


def _situations() -> dict[str, tuple[Situation, ...]]:
    gang = group("g", 3)
    members = pods(P3, "g")
    start = "TestPodGroupScheduling"
    preempt = "TestPodGroupPreemption"
    by_gang = "TestTopologyAwareSchedulingWithGangPolicy"
    by_basic = "TestTopologyAwareSchedulingWithBasicPolicy"
    in_rack = group("g", 3, key=RACK)
    basic_in_rack = group("g", 0, key=RACK)
    pair = group("h", 2, key=RACK)
    return {
        "Starts": (
            Situation("A gang with room starts", FOUR, (gang, members, bound(P3), says("g", "True")), start),
            Situation(
                "A gang waits for its last pod",
                FOUR,
                (gang, pods("p1 p2", "g"), wait("p1 p2"), pods("p3", "g"), bound(P3)),
                start,
            ),
            Situation(
                "A gang waits for its PodGroup, then for room",
                FOUR,
                (
                    pods("b", cpu="2"),
                    bound("b"),
                    members,
                    wait(P3),
                    gang,
                    refused(P3),
                    says("g", "False"),
                    delete("b"),
                    bound(P3),
                    says("g", "True"),
                ),
                start,
            ),
            Situation(
                "Members above minCount: three of four start, the fourth when there is room",
                FOUR,
                (pods("b"), bound("b"), pods(P4, "g"), gang, some(3, P4), delete("b"), bound(P4)),
                start,
            ),
            Situation(
                "Two gangs for one room, pods made in turn: one starts whole, the other waits whole",
                FOUR,
                (
                    gang,
                    group("h", 3),
                    pods("p1", "g"),
                    pods("q1", "h"),
                    pods("p2", "g"),
                    pods("q2", "h"),
                    pods("p3", "g"),
                    pods("q3", "h"),
                    bound(P3),
                    refused("q1 q2 q3"),
                ),
                start,
            ),
            Situation(
                "The same, the other way round",
                FOUR,
                (
                    gang,
                    group("h", 3),
                    pods("q3", "h"),
                    pods("p3", "g"),
                    pods("q2", "h"),
                    pods("p2", "g"),
                    pods("q1", "h"),
                    pods("p1", "g"),
                    bound("q1 q2 q3"),
                    refused(P3),
                ),
                start,
            ),
            Situation(
                "A basic group starts pod by pod",
                FOUR,
                (group("g", 0), pods("p1", "g"), bound("p1"), pods("p2 p3", "g"), bound(P3)),
                start,
            ),
            Situation(
                "A basic group waits for its PodGroup, and starts with what fits",
                FOUR,
                (
                    pods("b", cpu="2"),
                    bound("b"),
                    members,
                    wait(P3),
                    group("g", 0),
                    some(2, P3),
                    delete("b"),
                    bound(P3),
                ),
                start,
            ),
            Situation(
                "A PodGroup that is deleted and made again",
                FOUR,
                (
                    gang,
                    pods("p1 p2", "g"),
                    wait("p1 p2"),
                    delete("p1 p2"),
                    delete_group("g"),
                    members,
                    wait(P3),
                    group("g", 3, again=True),
                    bound(P3),
                ),
            ),
            Situation(
                "A late pod of a gang that runs",
                FOUR,
                (gang, members, bound(P3), pods("p4", "g"), bound(P4)),
            ),
            Situation(
                "A member is deleted and made again while the others run",
                FOUR,
                (gang, members, bound(P3), delete("p1"), pods("p1", "g"), bound(P3)),
            ),
        ),
        "Preemption": (
            Situation(
                "A gang preempts a pod of lower priority",
                FOUR,
                (
                    pods("b", cpu="2", priority=10),
                    bound("b"),
                    gang,
                    pods(P4, "g"),
                    bound(P4),
                    gone("b"),
                    says("g", "True"),
                ),
                start,
            ),
            Situation(
                "A basic group preempts a pod of lower priority",
                FOUR,
                (
                    pods("b", cpu="2", priority=10),
                    bound("b"),
                    group("g", 0),
                    pods(P4, "g"),
                    bound(P4),
                    gone("b"),
                ),
                start,
            ),
            Situation(
                "A gang preempts four pods",
                FOUR,
                (
                    pods("l1 l2 l3 l4", priority=10),
                    bound("l1 l2 l3 l4"),
                    gang,
                    pods(P4, "g"),
                    bound(P4),
                    gone("l1 l2 l3 l4"),
                ),
                start,
            ),
            Situation(
                "A gang preempts the two least important of four pods",
                FOUR,
                (
                    *MIXED,
                    group("g", 2, priority=50),
                    pods("p1 p2", "g", priority=50),
                    bound("p1 p2 l1 l2"),
                    gone("v1 v2"),
                ),
                start,
            ),
            Situation(
                "Full preemption: three of three",
                THREE,
                (*FULL, gang, members, bound(P3), gone("l1 l2 l3")),
                preempt,
            ),
            Situation(
                "Full preemption by a basic group",
                THREE,
                (*FULL, group("g", 0), members, bound(P3), gone("l1 l2 l3")),
                preempt,
            ),
            Situation(
                "Partial preemption: only what is needed",
                TWO_OF_TWO,
                (*PART, gang, members, bound(f"{P3} l2"), gone("l1")),
                preempt,
            ),
            Situation(
                "Partial preemption by a basic group",
                TWO_OF_TWO,
                (
                    pods("l1", priority=10, on="n1"),
                    pods("v1", cpu="2", priority=5, on="n2"),
                    bound("l1 v1"),
                    group("g", 0),
                    members,
                    bound(f"{P3} l1"),
                    gone("v1"),
                ),
                preempt,
            ),
            Situation(
                "A budget spares pods",
                THREE,
                (
                    pods("l1 l2", priority=10, app="kept"),
                    pods("l3", priority=10),
                    bound("l1 l2 l3"),
                    budget("kept", 2),
                    group("g", 2),
                    pods("p1 p2", "g", cpu="500m"),
                    bound("p1 p2"),
                    gone("l3"),
                    stay("l1 l2"),
                ),
                preempt,
            ),
            Situation(
                "Preemption on two nodes",
                TWO_OF_TWO,
                (
                    pods("l1 l2", priority=10, on="n1"),
                    pods("l3 l4", priority=10, on="n2"),
                    bound("l1 l2 l3 l4"),
                    group("g", 4),
                    pods(P4, "g"),
                    bound(P4),
                    gone("l1 l2 l3 l4"),
                ),
                preempt,
            ),
            Situation(
                "No preemption where the gang would not fit even so",
                THREE,
                (
                    pods("m1", priority=500),
                    pods("l1 l2", priority=10),
                    bound("m1 l1 l2"),
                    gang,
                    members,
                    refused(P3),
                    stay("m1 l1 l2"),
                ),
                preempt,
            ),
            Situation(
                "The least important pods are the victims",
                THREE,
                (
                    pods("m1", priority=50),
                    pods("l1 l2", priority=10),
                    bound("m1 l1 l2"),
                    group("g", 2),
                    pods("p1 p2", "g"),
                    bound("p1 p2 m1"),
                    gone("l1 l2"),
                ),
                preempt,
            ),
            Situation(
                "Mode PodGroup: the victim group goes whole though one pod would do",
                THREE,
                (*victims(3, whole=True), group("g", 1), pods("p1", "g"), bound("p1"), gone("v1 v2 v3")),
                preempt,
            ),
            Situation(
                "Mode PodGroup of a basic group: likewise",
                THREE,
                (*victims(0, whole=True), group("g", 1), pods("p1", "g"), bound("p1"), gone("v1 v2 v3")),
                preempt,
            ),
            Situation(
                "A victim group of 10 whose pods have 100 goes for a group of 100 whose pod has 10",
                THREE,
                (
                    *victims(3, whole=True, of_pods=100),
                    group("g", 1),
                    pods("p1", "g", priority=10),
                    bound("p1"),
                    gone("v1 v2 v3"),
                ),
                preempt,
            ),
            Situation(
                "A group of 100 whose pods have 10 stays, for a group of 10 whose pod has 100",
                THREE,
                (
                    *victims(3, whole=True, priority=100),
                    group("g", 1, priority=10),
                    pods("p1", "g"),
                    refused("p1"),
                    stay("v1 v2 v3"),
                ),
                preempt,
            ),
            Situation(
                "A single pod preempts the least important of a gang that can spare it",
                THREE,
                (
                    group("v", 1, priority=10),
                    pods("v1", "v", priority=30),
                    pods("v2", "v", priority=20),
                    pods("v3", "v", priority=10),
                    bound("v1 v2 v3"),
                    pods("p1"),
                    bound("p1 v1 v2"),
                    gone("v3"),
                ),
                preempt,
            ),
            Situation(
                "Mode Pod, minCount 3 of 3: the victim gang keeps minCount or goes whole",
                THREE,
                (*victims(3), group("g", 1), pods("p1", "g"), bound("p1"), gone("v1 v2 v3")),
            ),
            Situation(
                "Mode Pod, minCount 1 of 3: one member goes",
                THREE,
                (*victims(1), group("g", 1), pods("p1", "g"), bound("p1"), some(2, "v1 v2 v3")),
            ),
            Situation(
                "A single pod preempts from a group of mode PodGroup: the group goes whole",
                THREE,
                (*victims(3, whole=True), pods("p1"), bound("p1"), gone("v1 v2 v3")),
            ),
            Situation(
                "The group's priority counts: pods of 10 in a group of 100 preempt pods of 50",
                THREE,
                (
                    pods("m1 m2 m3", priority=50),
                    bound("m1 m2 m3"),
                    gang,
                    pods(P3, "g", priority=10),
                    bound(P3),
                    gone("m1 m2 m3"),
                ),
            ),
        ),
        "Topology, gangs": (
            Situation(
                "The only rack with room",
                racks(z1="a a b b"),
                (pods("b", cpu="2", on="b1"), bound("b"), in_rack, members, bound(P3), on("a1 a2", P3)),
                by_gang,
            ),
            Situation(
                "No rack has room, though the cluster has",
                racks(z1="a b", z2="c"),
                (in_rack, members, refused(P3)),
                by_gang,
            ),
            Situation(
                "Starts when room in the rack is freed",
                racks(z1="a a"),
                (
                    pods("b1", on="a1"),
                    pods("b2", on="a2"),
                    bound("b1 b2"),
                    in_rack,
                    members,
                    refused(P3),
                    delete("b1"),
                    bound(P3),
                ),
                by_gang,
            ),
            Situation(
                "The smallest rack that holds the group",
                racks(z1="a a", z2="b b b c"),
                (in_rack, members, bound(P3), on("a1 a2", P3)),
                by_gang,
            ),
            Situation(
                "The rack that is fullest afterwards",
                racks(z1="a a", z2="b b b c c c d"),
                (
                    pods("b1", cpu="2", on="b1"),
                    pods("b2", on="c3"),
                    bound("b1 b2"),
                    in_rack,
                    members,
                    bound(P3),
                    on("b1 b2 b3", P3),
                ),
                by_gang,
            ),
            Situation(
                "Two gangs, each in a rack of its own",
                racks(z1="a a a b b"),
                (
                    in_rack,
                    pods(P3, "g", cpu="2"),
                    bound(P3),
                    pair,
                    pods("q1 q2", "h"),
                    bound("q1 q2"),
                    on("a1 a2 a3", P3),
                    on("b1 b2", "q1 q2"),
                ),
                by_gang,
            ),
            Situation(
                "Two gangs in the same rack",
                racks(z1="a a a b"),
                (
                    group("g", 2, key=RACK),
                    pods("p1", "g", cpu="2"),
                    pods("p2", "g"),
                    group("h", 3, key=RACK),
                    pods("q1 q2 q3", "h"),
                    bound("p1 p2 q1 q2 q3"),
                    on("a1 a2 a3", "p1 p2 q1 q2 q3"),
                ),
                by_gang,
            ),
            Situation(
                "Two gangs, one in a rack and one in a zone",
                racks(z1="a a b", z2="c c c"),
                (
                    in_rack,
                    pods(P3, "g", cpu="2"),
                    bound(P3),
                    group("h", 3, key=ZONE),
                    pods("q1 q2 q3", "h", cpu="2"),
                    bound("q1 q2 q3"),
                    on("c1 c2 c3", P3),
                    on("a1 a2 b1", "q1 q2 q3"),
                ),
                by_gang,
            ),
            Situation(
                "Two gangs, of which only one fits",
                racks(z1="a a"),
                (in_rack, members, bound(P3), pair, pods("q1 q2", "h"), refused("q1 q2")),
                by_gang,
            ),
            Situation(
                "Members above minCount are in the same rack",
                racks(z1="a a b b"),
                (group("g", 2, key=RACK), members, bound(P3), together(P3)),
                by_gang,
            ),
            Situation(
                "A late pod joins the others; one too many waits, other racks being free",
                racks(z1="a a a b b", z2="c"),
                (
                    in_rack,
                    members,
                    bound(P3),
                    pods("p4", "g"),
                    bound(P4),
                    on("b1 b2", P4),
                    pods("p5", "g"),
                    refused("p5"),
                ),
                by_gang,
            ),
            Situation(
                "A rack that is full of pods of the same priority",
                racks(z1="a a"),
                (pods("b", cpu="2", on="a2"), bound("b"), in_rack, members, refused(P3), stay("b")),
                by_gang,
            ),
            Situation(
                "A gang preempts within its rack",
                {"n": (4, "a", "z1")},
                (
                    *MIXED,
                    group("g", 2, priority=50, key=RACK),
                    pods("p1 p2", "g", priority=50),
                    bound("p1 p2 l1 l2"),
                    gone("v1 v2"),
                ),
            ),
            Situation("No node has the label", FOUR, (in_rack, members, refused(P3))),
        ),
        "Topology, basic groups": (
            Situation(
                "The only rack",
                racks(z1="a a"),
                (basic_in_rack, members, bound(P3), on("a1 a2", P3)),
                by_basic,
            ),
            Situation(
                "All in one of several racks",
                racks(z1="a a b b", z2="c c"),
                (basic_in_rack, members, bound(P3), together(P3)),
                by_basic,
            ),
            Situation(
                "No rack holds all: two start in one, none in another",
                racks(z1="a b"),
                (basic_in_rack, members, some(2, P3), together(P3)),
                by_basic,
            ),
            Situation(
                "No pod fits any node",
                racks(z1="a b"),
                (basic_in_rack, pods("p1 p2", "g", cpu="3"), refused("p1 p2")),
                by_basic,
            ),
            Situation(
                "One pod fits no node, the other starts",
                racks(z1="a b"),
                (
                    basic_in_rack,
                    pods("p1", "g", cpu="3"),
                    pods("p2", "g"),
                    bound("p2"),
                    refused("p1"),
                ),
                by_basic,
            ),
            Situation(
                "The smallest rack that holds the group, of basic groups",
                racks(z1="a a", z2="b b b"),
                (basic_in_rack, members, bound(P3), on("a1 a2", P3)),
                by_basic,
            ),
            Situation(
                "The rack that is fullest afterwards, of basic groups",
                racks(z1="a a a", z2="b b b c c c c"),
                (
                    pods("b1", on="a1"),
                    pods("b2", on="b2"),
                    pods("b3", on="b3"),
                    bound("b1 b2 b3"),
                    basic_in_rack,
                    members,
                    bound(P3),
                    on("b1 b2 b3", P3),
                ),
                by_basic,
            ),
            Situation(
                "The first pod decides the rack, which does not hold all",
                racks(z1="a a a a b"),
                (
                    pods("b1", cpu="2", on="a1"),
                    bound("b1"),
                    basic_in_rack,
                    pods("p1", "g"),
                    bound("p1"),
                    pods("p2 p3", "g"),
                    some(2, P3),
                    on("b1", "p1"),
                ),
                by_basic,
            ),
            Situation(
                "Two groups, each in a rack of its own",
                racks(z1="a a a b"),
                (
                    basic_in_rack,
                    pods("p1 p2", "g"),
                    bound("p1 p2"),
                    on("b1", "p1 p2"),
                    group("h", 0, key=RACK),
                    pods("q1 q2", "h"),
                    bound("q1 q2"),
                    on("a1 a2 a3", "q1 q2"),
                ),
                by_basic,
            ),
            Situation(
                "Two groups in the only rack",
                racks(z1="a a a"),
                (
                    basic_in_rack,
                    pods("p1 p2", "g"),
                    group("h", 0, key=RACK),
                    pods("q1 q2 q3", "h"),
                    bound("p1 p2 q1 q2 q3"),
                ),
                by_basic,
            ),
            Situation(
                "Two groups, one in a rack and one in a zone",
                racks(z1="a", z2="b b c c"),
                (
                    basic_in_rack,
                    pods("p1 p2", "g"),
                    bound("p1 p2"),
                    on("a1", "p1 p2"),
                    group("h", 0, key=ZONE),
                    pods("q1 q2 q3", "h", cpu="2"),
                    bound("q1 q2 q3"),
                    on("b1 b2 c1 c2", "q1 q2 q3"),
                ),
                by_basic,
            ),
            Situation(
                "A pod has no room in its group's rack; the next group takes the other rack",
                racks(z1="a a b"),
                (
                    basic_in_rack,
                    pods("p1", "g"),
                    bound("p1"),
                    pods("p2 p3", "g"),
                    some(2, P3),
                    on("b1", "p1"),
                    group("h", 0, key=RACK),
                    pods("q1 q2 q3", "h"),
                    bound("q1 q2 q3"),
                    on("a1 a2", "q1 q2 q3"),
                ),
                by_basic,
            ),
            Situation(
                "A pod starts in its group's rack once there is room",
                racks(z1="a b"),
                (
                    pods("b", on="a1"),
                    bound("b"),
                    basic_in_rack,
                    pods("p1", "g"),
                    bound("p1"),
                    pods("p2", "g"),
                    on("a1", "p1"),
                    refused("p2"),
                    delete("b"),
                    bound("p1 p2"),
                    on("a1", "p1 p2"),
                ),
                by_basic,
            ),
        ),
    }


SITUATIONS = _situations()
