"""Random small clusters in which a group preempts, against a search through all sets of victims.

Members request one amount of cpu each, so a set of victims suffices exactly if the free cpu of each node,
divided by it, adds up. What may leave is a matter of priorities, of groups, and of budgets.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod_group import CorePodGroup
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.plugins import IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.model.kinds.pod import Pod

#: The priority of the members.
PRIORITY = 10
FILTERS = ("PrioritySort", "NodeUnschedulable", "NodeResourcesFit", "DefaultPreemption", "DefaultBinder")
PROFILES = [
    build_profile(
        ProfileConfig("s", via_eviction=evicts), Registry(IN_TREE), [Enabled(name) for name in FILTERS]
    )
    for evicts in (False, True)
]

Victims = frozenset[str]


@dataclass
class World:
    """Nodes and what runs on them, in whole cpus.

    Attributes:
        nodes: Cpus by node.
        pods: Node, cpus, priority and group by the pod's name; group "" for none.
        groups: ``minCount`` by group, -1 if it leaves whole; its own priority.
        budgets: Disruptions allowed by covered pods.
    """

    nodes: dict[str, int] = field(default_factory=dict)
    pods: dict[str, tuple[str, int, int, str]] = field(default_factory=dict)
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)
    budgets: list[tuple[Victims, int]] = field(default_factory=list)

    @classmethod
    def drawn(cls, draw: random.Random) -> World:
        """A crowded cluster of up to four nodes and nine pods."""
        one = cls({f"n{at}": draw.randint(1, 4) for at in range(draw.randint(1, 4))})
        for at in range(draw.randint(0, 3)):
            one.groups[f"g{at}"] = draw.choice((-1, 1, 2, 3)), draw.choice((0, 0, 5, 20))
        free = dict(one.nodes)
        for at in range(draw.randint(1, 9)):
            open_to = [node for node, room in free.items() if room]
            if not open_to:
                break
            node, group = draw.choice(open_to), draw.choice(["", *one.groups])
            cpu = draw.randint(1, min(free[node], 3))
            free[node] -= cpu
            one.pods[f"p{at}"] = node, cpu, draw.choice((0, 0, 1, 5, PRIORITY, 20)), group
        count = draw.choice((0, 1, 2))  # no pod has two: the Eviction API refuses such a one
        cover = {name: draw.randint(0, count) for name in one.pods}
        for at in range(count):
            covered = frozenset(name for name in one.pods if cover[name] == at)
            one.budgets.append((covered, draw.choice((0, 1, 1, 2))))
        return one

    def free(self, victims: Victims = frozenset()) -> dict[str, int]:
        """Free cpus by node once the victims have left."""
        free = dict(self.nodes)
        for name, (node, cpu, _, _) in self.pods.items():
            free[node] -= 0 if name in victims else cpu
        return free

    def wrong_with(self, victims: Victims) -> str:
        """Why these pods may not leave together; "" if they may."""
        for name in victims:
            _, _, priority, group = self.pods[name]
            whole = group and self.groups[group][0] < 0
            if max(priority, self.groups[group][1] if whole else 0) >= PRIORITY:
                return f"{name} is as important as the members"
        members = Counter(group for _, _, _, group in self.pods.values() if group)
        for group, gone in Counter(self.pods[name][3] for name in victims if self.pods[name][3]).items():
            least = self.groups[group][0]
            if gone < members[group] and (least < 0 or members[group] - gone < least):
                return f"{group} keeps {members[group] - gone} of {members[group]}, and needs {least}"
        return ""

    def overdrawn(self, victims: Iterable[str]) -> int:
        """How many disruptions exceed budgets."""
        gone = set(victims)
        return sum(max(len(gone & covered) - allowed, 0) for covered, allowed in self.budgets)

    def broken(self, victims: Victims) -> int:
        """How many groups of several pods leave whole."""
        members = Counter(group for _, _, _, group in self.pods.values() if group)
        gone = Counter(self.pods[name][3] for name in victims)
        return sum(1 < count == gone[group] for group, count in members.items())

    def cost(self, victims: Victims) -> tuple[int, int, int, int]:
        """Disruptions that exceed budgets, the highest priority, broken groups, pods."""
        highest = max((self.pods[name][2] for name in victims), default=-1)
        return self.overdrawn(victims), highest, self.broken(victims), len(victims)

    def ways(self, members: int, cpu: int) -> Iterator[Victims]:
        """All sets of victims that may leave and make room for so many members."""
        lower = [name for name, (_, _, priority, _) in self.pods.items() if priority < PRIORITY]
        for count in range(len(lower) + 1):
            for each in map(frozenset, itertools.combinations(lower, count)):
                if self.has_room(members, cpu, each) and not self.wrong_with(each):
                    yield each

    def has_room(self, members: int, cpu: int, victims: Victims) -> bool:
        """Whether so many members fit once the victims have left."""
        return sum(room // cpu for room in self.free(victims).values()) >= members

    @property
    def is_plain(self) -> bool:
        """Whether no group has both members that may leave and members that may not."""
        kinds = {(group, priority < PRIORITY) for _, _, priority, group in self.pods.values() if group}
        return len(kinds) == len({group for group, _ in kinds})

    def objects(self) -> Iterator[Any]:
        """The groups and budgets as the API has them."""
        for name, (least, priority) in self.groups.items():
            spec = {"schedulingPolicy": {"gang": {"minCount": max(least, 1)}}, "priority": priority}
            spec["disruptionMode"] = "PodGroup" if least < 0 else "Pod"
            yield convert(CorePodGroup, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        for at, (covered, allowed) in enumerate(self.budgets):
            names = {"key": "name", "operator": "In", "values": sorted(covered) or ["nobody"]}
            yield convert(
                PodDisruptionBudget,
                {
                    "metadata": {"name": f"b{at}", "namespace": "default"},
                    "spec": {"selector": {"matchExpressions": [names]}},
                    "status": {"disruptionsAllowed": allowed},
                },
            )

    def bound(self) -> Iterator[Pod]:
        """The pods as the API has them."""
        for name, (node, cpu, priority, group) in self.pods.items():
            named: dict[str, Any] = {"schedulingGroup": {"podGroupName": group}} if group else {}
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            yield a_pod(
                name, node=node, cpu=cpu, priority=priority, labels={"name": name}, status=ready, **named
            )


@dataclass
class Outcome:
    """What one group did.

    Attributes:
        faults: Sentences about what must not happen.
        victims: The pods that leave for it.
        excess: Whether the cost exceeds that of the best way, number by number.
    """

    faults: list[str] = field(default_factory=list)
    victims: Victims = frozenset()
    excess: tuple[bool, ...] = (False,) * 4


def preempt(seed: int) -> Outcome:
    """Let one random group preempt in one random cluster."""
    draw = random.Random(seed)
    one, evicts = World.drawn(draw), draw.random() < 0.4
    members, cpu = draw.randint(1, 4), draw.randint(1, 3)
    cluster = a_cluster(
        [a_node(name, cpu=cpus) for name, cpus in one.nodes.items()], list(one.bound()), one.objects()
    )
    scheduler = ProfileScheduler(PROFILES[evicts], cluster)
    gang = [cluster.templates.info(a_pod(f"m{at}", cpu=cpu, priority=PRIORITY)) for at in range(members)]

    found = place_together([(pod, scheduler) for pod in gang], cluster, members, is_preempting=True)

    named = [victim.name for each in found.placements for victim in each.victims]
    ways = [each for each in one.ways(members, cpu) if not (evicts and one.overdrawn(each))]
    outcome = Outcome(victims=frozenset(named) if found.is_feasible else frozenset())
    if found.is_feasible > bool(ways) or (
        found.is_feasible < bool(ways) and one.is_plain and not one.budgets
    ):
        does = "starts" if found.is_feasible else "waits"
        outcome.faults.append(f"it {does}, and there are {len(ways)} ways")
    if not found.is_feasible or not ways:
        return outcome
    victims = outcome.victims
    wrong = one.wrong_with(victims)
    if wrong:
        outcome.faults.append(wrong)
    if len(named) > len(victims):
        outcome.faults.append(f"a pod is named twice: {sorted(named)}")
    free = one.free(victims)
    for each in found.placements:
        free[each.node] -= cpu
    if min(free.values()) < 0:
        outcome.faults.append(f"a node has more than it can hold: {free}")
    best, cost = min(map(one.cost, ways)), one.cost(victims)
    fewer = [sorted(each) for each in ways if each < victims]
    if fewer:
        outcome.faults.append(f"{sorted(victims)} leave, and {fewer[0]} suffice")
    outcome.excess = tuple(mine > its for mine, its in zip(cost, best, strict=True))
    return outcome
