"""Exchanges against all sets of small pods on all cool nodes, tried one by one, with round amounts."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import TYPE_CHECKING, Any

from plimsoll.framework.descheduling.proposals import Bundle, Destinations, Verdict
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.eviction_order import cheapest_first, eviction_cost
from plimsoll.toolkit.descheduling.fewest_moves import BAND, FewestMoves
from plimsoll.toolkit.descheduling.node_usage import NodeUsage, UsageError
from plimsoll.toolkit.descheduling.node_utilization import NodeEviction
from plimsoll.toolkit.descheduling.pod_exchange import MOST, PROPOSED, PodExchange
from strategies.builders import a_context, an_evictor

if TYPE_CHECKING:
    from plimsoll.framework import PodInfo
    from plimsoll.framework.descheduling.context import StrategyContext

BILLION = 10**9
CORES = 10
CAP = 6 * BILLION


class Known:
    """Usage of pods by name, in cores; those that are missing are not measured."""

    resources = ("cpu",)

    def __init__(self, use: dict[str, int], nodes: dict[str, NodeUsage]) -> None:
        self.use, self.nodes_by_name = use, nodes

    def nodes(self, context: StrategyContext) -> list[NodeUsage]:
        return [*self.nodes_by_name.values()]

    def some(self, names: Any, context: StrategyContext) -> list[NodeUsage]:
        return [self.nodes_by_name[name] for name in names]

    def pod(self, pod: PodInfo, context: StrategyContext) -> dict[str, int]:
        if pod.name not in self.use:
            raise UsageError("it is not measured")
        return {"cpu": self.use[pod.name] * BILLION}


class World:
    """A hot node or two, and cool ones that are full by requests of memory."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.hot, self.cool = ["h1", "h2"][: random.randint(1, 2)], ["c1", "c2", "c3"]
        pods, self.use = [], {}
        for node in (*self.hot, *self.cool):
            is_hot = node in self.hot
            for number in range(random.randint(1, 4)):
                name = f"{node}-{number}"
                pods.append(
                    a_pod(
                        name,
                        node=node,
                        namespace=random.choice(["x", "x", "x", "kept"]),
                        memory=f"{random.choice([3, 4] if is_hot else [1, 2, 2])}Gi",
                        priority=random.choice([1, 1, 2]),
                        owner=f"ReplicaSet/{name}",
                    )
                )
                if random.random() < 0.9:
                    self.use[name] = random.choice([2, 3] if is_hot else [0, 0, 1, 2])
        nodes = [
            a_node(name, cpu=str(CORES), memory="8Gi" if name in self.hot else "6Gi") for name in self.hot
        ]
        nodes += [a_node(name, cpu=str(CORES), memory=f"{random.choice([5, 6, 7])}Gi") for name in self.cool]
        self.context = a_context(nodes, pods, evictor=an_evictor(minReplicas=0), exact=False)
        self.usages = {
            node.name: NodeUsage(
                node,
                {
                    "cpu": (random.choice([7, 8, 9]) if node.name in self.hot else random.randint(1, 4))
                    * BILLION
                },
                {"cpu": CORES * BILLION},
            )
            for node in nodes
        }
        self.closed = {self.hot[-1]} if random.random() < 0.15 else set()
        usage: Any = Known(self.use, self.usages)
        fewest = FewestMoves(usage, lambda each: {"cpu": each.used["cpu"] - CAP}, [])
        eviction = NodeEviction(
            usage=usage,
            sources=[self.usages[each] for each in self.hot],
            destinations=[self.usages[each] for each in self.cool],
            room={"cpu": BILLION},
            may_go_on=lambda each: each.used["cpu"] > CAP,
            removable=lambda _: True,
            reason=lambda each: f"{each.name} is hot",
            targets=Destinations.among(frozenset(self.cool)),
            excluded=("kept",),
            fewest=fewest,
            closed=self.closed,
        )
        self.exchange = PodExchange(eviction, fewest)

    def pods_on(self, node: str) -> list[PodInfo]:
        return [
            each
            for each in self.context.pods(node)
            if each.namespace != "kept" and each.name in self.use and self.context.may_go(each)
        ]

    def memory(self, pod: PodInfo) -> int:
        return pod.requests["memory"]

    def lack(self, large: PodInfo, node: str) -> int:
        row = self.context.cluster.rows[node]
        free = self.context.snapshot.allocatable[row] - self.context.snapshot.requested[row]
        return max(self.memory(large) - int(free[self.context.cluster.axis_of("memory") or 1]), 0)

    def leaving(self, large: PodInfo, node: str) -> list[PodInfo] | None:
        """The small pods that the rule names: each covers the most of what is lacking, and uses least."""
        lack = self.lack(large, node)
        small = [
            each
            for each in self.pods_on(node)
            if each.priority <= large.priority and self.use[each.name] < self.use[large.name]
        ]
        for row in permutations(small, min(MOST, len(small))):
            missing, chosen, left = lack, [], [*small]
            for each in row:
                if missing <= 0:
                    break
                first = min(
                    left,
                    key=lambda pod: (
                        -min(self.memory(pod), missing),
                        self.use[pod.name],
                        eviction_cost(pod),
                    ),
                )
                if first is not each:
                    break
                chosen.append(each)
                left.remove(each)
                missing -= self.memory(each)
            if missing <= 0:
                return chosen
        return None

    def expected(self, large: PodInfo) -> tuple[str, list[str]] | None:
        """The best cool node and who leaves it."""
        found = []
        for node in self.cool:
            if not self.lack(large, node):
                continue
            pods = self.leaving(large, node)
            if pods is None:
                continue
            gain = self.use[large.name] - sum(self.use[each.name] for each in pods)
            after = self.usages[node].used["cpu"] / BILLION + gain
            if gain > 0 and after <= CAP / BILLION - BAND / 100 * CORES:
                found.append((len(pods), -gain, node, [each.name for each in pods]))
        return (min(found)[2], min(found)[3]) if found else None

    def order(self, node: str) -> list[PodInfo]:
        """Important pods last; those that bring the node below its target first, the smallest of them."""
        excess = (self.usages[node].used["cpu"] - CAP) / BILLION
        return sorted(
            self.pods_on(node),
            key=lambda pod: (
                cheapest_first(pod)[0],
                self.use[pod.name] < excess,
                self.use[pod.name] if self.use[pod.name] >= excess else -self.use[pod.name],
                cheapest_first(pod),
            ),
        )


def test_exchanges_are_those_that_trying_all_nodes_and_pods_finds() -> None:
    """Refused, accepted, several in a row: until the node is below its target, and three at most."""
    proposed, sizes = 0, set()
    for seed in range(150):
        world, random = World(seed), Random(f"verdicts {seed}")
        stream = world.exchange.candidates(world.context)
        bundle: Any = next(stream, None)
        for node in world.hot:
            pods = world.order(node) if node not in world.closed else []
            used, count = world.usages[node].used["cpu"], 0
            for large in pods:
                if world.usages[node].used["cpu"] <= CAP or count == PROPOSED:
                    break
                wanted = world.expected(large)
                if wanted is None:
                    continue
                count += 1
                target, leaving = wanted
                assert isinstance(bundle, Bundle)
                *small, last = bundle.candidates
                assert [each.pod.name for each in small] == leaving
                assert {each.node for each in small} == {target}
                assert {each.target for each in small} == {""}
                assert (last.pod.name, last.node, last.target) == (large.name, node, target)
                assert last.reason == f"{node} is hot"
                assert {each.reason for each in small} == {
                    f"makes room on node {target} for pod {large.key}, because {node} is hot"
                }
                proposed += 1
                sizes.add(len(small))
                verdict = random.choice([Verdict.ACCEPTED, Verdict.REFUSED])
                if verdict is Verdict.ACCEPTED:
                    used -= world.use[large.name] * BILLION
                try:
                    bundle = stream.send(verdict)
                except StopIteration:
                    bundle = None
                assert world.usages[node].used["cpu"] == used
        assert bundle is None
    assert proposed > 40
    assert sizes >= {1, 2}
